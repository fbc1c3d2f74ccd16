// Package sm is the subnet-manager engine: it sweeps a subnet, works out what
// its devices ought to hold, writes the difference, proves from what was read
// back who can reach whom, and keeps watching.
//
// The engine is a value. In: packets (Receive), packets that nobody answered
// (Lost), time (Expire), a policy (SetPolicy). Out: packets (Next), when it
// wants to be called again (Deadline), and what happens, as it does (Event).
// It has no clock, socket or goroutine; the same inputs give the same outputs.
//
// One pass is observe, desire, diff, apply, prove. Nothing is written before
// the whole policy is known to fit the fabric that was found; a policy that
// does not fit is refused and leaves everything as it was. While another
// manager is master of the subnet nothing is written either.
//
// After the first pass light sweeps ask every switch for changes and read back
// a share of all tables, so that within one drift period every table was
// looked at: a foreign value is reported and put right.
package sm
