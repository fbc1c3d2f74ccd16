// Package scenario runs stories on the simulated fabric: a text of one
// statement a line goes in, a report of which expectations held comes out.
//
//	Compile        a script and its topology, every name and number checked
//	Script.Run     one run from the beginning; runs share nothing
//	report.Report  what held, what did not, under which rules
//	Usage          every statement of the language
//
// docs/scenarios.md describes the language; scenarios/ has the stories that
// the project ships.
//
// A fault of a script is a *text.Fault with line and column, found by Compile before
// anything happens wherever that is possible: unknown statements, nodes, ports,
// attributes and fields, values that fit no field, a rule under which nothing is
// expected. What only a run shows (a cable where there is one already, a node
// that was never reachable) ends the run with a *text.Fault too.
//
// An expectation that does not hold is a report.Failure and the run goes on, up to
// MaxFailures. A get or set that nobody asks about has to succeed; if it does
// not, that is a report.Failure.
//
// A run draws all chance from the seed and knows no clock but the fabric's: the
// same script with the same seed gives the same report, byte for byte. Nothing
// here opens a file; Source.Load and Source.Read do that for the caller.
package scenario
