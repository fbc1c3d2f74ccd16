// Package audit checks a snapshot of a fabric against a catalogue of weaknesses in the
// isolation of tenants, whatever manager configured the fabric.
//
// Audit takes a snapshot (observed.Fabric), what its owner intends as plain
// values (Intent) and the extent of the audit (Options), and returns a Report. It shares
// no code with the packages that compile policies or plan changes. If there is a policy,
// it asks package isolation who can reach whom; all other checks read the
// tables themselves.
//
// The catalogue has MaxNumber checks, one row of the table each. A row has
// either a function or the reason why it cannot be checked from a snapshot.
// That reason, or the input that was missing, appears in
// Report.NotCheckable. A row of a wider profile than requested appears in
// Report.Skipped. All other rows are run.
//
// A Finding is a location, the value that was read there and the remedy. If a check
// needed a value that was not read, that is a finding of severity Unknown, never a
// pass. Findings are ordered by the catalogue, and within a check by switch and
// port as discovered, or by port GUID. Each check lists at most MaxPerCheck of
// them; Report.Counts counts all.
package audit
