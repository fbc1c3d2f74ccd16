package topology

import (
	"fmt"
	"strings"
)

// Limits of what a reader reports.
const (
	MaxFaults   = 1000 // after so many, reading stops
	MaxWarnings = 1000 // further ones are dropped
)

// Position is where something stands in a file.
type Position struct {
	File   string
	Line   int // from 1
	Column int // from 1, in bytes
}

// String prints file:line:column.
func (p Position) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column) }

// Warning is something that was read, but that ibsim reads otherwise or that may
// not be meant.
type Warning struct {
	Position Position
	Text     string
}

// String prints place and text.
func (w Warning) String() string { return w.Position.String() + ": " + w.Text }

// Fault is one thing that is wrong with a file.
type Fault struct {
	Position Position
	Err      error
}

// Error prints place and text.
func (f *Fault) Error() string { return f.Position.String() + ": " + f.Err.Error() }

// Unwrap returns the error without its place.
func (f *Fault) Unwrap() error { return f.Err }

// Faults is everything that is wrong with a file, in order of discovery: what a
// line shows by itself, then what only the whole shows.
type Faults []*Fault

// Error prints a line per fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults.
func (f Faults) Unwrap() []error {
	errs := make([]error, len(f))
	for i, fault := range f {
		errs[i] = fault
	}
	return errs
}
