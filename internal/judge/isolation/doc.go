// Package isolation proves that tenants are kept apart, only from a snapshot that was
// read back from the devices.
//
// The policy is given as partitions with their members (observed.Partition), of which
// nothing else counts. The package shares no code with those that compile a policy into
// tables or plan a change, so agreement between them is evidence.
//
// It computes two relations and compares each with the policy.
//
// The first assumes honest hosts. Two end ports can talk over a partition when
// the P_Key tables of both hold a key of it and at least one of the keys is
// full. A pair that can talk against the policy is a Violation. Switches and routes
// do not excuse it, since the tables are what isolates; but a violation says if one of
// them stops the packets today.
//
// The second assumes hostile hosts. Behind a switch port that enforces partitions
// inbound and outbound, a host that forges its own table is still confined to the
// partitions in the table of the switch port. An end port without such a guard
// is listed as unenforced. A guard that lets its host use a partition against the
// policy, over which it could reach another port, is
// listed as exposed. Port 0 of a switch needs no guard: whoever controls it controls
// the switch. Cables between switches are trusted. An end port behind a guard
// with an empty table reaches nobody, whatever its own table holds, read or not:
// neither relation includes it.
//
// The second relation considers partitions only, not membership. A switch
// applies the same match as an end port, so an entry of either membership
// passes a forged full key. In any InfiniBand fabric the separation of limited members
// of one partition depends on their own tables. Where the
// policy keeps two limited members of one partition apart, this is a caveat of
// the proof and not part of its verdict. A policy that gives each tenant of a service
// its own partition has no such caveat.
//
// Proof.SharedPorts lists the end ports that can talk to two others which
// cannot talk to each other. Only an attacker who controls one of them can relay
// between the two. Management packets on VL 15
// are kept apart by no P_Key and are outside the proof: Heed names the ports whose hosts'
// programs receive them.
//
// Raw packets carry no P_Key either: only the filters of switch ports stop
// them. With RawDenied a pair of end ports that may not talk is
// counted, and the verdict is ByEndPorts, when the switch port of neither the
// sender (inbound) nor the receiver (outbound) filters them; the locations are
// listed. Again, switches between the two do not excuse it.
//
// What was not read is unknown, never fine: a table with a missing block, a
// PortInfo, the SwitchInfo of a guard, a link that carries data to a
// device that did not answer. A violation found in what was read counts
// nevertheless. End ports that claim the same GUID are unknown too, since it cannot be
// told which one the policy means. Blocks marked as not read are no evidence, whatever
// they hold.
//
// The verdict on a pair of partitions is the worst of two: whether
// ports of one can talk to ports of the other against the policy, and whether
// the tables and guards of all ports of both were read and hold. The verdict
// on the fabric is the worst of all, ports without a partition included.
//
// Prove looks at the whole fabric. A Prover keeps intermediate results and checks only
// the ports that changed; its proof is the same. A MulticastProver does so for multicast
// tables. Classes and AsTables describe what the tables allow where there is no policy.
//
// All lists are ordered, bounded by the Max constants, and counted in full in
// Proof.Counts.
package isolation
