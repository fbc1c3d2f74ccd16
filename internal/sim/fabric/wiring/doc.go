// Package wiring is what a simulated fabric is made of: devices with their agents,
// ports, and the cables between them.
//
//	Wiring            all of it; New makes it of a topology
//	Node, External, EndPort, Peer   where something is, by GUID and port number
//
// Whoever moves packets reads it by index: nodes in the order of the topology,
// the ports of a node one after the other from its port 0. Whoever changes a
// cable or the state of a link writes it.
package wiring
