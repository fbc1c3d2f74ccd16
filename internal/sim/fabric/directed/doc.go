// Package directed implements directed-route processing at one node: the rules for hop
// pointer and hop count, in both directions, with or without LID-routed parts.
//
//	Direct       the decision, with the packet's pointer and return path updated
//	StartsByLID  whether a packet begins with a LID-routed part
//
// It reads the packet and its location, and moves nothing. Invalid packets are to be
// discarded.
package directed
