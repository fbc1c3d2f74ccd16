// Package stage is a simulated fabric with somebody to act on it: stations that
// send packets and take what comes in, the shortest way to every port, and the
// least bring-up that lets packets flow. It knows no text.
//
//	New                        a fabric of a topology
//	SendFrom, Resign           which end port packets are sent from
//	Ask                        one Get or Set, and what became of it
//	Until, Rest                time
//	PowerOff, PowerOn, Reboot, Misbehave   what befalls a node
//	BringUp                    addresses, routes, Active links
//	Traps, Drops               what was seen since Forget, or since the last Ask
//
// BringUp is deliberately not the project's own manager: what devices do is
// shown without it.
package stage
