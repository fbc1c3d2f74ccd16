// Package reach computes the path and the outcome of a packet from a snapshot: the
// decision of each port on the way and where the packet ends (Follow), and for all end
// ports and all their keys at once, how many packets end where
// (Count).
//
// It is independent: it shares only the snapshot and the attributes with the packages
// that compile or plan tables, and with the simulated fabric and its agents. It changes
// nothing.
//
// The rules, in the order in which they apply to a packet:
//
//	sender      its table holds the key; its port is Active, and does not have the LID
//	            itself (a CA or router keeps such packets); the service level has
//	            a virtual lane in operation
//	arrival     the port is Armed or Active; the virtual lane is in operation; a raw
//	            packet is not filtered; a port that enforces inbound has an
//	            entry that matches
//	forwarding  the linear table up to LinearFDBTop, or the random table and
//	            its default port; never back to the port of arrival
//	departure   the port is Active; raw packets, keys, virtual lane as above, with the
//	            SLtoVLMappingTable of the pair of ports; virtual lane 15 is a drop
//	receiver    the LID is its own; its table has an entry that matches
//
// Two keys match when their bases are equal and not zero and one of them at
// least is full. A switch makes a check if it announces the capability
// (SwitchInfo) and the check is on (PortInfo), at any external port. Packets
// on virtual lane 15 are out of scope: they carry management and have no P_Key check.
//
// The first rule that fails ends the packet, and so does the first that
// cannot be evaluated because an attribute was not read: then the disposition is
// Unknown, even if a later rule might have stopped the packet anyway. Queue pairs cannot
// be read over the wire: Delivered means that the receiving port accepts the packet for
// a queue pair with that key. Only the well-known Q_Key of QP1 can be checked.
//
// # Why two ports can or cannot talk
//
// Explain says why one end port can or cannot talk to another: the cause in one
// sentence, and what would change it.
//
// It looks at the P_Key tables of both ports first. Two ports can talk over a partition
// when both tables hold a key of it and at least one of the two is full. Where they do,
// Follow takes a packet each way, since a switch or a link on the way may stop
// it. Both ways must work: an answer needs them.
//
// What was not read is unknown, never fine: an answer is CauseUnknown when the keys or the
// way that would decide were not read, and Talks only where everything was.
package reach
