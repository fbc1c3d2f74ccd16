package views

import (
	"fmt"

	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
)

// Finding is something that the audit found.
type Finding struct {
	Check    string `json:"check"`
	Number   int    `json:"number"`
	Severity string `json:"severity" enum:"unknown,low,medium,high,critical"`
	Where    string `json:"where"`
	Read     string `json:"read"`
	Advice   string `json:"advice"`
}

// FindingOf is a finding for the API.
func FindingOf(f audit.Finding) Finding {
	return Finding{f.Check, f.Number, f.Severity.String(), f.Where, f.Read, f.Advice}
}

// What came of a check.
const (
	checkPassed       = "passed"
	checkFound        = "found"
	checkNotCheckable = "not-checkable"
	checkStricter     = "stricter"
)

// AuditCheck is a check of the catalogue, and what came of it.
type AuditCheck struct {
	Number   int    `json:"number"`
	Check    string `json:"check"`
	Title    string `json:"title" doc:"what is wrong where it finds something"`
	Severity string `json:"severity" enum:"low,medium,high,critical" doc:"of what it finds; unknown is a finding about something that was not read"`
	Profile  string `json:"profile" enum:"basic,tenant,strict" doc:"the first that has it"`
	Outcome  string `json:"outcome" enum:"passed,found,not-checkable,stricter" doc:"not-checkable: it needs what cannot be read here; stricter: it was not made, as only a stricter profile has it"`
	Findings int    `json:"findings" doc:"how many of the listed findings are its own"`
	Reason   string `json:"reason,omitempty" doc:"why it cannot be made"`
}

// CheckKey orders checks by number.
func CheckKey(c AuditCheck) string { return fmt.Sprintf("%09d", c.Number) }

// AuditChecks is every check of the catalogue, by number, with what came of it in an audit.
func AuditChecks(r *audit.Report) []AuditCheck {
	became, why, found := map[string]string{}, map[string]string{}, map[string]int{}
	for _, name := range r.Passed {
		became[name] = checkPassed
	}
	for _, name := range r.Skipped {
		became[name] = checkStricter
	}
	for _, x := range r.NotCheckable {
		became[x.Check], why[x.Check] = checkNotCheckable, x.Reason
	}
	for _, f := range r.Findings {
		became[f.Check] = checkFound
		found[f.Check]++
	}
	out := []AuditCheck{}
	for _, e := range audit.Catalogue() {
		c := AuditCheck{e.Number, e.Check, e.Title, e.Severity.String(), e.Profile.String(), became[e.Check], found[e.Check], why[e.Check]}
		if c.Outcome == "" {
			c.Outcome = checkFound // and none of its findings is listed
		}
		out = append(out, c)
	}
	return out
}

// MulticastGroup is a multicast LID and where the tables lead it.
type MulticastGroup struct {
	MLID    string   `json:"mlid"`
	Verdict string   `json:"verdict"`
	Ports   int      `json:"ports" doc:"how many end ports the tables lead to"`
	Within  []string `json:"partitions" doc:"those that hold all of these ports"`
	Reason  string   `json:"reason,omitempty"`
}

// MulticastGroupOf is where the tables lead a multicast LID, for the API.
func MulticastGroupOf(s isolation.Spread) MulticastGroup {
	return MulticastGroup{fmt.Sprintf("0x%04x", uint16(s.MLID)), s.Verdict.String(), s.Ports, append([]string{}, s.Partitions...), s.Reason}
}
