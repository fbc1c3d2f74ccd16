package scenario

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/scenario/stage"
	"github.com/ibwarden/ibwarden/internal/scenario/text"
)

// world is one run of a script.
type world struct {
	*stage.Stage
	script *Script
	mkey   ib.MKey // that requests carry
	last   *request
	verb   *verbCall
	qps    map[string]*stage.QP
	faults uint64 // fault lines so far; each has chances of its own
	step   *step
	report *Report
}

// begin makes the fabric of a script.
func (s *Script) begin() (*world, error) {
	c := s.setup.Config
	c.Fabric.Profile = s.setup.profile
	on, err := stage.New(s.topology, c)
	return &world{
		Stage: on, script: s, qps: map[string]*stage.QP{},
		report: &Report{
			Name: s.name, Seed: c.Fabric.Seed, Rules: slices.Clone(s.rules),
			held: make([]int, len(s.rules)), failed: make([]int, len(s.rules)),
		},
	}, err
}

// MaxFailures is how many failed expectations a run reports before it ends.
const MaxFailures = 100

// Report is what a run came to. The same script with the same seed gives the
// same report.
type Report struct {
	Name     string
	Seed     uint64
	Rules    []Rule
	Failures []Failure
	Held     int           // expectations that held
	Elapsed  time.Duration // simulated
	Packets  uint64        // of subnet management that were sent

	held, failed []int // by rule
}

// Failure is an expectation that did not hold.
type Failure struct {
	Line          int
	Statement     string
	Expected, Got string
	Rules         []string // that the statement stands under
	At            time.Duration
}

// Good reports whether every expectation held.
func (r *Report) Good() bool { return len(r.Failures) == 0 }

// Run runs a script from its beginning. The error, a *text.Fault, says that a
// statement asks for what cannot be done; the report is complete up to there.
func (s *Script) Run() (*Report, error) {
	w, err := s.begin()
	if err != nil {
		return nil, &text.Fault{Name: s.name, Line: 1, Column: 1, Text: fmt.Sprintf("the fabric: %v", err)}
	}
	for i := range s.steps {
		st := &s.steps[i]
		if !st.judges {
			w.settleLast()
		}
		w.step = st
		if err = st.run(w); err != nil {
			err = &text.Fault{Name: s.name, Line: st.line.Number, Column: st.line.Words[0].Column, Text: fmt.Sprintf("%s: %v", st.line.Text, err)}
			break
		}
		if len(w.report.Failures) >= MaxFailures {
			break
		}
	}
	w.settleLast()
	w.report.Elapsed, w.report.Packets = w.Fabric.Now(), w.Fabric.Counts().Sent
	return w.report, err
}

// settleLast fails a request or verb that went wrong and about which nothing was
// expected: silence never counts as success.
func (w *world) settleLast() {
	if r := w.last; r != nil && !r.judged {
		r.judged = true
		if !r.Good() {
			w.failAt(r.step, "status ok", r.Outcome())
		}
	}
	if v := w.verb; v != nil && !v.judged {
		v.judged = true
		if v.err != nil {
			w.failAt(v.step, "accepted", v.outcome())
		}
	}
}

// failAt is a failure of an earlier line.
func (w *world) failAt(s *step, expected, got string) {
	now := w.step
	w.step = s
	w.fail(expected, got)
	w.step = now
}

// hold counts an expectation that held.
func (w *world) hold() {
	w.report.Held++
	if w.step.rule >= 0 {
		w.report.held[w.step.rule]++
	}
}

// fail reports an expectation that did not.
func (w *world) fail(expected, got string) {
	f := Failure{
		Line: w.step.line.Number, Statement: w.step.line.Text, Expected: expected, Got: got, At: w.Fabric.Now(),
	}
	if w.step.rule >= 0 {
		w.report.failed[w.step.rule]++
		f.Rules = w.script.rules[w.step.rule].IDs
	}
	w.report.Failures = append(w.report.Failures, f)
}

// check is one expectation.
func (w *world) check(holds bool, expected, got string) {
	if holds {
		w.hold()
	} else {
		w.fail(expected, got)
	}
}

// WriteTo prints the report: each rule line with what was expected under it,
// then every failure with line, expected, got and seed, then the sum.
func (r *Report) WriteTo(out io.Writer) (int64, error) {
	var b strings.Builder
	for i, rule := range r.Rules {
		verdict := "holds"
		if r.failed[i] > 0 {
			verdict = "FAILS"
		}
		fmt.Fprintf(&b, "%s  line %-4d %s  %s\n", verdict, rule.Line, strings.Join(rule.IDs, " "), rule.Text)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "%s:%d: %s\n  expected: %s\n  got:      %s\n", r.Name, f.Line, f.Statement, f.Expected, f.Got)
		if len(f.Rules) > 0 {
			fmt.Fprintf(&b, "  rules:    %s\n", strings.Join(f.Rules, " "))
		}
		fmt.Fprintf(&b, "  seed:     %d, at %v\n", r.Seed, f.At)
	}
	fmt.Fprintf(&b, "%s: %d of %d expectations hold; seed %d, %d management packets in %v\n",
		r.Name, r.Held, r.Held+len(r.Failures), r.Seed, r.Packets, r.Elapsed)
	n, err := io.WriteString(out, b.String())
	return int64(n), err
}
