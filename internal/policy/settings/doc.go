// Package settings names the settings of links and devices in a policy: packet
// lifetimes, VL arbitration, P_Key enforcement, M_Key protection.
//
// A Settings is a value; Default has the values that a policy without settings
// means, and docs/settings.md the reasons. Check finds what no device could hold. Package
// qos computes the settings of links and virtual lanes from it,
// package desired/ports the rest.
package settings
