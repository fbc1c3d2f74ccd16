// This file holds the result of a scenario run and prints it.

package scenario

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Report is the result of a run. The same script with the same seed gives the same
// report.
type Report struct {
	Name     string
	Seed     uint64
	Rules    []Rule
	Failures []Failure
	Goals    []Goal        // of an attacker, in order
	Held     int           // expectations that held
	Elapsed  time.Duration // simulated
	Packets  uint64        // of subnet management that were sent
	// Aborted is the line of the statement at which the run ended early, 0 when it came to its
	// end. What stands below was not tried.
	Aborted int
}

// Failure is an expectation that did not hold.
type Failure struct {
	Line          int
	Statement     string
	Expected, Got string
	Rules         []string // that the statement stands under
	At            time.Duration
}

// Goal is what an attacker wanted.
type Goal struct {
	Line      int
	Statement string
	Reached   bool
	Got       string // what there was instead
}

// Good reports whether the script came to its end and every expectation held.
func (r *Report) Good() bool { return len(r.Failures) == 0 && r.Aborted == 0 }

// verdict says what became of a rule line. One whose statements were not all tried holds
// nothing.
func (r *Report) verdict(i int) string {
	switch {
	case r.Rules[i].Failed > 0:
		return "FAILS"
	case r.Aborted == 0 || i+1 < len(r.Rules) && r.Rules[i+1].Line < r.Aborted:
		return "holds"
	case r.Rules[i].Line < r.Aborted:
		return "ABORTS"
	}
	return "not run"
}

// Rule is a rule line: the ids that the statements behind it are about.
type Rule struct {
	Line   int
	IDs    []string
	Text   string
	Failed int // expectations under it that did not hold
}

// WriteTo prints the report: each rule line with what was expected under it,
// then every failure with line, expected, got and seed, then the sum.
func (r *Report) WriteTo(out io.Writer) (int64, error) {
	var b strings.Builder
	for i, rule := range r.Rules {
		fmt.Fprintf(&b, "%s  line %-4d %s  %s\n", r.verdict(i), rule.Line, strings.Join(rule.IDs, " "), rule.Text)
	}
	for _, g := range r.Goals {
		verdict := "reached"
		if !g.Reached {
			verdict = "missed "
		}
		fmt.Fprintf(&b, "%s  line %-4d %s\n", verdict, g.Line, g.Statement)
		if g.Got != "" {
			fmt.Fprintf(&b, "  got:      %s\n", g.Got)
		}
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "%s:%d: %s\n  expected: %s\n  got:      %s\n", r.Name, f.Line, f.Statement, f.Expected, f.Got)
		if len(f.Rules) > 0 {
			fmt.Fprintf(&b, "  rules:    %s\n", strings.Join(f.Rules, " "))
		}
		fmt.Fprintf(&b, "  seed:     %d, at %v\n", r.Seed, f.At)
	}
	if r.Aborted != 0 {
		fmt.Fprintf(&b, "%s:%d: aborted here, after %d expectations that held and %d that did not; seed %d\n", r.Name, r.Aborted, r.Held, len(r.Failures), r.Seed)
		n, err := io.WriteString(out, b.String())
		return int64(n), err
	}
	fmt.Fprintf(&b, "%s: %d of %d expectations hold; seed %d, %d management packets in %v\n",
		r.Name, r.Held, r.Held+len(r.Failures), r.Seed, r.Packets, r.Elapsed)
	n, err := io.WriteString(out, b.String())
	return int64(n), err
}
