package simtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/test/need"
)

// askByRoute asks for SMInfo by a directed route.
func (g *rogue) askByRoute(tid uint64, path []ib.PortNum) {
	p := mad.SMP{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnDirected, Method: mad.MethodGet,
		TransactionID: tid, AttributeID: smp.AttrSMInfo, DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive, HopCount: uint8(len(path)),
	}
	for i, n := range path {
		p.InitialPath[i+1] = byte(n)
	}
	if g.info.Encode(&p.Data) == nil {
		g.out, g.dlid = append(g.out, p), append(g.dlid, ib.LIDPermissive)
	}
}

// answers are those that came to questions with such numbers.
func (g *rogue) answers(first, last uint64) (n int) {
	for i := range g.seen {
		if p := &g.seen[i]; p.Method == mad.MethodGetResp && p.TransactionID >= first && p.TransactionID <= last {
			n++
		}
	}
	return n
}

// wasAsked reports whether somebody asked before anything was answered.
func (g *rogue) wasAsked() bool { return len(g.seen) > 0 && g.seen[0].Method == mad.MethodGet }

// detours are so many different directed routes between two hosts, which go up and
// down again behind the first switch: each is a place of its own to who is asked.
func (w *world) detours(rnd *rand.Rand, from, to place, n int) (out [][]ib.PortNum) {
	w.t.Helper()
	at, ok := w.peer(from)
	if !ok {
		w.t.Fatalf("%v has no cable", from)
	}
	leaf := w.nodeOf(at.node)
	var turns [][2]ib.PortNum
	for up, p := range leaf.Ports {
		if p.Peer == nil || p.Peer.Type != ib.NodeSwitch {
			continue
		}
		for down, q := range p.Peer.Ports {
			if q.Peer == leaf {
				turns = append(turns, [2]ib.PortNum{ib.PortNum(up), ib.PortNum(down)})
			}
		}
	}
	straight, seen := w.route(from, to), map[string]bool{}
	for len(out) < n {
		path := []ib.PortNum{straight[0]}
		for range 1 + rnd.IntN(4) {
			turn := turns[rnd.IntN(len(turns))]
			path = append(path, turn[:]...)
		}
		path = append(path, straight[1:]...)
		if name := fmt.Sprint(path); !seen[name] {
			seen[name] = true
			out = append(out, path)
		}
	}
	return out
}

const (
	waitingSeeds     = 3
	waitingSeedsSoak = 200
)

// overSeeds does something for each of some seeds.
func overSeeds(t *testing.T, do func(seed uint64, rnd *rand.Rand)) {
	t.Helper()
	seeds, first := waitingSeeds, uint64(1)
	if seed, soak := soakSeed(t); soak {
		seeds, first = waitingSeedsSoak, seed
	}
	t.Logf("seeds %d to %d", first, first+uint64(seeds)-1)
	for seed := first; seed < first+uint64(seeds); seed++ {
		do(seed, rand.New(rand.NewPCG(seed, 5)))
	}
}

// Questions that come before it is known who asks wait for that. A tenant's host that
// fills every place with questions of its own by ever other routes is answered no
// more often than there are places, learns nothing, keeps nobody from being answered
// whose question waits already, and for no longer than that who comes later.
func TestFloodOfEarlyQuestions(t *testing.T) {
	const key, flood, first, later, again = 0x5eed, 200, 1000, 1, 2
	const places = 64 // questions that wait at once
	overSeeds(t, func(seed uint64, rnd *rand.Rand) {
		for _, early := range []bool{true, false} {
			r := newRivals(t)
			y := halves(hosts(r.list))
			listed := guidOf(r.list, "blue-6")
			friend := &rogue{impostor: impostor{info: smp.SMInfo{GUID: listed, SMState: smp.SMStandby}}}
			r.seat("blue-6", func(*rival) link.Engine { return friend })
			bad := &rogue{mute: true, impostor: impostor{info: smp.SMInfo{GUID: listed, Priority: 15, SMState: smp.SMMaster, SMKey: ib.SMKey(rnd.Uint64())}}}
			r.seat("red-3", func(*rival) link.Engine { return bad })
			m := r.joinAs("mgmt-1", engine.Config{Election: engine.Election{Priority: 7, SMKey: key, ShowSMKey: true, Trusted: []ib.PortGUID{listed}}, Profile: protect.Tenant}, y)
			for !has[event.Announced](m, 0) {
				r.run(time.Microsecond)
			}
			route := r.route(r.host("blue-6"), m.at)
			if early {
				friend.askByRoute(later, route)
				r.run(10 * time.Microsecond)
			}
			for i, path := range r.detours(rnd, r.host("red-3"), m.at, flood) {
				bad.askByRoute(first+uint64(i), path)
			}
			r.run(20 * time.Microsecond)
			if !early {
				friend.askByRoute(later, route)
			}
			r.run(20 * time.Microsecond)
			if n := bad.answers(0, ^uint64(0)) + friend.answers(0, ^uint64(0)); n > 0 {
				t.Errorf("seed %d: %d questions were answered before it was known who asks", seed, n)
			}
			r.run(time.Second)
			got, heard := bad.answers(first, first+flood), friend.answers(later, later)
			t.Logf("early %v: the flood has %d answers, the listed manager %d", early, got, heard)
			if got+heard != places || early != (heard == 1) {
				t.Errorf("seed %d, early %v: %d answers to a flood, %d to who is listed", seed, early, got, heard)
			}
			if learned := bad.learned(); learned != "" {
				t.Errorf("seed %d: the flood learned %s", seed, learned)
			}
			friend.askByRoute(again, route)
			r.run(time.Millisecond)
			if friend.answers(again, again) != 1 || friend.learned() != fmt.Sprintf("SM_Key 0x%x", key) {
				t.Errorf("seed %d, early %v: the listed manager asks again: %d answers, %q", seed, early, friend.answers(again, again), friend.learned())
			}
			r.checkMaster(m, y, 0)
		}
	})
}

