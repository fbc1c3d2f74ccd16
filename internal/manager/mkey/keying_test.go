package mkey

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

var guard = desired.MKeyGuard{Bits: 2}

// site is a switch with the manager and two hosts, whose keys a book keeps.
type site struct {
	Keying
	f               *observed.Fabric
	sw              *observed.Node
	self, red, blue *observed.Port
	now             time.Duration
}

func newSite() *site {
	b := subnettest.New()
	s := &site{Keying: NewKeying(&KeyingConfig{Keys: Keys{Ring: NewRing([SecretSize]byte{7}), Book: new(Book)}}), f: b.Fabric}
	s.sw = b.Switch(4, "switch")
	s.self, s.red, s.blue = b.Host(s.sw, "self"), b.Host(s.sw, "red"), b.Host(s.sw, "blue")
	b.ManagedFrom(s.self)
	return s
}

// pass gives the keys that are wanted; who refuses holds another's key.
func (s *site) pass(t *testing.T, refuse ...*observed.Port) (writes int, locked []string) {
	t.Helper()
	ends := s.f.EndPorts()
	p, err := s.Want(s.now, s.f, ends, guard)
	if err != nil {
		t.Fatal(err)
	}
	var failures []apply.Failure
	for _, stage := range p.Stages {
	ops:
		for _, op := range stage.Ops {
			writes++
			for _, r := range refuse {
				if op.Port == r {
					failures = append(failures, apply.Failure{Port: r, Attribute: smp.AttrPortInfo, Err: apply.ErrLocked})
					continue ops
				}
			}
			w, err := p.Fill(op)
			if err != nil {
				t.Fatal(err)
			}
			op.Port.Key, op.Port.Info.MKey, op.Port.Info.MKeyProtectBits = w.MKey, w.MKey, guard.Bits
		}
	}
	return writes, s.Took(s.now+time.Minute, s.f, ends, failures)
}

// Every end port gets a key of its own, and keeps it while nothing happens.
func TestEveryPortHasItsOwnKey(t *testing.T) {
	s := newSite()
	if writes, locked := s.pass(t); writes != 4 || len(locked) > 0 || s.Unset != 0 {
		t.Fatalf("%d writes, locked %v, %d unset", writes, locked, s.Unset)
	}
	keys := map[ib.MKey]bool{}
	for _, p := range s.f.EndPorts() {
		if p.Key == 0 || keys[p.Key] {
			t.Errorf("%s has key %v, which is none, or another's too", p, p.Key)
		}
		keys[p.Key] = true
	}
	for _, e := range s.Config.Book.Entries() {
		if e.Current == 0 || e.Next != 0 {
			t.Errorf("the book says of %v that it has generation %d, and is to have %d", e.ID, e.Current, e.Next)
		}
	}
	if writes, _ := s.pass(t); writes != 0 {
		t.Errorf("%d writes where nothing has changed", writes)
	}
}

// A host whose link was down gets another key when it is back: somebody else may have
// been there. One that has not come up since it was given one keeps it.
func TestLinkThatWasDown(t *testing.T) {
	s := newSite()
	s.pass(t)
	before, other := s.red.Key, s.blue.Key
	s.ComeUp()
	subnettest.SetLink(s.red, smp.PortInit, smp.PhysLinkUp)
	if writes, _ := s.pass(t); writes != 1 || s.red.Key == before || s.blue.Key != other {
		t.Errorf("%d writes, another key %v, of the other host %v", writes, s.red.Key != before, s.blue.Key != other)
	}
	before = s.red.Key
	if writes, _ := s.pass(t); writes != 0 || s.red.Key != before {
		t.Errorf("it has not come up yet: %d writes", writes)
	}
}

// A device with the GUIDs of another at another place gets none of its keys.
func TestSameGUIDElsewhere(t *testing.T) {
	s := newSite()
	s.pass(t)
	key := s.red.Key
	s.red.Via = &s.sw.Ports[4] // it is met behind another port
	s.red.Key, s.red.Info.MKey = 0, 0
	s.pass(t)
	if s.red.Key == key || s.red.Key == 0 {
		t.Errorf("behind another port it has key %v, and had %v", s.red.Key, key)
	}
	c := newSite()
	c.red.Node.Contested = true
	if writes, _ := c.pass(t); writes != 3 || c.red.Key != 0 || c.Unset != 1 {
		t.Errorf("two devices claim to be it: %d writes, %d unset", writes, c.Unset)
	}
}

