package cli

import (
	"testing"

	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// TestVerdictOf: what is said again when it changes.
func TestVerdictOf(t *testing.T) {
	result := func(change func(*event.Result)) string {
		r := event.Result{Proof: &isolation.Proof{}, Multicast: &isolation.Multicast{}}
		change(&r)
		return verdictOf(&r)
	}
	before := result(func(*event.Result) {})
	for what, change := range map[string]func(*event.Result){
		"verdict":           func(r *event.Result) { r.Proof.Verdict = isolation.Violated },
		"reasons":           func(r *event.Result) { r.Proof.Reasons = []string{"why"} },
		"failures":          func(r *event.Result) { r.Failures = 1 },
		"inactive links":    func(r *event.Result) { r.Inactive = 1 },
		"multicast verdict": func(r *event.Result) { r.Multicast.Verdict = isolation.Violated },
		"multicast reasons": func(r *event.Result) { r.Multicast.Reasons = []string{"why"} },
	} {
		if result(change) == before {
			t.Errorf("another %s says nothing new", what)
		}
	}
	for what, change := range map[string]func(*event.Result){
		"writes": func(r *event.Result) { r.Writes = 5 },
		"faults": func(r *event.Result) { r.Faults = 5 },
	} {
		if result(change) != before {
			t.Errorf("another number of %s is said", what)
		}
	}
}
