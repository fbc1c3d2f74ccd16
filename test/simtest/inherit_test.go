package simtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/test/need"
)

// tell gives a manager another policy.
func (r *rivals) tell(m *rival, p *policy.Policy) {
	m.engine.(*engine.Engine).SetPolicy(p)
	m.engine.Expire(r.fabric.Now())
}

// holds reports whether a host and the switch port before it hold a partition.
func (r *rivals) holds(id string, base ib.PKeyBase) (host, guard bool) {
	is := func(k ib.PKey) bool { return k.Base() == base }
	return slices.ContainsFunc(r.table(r.host(id)), is), slices.ContainsFunc(r.table(r.switchPort(id)), is)
}

func (r *rivals) checkHolds(what, id string, base ib.PKeyBase, want bool) {
	r.t.Helper()
	if host, guard := r.holds(id, base); host != want || guard != want {
		r.t.Errorf("%s: %s holds %s: %v, its switch port: %v, want %v", what, id, base, host, guard, want)
	}
}

// A standby with an older policy that takes over, by death of the master or by
// handover, gives nobody what was taken from him meanwhile, names it, and does so
// when the policy is read again. A host that restarts after that gets back what it
// had. Without a profile, or told so beforehand, it gives what its policy says.
func TestTakeoverBringsNoOlderPolicyBack(t *testing.T) {
	for _, x := range []struct {
		name    string
		profile protect.Profile
		accept  bool
		handed  bool
		gives   bool
	}{
		{"believing", protect.None, false, false, true},
		{"the master dies", protect.Tenant, false, false, false},
		{"the master hands over", protect.Tenant, false, true, false},
		{"accepted beforehand", protect.Tenant, true, false, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := newRivals(t)
			older := halves(hosts(r.list))
			newer := older.move(guidOf(r.list, "red-1"), 0x10, 0x20)
			config := func(priority uint8) engine.Config {
				return engine.Config{Election: engine.Election{Priority: priority, AcceptPolicy: x.accept, SMKeys: ring(1)}, Profile: x.profile}
			}
			first := r.joinAs("mgmt-1", config(5), newer)
			r.run(time.Second)
			r.checkMaster(first, newer, 0)
			since := r.fabric.Now()
			priority := uint8(1)
			if x.handed {
				priority = 9
			}
			second := r.joinAs("blue-6", config(priority), older)
			r.run(30 * time.Second)
			if !x.handed {
				since = r.fabric.Now()
				r.leave(first)
				r.run(20 * time.Second)
			}
			if !has[event.Completed](second, since) {
				t.Fatalf("it did not take over: %v", second.events)
			}
			r.checkHolds("after the takeover", "red-1", 0x10, x.gives)
			r.checkHolds("after the takeover", "red-2", 0x10, true)
			if x.gives {
				r.checkMaster(second, older, 0)
				return
			}
			named := false
			for _, h := range second.events {
				w, ok := h.Event.(event.Warned)
				named = named || ok && strings.Contains(w.Text, guidOf(r.list, "red-1").String()) && strings.Contains(w.Text, "--accept-policy")
			}
			if !named {
				t.Errorf("what is withheld is not named: %v", second.events)
			}
			r.must(r.fabric.Reboot(r.node("red-2").GUID))
			r.run(20 * time.Second)
			r.checkHolds("restarted", "red-2", 0x10, true)
			r.checkHolds("still", "red-1", 0x10, false)
			second.engine.(*engine.Engine).FollowPolicy(older.policy()) // a store that it follows is late
			second.engine.Expire(r.fabric.Now())
			r.run(20 * time.Second)
			r.checkHolds("followed", "red-1", 0x10, false)
			r.tell(second, older.policy())
			r.run(20 * time.Second)
			r.checkHolds("read again", "red-1", 0x10, true)
			r.checkMaster(second, older, 0)
		})
	}
}

