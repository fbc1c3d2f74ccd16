package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Pos is a place in a policy file: line and column, both from 1, the column in
// characters. The zero Pos is no place at all.
type Pos struct {
	Line, Column int
}

// String prints line:column, or nothing for the zero Pos.
func (p Pos) String() string {
	if p == (Pos{}) {
		return ""
	}
	return fmt.Sprintf("%d:%d", p.Line, p.Column)
}

// Fault is one thing that is wrong, or worth a warning, at one place.
type Fault struct {
	Pos
	// Found is what stands there, Expected what should; either may be empty.
	Found, Expected string
}

// String prints place, what was found and what was expected.
func (f Fault) String() string {
	var b strings.Builder
	if f.Pos != (Pos{}) {
		fmt.Fprintf(&b, "%v: ", f.Pos)
	}
	b.WriteString(f.Found)
	if f.Expected != "" {
		fmt.Fprintf(&b, "; expected %s", f.Expected)
	}
	return b.String()
}

// Error refuses a policy: every fault found in it, sorted by place.
type Error struct {
	// Name is the file, or whatever the caller called the text.
	Name   string
	Faults []Fault
}

// Error prints one line per fault.
func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = e.Name + ":" + f.String()
		if f.Pos == (Pos{}) {
			lines[i] = e.Name + ": " + f.String()
		}
	}
	return strings.Join(lines, "\n")
}

// SortFaults sorts faults by place.
func SortFaults(f []Fault) {
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
