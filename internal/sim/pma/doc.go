// Package pma implements the performance management agent of a simulated device: the
// counters of its ports, and Get and Set of them.
//
//	New      the counters of a device, all zero
//	Port     one port's counters, for the code that counts
//	Handle   turns a datagram into its answer
//
// A counter is kept once, as wide as PortCountersExtended has it. PortCounters
// shows it in its narrow form, all ones when it does not fit, and a Set of
// either form writes it. PortCountersExtended has the counters of errors too, as
// ClassPortInfo says in CapabilityMask2.
//
// AllPorts reads the sum of all ports, and a Set of it writes each.
package pma
