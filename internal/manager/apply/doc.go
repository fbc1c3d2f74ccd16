// Package apply carries out a plan: it sends the writes of each stage through a
// window, reads isolating values back, enters every answer into the snapshot, and
// reports what failed.
//
// Advance a Run when the window is idle, until it says that it is done.
// A failure narrows access, never widens it: when a partition could not be removed from
// a port, or the caller withholds it, nothing later in the plan gives that
// partition to any port, and nothing gives that port another one: a host that moves
// from tenant to tenant is never in both. A link whose keys or enforcement could not be written
// and read back is not brought to Active, nor one that leads elsewhere than
// when the fabric was read: each is asked once more before it becomes
// Active. An element of PortInfo that a device accepts and does not keep is recorded on
// the port, once, and not written again.
//
// Move is no plan: it lets one LID go from port to port, in an order in which no packet for
// it goes in a circle.
package apply
