package simtest

import (
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// What the routing engine saw is told once, and again when it sees something else.
func TestWhatWasRoutedIsTold(t *testing.T) {
	w := bringUp(t, setup{
		list: generate(t, "fattree,radix=4,levels=2"), policy: &policy.Policy{Default: policy.Full},
		manager: engine.Config{Routing: routing.Auto},
	})
	whole := []string{"routing engine auto takes ftree", "fat tree of 2 levels; switches from the lowest up: 4, 2"}
	wants := func(when string, want ...[]string) {
		t.Helper()
		var got [][]string
		for _, e := range all[event.Routed](w) {
			got = append(got, e.Notes)
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
		w.forget()
	}
	wants("at first", whole)
	w.engine.SetPolicy(&policy.Policy{Default: policy.Full})
	w.run(5 * time.Second)
	if len(all[event.Completed](w)) == 0 {
		t.Error("no second pass")
	}
	wants("when nothing has changed")
	w.must(w.fabric.Unlink(w.node("L0").GUID, 3))
	w.calm()
	wants("without a cable", append(slices.Clone(whole), "links between switches that have gone since then: 1; exits that lead elsewhere for that: 14"))
}
