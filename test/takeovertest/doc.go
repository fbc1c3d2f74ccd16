// Package takeovertest has Debian's OpenSM manage a simulated fabric, ibwarden take it over
// by priority and SM_Key, and OpenSM get it back, while hosts send to each other without
// a pause. After every Set that a device has answered each host sends to each other one
// with each of its keys. What has to arrive and what must not comes from the meaning of the
// partitions.conf, and from neither manager. All tables are compared before and after.
package takeovertest
