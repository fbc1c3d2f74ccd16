// Package observed is the snapshot of a subnet: what was read from its devices,
// and what they ought to hold.
//
// A Fabric is the observed state: nodes, ports, links and tables, each exactly as a
// device answered. Every answer, of a sweep or of a read-back, enters it through
// Absorb, so that every later question is about values that
// a device reported. What was not read is marked as such.
//
// Desired holds the values that a manager wants, node by node and port by port
// in the order of the Fabric it was computed for. Neither contains policy or
// behaviour.
package observed
