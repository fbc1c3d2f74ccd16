// Package testbed is a simulated fabric with the actors of a scenario: stations that
// send and receive packets, the shortest path to every port, and a minimal bring-up
// that lets packets flow. It parses no text.
//
//	New                        a fabric of a topology
//	SendFrom, Resign           which end port packets are sent from
//	Ask                        one Get or Set, and its outcome
//	Until, Rest                time
//	PowerOff, PowerOn, Reboot, Misbehave   faults of a node
//	BringUp                    addresses, routes, Active links
//	Seat, Dismiss, Settle      managers that run by themselves
//	CreateQP, Connect, Send    queue pairs and their messages
//	Forge, Inject              a host that follows no rules
//	Traps, Drops, Sent         what was seen since Forget, or since the last packet of a caller
//
// BringUp deliberately does not use the project's own manager: scenarios of device
// behaviour do not depend on it.
package testbed
