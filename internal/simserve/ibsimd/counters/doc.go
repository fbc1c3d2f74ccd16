// Package counters moves the performance counters of all nodes of a simulated fabric
// as management packets pass. They are the fabric's own, which its data packets
// move.
//
// What passes is noted when it happens, since the fabric tells of it while it
// must not be asked for anything, and counted by Settle.
package counters