// One listed manager that is silent, or says that it is master too and never hands
// over, or does so again and again, delays no change that takes away. A manager
// that believes others waits for it for up to a minute and more.
func TestQuarrelsomeManagerDelaysNothing(t *testing.T) {
	need.Long(t, "five quarrels, each under two profiles")
	quarrels := map[string]func(*rogue, *rivals, *rival){
		"silent":                func(g *rogue, _ *rivals, _ *rival) { g.mute = true },
		"master of lower rank":  func(*rogue, *rivals, *rival) {},
		"master of higher rank": func(g *rogue, _ *rivals, _ *rival) { g.info.Priority = 15 },
		"master, then silent": func(g *rogue, r *rivals, _ *rival) {
			r.run(3 * time.Second)
			g.mute = true
		},
		"HANDOVER again and again": func(g *rogue, r *rivals, m *rival) {
			for range 20 {
				r.run(200 * time.Millisecond)
				g.order(smp.SMControlHandover, r.info(m.at).LID)
			}
		},
	}
	for name, quarrel := range quarrels {
		t.Run(name, func(t *testing.T) {
			slowest := map[protect.Profile]time.Duration{}
			for _, profile := range []protect.Profile{protect.None, protect.Tenant} {
				r := newRivals(t)
				y := halves(hosts(r.list))
				listed := guidOf(r.list, "blue-6")
				m := r.joinAs("mgmt-1", engine.Config{Election: engine.Election{Priority: 7, Trusted: []ib.PortGUID{listed}}, Profile: profile, Limits: transact.DefaultLimits()}, y)
				r.run(3 * time.Second)
				r.checkMaster(m, y, 0)
				g := &rogue{impostor: impostor{info: smp.SMInfo{GUID: listed, SMState: smp.SMMaster}}}
				r.seat("blue-6", func(*rival) link.Engine { return g })
				quarrel(g, r, m)
				for i := range 20 {
					from, to := ib.PKeyBase(0x10), ib.PKeyBase(0x20)
					if i%2 == 1 {
						from, to = to, from
					}
					y = y.move(guidOf(r.list, "red-1"), from, to)
					r.tell(m, y.policy())
					began := r.fabric.Now()
					for r.fabric.Now() < began+time.Minute {
						host, guard := r.holds("red-1", from)
						if !host && !guard {
							break
						}
						r.run(time.Millisecond)
					}
					slowest[profile] = max(slowest[profile], r.fabric.Now()-began)
					r.run(337 * time.Millisecond)
				}
			}
			t.Logf("the slowest of 20 revocations: %v, and %v where managers are believed", slowest[protect.Tenant], slowest[protect.None])
			// It waits for the sweep that the manager's coming called for, if at all.
			if slowest[protect.Tenant] > time.Second {
				t.Error("too slow")
			}
			if slowest[protect.None] < 30*time.Second && strings.HasPrefix(name, "master of") {
				t.Error("where managers are believed it is not slow: not an attack")
			}
		})
	}
}

// While a listed manager is master too nobody is given anything new; once it has
// stepped back everybody gets what the policy says.
func TestSecondMasterGivesNothingNew(t *testing.T) {
	r := newRivals(t)
	y := halves(hosts(r.list))
	listed := guidOf(r.list, "blue-6")
	m := r.joinAs("mgmt-1", engine.Config{Election: engine.Election{Priority: 7, Trusted: []ib.PortGUID{listed}}, Profile: protect.Tenant}, y)
	r.run(time.Second)
	g := &rogue{impostor: impostor{info: smp.SMInfo{GUID: listed, SMState: smp.SMMaster}}}
	r.seat("blue-6", func(*rival) link.Engine { return g })
	r.run(3 * time.Second)
	next := y.move(guidOf(r.list, "red-1"), 0x10, 0x20)
	r.tell(m, next.policy())
	r.run(3 * time.Second)
	r.checkHolds("what the policy takes", "red-1", 0x10, false)
	r.checkHolds("what it gives, beside a second master", "red-1", 0x20, false)
	g.info.SMState = smp.SMStandby
	r.run(20 * time.Second)
	r.checkHolds("what it gives, alone", "red-1", 0x20, true)
	r.checkMaster(m, next, 0)
}

