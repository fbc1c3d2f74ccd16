// Package fabric simulates an InfiniBand subnet: the nodes of a topology.Netlist with
// their agents (package sma), the cables between them, and the packets on their way. It
// carries SMPs, byte by
// byte as they would be on the wire; a manager uses the fabric through an
// Attachment, which is one end port of one node.
//
//	New                      a fabric with its links trained and no LIDs set
//	Attach, Send, Receive    the access of a manager
//	NextEvent, Step, AdvanceTo   time, which moves only here
//	Link, Unlink, PowerOff, PowerOn, SetFault, At   faults and changes
//	Received, Counts, Config.Trace   what happened, for tests and captures
//	Plug, Send, Poll             the place of a device that is not simulated here
//	Device, Inject               data packets: end nodes, and hosts that follow no rules
//	DataCounts, DataInFlight, DataWaiting, Counters, Config.DataTrace   their outcomes
//	SetLinkFault, Flap, Swap, Withhold, SetReckless, SetSpoiling   faults for data packets
//
// # Carrying
//
// Every node on the path of a directed-route packet processes it
// by the rules for its hop pointer, in both directions, with or without LID-routed
// parts; it crosses any link whose two ends are physically up. Each switch looks a
// LID-routed packet up in its forwarding table; it reaches port 0 of a
// switch only if the table says so, and a port only under one of the port's
// LIDs. A packet that cannot continue is dropped silently and counted with its Reason.
//
// A request ends at the agent of the port that it reached. SMInfo and traps
// are delivered to the attached manager if it has announced itself (SetIsSM),
// answers always. An agent acts and answers in one instant, AgentDelay after
// the packet reached it; changes of its own links happen once the answer
// has left. If a link trains in no time, the answer shows it trained: it goes
// down and comes up again before the answer leaves. Agents do not queue: each packet
// has the delay to itself.
//
// # Links
//
// A cable trains when both its ends poll and share a width and a speed. A link
// that one end takes down goes down at the other end in the same instant.
// Switches whose links change by themselves set PortStateChange and send trap
// 128; the agent decides which transitions are legal.
//
// # Data packets
//
// Device returns the end node of a node (package endpoint). The packets of its queue
// pairs travel as bytes, LRH to VCRC: each link carries the VCRC, which is checked on
// arrival and recomputed where the virtual lane changes; package relay decides in
// switches and routers; package egress queues packets at each exit, with
// virtual lanes, arbitration, credits and lifetimes. The receiver checks the ICRC.
// The VCRC of bytes that have not changed since it was
// computed or checked is not computed again.
//
// An end node reports packets that it refused for P_Key or Q_Key to its agent, which
// counts them and sends traps 257 and 258; a switch port that refuses a packet on
// arrival causes trap 259. Packets refused at an exit move only the performance
// counters. Changes that a manager writes reach the consumer as events.
//
// At a Plug a device outside, such as a Linux kernel with its adapter, is in the place of a CA: it gets
// and sends packets as they cross its cable, LRH to VCRC, those of subnet management too, and its own
// agents answer. The fabric keeps the link, credits and time.
//
// QP0 packets of a Device are carried like all other subnet management, without
// their packet headers, and reach its QP0 when no manager is attached to its
// port. The node itself answers performance management at QP1.
//
// Each port has room for InputBlocks of each data virtual lane. A packet occupies its
// room until it begins to leave, or ends, and the sender waits for room; credits
// return at once. No packet is lost for want of credits, but one may exceed its
// lifetime. When a link goes down, all packets on it or waiting for it are lost, and
// both ends begin with all their room. When NextEvent finds nothing more, the only
// packets left wait for credits that will not come, at exits without a time limit.
//
// A router forwards packets with a GRH to a subnet that it has a port in, by the
// GUID in DGID; it knows what its port would otherwise query from the subnet's SA.
// DataTrace reports each packet at each hop, with an Outcome.
//
// # Time and randomness
//
// Time is virtual. Events happen in the order of their time and, at one time,
// in the order in which they were created. All randomness (Loss, Jitter) is drawn from
// Config.Seed in the order of events, so that the same calls give the same packets at
// the same times, byte for byte.
//
// A Fabric is not safe for concurrent use. Hooks run inside Step and must not
// call back into the Fabric, except for functions given to At.
//
// Recorder writes the packets that end ports of a simulated fabric send and receive to
// a capture file. Data and Management are hooks for every packet (Config.DataTrace,
// Config.Trace).
//
// A data packet is written once, as it leaves the node that sent it, byte by byte as on that
// link, whatever its outcome. An SMP, which travels without packet headers in the fabric, is
// written when an agent or a manager receives it, with the headers that it would have there;
// a lost one is not written. Nothing is written after an error.
package fabric
