// Package isolation proves, from a snapshot that was read back from the
// devices and from nothing else, that tenants are kept apart.
//
// It is told what a policy allows as plain sets (Partition) and shares no code
// with what compiles a policy into tables or plans a change: agreement between
// them means something because none calls another.
//
// Two relations are worked out and each is held against the policy.
//
// The first believes the hosts. Two end ports can talk over a partition when
// the P_Key tables of both hold a key of it and at least one of the keys is
// full. A pair that can talk and may not is a Violation. Switches and routes
// do not excuse it, though a violation says when one of them stops the packets
// today: the tables are what isolates.
//
// The second believes no host. Behind a switch port that enforces partitions
// inbound and outbound, a host that forges its own table is still held to the
// partitions in the table of the switch port. An end port without such a guard
// is listed as unenforced; a guard that lets its host use a partition which
// the policy does not give it, and over which somebody can be reached, is
// listed as exposed. Port 0 of a switch needs no guard: whoever forges it owns
// the switch. Cables between switches are trusted. An end port behind a guard
// with an empty table reaches nobody, whatever its own table holds or was not
// read to hold: neither relation has it.
//
// The second relation looks at partitions only, not at membership. A switch
// applies the same match as an end port, so that an entry of either membership
// lets a forged full key through; that limited members of one partition do not
// reach each other rests on their own tables in any InfiniBand fabric. Where the
// policy keeps two limited members of one partition apart, this is a caveat of
// the proof and no part of its verdict; where it gives no partition to ports that
// it keeps apart, but one for each tenant of a service, there is none.
//
// Proof.Meeting are the end ports where others meet: that can talk to two which
// cannot talk to each other. Who has taken one of them can pass on what one says
// to the other; nobody else can. Management packets on VL 15
// carry no P_Key and are outside the proof.
//
// Raw packets carry none either: nothing but the filters of switch ports keeps
// them from anybody. With RawDenied a pair of end ports that may not talk is
// counted, and the verdict is ByEndPorts, when the switch port of neither the
// sender (inbound) nor the receiver (outbound) filters them; the places are
// listed. What lies between the two is no excuse, as everywhere here.
//
// What was not read is unknown, never fine: a table with a missing block, a
// PortInfo, the SwitchInfo behind a guard, a link that carries data to a
// device that did not answer. A violation seen in what was read stands
// nevertheless. So are end ports that claim one GUID: which of them the policy
// means cannot be told. Blocks marked as not read are no evidence, whatever they hold.
//
// A pair of partitions is as good as the worst of what it rests on: whether
// ports of one can talk to ports of the other against the policy, and whether
// the tables and guards of all ports of both were read and hold. The verdict
// on the whole is the worst of everything, ports of no partition included.
//
// Prove looks at the whole. A Prover keeps what a proof rests on and looks again
// at the ports that changed only; its proof is the same. Classes and AsTables
// say what the tables amount to where there is no policy.
//
// All lists are ordered, bounded by the Max constants, and counted in full in
// Proof.Counts.
package isolation
