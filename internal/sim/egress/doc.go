// Package egress models the transmit side of a port: virtual lane queues, arbitration,
// credits of the peer and packet lifetimes. Packets are
// handles here; their content, and the wire itself, belong to the caller.
//
//	Configure        the port's tables and times, as its agent holds them
//	Enqueue          a packet is to leave by this port
//	Next             the packet to send now, when the wire is idle
//	Pass             both at once, for a packet when nothing is queued
//	Credit           the peer has room again
//	Deadline, Expire when packets grow too old, and dropping them
//	Reset            the link went down: all packets are returned
//
// A handle that Enqueue accepted comes out exactly once, by Next, Expire or
// Reset. One that it refused was never queued. A handle may be queued again once it
// has come out.
//
// Time is the caller's and must not go backwards. When Deadline is reached, call
// Expire before anything else at that time. A late call loses no
// packet and sends none too late: Next does not return a packet whose time is up,
// and if nothing arrived meanwhile a late Expire drops what timely ones would
// have dropped.
//
// # Lifetimes
//
// Switches and routers drop packets that wait too long at an exit (sources: the
// texts around SwitchInfo.LifeTimeValue). Both limits are 4.096 us * 2^code for
// the codes 0 to 19 and infinite above. The texts allow 5 % more and 55 % less;
// LimitPercent is our point in that range. A packet that has not begun to
// leave is dropped when
//
//   - it has been at the head of its virtual lane for the head-of-queue limit
//     (HOQLife). The next packet is at the head from that instant on;
//   - it is as old as the switch lifetime limit (LifeTimeValue), counted from
//     its first bit at the entry of the switch, at the head or not. A switch
//     that promises transit within 2.5 ms may leave this out: see Settings;
//   - its virtual lane is stalled. VLStallCount packets dropped in a row by the
//     head-of-queue limit stall a virtual lane for 8 head-of-queue limits: all packets
//     in the virtual lane are dropped at once, and so are those that arrive. A packet
//     that leaves ends the row; one that is dropped for its age neither counts nor ends
//     it. Count 0 never stalls.
//
// This holds for every virtual lane, VL15 included: the texts exempt none.
//
// # Arbitration
//
// VL15 goes first and needs no credit. A data virtual lane can send when its first
// packet fits into the free blocks of the peer's buffer. Each table keeps its
// position: the current entry sends while it has weight left; the last packet may
// exceed the weight, and the excess is forgotten. An entry without a packet to send
// is passed over. The high-priority table goes before the low-priority one
// until VLHighLimit * 4096 bytes have left by it (limit 0: one packet); then
// the low-priority table may send one packet, if it has one. A pause in high-priority
// traffic resets its count. Everything is counted in blocks of
// 64 bytes, rounded up.
//
// A virtual lane without an entry that has a weight is never served. Two cases
// use no table: with one data virtual lane in operation packets leave in order, and
// with neither table written the virtual lanes in operation take turns,
// packet by packet.
package egress
