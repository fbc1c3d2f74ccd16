// Package endpoint implements the end node of a simulated fabric: queue pairs and EE
// contexts with their verbs, and their P_Key and Q_Key checks.
// A Device is a value. Verbs calls, packets and time go in;
// packets, completions, events and violations come out.
//
//	New                          a device with its ports (interface Port)
//	QueryDevice, QueryPort, QueryPKey, CreateQP, RegisterMemory   verbs of the device
//	QP.Modify, Query, PostSend, PostReceive, Poll, AttachMulticast, Destroy   verbs of a QP
//	CreateRDQP, CreateEEContext  reliable datagrams, below the verbs
//	Receive                      a packet that the link has accepted
//	Send                         the next packet that leaves by a port
//	Deadline, Expire             retry timers
//	Announce, NextEvent          asynchronous events
//
// # Packets
//
// Packets are whole, LRH to VCRC. Receive neither keeps nor changes its
// input; the link checks the VCRC, this package the ICRC. Send builds
// packets one at a time when the link can take one, so none queue here:
// P_Key, LIDs and the CRCs are those of that moment, and a change of the P_Key
// table shows in the next packet. LRH.VL is 15 for QP0 and 0 for all others:
// the link maps the SL to a virtual lane and recomputes the VCRC. A packet to one of
// the port's own LIDs comes out of Send like any other.
//
// A packet is checked in this order: lengths and versions; state of the port;
// DLID and DGID; ICRC; virtual lane 15 for QP0 and for nothing else; the QP (or EE
// context), its port, transport and state; the P_Key; the Q_Key; and then the checks of
// its transport. The first that fails drops it; Result.Reason names it.
// A drop sends nothing back and changes no state, except what reliable
// transports answer once the P_Key has passed: PSN, RNR and refused requests, and
// in RD a wrong Q_Key.
//
// # Keys
//
// A QP sends and checks the entry of its port's table that its P_Key index
// selects; for RD it is the index of the EE context. QP0 checks none and sends the
// default key unless the request names another; QP1 accepts what matches any entry and
// sends the entry that the request selects; raw packets have none. A QP cannot be bound
// to an empty entry, but the entry may become empty later: the QP then sends that
// value and accepts nothing. All 32 bits of a Q_Key are compared.
//
// A drop for a key is a Violation, for the agent to count and report. A multicast
// datagram is refused by the port when no attached QP accepts it, which is one
// violation: of the P_Key if no QP's matched, of the Q_Key otherwise. QueryPort returns
// the port's violation counters only if the device has the capability.
//
// # Buffers
//
// The buffers of a request belong to the consumer, who must not change them until the
// completion. Datagrams are received behind room for a GRH, GRHSize bytes, filled
// when the packet has one. A request keeps its entry in its queue until its
// completion is polled, so completions never overflow.
//
// # Domains
//
// Several programs may have queue pairs, memory and EE contexts of one device. A
// Domain separates them: R_Keys and QP numbers can be guessed, but a guess
// cannot name an object of another domain.
//
// # Reliable transports
//
// RC resends from the oldest unacknowledged packet after the time-out
// of the QP or a NAK, RetryCount times; progress resets the count. Then the
// request fails and the QP enters the error state with all that was queued. An EE
// context carries the messages of many QPs one after the other; a refused one fails for
// its QP alone (state SQE), and a RESYNC lets the next begin. Atomics are refused.
package endpoint
