// Package apply carries out a plan: it sends each stage's writes through a
// window, reads back what isolates, enters every answer into the snapshot, and
// reports what did not hold.
//
// A Run is advanced when the window is idle, until it says that it is done.
// Failure narrows, never widens: when a partition could not be taken from a
// port, or the caller withholds it, nothing later in the plan gives that
// partition to anybody; a link whose keys or enforcement could not be written
// and read back is not brought to Active, nor one that leads elsewhere than it
// did when the fabric was read: before links become Active each is asked once
// more. An element of PortInfo that a device accepts and forgets is noted on the
// port, once, and not asked for again.
package apply
