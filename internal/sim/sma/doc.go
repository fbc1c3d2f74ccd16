// Package sma is the subnet-management agent of a simulated device: a CA, a
// router, or a switch with base or enhanced port 0. An Agent is a value; it
// takes subnet-management packets and link events with the time they happen
// at, changes its state, and hands back what follows from that.
//
//	New            a device as it is at power-up
//	Handle         one packet that reached the agent, turned into its answer
//	LinkUp, LinkDown, SetIsSM, BadPKey, ...   what happens to the device otherwise
//	Deadline, Expire   M_Key leases and traps that wait for their time
//
// What follows is an Effect: a link that has to go down or train anew, a table
// that changed, a trap to be sent. Effects come in the order in which they
// happened and are valid until the next call of the same Agent.
//
// LinkMoved obliges the fabric to carry the change to the other end of the
// cable: LinkDown there if that port is up, then Train, and LinkUp at both ends
// if they agree. The same is done for each cable at power-up. A fabric that does
// so before it sends the answer of the Set brings that up to date with ShowLink.
//
// The agent takes packets at the end of their way: the directed route is the
// fabric's, and so are queues and links. Packets for a subnet manager are
// handed on (ForManager) when one has announced itself with SetIsSM, and
// refused or dropped otherwise.
//
// Elements of PortInfo exist by kind of port: those of an end port on CA and
// router ports and on switch port 0, those of a link on all ports but a base
// port 0, those of an exit on external ports of switches and on router ports.
// Where an element does not exist it reads zero and a Set does not touch it.
// Only VLCap, MTUCap and the state, always Active, show on a base port 0.
//
// Of a Set of PortInfo with good and bad elements the good ones take effect;
// the answer has status 0x001C and the values that resulted. A device with
// BadInputIgnored answers it with status 0, as the architecture's first book
// has it.
//
// For packet simulation the tables are read directly: Port, PKeys,
// UnicastExit, MulticastExits, VL, VLArbitration. None of these allocates, but
// for the first UnicastExit after a random forwarding table was written.
package sma
