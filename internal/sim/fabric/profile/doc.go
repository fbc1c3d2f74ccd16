// Package profile holds the default capabilities of simulated devices: common
// table sizes, virtual lanes and MTUs, and the names, GUIDs and rates of the topology.
package profile
