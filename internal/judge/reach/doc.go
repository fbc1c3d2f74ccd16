// Package reach says what becomes of a packet on a fabric as it was read: what
// each port on its way makes of it, and where it ends (Follow), and for all end
// ports and all keys that they hold at once, how many packets end where
// (Count).
//
// It has an opinion of its own: it shares nothing with what compiles or plans
// tables, with the simulated fabric or with its agents, only the snapshot and
// the attributes. Nothing is changed.
//
// The rules, in the order in which a packet meets them:
//
//	sender      its table holds the key; its port is Active, and has not the LID
//	            itself (a CA or router keeps such packets); the service level has
//	            a virtual lane in operation
//	arrival     the port is Armed or Active; the virtual lane is in operation; a raw
//	            packet is not filtered; a port that checks keys inbound has an
//	            entry that matches
//	forwarding  the linear table up to LinearFDBTop, or the random table and
//	            its default port; never back where the packet came from
//	departure   the port is Active; raw packets, keys, virtual lane as above, with the
//	            SLtoVLMappingTable of the pair of ports; virtual lane 15 is a drop
//	receiver    the LID is its own; its table has an entry that matches
//
// Two keys match when their bases are equal and not zero and one of them at
// least is full. A switch makes a check that it announces the means for
// (SwitchInfo) and that is turned on (PortInfo), at any external port. Packets
// on virtual lane 15 are outside: they carry management, and no key is asked for.
//
// The first rule that is not met ends the packet, and so does the first that
// cannot be told because an attribute was not read: then the disposition is
// Unknown, though a later rule might have stopped it anyway. Queue pairs are
// not on the wire: Delivered means that the receiving port takes the packet for
// one that holds the key, and where a Q_Key is asked about, only the well-known
// one of QP1 can be told.
package reach
