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
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
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

// A port that was not reached by the write of a key is written to again as soon as it shows the
// old one, and one that shows neither is left alone until it is known which it has: it may have
// both. What the manager knows of a port then is never that it has a key that it does not have.
func TestKeyIsOfferedAgain(t *testing.T) {
	const old, key = ib.MKey(0x01D), ib.MKey(0x5EC2E7)
	for _, x := range []struct {
		name    string
		before  ib.MKey
		protect uint8
		outcome func(r request, sets int) outcome
		want    string  // of the failure
		knows   ib.MKey // the key that requests carry from then on
		offered ib.MKey
		sets    int
	}{
		{"three writes are lost, no key before", 0, 0, func(r request, sets int) outcome { return lostUntil(r, sets, 4) }, "", key, 0, 4},
		{"three writes are lost", old, 2, func(r request, sets int) outcome { return lostUntil(r, sets, 4) }, "", key, 0, 4},
		{"the answer is lost", old, 2, func(r request, sets int) outcome {
			if r.method == mad.MethodSet {
				return answerLost
			}
			return obeyed
		}, "", key, 0, 1},
		{"all writes are lost", old, 2, func(r request, sets int) outcome { return lostUntil(r, sets, keyTries+1) }, "no answer", old, key, keyTries},
		{"nothing is answered, the write was taken", old, 2, func(r request, sets int) outcome {
			if r.method == mad.MethodSet {
				return answerLost
			}
			return lost
		}, "no answer", old, key, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			d := newDevices(t, false)
			a, is := host(d.known, "a"), host(d.are, "a")
			is.Info.MKey, is.Info.MKeyProtectBits = x.before, x.protect
			a.Key = x.before
			w := d.want.Port(a)
			w.Elements = observed.ElementMKey | observed.ElementMKeyProtectBits
			w.Info.MKey, w.Info.MKeyProtectBits = key, 2
			d.outcome = func(r request) outcome {
				if r.port.Node.Description != "a" {
					return obeyed
				}
				return x.outcome(r, len(d.sets()))
			}
			f := d.carry(plan.DiffMKeys(d.known, d.want), nil).Failures()
			// A port that was read before, and is silent now, is not another manager's.
			if x.want == "" && len(f) > 0 || x.want != "" && (len(f) != 1 || !strings.Contains(f[0].Error(), x.want) || errors.Is(f[0], ErrLocked)) {
				t.Errorf("%v, want %q", f, x.want)
			}
			if a.Key != x.knows || a.Offered != x.offered || len(d.sets()) != x.sets {
				t.Errorf("requests carry %v, or maybe %v, after %d writes: want %v, %v, %d", a.Key, a.Offered, len(d.sets()), x.knows, x.offered, x.sets)
			}
			// What else is to be written there is not sent while the key is not known.
			d.asked = nil
			d.outcome = nil
			w.Elements = 0
			d.wantPKeys(a, blue)
			f = d.run().Failures()
			if known := x.offered == 0; known != (len(f) == 0) || known != (len(d.sets()) > 0) {
				t.Errorf("with another write: %v, %d sent", f, len(d.sets()))
			}
			for _, e := range f { // as of a device that does not answer, so that it is asked again soon
				if !errors.Is(e, errWhichKey) || !errors.Is(e, transact.ErrNoAnswer) {
					t.Errorf("with another write: %v", e)
				}
			}
		})
	}
}

// lostUntil loses writes before the n-th.
func lostUntil(r request, sets, n int) outcome {
	if r.method == mad.MethodSet && sets < n {
		return lost
	}
	return obeyed
}

// AskKey finds which of two keys a port has, whatever it says to the other.
func TestAskKey(t *testing.T) {
	const old, offered = ib.MKey(0x01D), ib.MKey(0x5EC2E7)
	for _, x := range []struct {
		name         string
		has          ib.MKey
		protect      uint8
		mute         bool
		knows, maybe ib.MKey
		called       string
	}{
		{"the old one", old, 2, false, old, 0, "known"},
		{"the new one", offered, 2, false, offered, 0, "known"},
		{"the old one, and it answers to all", old, 1, false, old, 0, "known"},
		{"the new one, and it answers to all", offered, 1, false, offered, 0, "known"},
		{"none any more", 0, 0, false, old, 0, "known"},
		{"another one", 0xBAD, 2, false, old, offered, "failed"},
		{"mute", old, 2, true, old, offered, "failed"},
	} {
		d := newDevices(t, false)
		a, is := host(d.known, "a"), host(d.are, "a")
		is.Info.MKey, is.Info.MKeyProtectBits = x.has, x.protect
		a.Key, a.Offered = old, offered
		if x.mute {
			d.outcome = func(request) outcome { return lost }
		}
		called := ""
		AskKey(d.window, a, func() { called += "known" }, func() { called += "failed" })
		d.exchange()
		if called != x.called || a.Key != x.knows || a.Offered != x.maybe || len(d.asked) != 2 {
			t.Errorf("%s: %q after %d questions, key %v, or maybe %v: want %q, %v, %v", x.name, called, len(d.asked), a.Key, a.Offered, x.called, x.knows, x.maybe)
		}
	}
}

// What a port has that does not answer when it was given a key is not known: it is read again, and the key
// that it was offered is remembered.
func TestMuteAfterItsKey(t *testing.T) {
	const key = ib.MKey(0x5EC2E7)
	d := newDevices(t, false)
	a := host(d.known, "a")
	w := d.want.Port(a)
	w.Elements, w.Info.MKey, w.Info.MKeyProtectBits = observed.ElementMKey|observed.ElementMKeyProtectBits, key, 1
	d.outcome = func(r request) outcome {
		if r.port.Node.Description == "a" {
			return lost
		}
		return obeyed
	}
	f := d.carry(plan.DiffMKeys(d.known, d.want), nil).Failures()
	if len(f) != 1 || errors.Is(f[0], ErrLocked) || !strings.Contains(f[0].Error(), "has taken its M_Key is not known: no answer") {
		t.Errorf("%v", f)
	}
	if a.InfoRead || a.Offered != key || a.Key != 0 {
		t.Errorf("read %v, offered %v, key %v", a.InfoRead, a.Offered, a.Key)
	}
}
