package scenario

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// world is one run of a script.
type world struct {
	*testbed.Testbed
	script *Script
	mkey   ib.MKey // that requests carry
	last   *request
	verb   *verbCall
	reply  *reply
	trying bool  // nothing is expected of the line under way
	goal   *Goal // what is judged, nil for an expectation
	qps    map[string]*testbed.QP
	faults uint64 // fault lines so far; each has chances of its own
	step   *step
	report *Report

	wardens map[observed.Place]*testbed.Warden
}

// begin makes the fabric of a script.
func (s *Script) begin() (*world, error) {
	c := s.setup.Config
	c.Fabric.Profile = s.setup.profile
	on, err := testbed.New(s.topology, c)
	if err == nil {
		for _, g := range s.suspects {
			on.Suspect(g)
		}
	}
	return &world{
		Testbed: on, script: s, qps: map[string]*testbed.QP{},
		wardens: map[observed.Place]*testbed.Warden{},
		report: &Report{
			Name: s.name, Seed: c.Fabric.Seed, Rules: slices.Clone(s.rules),
		},
	}, err
}

// MaxFailures is how many failed expectations a run reports before it ends.
const MaxFailures = 100

// Run runs a script from its beginning. The error, a *testbed.ScriptFault, says that a
// statement asks for what cannot be done; the report is complete up to there.
func (s *Script) Run() (*Report, error) {
	w, err := s.begin()
	if err != nil {
		return nil, &testbed.ScriptFault{Name: s.name, Line: 1, Column: 1, Text: fmt.Sprintf("the fabric: %v", err)}
	}
	for i := range s.steps {
		st := &s.steps[i]
		if !st.judges {
			w.settleLast()
		}
		w.step = st
		if err = st.run(w); err != nil {
			err = &testbed.ScriptFault{Name: s.name, Line: st.line.Number, Column: st.line.Words[0].Column, Text: fmt.Sprintf("%s: %v", st.line.Text, err)}
			w.report.Aborted = st.line.Number
			break
		}
		if len(w.report.Failures) >= MaxFailures && i+1 < len(s.steps) {
			w.report.Aborted = s.steps[i+1].line.Number
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
	if w.trying {
		w.forgive()
	}
	if r := w.last; r != nil && !r.judged {
		r.judged = true
		if !r.Good() {
			w.failAt(r.step, "status ok", r.Outcome())
		}
	}
	if r := w.reply; r != nil && !r.judged {
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
	if w.goal == nil {
		w.report.Held++
	}
}

// fail reports an expectation that did not.
func (w *world) fail(expected, got string) {
	if w.goal != nil {
		w.goal.Reached, w.goal.Got = false, got
		return
	}
	f := Failure{
		Line: w.step.line.Number, Statement: w.step.line.Text, Expected: expected, Got: got, At: w.Fabric.Now(),
	}
	if w.step.rule >= 0 {
		w.report.Rules[w.step.rule].Failed++
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
