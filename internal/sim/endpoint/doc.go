// Package endpoint is the end node of a simulated fabric in the terms of the
// verbs: queue pairs and EE contexts, and what they do with P_Keys and Q_Keys.
// A Device is a value. It takes verbs calls, packets and time, and gives
// packets, completions, events and violations.
//
//	New                          a device over its ports (interface Port)
//	QueryDevice, QueryPort, QueryPKey, CreateQP, RegisterMemory   verbs of the device
//	QP.Modify, Query, PostSend, PostReceive, Poll, AttachMulticast, Destroy   verbs of a QP
//	CreateRDQP, CreateEEContext  reliable datagrams, beneath the verbs
//	Receive                      a packet that the link has accepted
//	Send                         the next packet that leaves by a port
//	Deadline, Expire             retry timers
//	Announce, NextEvent          asynchronous events
//
// # Packets
//
// Packets are whole, LRH to VCRC. Receive neither keeps nor changes what it is
// given; the VCRC is the link's to check, the ICRC is checked here. Send makes
// packets one at a time when the link can take one, so that none queue here:
// P_Key, LIDs and the CRCs are those of that moment, and a change of the P_Key
// table shows in the next packet. LRH.VL is 15 for QP0 and 0 for all others:
// the link maps the SL to a virtual lane and seals the VCRC anew. A packet to one of
// the port's own LIDs comes out of Send like any other.
//
// A packet passes, in this order: lengths and versions; state of the port;
// DLID and DGID; ICRC; virtual lane 15 for QP0 and for nothing else; the QP (or EE
// context), its port, transport and state; the P_Key; the Q_Key; and then what
// its transport asks for. The first that fails drops it; Result.Reason names it.
// A drop sends nothing back and changes no state, but for what reliable
// transports answer once the P_Key has passed: PSN, RNR and refused requests, and
// in RD a wrong Q_Key.
//
// # Keys
//
// A QP stamps and checks the entry of its port's table that its P_Key index
// selects, RD the EE context's. QP0 checks none and sends the default key unless
// the request names another; QP1 takes what matches any entry and sends the entry
// that the request selects; raw packets have none. A QP cannot be bound to an
// entry that is empty, but the entry may become so later: the QP then stamps what
// stands there and accepts nothing. Of a Q_Key all 32 bits are compared.
//
// A drop for a key is a Violation, for the agent to count and report. A multicast
// datagram is refused by the port when no attached QP takes it, which is one
// violation: of the P_Key if no QP's matched, of the Q_Key otherwise. Verbs show
// the port's counters only with the device's flag for it.
//
// # Buffers
//
// What a request points to stays the consumer's, who leaves it alone until the
// completion. Datagrams are received behind room for a GRH, GRHSize octets, filled
// when the packet has one. A request takes its place in its queue until its
// completion is polled, so that completions never overflow.
//
// # Domains
//
// Several programs may have queue pairs, memory and EE contexts of one device. A
// Domain keeps them apart: R_Keys and numbers of queue pairs can be guessed, and
// what a guess names in another domain is not there.
//
// # Reliable transports
//
// RC resends from the oldest packet that is not acknowledged, after the time-out
// of the QP or a NAK, RetryCount times; progress starts the count again. Then the
// request fails and the QP is in error with all that was queued. An EE context
// carries the messages of many QPs one after the other; a refused one fails for
// its QP alone (state SQE), and a RESYNC lets the next begin. Atomics are refused.
package endpoint
