package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// TestPast: a verdict that stays is one change that lasts, and what is kept is bounded,
// however often the verdict changes and however many reasons it has.
func TestPast(t *testing.T) {
	var p Past
	begin := time.Date(2026, 11, 23, 7, 0, 0, 0, time.UTC)
	good := &isolation.Proof{Verdict: isolation.Isolated}
	bad := &isolation.Proof{Verdict: isolation.Violated}
	for i := range 3 * pastReasons {
		bad.Reasons = append(bad.Reasons, fmt.Sprint(i))
	}
	bad.Counts.Violations = 7
	p.Add(good, begin, 0)
	p.Add(good, begin.Add(time.Minute), 4)
	p.Add(bad, begin.Add(2*time.Minute), 5)
	list := p.List()
	if len(list) != 2 || list[0].Verdict != "violated" || list[0].Holds || list[0].Violations != 7 || list[0].Revision != 5 ||
		!slices.Equal(list[0].Reasons, bad.Reasons[:pastReasons]) {
		t.Fatalf("%+v", list)
	}
	if first := list[1]; first.Verdict != "isolated" || !first.Holds || first.Revision != 0 || !first.At.Equal(begin) || !first.Until.Equal(begin.Add(time.Minute)) {
		t.Errorf("%+v", first)
	}
	for i := range pastMost {
		p.Add([]*isolation.Proof{good, bad}[i%2], begin.Add(time.Hour), 6)
	}
	if list = p.List(); len(list) != pastMost || list[0].Number != pastMost+2 || list[pastMost-1].Number != 3 {
		t.Errorf("%d changes, from %d to %d", len(list), list[len(list)-1].Number, list[0].Number)
	}
	if !slices.IsSortedFunc(list, func(a, b Change) int { return strings.Compare(ChangeKey(a), ChangeKey(b)) }) {
		t.Error("the keys are not in the order of the list")
	}
}

// TestAuditChecks: every check of the catalogue is there once, with what came of it, and no
// finding is lost.
func TestAuditChecks(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf")
	red, blue := b.Host(leaf, "red"), b.Host(leaf, "blue")
	subnettest.SetPKeysThrough(red, 0x8010)
	b.Route()
	b.ManagedFrom(blue)
	for _, profile := range []string{"basic", "tenant", "strict"} {
		parsed, err := audit.ParseProfile(profile)
		if err != nil {
			t.Fatal(err)
		}
		r := audit.Audit(b.Fabric, audit.Intent{}, audit.Options{Profile: parsed})
		checks := AuditChecks(r)
		counts, findings := map[string]int{}, 0
		for i, c := range checks {
			counts[c.Outcome]++
			findings += c.Findings
			if c.Title == "" || i > 0 && c.Number <= checks[i-1].Number || (c.Outcome == checkNotCheckable) != (c.Reason != "") || (c.Findings > 0) != (c.Outcome == checkFound) {
				t.Errorf("%s: %+v", profile, c)
			}
		}
		if len(checks) != len(audit.Catalogue()) || counts[checkPassed] != len(r.Passed) || counts[checkStricter] != len(r.Skipped) ||
			counts[checkNotCheckable] != len(r.NotCheckable) || findings != len(r.Findings) || findings == 0 {
			t.Errorf("%s: %d checks, %v, %d findings of %d", profile, len(checks), counts, findings, len(r.Findings))
		}
		if profile == "strict" && counts[checkStricter] != 0 {
			t.Errorf("strict leaves %d checks out", counts[checkStricter])
		}
	}
}
