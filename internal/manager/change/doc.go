// Package change is a plan as it goes into a journal: block by block what the
// devices held and what they are to hold, so that whoever comes after a crash
// can finish it or undo it without guessing.
//
//	Of       makes a Change from a plan, before anything is written
//	Stand    says where between old and new a fabric stands that was read since
//	Target   gives the desired tables of either end, for a fabric as it is now
//	Step     cuts the way into parts, node by node
//
// Everything here is pure. A block that stands at neither end, nor where the
// way from one to the other leads through, is Elsewhere: somebody else has
// written it, and then nobody can say what finishing or undoing would mean.
//
// What is not undone: links that were brought to Active stay so, and virtual lanes and
// P_Key blocks that could not be read before have no old value to go back to.
package change