// A manager that is new to a subnet answers nobody that is not named until it knows
// that it stays: never, where it finds a master, and else once it has asked itself.
func TestNewcomerKeepsToItself(t *testing.T) {
	need.Long(t, "seconds of processor time")
	for _, x := range []struct {
		name   string
		state  smp.SMState
		mute   bool
		stays  bool
		before time.Duration // by when it does not know yet
	}{
		{"a master", smp.SMMaster, false, false, 0},
		{"a standby", smp.SMStandby, false, true, 0},
		{"one that says nothing", smp.SMStandby, true, true, 100 * time.Microsecond},
	} {
		t.Run(x.name, func(t *testing.T) {
			overSeeds(t, func(seed uint64, rnd *rand.Rand) {
				r := newRivals(t)
				y := halves(hosts(r.list))
				at := []string{"red-3", "blue-2", "storage-2"}[rnd.IntN(3)]
				g := &rogue{mute: x.mute, impostor: impostor{info: smp.SMInfo{GUID: guidOf(r.list, at), Priority: uint8(rnd.IntN(16)), SMState: x.state}}}
				r.seat(at, func(*rival) link.Engine { return g })
				m := r.joinAs("mgmt-1", engine.Config{Profile: protect.Tenant, Election: engine.Election{Newcomer: true, SMKey: 7, ShowSMKey: true}}, y)
				route, asked := r.route(r.host(at), m.at), uint64(0)
				for range 300 {
					asked++
					g.askByRoute(asked, route)
					r.run(time.Duration(1+rnd.IntN(20)) * time.Microsecond)
				}
				for range 60 {
					asked++
					g.askByRoute(asked, route)
					r.run(time.Duration(1+rnd.IntN(2000)) * time.Millisecond)
				}
				n := g.answers(0, asked)
				if n > 0 != x.stays || has[event.Unexpected](m, 0) == x.stays || has[event.Completed](m, 0) != x.stays {
					t.Errorf("seed %d: %d of %d questions were answered: %v", seed, n, asked, m.events)
				}
				if !g.wasAsked() {
					t.Errorf("seed %d: it was told before it was asked", seed)
				}
				if learned := g.learned(); learned != "" {
					t.Errorf("seed %d: it learned %s", seed, learned)
				}
			})
		})
	}
}

// Ports give up their M_Keys before the subnet goes to a manager that is listed and
// does not share the secret; whatever a host says that claims to be that one, or any
// other, they keep them.
func TestMKeysAreGivenUpForTheListedOnly(t *testing.T) {
	need.Long(t, "seconds of processor time")
	overSeeds(t, func(seed uint64, rnd *rand.Rand) {
		r := newRivals(t)
		y := halves(hosts(r.list))
		listed := guidOf(r.list, "blue-6")
		c := keyed()
		c.Election.Priority, c.Election.Trusted = 5, []ib.PortGUID{listed}
		m := r.joinAs("mgmt-1", c, y)
		r.run(2 * time.Second)
		keys := r.wantMKeys()
		at := []string{"red-1", "red-3", "storage-2", "blue-2"}[rnd.IntN(4)]
		g := &rogue{}
		bad := r.seat(at, func(*rival) link.Engine { return g })
		for range 60 {
			g.misbehave(rnd, r, at, bad, []*rival{m})
			if rnd.IntN(2) == 0 {
				g.info.GUID, g.info.Priority, g.info.SMState = listed, 15, smp.SMStandby
			}
			r.run(time.Duration(rnd.IntN(400)) * time.Millisecond)
		}
		if has[event.Released](m, 0) || has[event.Deferred](m, 0) {
			t.Errorf("seed %d: M_Keys were given up for a host that is not listed: %v", seed, m.events)
		}
		if now := r.wantMKeys(); !maps.Equal(now, keys) {
			t.Errorf("seed %d: M_Keys are others", seed)
		}
		r.leave(bad)
		// The one at its own port is offered the subnet, and all is open before that.
		heir := &heir{w: r.world}
		heir.info = smp.SMInfo{GUID: listed, Priority: 15, SMState: smp.SMStandby}
		r.seat("blue-6", func(*rival) link.Engine { return heir })
		r.run(20 * time.Second)
		if !has[event.Released](m, 0) || heir.offers == 0 || heir.guarded > 0 {
			t.Errorf("seed %d: offered %d times to the listed manager, %d end ports held an M_Key then: %v", seed, heir.offers, heir.guarded, m.events)
		}
		// It does not take the subnet, and says no more that it wants it.
		heir.info.Priority = 0
		r.run(2 * time.Minute)
		if now := r.wantMKeys(); !maps.Equal(now, keys) {
			t.Errorf("seed %d: the subnet was not taken, and M_Keys are others", seed)
		}
	})
}

