// Package scenario runs scripts on the simulated fabric: the input is a text with one
// statement a line, the output a report of the expectations that held.
//
//	Compile        a script and its topology, every name and number checked
//	Script.Run     one run from the beginning; runs share nothing
//	report.Report  what held, what did not, under which rules
//	Usage          every statement of the language
//
// docs/dev/scenarios.md describes the language; scenarios/ has the scripts that
// the project ships.
//
// An error in a script is a *text.Fault with line and column. Compile finds most of
// them before the run: unknown statements, nodes, ports,
// attributes and fields, values that fit no field, a rule without an expectation.
// Errors that only a run can show (a cable where there is one already, a node
// that was never reachable) end the run with a *text.Fault too.
//
// An expectation that does not hold is a report.Failure, and the run goes on, up to
// MaxFailures. A get or set without an expectation has to succeed; if it fails,
// that is a report.Failure.
//
// All randomness comes from the seed, and the only clock is the fabric's: the
// same script with the same seed gives the same report, byte for byte. This package
// opens no file; Source.Load and Source.Read do that for the caller.
package scenario
