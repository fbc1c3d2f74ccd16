// Package counters counts management packets in the performance counters of a
// simulated fabric. The counters are the fabric's own, which its data packets
// move too.
//
// A packet is recorded when the fabric reports it, since the fabric must not be called
// back at that time, and counted by Settle.
package counters
