// Package replica makes a simulated fabric out of a snapshot, so that what the
// snapshot says of a packet can be tried with a packet.
//
//	Build          devices, cables and tables as they were read
//	Gaps           what the snapshot lacks, or no device can hold
//	Send           one packet of a host whose adapter keeps the rules
//	Forge          octets of a host whose adapter obeys nobody
//	Journey        the way of the packet that was sent last
//
// What becomes of a packet is decided by the simulated fabric and its end nodes
// alone: the agents hold the tables, octet for octet as devices answered, and
// nothing here looks into them to tell a packet's way. The package shares
// nothing with what computes ways over a snapshot.
//
// A port whose link is up, with nobody found behind it, has a stranger there,
// who takes nothing. A packet that is alone waits nowhere, whatever time it has.
// Traps, M_Keys and multicast are left out. Switch ports and receivers are as
// the snapshot has them; queue pairs cannot be read over the wire, so that
// each packet gets its own: UD goes from QP1 to QP1, which takes what matches
// any entry, the others to a queue pair bound to the first entry that matches.
package replica