// A manager that is new to a subnet leaves it to the master that it finds, be it
// silent; not one that has been there, nor once it has managed it itself.
func TestNewcomer(t *testing.T) {
	for _, x := range []struct {
		name          string
		mute, managed bool
		state         smp.SMState
		leaves        bool
	}{
		{"master", false, false, smp.SMMaster, true},
		{"silent, but it was made known as master", true, false, smp.SMMaster, true},
		{"standby", false, false, smp.SMStandby, false},
		{"managed before", false, true, smp.SMMaster, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := newRivals(t)
			y := halves(hosts(r.list))
			first := r.joinAs("blue-6", engine.Config{Profile: protect.Tenant}, y)
			r.run(time.Second)
			known := first.engine.(*engine.Engine).Assigned()
			if !known.Managed {
				t.Error("a manager does not know that it was master")
			}
			r.leave(first)
			g := &rogue{mute: x.mute, impostor: impostor{info: smp.SMInfo{GUID: guidOf(r.list, "blue-6"), SMState: x.state}}}
			r.seat("blue-6", func(*rival) link.Engine { return g })
			c := engine.Config{Profile: protect.Tenant, Election: engine.Election{Newcomer: true, SMKey: 7, ShowSMKey: true}}
			if x.managed {
				c.Known = known
			}
			m := r.joinAs("mgmt-1", c, y)
			r.run(time.Second)
			wrote := r.wrote(m, 0) > 0
			if has[event.Unexpected](m, 0) != x.leaves || wrote == x.leaves {
				t.Errorf("wrote %v, want %v: %v", wrote, !x.leaves, m.events)
			}
			if got := g.learned(); got != "" {
				t.Error("the master learned " + got)
			}
		})
	}
}

// Where managers share a secret, a port that says that a manager is behind it, and does not
// prove it in time, is fenced by a strict manager: whether its host answers or not, and however
// often it clears and sets the bit. One that proves it is not touched, however late its first
// answer about the subnet.
func TestStrictFencesWhoProvesNothing(t *testing.T) {
	for name, toggles := range map[string]bool{"silent": false, "answers": false, "comes and goes": true} {
		t.Run(name, func(t *testing.T) {
			r := newRivals(t)
			y := halves(hosts(r.list))
			m := r.joinAs("mgmt-1", engine.Config{Profile: protect.Strict, Election: engine.Election{SMKeys: ring(1)}}, y)
			r.run(time.Second)
			since := r.fabric.Now()
			g := r.seat("red-3", func(*rival) link.Engine {
				return &rogue{mute: name != "answers", impostor: impostor{info: smp.SMInfo{GUID: guidOf(r.list, "red-3"), SMState: smp.SMStandby}}}
			})
			switch {
			case toggles:
				for on := range 8 {
					r.run(900 * time.Millisecond)
					g.port.SetIsSM(on%2 == 1)
				}
			default:
				r.run(mastership.ProofGrace / 2)
				if len(alarms(m, since)) != 1 || has[event.Fenced](m, since) {
					t.Errorf("after half of its time: %v", m.events)
				}
				r.run(mastership.ProofGrace)
			}
			if !has[event.Fenced](m, since) || len(valid(r.table(r.switchPort("red-3")))) != 0 {
				t.Errorf("after its time: %v", m.events)
			}
			other := r.joinAs("blue-6", engine.Config{Profile: protect.Strict, Election: engine.Election{SMKeys: ring(1)}}, y)
			before := r.fabric.Now()
			r.run(10 * time.Second)
			if has[event.Fenced](m, before) || has[event.Fenced](other, before) {
				t.Errorf("a manager that shares the secret is fenced: %v", m.events)
			}
		})
	}
}

