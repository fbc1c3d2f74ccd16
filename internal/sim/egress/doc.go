// Package egress is the sending side of one port: the virtual lanes in which packets
// wait for the wire, the arbitration that picks the next one, the credits of
// the port at the other end, and the time that a packet may wait. Packets are
// handles here; what they carry, and the wire itself, belong to the caller.
//
//	Configure        the port's tables and times, as its agent holds them
//	Enqueue          a packet wants to leave by this port
//	Next             the packet to send now, when the wire is idle
//	Pass             both at once, for a packet that finds nothing waiting
//	Credit           the other end has room again
//	Deadline, Expire when packets grow too old, and dropping them
//	Reset            the link went down: everything comes back
//
// A handle that Enqueue accepted comes out exactly once, by Next, Expire or
// Reset. One that it refused never went in. A handle may go in again once it
// came out.
//
// Time is the caller's and must not go backwards. When Deadline is reached the
// caller calls Expire before anything else at that time. Who is late loses no
// packet and sends none too late: Next does not hand out one whose time is up,
// and if nothing arrived meanwhile a late Expire drops what timely ones would
// have dropped.
//
// # Lifetimes
//
// The exits of switches and routers drop what waits too long (sources: the
// texts around SwitchInfo.LifeTimeValue). Both limits are 4.096 us * 2^code for
// the codes 0 to 19 and infinite above. The texts allow 5 % more and 55 % less;
// LimitPercent is our point in that window. A packet that has not begun to
// leave is dropped when
//
//   - it has been at the head of its virtual lane for the head-of-queue limit
//     (HOQLife). The next packet is at the head from that instant on;
//   - it is as old as the switch lifetime limit (LifeTimeValue), counted from
//     its first bit at the entry of the switch, at the head or not. A switch
//     that promises transit within 2.5 ms may leave this out: see Settings;
//   - its virtual lane is stalled. VLStallCount packets dropped in a row by the
//     head-of-queue limit stall a virtual lane for 8 head-of-queue limits: what waits
//     in the virtual lane goes at once, and so does what arrives. A packet that leaves
//     ends the row; one that is dropped for its age neither counts nor ends it.
//     Count 0 never stalls.
//
// This holds for every virtual lane, VL15 among them: the texts exempt none.
//
// # Arbitration
//
// VL15 goes first and needs no credit. A data virtual lane can send when its first
// packet fits into the free blocks of the peer's buffer. Each table keeps its
// place: the entry in turn sends while it has weight left, the last packet may
// overdraw it and the debt is forgotten. An entry that has nothing to send
// passes its turn on. The high-priority table goes before the low-priority one
// until VLHighLimit * 4096 octets have left by it (limit 0: one packet); then
// the low-priority table may send one packet, if it has one. High-priority
// traffic that pauses starts its count anew. Everything is counted in blocks of
// 64 octets, begun blocks whole.
//
// A virtual lane that has no entry with a weight waits: nothing serves it. Two cases
// have no tables to obey: with one data virtual lane in operation it is served as it
// comes, and with neither table written the virtual lanes in operation take turns,
// packet by packet.
package egress
