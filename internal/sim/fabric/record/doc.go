// Package record writes the packets that end ports of a simulated fabric send and
// receive to a capture file.
//
//	New                     begins a capture file
//	Data, Management        hooks for every packet: Config.DataTrace, Config.Trace
//	Datagram                one management datagram, for callers that carry it themselves
//	Err                     the first error
//
// A data packet is written once, as it leaves the node that sent it, octet by octet
// as on that link, whatever its outcome. An SMP, which travels without packet headers
// in the fabric, is written when an agent or a
// manager receives it, with the headers that it would have there; a lost one is
// not written. Nothing is written after an error.
package record
