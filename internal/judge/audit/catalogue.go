package audit

import "slices"

// MaxNumber is the number of checks in the catalogue.
var MaxNumber = len(catalogue())

// need is what a check needs besides the fabric.
type need uint8

const (
	needsPolicy need = 1 << iota
	needsLevels
	needsEarlier
	needsCables
)

// check is a row of the catalogue.
type check struct {
	number      int
	name, title string
	severity    Severity
	profile     Profile
	needs       need
	how         string // what is read, and what is wrong about it
	advice      string
	run         func(*auditor) // nil when it cannot be checked from what is read here
	why         string         // and then why
}

// catalogue is every check, ordered by number.
func catalogue() []check {
	all := slices.Concat(partitionChecks, keyChecks, managerChecks, fabricChecks, operationChecks, settingChecks)
	slices.SortFunc(all, func(x, y check) int { return x.number - y.number })
	return all
}

// Entry describes a check.
type Entry struct {
	Number   int
	Check    string
	Title    string
	Severity Severity
	Profile  Profile
	// Checkable reports whether it can be read over the wire; How says what is read
	// and Advice what to do, or Why the reason when it cannot.
	Checkable        bool
	How, Advice, Why string
}

// Catalogue describes every check, ordered by number.
func Catalogue() []Entry {
	var out []Entry
	for _, c := range catalogue() {
		out = append(out, Entry{c.number, c.name, c.title, c.severity, c.profile, c.run != nil, c.how, c.advice, c.why})
	}
	return out
}
