// Package testbed is a simulated fabric with somebody to act on it: stations that
// send packets and take what comes in, the shortest way to every port, and the
// least bring-up that lets packets flow. It knows no text.
//
//	New                        a fabric of a topology
//	SendFrom, Resign           which end port packets are sent from
//	Ask                        one Get or Set, and what became of it
//	Until, Rest                time
//	PowerOff, PowerOn, Reboot, Misbehave   what befalls a node
//	BringUp                    addresses, routes, Active links
//	Seat, Dismiss, Settle      managers that run by themselves
//	CreateQP, Connect, Send    queue pairs and their messages
//	Forge, Inject              a host that obeys nobody
//	Traps, Drops, Sent         what was seen since Forget, or since the last packet of a caller
//
// BringUp is deliberately not the project's own manager: what devices do is
// shown without it.
package testbed
