package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

func wardenVerbs() []verb {
	return []verb{
		{"warden", "NODE[:PORT] POLICYFILE [PRIORITY] [profile=none|basic|tenant|strict] [trusted=NODE,...] [mkey=KEY] [sm-key=KEY] [sa-key=KEY] [groups=N] [lmc=N]",
			"ibwarden's own subnet manager runs there from now on", false, compileWarden},
		{"policy", "NODE[:PORT] POLICYFILE", "it gets another policy", false, compilePolicy},
		{"settle", "", "let time pass until managers have nothing more to do", false, compileSettle},
		{"dismiss", "NODE[:PORT]", "the manager there is gone, without a word", false, compileDismiss},
	}
}

// policyFile reads the policy that a line names.
func (a *args) policyFile() (*policy.Policy, error) {
	w, err := a.Next("a policy file")
	if err != nil {
		return nil, err
	}
	if a.source.Read == nil {
		return nil, a.Fault(w, "%q: want no policy file here, since no files are read", w.Text)
	}
	data, err := a.source.Read(w.Text)
	if err != nil {
		return nil, a.Fault(w, "%v", err)
	}
	p, err := policyfile.Read(data, w.Text, policyfile.Options{})
	if err != nil {
		return nil, a.Fault(w, "%v", err)
	}
	return p, nil
}

func compileWarden(a *args) (action, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	rules, err := a.policyFile()
	if err != nil {
		return nil, err
	}
	o := testbed.WardenOptions{Profile: a.source.Profile}
	if a.More() && !strings.Contains(a.Peek(), "=") {
		n, err := a.Number("priority", 4)
		if err != nil {
			return nil, err
		}
		o.Priority = uint8(n)
	}
	for a.More() {
		if err := a.wardenOption(&o); err != nil {
			return nil, err
		}
	}
	return func(w *world) error {
		m, err := w.SeatWarden(p.End(), rules, o)
		if err != nil {
			return err
		}
		w.wardens[p.End()] = m
		return nil
	}, nil
}

// wardenOption takes name=value of a warden line.
func (a *args) wardenOption(o *testbed.WardenOptions) error {
	s, err := a.Setting("profile=, trusted=, mkey=, sm-key=, sa-key=, groups= or lmc=", false)
	if err != nil {
		return err
	}
	switch s.Name {
	case "profile":
		if s.Value == protect.None.String() {
			o.Profile = protect.None
			return nil
		}
		if o.Profile, err = protect.Parse(s.Value); err != nil {
			err = a.Fault(s.ScriptWord, "%v", err)
		}
		return err
	case "trusted":
		places, err := HostPlaces(a.Operands, s)
		for _, p := range places {
			o.Trusted = append(o.Trusted, p.End())
		}
		return err
	case "mkey":
		n, err := a.ToNumber(s.ScriptWord, s.Value, s.Name, 64)
		o.MKey = ib.MKey(n)
		return err
	case "sm-key":
		n, err := a.ToNumber(s.ScriptWord, s.Value, s.Name, 64)
		o.SMKey = ib.SMKey(n)
		return err
	case "groups":
		n, err := a.ToNumber(s.ScriptWord, s.Value, s.Name, 10)
		o.Groups = int(n)
		return err
	case "lmc":
		n, err := a.ToNumber(s.ScriptWord, s.Value, s.Name, 3)
		o.LMC = ib.LMC(n)
		return err
	case "sa-key":
		n, err := a.ToNumber(s.ScriptWord, s.Value, s.Name, 64)
		o.SAKey = ib.SMKey(n)
		return err
	}
	return a.Fault(s.ScriptWord, "%q: want profile=, trusted=, mkey=, sm-key=, sa-key=, groups= or lmc=", s.Text)
}

// expectKey is about what a node has heard of a port's M_Key.
func expectKey(a *args) (action, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	state, err := a.Pick("known", "unknown")
	if err != nil {
		return nil, err
	}
	if _, err := a.Pick("to"); err != nil {
		return nil, err
	}
	by, err := a.Node()
	if err != nil {
		return nil, err
	}
	a.suspects = append(a.suspects, by.GUID)
	return func(w *world) error {
		got := "unknown"
		if slices.Contains(w.KeysHeard(by.GUID), p.End()) {
			got = "known"
		}
		w.check(got == state, state, got)
		return nil
	}, nil
}

