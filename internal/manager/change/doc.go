// Package change represents a plan in the journal: for each block the old and the new
// value, so that after a crash the change can be finished or undone.
//
//	Of       makes a Change from a plan, before anything is written
//	Compare  says how far a fabric is between old and new
//	Target   gives the desired tables of either end, for the fabric as it is now
//	Step     splits the change into steps, node by node
//
// Everything here is pure. A block that holds neither value, nor one that occurs on the
// way from one to the other, is Elsewhere: another manager has
// written it, and then finishing and undoing are undefined.
//
// Some writes are not undone: links that were brought to Active stay so, and virtual
// lanes and P_Key blocks that could not be read before have no old value.
package change
