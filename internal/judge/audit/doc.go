// Package audit holds a fabric, as it was read, against a catalogue of what
// goes wrong with the isolation of tenants, whoever manages the fabric.
//
// Audit takes a snapshot (observed.Fabric), what its owner intends as plain
// values (Intent) and how far to go (Options), and returns a Report. It shares
// no code with what compiles policies or plans changes. Where a policy is given
// it asks package isolation who can reach whom; all other checks read the
// tables themselves.
//
// The catalogue has MaxNumber checks, one row of the table each. A row either
// has a function or the reason why it cannot be checked from what is read here:
// that reason, or the input that was missing, then stands in
// Report.NotCheckable. A row of a wider profile than was asked for stands in
// Report.Skipped. All other rows are run.
//
// A Finding is a place, what was read there and what to do. What a check needed
// and what was not read is a finding too, of severity Unknown: it is never a
// pass. Findings are ordered by the catalogue, and within a check by switch and
// port as discovered, or by port GUID. Each check lists at most MaxPerCheck of
// them; Report.Counts counts all.
package audit
