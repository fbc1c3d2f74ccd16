package apply

import (
	"errors"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Whatever becomes of the answer, what the port shows under the new key counts.
func TestGiveKey(t *testing.T) {
	const key, other = ib.MKey(0x5EC2E7), ib.MKey(0xBAD)
	for _, x := range []struct {
		name    string
		before  ib.MKey // that the port holds, and nobody here knows
		outcome outcome
		want    string // of the failure
		locked  bool
		knows   ib.MKey // the key that requests carry from then on
	}{
		{name: "obeyed", knows: key},
		{name: "answer lost", outcome: answerLost, knows: key},
		{name: "lost", outcome: lost, want: "the write: no answer", locked: true},
		{name: "not kept", outcome: forgets, want: "did not keep M_Key"},
		{name: "another's", before: other, want: "no answer", locked: true},
	} {
		d := newDevices(t, false)
		a := host(d.known, "a")
		host(d.are, "a").Info.MKey = x.before
		w := d.want.Port(a)
		w.Elements = observed.ElementMKey | observed.ElementMKeyProtectBits
		w.Info.MKey, w.Info.MKeyProtectBits = key, 1
		d.outcome = func(r request) outcome {
			if r.isSet(smp.AttrPortInfo, "a") {
				return x.outcome
			}
			return obeyed
		}
		r := d.carry(plan.DiffMKeys(d.known, d.want), nil)
		f := r.Failures()
		if x.want == "" && len(f) > 0 || x.want != "" && (len(f) != 1 || !strings.Contains(f[0].Error(), x.want)) {
			t.Errorf("%s: %v, want %q", x.name, f, x.want)
		}
		if len(f) > 0 && errors.Is(f[0], ErrLocked) != x.locked {
			t.Errorf("%s: locked %v, want %v", x.name, !x.locked, x.locked)
		}
		if a.Key != x.knows || a.Guarded() != (x.knows != 0) {
			t.Errorf("%s: requests carry %v, guarded %v", x.name, a.Key, a.Guarded())
		}
		if done, of := r.Progress(); done != 1 || of != 1 {
			t.Errorf("%s: %d of %d ports", x.name, done, of)
		}
	}
}

// A port that has the key and not what goes with it is not guarded as wanted.
func TestGuardIsNotKept(t *testing.T) {
	d := newDevices(t, false)
	a := host(d.known, "a")
	w := d.want.Port(a)
	w.Elements = observed.ElementMKey | observed.ElementMKeyProtectBits
	w.Info.MKey, w.Info.MKeyProtectBits = 0x5EC2E7, 2
	d.outcome = func(r request) outcome {
		if r.method == mad.MethodGet {
			host(d.are, "a").Info.MKeyProtectBits = 0
		}
		return obeyed
	}
	f := d.carry(plan.DiffMKeys(d.known, d.want), nil).Failures()
	if len(f) != 1 || !strings.Contains(f[0].Error(), "did not keep [M_KeyProtectBits]") || a.Key != 0x5EC2E7 {
		t.Errorf("%v, key %v", f, a.Key)
	}
}

// While a key is given, its port is not done.
func TestKeyUnderWay(t *testing.T) {
	d := newDevices(t, false)
	w := d.want.Port(host(d.known, "a"))
	w.Elements, w.Info.MKey = observed.ElementMKey, 1
	r := Start(d.window, plan.DiffMKeys(d.known, d.want), 3)
	r.Advance()
	if done, of := r.Progress(); done != 0 || of != 1 {
		t.Errorf("%d of %d ports", done, of)
	}
}
