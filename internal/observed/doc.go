// Package observed is the snapshot: what was read from the devices of a subnet,
// and what they ought to hold.
//
// A Fabric is Observed: nodes, ports, links and tables, each exactly as a
// device answered. Absorb is the only way for an answer to get into it, for
// sweeps and for read-backs alike, so that every later question is put to what
// a device said and to nothing else. What was not read stays marked as such.
//
// Desired holds the values that a manager wants, node by node and port by port
// in the order of the Fabric it was computed for. Neither contains policy or
// behaviour.
package observed
