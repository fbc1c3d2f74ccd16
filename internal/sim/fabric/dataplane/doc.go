// Package dataplane moves data packets in a simulated fabric: end nodes send
// and receive, switches and routers forward, links lose and corrupt packets.
// It works on the devices and cables of package wiring and on an event queue
// of package timeline. Subnet management belongs to package fabric, which executes
// events (Event), reports faults of devices and links,
// and answers for agents and subnet management (Carrier).
//
//	New, Event                    a data plane, and its events
//	Device, Inject                end nodes, and hosts that follow no rules
//	Configure, AfterSet, Announce changes by an agent
//	PowerOff, LinkLost, LinkFailed   what went down
//	SetLinkFault, Withhold, SetReckless, SetSpoiling, SetLoss   faults of links and devices
//	Counts, InFlight, Waiting, Counters, Config.Trace   the outcomes
//
// Package relay decides for switches and routers, package
// egress for virtual lanes, credits and lifetimes, package endpoint for end nodes;
// package outcome lists the results.
//
// The headers of a packet are parsed once and its VCRC is computed once, as long as
// its octets do not change. A link that flips a bit, a host that injects octets,
// and a relay that changes the virtual lane or the address cause them to be parsed or
// checked again at the next port. The receiver always checks the ICRC.
package dataplane
