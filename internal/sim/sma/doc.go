// Package sma implements the subnet management agent of a simulated device: a CA, a
// router, or a switch with base or enhanced port 0. An Agent is a value; it
// takes SMPs and link events with their time, changes its state, and returns the
// effects.
//
//	New            a device as it is at power-up
//	Handle         one packet that reached the agent, turned into its answer
//	LinkUp, LinkDown, SetIsSM, BadPKey, ...   other events of the device
//	Deadline, Expire   M_Key leases and traps that wait for their time
//
// An Effect is a link that has to go down or train again, a table
// that changed, or a trap to send. Effects come in the order in which they
// happened and are valid until the next call of the same Agent.
//
// On LinkMoved the fabric must carry the change to the other end of the
// cable: LinkDown there if that port is up, then Train, and LinkUp at both ends
// if they agree. The same is done for each cable at power-up. A fabric that does
// so before it sends the answer of the Set updates the answer with ShowLink.
//
// The agent receives packets at the end of their path: directed routes,
// queues and links belong to the fabric. Packets for a subnet manager are
// handed on (ForManager) if one has announced itself with SetIsSM, and
// refused or dropped otherwise.
//
// Which elements of PortInfo exist depends on the kind of port: those of an end port on
// CA and router ports and on switch port 0, those of a link on all ports but a base
// port 0, those of an exit on external ports of switches and on router ports.
// An element that does not exist reads zero and a Set does not change it.
// Only VLCap, MTUCap and the state, always Active, show on a base port 0.
//
// A Set that is answered with a status has changed nothing, whichever attribute it is
// about: the answer to one invalid element among valid ones is status 0x001C with the values
// from before. With BadInputPartly the valid ones take effect under the same status, and with
// BadInputIgnored under status 0, as the architecture's first book has it.
//
// For packet simulation the tables are read directly: Port, PKeys,
// UnicastExit, MulticastExits, VL, VLArbitration. None of these allocates, except
// the first UnicastExit after a random forwarding table was written.
package sma
