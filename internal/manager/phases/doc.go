// Package phases records what the sweeps of a subnet manager consist of: their phases, and
// for each phase the time that it took and the packets that it cost.
//
//	Begin, End    a phase begins, a sweep ends; each with a Moment
//	Sweeps        the last SweepsMax sweeps, the newest first
//	Take          the phases since the last call
//	Totals        the sum of each phase since the start
//
// A sweep is everything from the first phase after a rest to the next rest: usually
// discovery, the computation of tables, their writing, and the proof. Light sweeps, which ask
// for changes only, have no phases.
//
// It has no clock: the caller tells both times, the fabric's and that of the clock. On a
// simulated fabric the first is the same in every run.
package phases