// expectKeys holds when no host has heard the M_Key of a port that is not its
// own, and none of its programs that of its own.
func expectKeys(a *args) (action, error) {
	_, err := a.Pick("safe")
	return func(w *world) error {
		var known []string
		for _, n := range w.Topology.Nodes {
			if n.Type == ib.NodeSwitch || w.Managed(n.GUID) {
				continue
			}
			for _, p := range w.KeysHeard(n.GUID) {
				known = append(known, fmt.Sprintf("%s knows that of %s", n.ID, w.Name(p)))
			}
		}
		w.check(len(known) == 0, "no M_Key known", strings.Join(known, ", "))
		return nil
	}, err
}

// expectHeard holds when a number of 64 bits stood in a management packet that a
// program of a node got.
func expectHeard(a *args) (action, error) {
	n, err := a.Node()
	if err != nil {
		return nil, err
	}
	w, err := a.Next("a number, as portguid(NODE)")
	if err != nil {
		return nil, err
	}
	v, err := a.ToDatum(testbed.ScriptSetting{ScriptWord: w, Name: "heard", Value: w.Text}, reflect.TypeFor[uint64]())
	return func(on *world) error {
		word := v.Now(on.Testbed)
		on.check(on.Heard(n.GUID, word), fmt.Sprintf("%#x heard", word), "not heard")
		return nil
	}, err
}

// warden is the manager at a place.
func (w *world) warden(p OperandPlace) (*testbed.Warden, error) {
	if m := w.wardens[p.End()]; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("%v: no warden runs there", p)
}

func compilePolicy(a *args) (action, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	rules, err := a.policyFile()
	return func(w *world) error {
		m, err := w.warden(p)
		if err != nil {
			return err
		}
		m.Manager().SetPolicy(rules)
		m.Expire(w.Fabric.Now())
		return nil
	}, err
}

func compileSettle(*args) (action, error) {
	return func(w *world) error { return w.Settle() }, nil
}

func compileDismiss(a *args) (action, error) {
	p, err := a.Place()
	return func(w *world) error {
		delete(w.wardens, p.End())
		return w.Dismiss(p.End())
	}, err
}

// expectVerdict is about the proof of a warden's last pass.
func expectVerdict(a *args) (action, error) {
	p, err := a.Place()
	if err != nil {
		return nil, err
	}
	var names []string
	for v := isolation.Isolated; v <= isolation.Violated; v++ {
		names = append(names, v.String())
	}
	want, err := a.Pick(names...)
	return func(w *world) error {
		m, err := w.warden(p)
		if err != nil {
			return err
		}
		w.check(m.Verdict.String() == want, want, m.Verdict.String())
		return nil
	}, err
}

// expectRequests counts the Gets or Sets of an attribute that agents took since
// the last forget line.
func expectRequests(a *args) (action, error) {
	name, err := a.Pick("get", "set")
	if err != nil {
		return nil, err
	}
	method := mad.MethodGet
	if name == "set" {
		method = mad.MethodSet
	}
	word, err := a.Next("an attribute")
	if err != nil {
		return nil, err
	}
	k, err := a.Kind(word, word.Text)
	if err != nil {
		return nil, err
	}
	s, err := a.Next("a number, or some")
	if err != nil {
		return nil, err
	}
	some := s.Text == "some"
	want := uint64(0)
	if !some {
		want, err = a.ToNumber(s, s.Text, "number of requests", 32)
	}
	id := k.New().ID()
	return func(w *world) error {
		got := w.Requests(method, id)
		holds, expected := got == want, fmt.Sprintf("%d times", want)
		if some {
			holds, expected = got > 0, "some"
		}
		w.check(holds, expected, fmt.Sprintf("%d times", got))
		return nil
	}, err
}