// A fence that stands because a manager had not proved who it is goes when it does, and does not
// go because the manager that put it starts again.
func TestProofLiftsTheFence(t *testing.T) {
	r := newRivals(t)
	y := halves(hosts(r.list))
	c := engine.Config{Election: engine.Election{Priority: 5, SMKeys: ring(1)}, Profile: protect.Strict}
	m := r.joinAs("mgmt-1", c, y)
	r.run(time.Second)
	mute := r.seat("blue-6", func(*rival) link.Engine { return &rogue{mute: true} })
	r.run(2 * mastership.ProofGrace)
	if len(valid(r.table(r.switchPort("blue-6")))) != 0 {
		t.Fatalf("not fenced: %v", m.events)
	}
	c.Known = m.engine.(*engine.Engine).Assigned()
	r.leave(m)
	m = r.joinAs("mgmt-1", c, y)
	r.run(3 * mastership.ProofGrace)
	if has[event.Unfenced](m, 0) || len(valid(r.table(r.switchPort("blue-6")))) != 0 {
		t.Errorf("a start lifts the fence before a manager that proves nothing: %v", m.events)
	}
	r.leave(mute)
	since := r.fabric.Now()
	c.Known, c.Election.Priority = engine.Config{}.Known, 1
	r.joinAs("blue-6", c, y)
	r.run(10 * time.Second)
	if !has[event.Unfenced](m, since) || len(valid(r.table(r.switchPort("blue-6")))) == 0 {
		t.Errorf("a manager has proved who it is, and is fenced: %v", m.events)
	}
}

// A manager of higher rank, whose policy claims index 0 of a port twice, does not take the
// subnet from the master, which could not have it back: M_Keys would be set when that is found
// in the tables. It says what is wrong, and takes over with a policy that can be carried out.
func TestImpossiblePolicyTakesNothingOver(t *testing.T) {
	r := newRivals(t)
	y := halves(hosts(r.list))
	bad := y.policy()
	for i := range bad.Partitions {
		bad.Partitions[i].Members = append(bad.Partitions[i].Members, policy.Member{
			Selector: policy.Selector{Kind: policy.SelectPort, GUID: uint64(guidOf(r.list, "red-1"))}, Membership: policy.Full, Index0: true,
		})
	}
	master := r.joinAs("mgmt-1", engine.Config{Profile: protect.Tenant, Election: engine.Election{SMKeys: ring(1)}}, y)
	r.run(5 * time.Second)
	since := r.fabric.Now()
	second := r.seat("blue-6", func(m *rival) link.Engine {
		c := engine.Config{Election: engine.Election{Priority: 7, SMKeys: ring(1)}, Profile: protect.Tenant, Limits: transact.DefaultLimits()}
		return engine.New(c, bad, func(e event.Event) { m.events = append(m.events, happened{r.fabric.Now(), e}) })
	})
	r.run(30 * time.Second)
	if n := r.wrote(second, 0); n != 0 || !has[event.Refused](second, 0) || has[event.TakingOver](second, 0) || has[event.Deferred](master, since) {
		t.Errorf("the manager that comes wrote %d times, and has %v; the master has %v", n, second.events, master.events)
	}
	r.tell(second, y.policy())
	r.run(5 * time.Minute)
	if !has[event.TakingOver](second, 0) {
		t.Errorf("with a policy that can be carried out: %v", second.events)
	}
}

// Without a default partition hosts ask the manager in their own partitions. A standby is a member of
// none: when it takes over it becomes one of each that hosts still are in, though its tables did not
// hold them.
func TestTakeoverServesTenants(t *testing.T) {
	r := newRivals(t)
	y := halves(hosts(r.list))
	y.none = true
	config := func(priority uint8) engine.Config {
		return engine.Config{Election: engine.Election{Priority: priority, SMKeys: ring(1)}, Profile: protect.Tenant}
	}
	first := r.joinAs("mgmt-1", config(5), y)
	r.run(time.Second)
	r.joinAs("blue-6", config(1), y)
	r.run(20 * time.Second)
	r.checkHolds("before", "mgmt-1", 0x10, true)
	r.checkHolds("before", "blue-6", 0x10, false)
	r.leave(first)
	r.run(20 * time.Second)
	for _, base := range []ib.PKeyBase{0x10, 0x20} {
		r.checkHolds("after", "blue-6", base, true)
	}
	r.checkHolds("after", "red-1", 0x10, true)
	r.checkHolds("after", "red-1", 0x20, false)
}
