package mastership

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// part is a manager's part in mastership, as master or not yet.
func part(t *testing.T, leased, master bool) (m *Mastership, pass, beside *transact.Window, now time.Duration) {
	t.Helper()
	r, _ := newRig(t, strict(), 1)
	pass, beside = transact.NewWindow(transact.DefaultLimits()), transact.NewWindow(transact.DefaultLimits())
	m = Open(r.Config(), (*rigHost)(r), leased, pass, beside)
	r.Peers = m.Peers
	if master {
		r.lead()
		m.Became(r.now, Effects{From: smp.SMDiscovering, To: smp.SMMaster})
	}
	return m, pass, beside, r.now
}

// Config is what the peers of a rig were told.
func (r *rig) Config() Config { return r.Peers.config }

// Who may write, and until when.
func TestMayWrite(t *testing.T) {
	for _, x := range []struct {
		name           string
		leased, master bool
		then           func(m *Mastership, now time.Duration)
		until          time.Duration // after now; 0 for not at all
	}{
		{name: "no master"},
		{name: "no master, with a lease", leased: true, then: func(m *Mastership, now time.Duration) {
			m.SetLease(Grant{Term: 1, Until: now + time.Second}, time.Second)
		}},
		{name: "master, no store", master: true, until: Forever},
		{name: "master that did not run", master: true, then: func(m *Mastership, now time.Duration) { m.Nap.Begin(now, 1) }},
		{name: "master without a lease", leased: true, master: true},
		{name: "master with a lease", leased: true, master: true, until: time.Second, then: func(m *Mastership, now time.Duration) {
			m.SetLease(Grant{Term: 1, Until: now + time.Second}, time.Second)
		}},
		{name: "master with a lease that has ended", leased: true, master: true, then: func(m *Mastership, now time.Duration) {
			m.SetLease(Grant{Term: 1, Until: now}, time.Second)
		}},
		{name: "master while the last holder may write", leased: true, master: true, then: func(m *Mastership, now time.Duration) {
			if !m.SetLease(Grant{Term: 1, Since: now + 1, Until: now + time.Second}, 2*time.Second) || m.Wait.Until != now+1+2*time.Second {
				t.Errorf("the wait ends at %v", m.Wait.Until)
			}
		}},
		{name: "master with a lease that did not run", leased: true, master: true, then: func(m *Mastership, now time.Duration) {
			m.SetLease(Grant{Term: 1, Until: now + time.Second}, time.Second)
			m.Nap.Begin(now, 1)
		}},
		{name: "deposed", leased: true, master: true, then: func(m *Mastership, now time.Duration) {
			m.SetLease(Grant{Term: 1, Until: now + time.Second}, time.Second)
			m.Became(now, Effects{From: smp.SMMaster, To: smp.SMStandby})
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			m, pass, _, now := part(t, x.leased, x.master)
			if x.then != nil {
				x.then(m, now)
			}
			until, ok := m.MayWrite(now)
			want := x.until
			if want != 0 && want != Forever {
				want += now
			}
			if ok != (x.until != 0) || ok && until != want {
				t.Fatalf("may write: %v, until %v; want until %v", ok, until, want)
			}
			if m.Nap.On() || !x.leased && !x.master {
				return // nothing is put into the window, or taken from it, by the engine
			}
			pass.Do(transact.Request{Path: mad.Path{1}, Method: mad.MethodSet, Attribute: smp.AttrPortInfo}, func(transact.Reply) {})
			var p mad.SMP
			if leaves := pass.Next(now, &p); leaves != ok {
				t.Errorf("may write: %v, and a Set leaves: %v", ok, leaves)
			}
		})
	}
}

// The wait of a start, and that of a takeover.
func TestMustWait(t *testing.T) {
	m, _, _, _ := part(t, false, false)
	if m.MustWait(0, 0) || !m.MustWait(0, time.Second) || !m.Wait.AtStart {
		t.Error("before it is told the time, it waits where a pause is set")
	}
	m.TimeIs(10, time.Second)
	m.TimeIs(20, time.Second)
	if !m.MustWait(10+time.Second-1, 0) || m.MustWait(10+time.Second, 0) {
		t.Errorf("the wait ends at %v", m.Wait.Until)
	}
	m.Succeeds(time.Minute, time.Second, Effects{Lost: true, Since: time.Minute - time.Second/2})
	if m.Wait.Until != time.Minute+time.Second/2 || m.Wait.AtStart || !m.Wait.Abandon {
		t.Errorf("after a master that was given up: %+v", m.Wait)
	}
	m.Succeeds(2*time.Minute, time.Second, Effects{})
	if m.Wait.Until != 2*time.Minute+time.Second {
		t.Errorf("after a handover: %+v", m.Wait)
	}
	leased, _, _, now := part(t, true, true)
	leased.TimeIs(now, 0)
	if !leased.MustWait(now, 0) {
		t.Error("without the lease it does not wait")
	}
}
