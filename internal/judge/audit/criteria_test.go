package audit

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// resultsOf are the results of a list on a site, by line.
func resultsOf(t *testing.T, list string, s *site) map[string]CriterionAnswer {
	t.Helper()
	c, err := ParseCriteria(list)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]CriterionAnswer{}
	for _, a := range Audit(s.f, s.intent, s.options).Against(c) {
		if _, twice := out[a.Line]; twice || a.What == "" || a.Evidence == "" {
			t.Errorf("%s: line %q is there twice, or says nothing", list, a.Line)
		}
		out[a.Line] = a
	}
	return out
}

// On a good fabric a line passes where each of its checks can be made, and no line fails; with
// any fault that one of its checks finds, it does not pass.
func TestCriteria(t *testing.T) {
	checkable := map[string]bool{}
	for _, e := range Catalogue() {
		checkable[e.Check] = e.Checkable
	}
	for _, list := range CriteriaNames() {
		good := resultsOf(t, list, newSite())
		for _, l := range criteria[list].lines {
			want := Pass
			for _, name := range l.checks {
				can, known := checkable[name]
				if !known {
					t.Fatalf("%s: %s goes by %q, which is no check", list, l.name, name)
				}
				if !can {
					want = NotReadable
				}
			}
			if l.unread != "" {
				want = NotReadable
			}
			if got := good[l.name]; got.Result != want {
				t.Errorf("%s: a good fabric is %q in %s, want %q: %s", list, got.Result, l.name, want, got.Evidence)
			}
		}
		for check, faults := range fixtures {
			for _, x := range faults {
				s := newSite()
				x.mutate(s)
				for name, got := range resultsOf(t, list, s) {
					i := slices.IndexFunc(criteria[list].lines, func(l line) bool { return l.name == name })
					if slices.Contains(criteria[list].lines[i].checks, check) && (got.Result == Pass || !x.unknown && got.Result != Fail) {
						t.Errorf("%s: with %s/%s line %s is %q: %s", list, check, x.name, name, got.Result, got.Evidence)
					}
				}
			}
		}
	}
}

// Without partitions nothing is apart, whatever else is right; without what a check needs, its
// lines do not pass.
func TestCriteriaWithout(t *testing.T) {
	s := newSite()
	for _, p := range s.f.EndPorts() {
		subnettest.SetPKeysThrough(p, ib.PKeyDefaultLimited)
	}
	if got := resultsOf(t, "sdn04", s)["SDN04-05 p_key"]; got.Result != Fail {
		t.Errorf("no partition but the default one: %+v", got)
	}
	s = newSite()
	s.intent.Partitions, s.options.Profile = nil, Basic
	if got := resultsOf(t, "sdn04", s); got["SDN04-04"].Result != NotReadable || got["SDN04-05 management_key"].Result != NotReadable {
		t.Errorf("no policy, and a profile without some of the checks: %+v", got)
	}
	if _, err := ParseCriteria("other"); err == nil {
		t.Error("any name is a list")
	}
}
