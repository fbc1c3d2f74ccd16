// Package outcome is the closed list of what becomes of a data packet at one place of
// a simulated fabric.
//
//	OfVerdict, OfReason   what package relay and package egress say, as a Outcome
//	Drop                  which performance counters a Outcome moves
package outcome
