// Package discover lists an InfiniBand fabric: its nodes, their ports and the cables
// between them. It sends SubnGet by directed routes and nothing else, so it changes
// nothing and needs no subnet manager, and a port without a LID will do.
//
//	c, port, err := umad.Open("/", umad.Place{}) // a port of this machine
//	a, err := discover.NewAgent(c)
//	fabric, err := discover.List(a)
//
// Inside `ibwarden sim exec` the same program lists a simulated fabric. Asker is what
// List needs of a port: whoever has another way to a fabric brings one of his own.
//
// Where a manager guards devices by M_Keys so that only who knows the key may read,
// the others do not answer: Agent.MKey takes a key that all have in common. ibwarden
// gives each a key of its own, which only it and its administrator know.
//
// What devices say is taken as they say it: a device that claims to be another
// confuses the list, but it cannot make it longer than MaxNodes. For a reading that
// holds what it finds against itself and against a list of cables there is ibwarden.
package discover
