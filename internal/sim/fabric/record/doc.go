// Package record writes what the end ports of a simulated fabric send and get to a
// capture file.
//
//	New                     begins a capture file
//	Data, Management        to be told of every packet: Config.DataTrace, Config.Trace
//	Datagram                one management datagram, for whoever carries it himself
//	Err                     the first thing that went wrong
//
// A data packet is written once, as it leaves the node that sent it, octet by octet
// as it is on that link, whatever becomes of it later. A subnet-management packet,
// which travels without packet headers in the fabric, is written when an agent or a
// manager gets it, with the headers that it would have there; one that gets lost is
// not. Nothing is written after an error.
package record
