// Package outcome lists every outcome of a data packet at one hop of
// a simulated fabric.
//
//	OfVerdict, OfReason   results of package relay and package egress as an Outcome
//	Drop                  the performance counters that an Outcome moves
package outcome
