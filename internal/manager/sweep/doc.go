// Package sweep discovers a subnet by directed route and reads the tables that
// a manager needs into a observed.Fabric.
//
// A Discovery asks its questions through a transact.Window and works in two
// parts: first the nodes, ports and links, breadth first from the manager's
// own port; then, when nothing is outstanding, the tables, node by node and a few
// thousand requests ahead of the answers. The caller moves
// packets until the window is idle and calls Advance, until that says that
// there is no more to ask. Every cable is followed once, from whichever end
// was reached first.
//
// What did not answer, or answered with something that makes no sense, is a
// Fault: it is reported and the rest goes on. The port that it is behind says
// which of the two it was (observed.Port.Silent), and a node whose GUID a second
// device claims says so (observed.Node.Contested).
package sweep
