// Package discover lists an InfiniBand fabric: its nodes, their ports and the cables
// between them. It sends only SubnGet with directed routes. It changes nothing, and
// needs neither a subnet manager nor a LID on the local port.
//
//	c, port, err := umad.Open("/", umad.Place{}) // a port of this machine
//	a, err := discover.NewAgent(c)
//	fabric, err := discover.List(a)
//
// Inside `ibwarden sim exec` the same program lists a simulated fabric. List needs an
// Asker; implement it to reach a fabric by other means.
//
// If a manager protects devices with M_Keys at a level that also protects reads,
// devices do not answer without the key. Agent.MKey sets one key for all devices.
// ibwarden gives each device its own key, so only its administrator can read them.
//
// List believes what devices report: a device that claims the GUID of another
// corrupts the list, but cannot make it longer than MaxNodes. ibwarden checks the
// reports against each other and against a list of cables.
package discover