// Who refuses is left alone for a while; switches and the manager's own port are named.
func TestLocked(t *testing.T) {
	s := newSite()
	writes, locked := s.pass(t, s.red, &s.sw.Ports[0], s.self)
	if writes != 4 || s.Unset != 3 || fmt.Sprint(locked) != "[switch:0 self]" && fmt.Sprint(locked) != "[self switch:0]" {
		t.Fatalf("%d writes, locked %v, %d unset", writes, locked, s.Unset)
	}
	s.now += time.Second
	if writes, _ := s.pass(t); writes != 0 || s.Unset != 3 {
		t.Errorf("a second later %d writes, %d unset", writes, s.Unset)
	}
	s.now += time.Hour
	if writes, _ := s.pass(t); writes != 3 || s.Unset != 0 {
		t.Errorf("an hour later %d writes, %d unset", writes, s.Unset)
	}
}

// Who loses a partition gets another key, for whoever used the host may have learned
// it; who only loses the default one, or gains one, keeps it.
func TestLeaving(t *testing.T) {
	for name, x := range map[string]struct {
		before, after []ib.PKey
		renewed       bool
	}{
		"loses one":                 {[]ib.PKey{0x7FFF, 0x8010}, []ib.PKey{0x7FFF}, true},
		"becomes limited":           {[]ib.PKey{0x8010}, []ib.PKey{0x0010}, false},
		"loses the default one":     {[]ib.PKey{0x7FFF, 0x8010}, []ib.PKey{0, 0x8010}, false},
		"gains one":                 {[]ib.PKey{0x8010}, []ib.PKey{0x8010, 0x8020}, false},
		"loses one, and was not up": {[]ib.PKey{0x8010}, []ib.PKey{}, false},
		"changes from one to other": {[]ib.PKey{0x8010}, []ib.PKey{0x8020}, true},
	} {
		s := newSite()
		s.pass(t)
		if name == "loses one, and was not up" { // nobody can have used the key
			subnettest.SetLink(s.red, smp.PortInit, smp.PhysLinkUp)
			s.pass(t)
		}
		s.ComeUp()
		subnettest.SetPKeysThrough(s.red, x.before...)
		d := observed.NewDesired(s.f)
		d.Port(s.red).PKeys, d.Port(s.red.Peer).PKeys = x.after, x.after
		s.Leaving(plan.Diff(s.f, d), d)
		key, other := s.red.Key, s.blue.Key
		due := s.Due
		s.pass(t)
		if due != x.renewed || (s.red.Key != key) != x.renewed || s.blue.Key != other {
			t.Errorf("%s: due %v, another key %v, want %v; the other host's has changed %v", name, due, s.red.Key != key, x.renewed, s.blue.Key != other)
		}
	}
}

func TestRenewAndRelease(t *testing.T) {
	s := newSite()
	s.pass(t)
	key, other := s.red.Key, s.blue.Key
	if n := s.Renew(s.f.EndPorts(), []ib.PortGUID{s.red.GUID, 0x999}); n != 1 || !s.Due {
		t.Errorf("%d are renewed, due %v", n, s.Due)
	}
	s.pass(t)
	if s.red.Key == key || s.blue.Key != other {
		t.Error("want another key for the one that was named")
	}
	if n := s.Renew(s.f.EndPorts(), nil); n != 4 {
		t.Errorf("%d of all are renewed", n)
	}
	p := s.Release(s.f, s.f.EndPorts())
	if p.Len() != 4 {
		t.Errorf("%d ports give up their keys", p.Len())
	}
	for _, op := range p.Stages[0].Ops {
		w, err := p.Fill(op)
		var info smp.PortInfo
		if err == nil {
			err = info.UnmarshalBinary(w.Data[:])
		}
		if err != nil || info.MKey != 0 || info.MKeyProtectBits != 0 {
			t.Errorf("%s: %v, key %v, bits %d", op.Port, err, info.MKey, info.MKeyProtectBits)
		}
	}
	if s.red.Key = 0; s.Release(s.f, s.f.EndPorts()).Len() != 3 {
		t.Error("a port without a key gives none up")
	}
}

// A port that shows another key than it was given was reset, or taken.
func TestLost(t *testing.T) {
	s := newSite()
	s.pass(t)
	if s.Lost(s.red) {
		t.Error("it has its key")
	}
	s.red.Info.MKey = 0
	if !s.Lost(s.red) || s.Lost(&s.sw.Ports[2]) {
		t.Error("it shows none; the port before it has none of its own")
	}
	if s.red.InfoRead = false; s.Lost(s.red) {
		t.Error("it was not read")
	}
	var none Keying
	if none.Lost(s.blue) || none.Renew(s.f.EndPorts(), nil) != 0 || len(none.Behind(s.blue.Peer, 5)) != 1 {
		t.Error("without keys nothing is lost or renewed")
	}
}