// wantMKeys wants every end port to hold an M_Key, and gives them by port. Where a
// manager is listed they may be read, so that it can stand by: level 1.
func (w *world) wantMKeys() map[place]ib.MKey {
	w.t.Helper()
	keys := make(map[place]ib.MKey)
	for _, e := range w.ends() {
		i := w.info(e.place)
		if i.MKey == 0 || i.MKeyProtectBits != 1 {
			w.t.Errorf("%s: M_Key %v, M_KeyProtectBits %d", e.name, i.MKey, i.MKeyProtectBits)
		}
		keys[e.place] = i.MKey
	}
	return keys
}

// heir is a manager that counts how often the subnet is offered to it, and does not
// say whether it takes it.
type heir struct {
	impostor
	w               *world
	offers, guarded int // HANDOVERs, and how many end ports held an M_Key at the worst of them
}

func (h *heir) Receive(now time.Duration, p *mad.SMP, slid ib.LID) {
	if p.Method == mad.MethodSet && p.AttributeID == smp.AttrSMInfo && smp.SMControl(p.AttributeModifier) == smp.SMControlHandover {
		h.offers++
		n := 0
		for _, e := range h.w.ends() {
			if h.w.info(e.place).MKey != 0 {
				n++
			}
		}
		h.guarded = max(h.guarded, n)
	}
	h.impostor.Receive(now, p, slid)
}

// reminded is a master that counts the traps by which a manager tells it its rank.
type reminded struct {
	impostor
	mute  bool
	traps []time.Duration
}

func (m *reminded) Receive(now time.Duration, p *mad.SMP, slid ib.LID) {
	var n smp.Notice
	if p.Method == mad.MethodTrap && n.UnmarshalBinary(p.Data[:]) == nil && n.TrapNumber == smp.TrapLocalChange {
		var d smp.LocalChangeDetails
		if d.UnmarshalBinary(n.Details[:]) == nil && d.SMPriorityChange {
			m.traps = append(m.traps, now)
		}
	}
	if !m.mute {
		m.impostor.Receive(now, p, slid)
	}
}

// A standby that ranks higher tells the master so every six seconds, as long as it
// waits for the handover: not once the master ranks higher, nor once there is none.
func TestPriorityTrapsEnd(t *testing.T) {
	need.Long(t, "seconds of processor time")
	overSeeds(t, func(seed uint64, rnd *rand.Rand) {
		r := newRivals(t)
		y := halves(hosts(r.list))
		first := r.joinAs("blue-6", engine.Config{Profile: protect.Tenant}, y) // gives everybody LIDs
		r.run(time.Second)
		r.leave(first)
		listed := guidOf(r.list, "blue-6")
		master := &reminded{impostor: impostor{info: smp.SMInfo{GUID: listed, Priority: 1, SMState: smp.SMMaster}}}
		r.seat("blue-6", func(*rival) link.Engine { return master })
		m := r.joinAs("mgmt-1", engine.Config{Election: engine.Election{Priority: 7, Trusted: []ib.PortGUID{listed}}, Profile: protect.Tenant}, y)
		count := func(d time.Duration) int {
			n := len(master.traps)
			r.run(d)
			return len(master.traps) - n
		}
		for round := range 3 {
			master.info.Priority = 1
			r.run(time.Minute)
			if n := count(time.Minute); n < 9 || n > 10 {
				t.Errorf("seed %d, round %d: %d traps in a minute, want one every 6 s", seed, round, n)
			}
			r.run(time.Duration(rnd.IntN(6000)) * time.Millisecond)
			for i := 1; i < len(master.traps); i++ {
				// Each takes a little more or less time on its way.
				if d := master.traps[i] - master.traps[i-1]; d < 6*time.Second-time.Millisecond {
					t.Errorf("seed %d: two traps within %v", seed, d)
				}
			}
			master.info.Priority = 15
			r.run(20 * time.Second) // by when it has asked the master again
			if n := count(time.Minute); n > 0 {
				t.Errorf("seed %d, round %d: %d traps though the master ranks higher", seed, round, n)
			}
		}
		master.info.Priority = 1
		if n := count(time.Minute); n == 0 {
			t.Errorf("seed %d: no traps", seed)
		}
		since := r.fabric.Now()
		master.mute = true
		r.run(time.Minute)
		if n := count(2 * time.Minute); n > 0 || !has[event.Completed](m, since) {
			t.Errorf("seed %d: %d traps to who was master a minute ago: %v", seed, n, m.events)
		}
	})
}
