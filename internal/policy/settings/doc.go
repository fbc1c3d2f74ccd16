// Package settings names what an administrator may ask of the links and devices
// of a fabric besides partitions: how long packets may wait, which virtual lanes take
// turns, what checks keys, what guards ports.
//
// A Settings is a value; Default says what a policy that does not speak of them
// means, and docs/settings.md why. Check finds what no device could hold. What is
// asked of which port is worked out elsewhere: of links and virtual lanes by package qos,
// of the rest by package sm.
package settings