// Keys are shown over cables that lead where they led when a key was given, and over
// no other.
func TestLeads(t *testing.T) {
	s := newSite()
	s.pass(t)
	if !s.sw.Ports[2].Leads || s.sw.Ports[2].MKeyOver() != s.red.Key {
		t.Error("the key of the host is shown over its cable")
	}
	subnettest.Cable(s.red, &s.sw.Ports[4]) // the cable moved, and nobody said so
	s.sw.Ports[2].Peer = nil
	s.pass(t)
	if s.sw.Ports[4].Leads {
		t.Error("a key is shown over a cable that came later")
	}
	if got := s.Behind(&s.sw.Ports[4], 0); len(got) != 1 || got[0] != 0 {
		t.Errorf("%d keys are tried behind a port where nobody was", len(got))
	}
	if got := s.Behind(&s.sw.Ports[3], 0); len(got) < 2 || got[0] != s.blue.Key {
		t.Errorf("%d keys are tried behind the port of a host", len(got))
	}
}

// A second cable to a switch counts when both switches are new, and not when it may
// have come later.
func TestSecondCable(t *testing.T) {
	for _, old := range []bool{false, true} {
		b := subnettest.New()
		s := &site{Keying: NewKeying(&KeyingConfig{Keys: Keys{Ring: NewRing([SecretSize]byte{7}), Book: new(Book)}}), f: b.Fabric}
		first := b.Switch(4, "first")
		s.self = b.Host(first, "self")
		if b.ManagedFrom(s.self); old {
			s.pass(t)
		}
		second := b.Switch(4, "second")
		subnettest.Join(first, second)
		subnettest.Join(first, second)
		b.ManagedFrom(s.self)
		s.pass(t)
		if !first.Ports[2].Leads || first.Ports[3].Leads == old {
			t.Errorf("first switch known before: %v; keys go over the first cable %v, over the second %v", old, first.Ports[2].Leads, first.Ports[3].Leads)
		}
	}
}

// A port of which a write failed is not counted as guarded, whatever it shows.
func TestFailures(t *testing.T) {
	s := newSite()
	ends := s.f.EndPorts()
	if _, err := s.Want(0, s.f, ends, guard); err != nil {
		t.Fatal(err)
	}
	for _, p := range ends {
		p.Key = s.wanted.Port(p).Info.MKey
		p.Info.MKey = p.Key
	}
	s.Took(0, s.f, ends, []apply.Failure{{Port: s.red, Err: fmt.Errorf("it did not keep M_KeyProtectBits")}})
	if s.Unset != 1 {
		t.Errorf("%d ports are not guarded, want 1", s.Unset)
	}
	for _, e := range s.Config.Book.Entries() {
		if (e.Current == 0) != (e.ID == IDOf(s.red)) {
			t.Errorf("%v has generation %d by the book", e.ID, e.Current)
		}
	}
}

func TestGuards(t *testing.T) {
	s := newSite()
	if got := GuardPorts(s.f); len(got) != 3 {
		t.Errorf("%v", got)
	}
	stranger := &s.sw.Ports[4]
	stranger.Info.PortState, stranger.Info.PortPhysicalState = smp.PortActive, smp.PhysLinkUp
	subnettest.Enforce(stranger, true, false)
	subnettest.Enforce(s.red.Peer, false, true)
	s.blue.Peer.InfoRead = false
	if got := GuardPorts(s.f); fmt.Sprint(got) != "[switch:1 switch:4]" {
		t.Errorf("%v", got)
	}
}

func TestLockedError(t *testing.T) {
	var e LockedError
	for i := range maxLockedNamed + 3 {
		e.Ports = append(e.Ports, fmt.Sprint("switch-", i))
	}
	if text := e.Error(); !strings.Contains(text, "switch-15 and 3 more") || strings.Contains(text, "switch-16") {
		t.Error(text)
	}
	s := newSite()
	if err := LockedOut(s.f); err != nil {
		t.Error(err)
	}
	s.self.InfoRead = false
	if err := LockedOut(s.f); err == nil || !strings.Contains(err.Error(), s.self.String()) {
		t.Errorf("the manager's own port says who it is, and no more: %v", err)
	}
	s.self.InfoRead = true
	if s.self.Silent = true; LockedOut(s.f) == nil {
		t.Error("nobody answers behind the manager's own port")
	}
	if LockedOut(observed.NewFabric()) == nil {
		t.Error("the manager's own port does not answer")
	}
}
