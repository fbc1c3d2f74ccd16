// Package wiring holds the devices of a simulated fabric with their agents,
// their ports, and the cables between them.
//
//	Wiring            all of it; New builds it from a topology
//	Node, External, EndPort, Peer   lookups by GUID and port number
//
// Packages that move packets read it by index: nodes in the order of the topology,
// the ports of a node one after the other from its port 0. Packages that change a
// cable or the state of a link write it.
package wiring
