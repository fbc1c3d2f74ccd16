// Package directed is what one node of a simulated fabric does with a
// directed-route packet: the rules of hop pointer and hop count, both ways, with
// or without LID-routed parts.
//
//	Direct       the decision, with the packet's pointer and return path changed
//	StartsByLID  whether a packet begins with a LID-routed part
//
// It looks at the packet and at where it stands, and moves nothing. What makes no
// sense is to be discarded.
package directed
