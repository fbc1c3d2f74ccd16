// Package sweep discovers a subnet by directed routes and reads the tables that
// a manager needs into an observed.Fabric.
//
// A Discovery sends its requests through a transact.Window and works in two
// parts: first the nodes, ports and links, breadth first from the manager's
// own port; then, when nothing is outstanding, the tables, node by node and a few
// thousand requests ahead of the answers. The caller moves
// packets until the window is idle and calls Advance, until that says that
// the sweep is complete. Every cable is followed once, from the end
// that was reached first.
//
// A device that did not answer, or sent an invalid answer, is a
// Fault: it is reported and the sweep goes on. The port before the device records
// which of the two it was (observed.Port.Silent), and a node whose GUID a second
// device claims is marked (observed.Node.Contested).
package sweep
