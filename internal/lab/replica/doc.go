// Package replica builds a simulated fabric from a snapshot, so that the judgement of a
// packet can be checked by sending that packet.
//
//	Build          devices, cables and tables as they were read
//	Gaps           what the snapshot lacks, or no device can hold
//	Send           one packet of a host whose adapter follows the rules
//	Forge          bytes of a host whose adapter follows none
//	Journey        the path of the packet that was sent last
//
// The simulated fabric and its end nodes alone decide what happens to a packet: the
// agents hold the tables, byte for byte as devices answered, and
// this package does not read them to predict a path. It shares
// no code with the packages that compute paths over a snapshot.
//
// A port whose link is up and behind which no device was found gets a neighbour
// that receives nothing. A lone packet never waits, whatever its lifetime.
// Traps, M_Keys and multicast are left out. Switch ports and receivers are as
// in the snapshot. Queue pairs cannot be read over the wire, so
// each packet gets its own: UD goes from QP1 to QP1, which accepts what matches
// any entry; other transports go to a queue pair bound to the first entry that matches.
package replica
