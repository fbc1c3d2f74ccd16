// Package fabric simulates an InfiniBand subnet: every node of a
// topology.Netlist with its agent (package sma), the cables between them, and
// the packets on their way. It carries subnet-management packets, octet by
// octet as they would be on the wire; a manager sees the fabric through an
// Attachment, which is one end port of one node.
//
//	New                      a fabric with its links trained and nobody's LID set
//	Attach, Send, Receive    a manager's way in and out
//	NextEvent, Step, AdvanceTo   time, which moves only here
//	Link, Unlink, PowerOff, PowerOn, SetFault, At   what befalls a fabric
//	Received, Counts, Config.Trace   what happened, for tests and captures
//	Device, Inject               data packets: end nodes, and hosts that obey nobody
//	DataCounts, DataInFlight, DataWaiting, Counters, Config.DataTrace   what became of them
//	SetLinkFault, Flap, Swap, Withhold, SetReckless, SetSpoiling   what befalls them
//
// # Carrying
//
// A directed-route packet is looked at in every node that it passes and moves
// by the rules of its hop pointer, both ways, with or without LID-routed parts;
// it crosses any link whose two ends are physically up. A LID-routed packet is
// looked up in the forwarding table of each switch; it reaches port 0 of a
// switch only if the table says so, and a port only under one of the port's
// LIDs. What cannot go on is dropped silently and counted with its Reason.
//
// A request ends at the agent of the port that it reached. SMInfo and traps
// are handed to the attached manager when it has announced itself (SetIsSM),
// answers always. An agent acts and answers in one instant, AgentDelay after
// the packet reached it; what it does to its own links happens once the answer
// has left. Where a link trains in no time the answer shows it trained: it goes
// down and comes up again before the answer leaves. Agents do not queue: each packet has its delay to itself.
//
// # Links
//
// A cable trains when both its ends poll and share a width and a speed. A link
// that one end takes down goes down at the other end in the same instant.
// Switches whose links change by themselves set PortStateChange and send trap
// 128; which transitions are legal is the agent's affair.
//
// # Data packets
//
// Device gives the end node of a node (package endpoint). Its queue pairs' packets
// travel as octets, LRH to VCRC: over each link with its VCRC, checked on arrival
// and computed anew where the virtual lane changes; through switches and routers by the
// verdicts of package relay; and queued at each exit by package egress, which has
// the virtual lanes, the arbitration, the credits and the lifetimes. The ICRC is the
// receiver's affair. The VCRC of octets that nobody has touched since it was
// computed or checked is known to be right and is not computed again.
//
// What an end node refuses for its P_Key or Q_Key is told to its agent, which
// counts and sends traps 257 and 258; what the port of a switch refuses on
// arrival, 259. What an exit refuses is counted by the performance counters
// alone. What a manager writes reaches the consumer as events.
//
// QP0 packets of a Device are carried like all other subnet management, without
// their packet headers, and come to its QP0 when no manager is attached to its
// port. Performance management at QP1 is answered by the node itself.
//
// Each port has room for InputBlocks of each data virtual lane. A packet fills its room
// until it begins to leave, or ends, and the sender waits for room; credits come
// back at once. No packet is lost for want of them, but one may be too old. When
// a link goes down all that is on it or waits for it is lost, and both ends begin
// with all their room. When NextEvent finds nothing more, only packets that wait
// for credits that nobody will give, at exits without a time limit, are left.
//
// A router passes on what has a GRH for a subnet that it has a port in, by the
// GUID in DGID; what its own port would ask the subnet's administration, it
// knows. DataTrace tells of each packet at each place, with a Outcome.
//
// # Time and chance
//
// Time is virtual. Events happen in the order of their time and, at one time,
// of their making. All chance (Loss, Jitter) is drawn from Config.Seed in the
// order of events, so that the same calls give the same packets at the same
// times, byte for byte.
//
// A Fabric is not safe for concurrent use. Hooks run inside Step and must not
// call back into the Fabric, except that a function given to At may.
package fabric
