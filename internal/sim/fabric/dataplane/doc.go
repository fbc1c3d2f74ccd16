// Package dataplane is how data packets move in a simulated fabric: end nodes send
// and receive them, switches and routers pass them on, links lose and spoil them.
// It works on the devices and cables of package wiring and on a queue of events
// that package timeline keeps; subnet management is the affair of the fabric
// around, which lets events happen (Event), tells what befalls devices and links,
// and is asked for what concerns agents and subnet management (Carrier).
//
//	New, Event                    a data path, and what it lets happen
//	Device, Inject                end nodes, and hosts that obey nobody
//	Configure, AfterSet, Announce what an agent has changed
//	PowerOff, LinkLost, LinkFailed   what went down
//	SetLinkFault, Withhold, SetReckless, SetSpoiling, SetLoss   what befalls packets
//	Counts, InFlight, Waiting, Counters, Config.Trace   what became of them
//
// What each decision is made by: package relay for switches and routers, package
// egress for virtual lanes, credits and lifetimes, package endpoint for end nodes, package
// outcome for what the decisions come to.
//
// A packet's headers are found once and its VCRC is computed once, as long as
// nobody touches its octets: a link that flips a bit, a host that injects octets,
// a relay that changes the virtual lane or the address, each make that they are read or
// checked anew at the next port. The ICRC is checked by the receiver, always.
package dataplane
