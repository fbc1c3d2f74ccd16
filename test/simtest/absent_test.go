package simtest

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// named is a policy with partitions 0x10 and 0x20 of these names.
func named(t *testing.T, red, blue string) *policy.Policy {
	t.Helper()
	p, err := policyfile.ReadYAML([]byte("version: 1\ndefault: none\ndescriptions: trusted\ngroups:\n  red: ["+red+"]\n  blue: ["+blue+"]\n"+
		"partitions:\n  - {name: red, pkey: 0x10, members: {full: [red]}}\n  - {name: blue, pkey: 0x20, members: {full: [blue]}}\n"), "p.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// absentIn are the names for which policies were refused, in words.
func absentIn(w *world) (out []string) {
	for _, r := range all[event.Refused](w) {
		var absent *policy.AbsentError
		if !errors.As(r.Err, &absent) {
			w.t.Fatalf("refused for something else: %v", r.Err)
		}
		for _, f := range absent.Names {
			out = append(out, f.String())
		}
	}
	return out
}

// refusesFor checks that a policy is refused for one name, and that no host loses or
// gets a key by it, not even for a moment.
func (w *world) refusesFor(p *policy.Policy, want string) {
	w.t.Helper()
	w.forget()
	before := w.tables()
	w.change(p)
	w.calm()
	if got := absentIn(w); len(got) != 1 || !strings.Contains(got[0], want) {
		w.t.Errorf("refused for %q, want %q", got, want)
	}
	if !maps.EqualFunc(before, w.tables(), slices.Equal[[]ib.PKey]) {
		w.t.Error("a policy that was refused changed tables")
	}
}

// takes checks that a policy is taken.
func (w *world) takes(p *policy.Policy) {
	w.t.Helper()
	w.forget()
	w.change(p)
	if got := absentIn(w); len(got) > 0 || !w.result().Reached() {
		w.t.Errorf("refused for %q", got)
	}
}

// TestAbsentNames: a name that is nobody's stops a policy that is given to a manager,
// which goes on with the one before; nothing is taken away for it, at rest or while
// the subnet is read. Hosts that are switched off stop nothing, neither in the policy
// in force nor when it, or an earlier one, is given again.
func TestAbsentNames(t *testing.T) {
	w := bringUp(t, setup{list: topology.Demo(), policy: named(t, "red-1, red-2", "blue-1")})
	w.refusesFor(named(t, "red-1, rde-2", "blue-1"), `5:16: group "red": no end port for description "rde-2"; did you mean 'red-2 HCA-1'?`)
	if len(w.result().Partitions[0].Full) != 3 { // and the manager
		t.Errorf("partitions %v", w.result().Partitions)
	}
	w.refusesFor(named(t, `"rde-*"`, "blue-1"), `no end port for pattern "rde-*"`)
	w.refusesFor(named(t, `{at: "leaf-1:77"}`, "blue-1"), "the switch has ports 1 to 8")

	// The same while the subnet is read: what the policy takes away does not go first.
	w.forget()
	before := w.tables()
	w.must(w.fabric.PowerOff(w.node("storage-1").GUID))
	for range 40 {
		w.run(engine.DefaultSweepInterval / 20)
		w.engine.SetPolicy(named(t, "red-1, rde-2", "blue-1"))
		w.engine.Expire(w.fabric.Now())
	}
	w.calm()
	if len(absentIn(w)) == 0 {
		t.Error("was not refused while the subnet is read")
	}
	for at, table := range w.tables() {
		if at.node != w.node("storage-1").GUID && !slices.Equal(table, before[at]) {
			t.Errorf("%v held %v, and holds %v after a policy that was refused", at, before[at], table)
		}
	}

	// red-2 is switched off. The policy in force stays, and may be given again; so may
	// others that name it.
	w.must(w.fabric.PowerOff(w.node("red-2").GUID))
	w.forget()
	w.calm()
	if got := absentIn(w); len(got) > 0 {
		t.Fatalf("a host that is off stopped a sweep: %q", got)
	}
	w.takes(named(t, "red-1, red-2", "blue-1"))
	w.takes(named(t, "red-1", "blue-1, blue-2"))
	w.takes(named(t, "red-1, red-2", "blue-1"))

	// One that was never there is another matter, until it comes: the subnet is read
	// again before anybody is told that it is not there.
	w.must(w.fabric.PowerOff(w.node("red-3").GUID))
	w.calm()
	w.refusesFor(named(t, "red-1, red-2, red-3", "blue-1"), `no end port for description "red-3"; did you mean`)
	w.must(w.fabric.PowerOn(w.node("red-3").GUID))
	w.run(engine.DefaultSweepInterval / 100)
	w.takes(named(t, "red-1, red-2, red-3", "blue-1"))

	// Another run knows what this one knew, and nothing without that.
	known := w.engine.Assigned()
	w.must(w.fabric.PowerOff(w.node("red-1").GUID))
	w.manager.Known = known
	w.restart(named(t, "red-1, red-2, red-3", "blue-1"))
	w.settle()
	if got := absentIn(w); len(got) > 0 {
		t.Errorf("a run that knows the names refuses them: %q", got)
	}
	known.Names = nil
	w.manager.Known = known
	w.restart(named(t, "red-1, red-2, red-3", "blue-1"))
	w.settle()
	if got := absentIn(w); len(got) != 2 || len(w.sets()) > 0 {
		t.Errorf("a run that knows no names: refused for %q, %d Sets", got, len(w.sets()))
	}
}

// TestAbsentNamesAreNoWeapon: a tenant cannot hold up the changes of a policy by what
// his host says of itself, or by switching it off.
func TestAbsentNamesAreNoWeapon(t *testing.T) {
	for name, hide := range map[string]func(w *world) error{
		"off":                 func(w *world) error { return w.fabric.PowerOff(w.node("red-2").GUID) },
		"another description": func(w *world) error { return w.fabric.SetDescription(w.node("red-2").GUID, "nobody") },
		"somebody's description": func(w *world) error {
			return w.fabric.SetDescription(w.node("red-2").GUID, "blue-1 HCA-2")
		},
	} {
		for _, profile := range []protect.Profile{protect.None, protect.Tenant} {
			w := bringUp(t, setup{list: topology.Demo(), policy: named(t, "red-1, red-2, {at: \"leaf-1:3\"}", "blue-1"),
				manager: engine.Config{Profile: profile}})
			w.must(hide(w))
			w.calm()
			w.takes(named(t, "red-1, red-2", "blue-1, blue-2"))
			w.takes(named(t, "red-1", "blue-1"))
			if t.Failed() {
				t.Fatalf("%s, profile %v", name, profile)
			}
		}
	}
}
