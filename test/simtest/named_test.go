package simtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// joinAs seats a manager with more of a configuration.
func (r *rivals) joinAs(id string, c engine.Config, y tenancy) *rival {
	r.t.Helper()
	return r.seat(id, func(m *rival) link.Engine {
		if c.Limits.Window == 0 {
			c.Limits = transact.DefaultLimits()
			c.Limits.FirstTimeout, c.Limits.MinTimeout = 50*time.Microsecond, 20*time.Microsecond
		}
		c.Routing = routing.UpDown
		return engine.New(c, y.policy(), func(e event.Event) { m.events = append(m.events, happened{r.fabric.Now(), e}) })
	})
}

// ring is the secret that managers of ours share.
func ring(b byte) func(from, to ib.PortGUID) ib.SMKey {
	return mkey.NewRing([mkey.SecretSize]byte{b}).SMKey
}

// rogue is a subnet manager that says what it likes, or nothing, and keeps what
// it hears.
type rogue struct {
	impostor
	mute bool
	seen []mad.SMP // SMInfo, either way
}

func (g *rogue) Receive(now time.Duration, p *mad.SMP, slid ib.LID) {
	if p.AttributeID == smp.AttrSMInfo {
		g.seen = append(g.seen, *p)
		if !g.mute {
			g.impostor.Receive(now, p, slid)
		}
	}
}

// learned is the first key that a rogue was shown.
func (g *rogue) learned() string {
	for i := range g.seen {
		var info smp.SMInfo
		if info.UnmarshalBinary(g.seen[i].Data[:]) == nil && info.SMKey != 0 {
			return fmt.Sprintf("SM_Key 0x%x", uint64(info.SMKey))
		}
		if g.seen[i].MKey != 0 {
			return fmt.Sprintf("M_Key 0x%x", uint64(g.seen[i].MKey))
		}
	}
	return ""
}

// alarms are the rogue managers that a manager told of since a moment.
func alarms(m *rival, since time.Duration) (out []happened) {
	for _, h := range m.events {
		if _, ok := h.Event.(event.RogueManager); ok && h.at >= since {
			out = append(out, h)
		}
	}
	return out
}

// kinds are ways to show up as a manager.
func (r *rivals) kinds() map[string]*rogue {
	there, listed := guidOf(r.list, "red-3"), guidOf(r.list, "blue-1")
	kind := func(guid ib.PortGUID, priority uint8, s smp.SMState) *rogue {
		return &rogue{impostor: impostor{info: smp.SMInfo{GUID: guid, Priority: priority, SMState: s}}}
	}
	out := map[string]*rogue{
		"master of the highest priority":    kind(there, 15, smp.SMMaster),
		"master of the lowest priority":     kind(there, 0, smp.SMMaster),
		"standby of the highest priority":   kind(there, 15, smp.SMStandby),
		"discovering, the highest priority": kind(there, 15, smp.SMDiscovering),
		"a listed manager's GUID, master":   kind(listed, 15, smp.SMMaster),
		"a listed manager's GUID, standby":  kind(listed, 15, smp.SMStandby),
		"silent":                            kind(there, 15, smp.SMMaster),
	}
	out["silent"].mute = true
	return out
}

// A tenant's host that shows up as a subnet manager, whatever it says of itself,
// is told nothing, changes nothing and delays nothing: the manager says within a
// second that it is there, and goes on. Under a manager that believes managers the
// same host stops the guarding, or learns the key.
func TestRogueManagerCountsForNothing(t *testing.T) {
	const key = 0x5eed
	for name := range (&rivals{world: &world{t: t, list: generate(t, "demo")}}).kinds() {
		for _, profile := range []protect.Profile{protect.None, protect.Tenant} {
			t.Run(fmt.Sprintf("%s %v", name, profile), func(t *testing.T) {
				r := newRivals(t)
				y := halves(hosts(r.list))
				c := engine.Config{Election: engine.Election{Priority: 7, SMKey: key, ShowSMKey: true}, Profile: profile}
				if profile != protect.None {
					c.Election.Trusted, c.Election.SMKeys = []ib.PortGUID{guidOf(r.list, "blue-1")}, nil
				}
				m := r.joinAs("mgmt-1", c, y)
				r.run(time.Second)
				r.checkMaster(m, y, 0)
				g := r.kinds()[name]
				since := r.fabric.Now()
				r.seat("red-3", func(*rival) link.Engine { return g })
				r.run(time.Second)
				if got := alarms(m, since); (len(got) == 1) != (profile != protect.None) {
					t.Errorf("alarms within a second: %v", got)
				}
				r.run(15 * time.Second)
				changed := r.fabric.Now()
				next := y.move(guidOf(r.list, "red-1"), 0x10, 0x20)
				m.engine.(*engine.Engine).SetPolicy(next.policy())
				m.engine.Expire(r.fabric.Now())
				r.run(10 * time.Millisecond)
				if profile == protect.None {
					// A master that is settled is not moved by one that is discovering.
					if !has[event.Deferred](m, since) && g.learned() == "" && name != "silent" && g.info.SMState != smp.SMDiscovering {
						t.Error("a manager that believes managers is not moved: not an attack")
					}
					return
				}
				r.checkMaster(m, next, 0)
				if has[event.Deferred](m, 0) || r.wrote(m, changed) == 0 {
					t.Errorf("%d writes for a new policy; %v", r.wrote(m, changed), m.events)
				}
				if got := g.learned(); got != "" {
					t.Error("the rogue learned " + got)
				}
				if len(g.seen) > 0 {
					t.Errorf("the rogue was asked: %v", g.seen[0].Method)
				}
				if got := alarms(m, since); len(got) != 1 {
					t.Errorf("alarms: %v", got)
				}
			})
		}
	}
}

// A rogue whose device sends no traps is known by what it asks, as every manager
// does when it starts.
func TestRogueManagerIsKnownByItsQuestions(t *testing.T) {
	r := newRivals(t)
	y := halves(hosts(r.list))
	m := r.joinAs("mgmt-1", engine.Config{Profile: protect.Tenant, Periods: engine.Periods{Guard: time.Hour}}, y) // which sees IsSM when the turn comes to the host
	r.run(time.Second)
	g := &rogue{mute: true}
	r.seat(quietHost, func(*rival) link.Engine { return g })
	since := r.fabric.Now()
	r.run(900 * time.Millisecond)
	if got := alarms(m, since); len(got) != 0 {
		t.Errorf("alarms before anything was seen: %v", got)
	}
	since = r.fabric.Now()
	p := mad.SMP{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnLID,
		Method: mad.MethodGet, TransactionID: 5, AttributeID: smp.AttrSMInfo,
	}
	g.out, g.dlid = append(g.out, p), append(g.dlid, r.info(m.at).LID)
	r.run(time.Millisecond)
	if got := alarms(m, since); len(got) != 1 {
		t.Errorf("alarms within a millisecond of a question: %v", got)
	}
	if len(g.seen) != 1 || g.learned() != "" {
		t.Errorf("answered by %d packets, %s", len(g.seen), g.learned())
	}
}

// A strict manager fences the port, and lets it in again when it starts again and
// the port is listed, or the rogue has gone; not before.
func TestStrictFencesRogueManagers(t *testing.T) {
	for _, listed := range []bool{false, true} {
		r := newRivals(t)
		y := halves(hosts(r.list))
		m := r.joinAs("mgmt-1", engine.Config{Profile: protect.Strict}, y)
		r.run(time.Second)
		g := r.seat("red-3", func(*rival) link.Engine { return &rogue{mute: true} })
		r.run(time.Second)
		if got := valid(r.table(r.switchPort("red-3"))); len(got) != 0 || !has[event.Fenced](m, 0) {
			t.Errorf("the switch port before the rogue holds %v: %v", got, m.events)
		}
		r.leave(g)
		r.run(2 * engine.DefaultDriftPeriod)
		if got := valid(r.table(r.switchPort("red-3"))); len(got) != 0 {
			t.Errorf("the rogue has gone, and the switch port holds %v", got)
		}
		c := engine.Config{Profile: protect.Strict, Known: m.engine.(*engine.Engine).Assigned()}
		if listed { // and back
			r.seat("red-3", func(*rival) link.Engine {
				return &rogue{impostor: impostor{info: smp.SMInfo{GUID: guidOf(r.list, "red-3"), SMState: smp.SMNotActive}}}
			})
			c.Election.Trusted = []ib.PortGUID{guidOf(r.list, "red-3")}
		}
		r.leave(m)
		m = r.joinAs("mgmt-1", c, y)
		r.run(time.Second)
		if !has[event.Unfenced](m, 0) {
			t.Errorf("listed %v: not accepted when the manager started: %v", listed, m.events)
		}
		r.checkMaster(m, y, 0)
	}
}

// Under every profile the verdict says that a manager that nobody named is there, as long as it
// is, and of which port; one that is listed or shares the secret it does not mention.
func TestVerdictNamesUnnamedManagers(t *testing.T) {
	for _, profile := range []protect.Profile{protect.None, protect.Basic, protect.Tenant, protect.Strict} {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, a secret: %v", profile, shared), func(t *testing.T) {
				r := newRivals(t)
				y := halves(hosts(r.list))
				listed := guidOf(r.list, "blue-1")
				c := engine.Config{Election: engine.Election{Priority: 7, Trusted: []ib.PortGUID{listed}}, Profile: profile}
				if shared {
					c.Election.SMKeys = ring(1)
				}
				m := r.joinAs("mgmt-1", c, y)
				r.run(time.Second)
				says := func(when, who string) {
					t.Helper()
					var last *event.Result
					for _, h := range m.events {
						if done, is := h.Event.(event.Completed); is {
							last = done.Result
						}
					}
					if last == nil {
						t.Fatal("no verdict")
					}
					text := strings.Join(last.Proof.Caveats, "\n")
					if has := strings.Contains(text, isolation.CaveatManagers); has != (who != "") || !strings.Contains(text, who) || strings.Contains(text, "blue-") {
						t.Errorf("%s: want the manager at %q: caveats\n%s\n%v", when, who, text, m.events)
					}
				}
				says("alone", "")
				r.seat("blue-1", func(*rival) link.Engine {
					return &rogue{impostor: impostor{info: smp.SMInfo{GUID: listed, SMState: smp.SMNotActive}}}
				})
				if shared && profile != protect.None {
					c.Election.Priority = 1
					r.joinAs("blue-6", c, y)
				}
				r.run(10 * time.Second)
				says("beside those that count", "")
				g := r.seat("red-3", func(*rival) link.Engine { return &rogue{mute: true} })
				r.run(10 * time.Second)
				says("beside one that nobody named", "red-3")
				r.leave(g)
				r.run(10 * time.Second)
				says("when it is gone", "")
			})
		}
	}
}

// Managers that share a secret know each other by it: they elect, hand over and
// take over as others do. One with another secret, of higher rank, is a rogue to
// them, and they to it.
func TestManagersShareASecret(t *testing.T) {
	r := newRivals(t)
	y := halves(hosts(r.list))
	config := func(priority uint8, secret byte) engine.Config {
		return engine.Config{Election: engine.Election{Priority: priority, SMKeys: ring(secret)}, Profile: protect.Tenant}
	}
	low := r.joinAs("mgmt-1", config(1, 1), y)
	r.run(time.Second)
	r.checkMaster(low, y, 0)
	since := r.fabric.Now()
	high := r.joinAs("blue-6", config(9, 1), y)
	r.run(30 * time.Second)
	if !has[event.Deferred](low, since) || len(alarms(low, 0))+len(alarms(high, 0)) > 0 {
		t.Fatalf("not handed over to the higher one: %v", low.events)
	}
	r.checkMaster(high, y, 0)

	since = r.fabric.Now()
	other := r.joinAs("red-3", config(15, 2), y)
	other.engine.Expire(r.fabric.Now())
	r.run(time.Second)
	if len(alarms(high, since)) == 0 || len(alarms(other, since)) < 2 {
		t.Errorf("alarms: %v and %v", alarms(high, since), alarms(other, since))
	}
	r.leave(other) // it had no M_Key to stop it
	r.run(2 * engine.DefaultDriftPeriod)
	r.checkMaster(high, y, 0)

	since = r.fabric.Now()
	r.leave(high)
	r.run(20 * time.Second)
	if !has[event.Completed](low, since) {
		t.Fatalf("the standby did not take over: %v", low.events)
	}
	r.checkMaster(low, y, since)
}

// A listed manager that is master is stood by for, and gives orders; the same
// orders from any other place, or in its name, are nothing.
func TestOrdersByPlace(t *testing.T) {
	r := newRivals(t)
	y := halves(hosts(r.list))
	first := r.joinAs("mgmt-1", engine.Config{Profile: protect.Tenant}, y)
	r.run(time.Second)
	r.leave(first)
	listed := guidOf(r.list, "blue-6")
	master := &rogue{impostor: impostor{info: smp.SMInfo{GUID: listed, SMState: smp.SMMaster}}}
	r.seat("blue-6", func(*rival) link.Engine { return master })
	m := r.joinAs("red-1", engine.Config{Election: engine.Election{Priority: 1, Trusted: []ib.PortGUID{listed}}, Profile: protect.Tenant}, y)
	r.run(2 * time.Second)
	thief := &rogue{impostor: impostor{info: master.info}}
	r.seat("red-3", func(*rival) link.Engine { return thief })
	r.run(time.Second)
	since := r.fabric.Now()
	for c := range smp.SMControl(8) {
		thief.order(c, r.info(m.at).LID)
		thief.orderByRoute(r, c, "red-3", m.at)
	}
	r.run(time.Second)
	if n := r.wrote(m, 0); n != 0 || has[event.Found](m, since) {
		t.Errorf("orders in the name of the listed manager: %d writes, %v", n, m.events)
	}
	if got := alarms(m, since); len(got) < 5 {
		t.Errorf("alarms: %v", got)
	}
	// The listed manager's LID is not enough: its host could be anybody's.
	since = r.fabric.Now()
	master.order(smp.SMControlHandover, r.info(m.at).LID)
	r.run(2 * time.Second)
	if n := r.wrote(m, 0); n != 0 {
		t.Errorf("HANDOVER that shows a LID alone: %d writes, %v", n, m.events)
	}
	master.orderByRoute(r, smp.SMControlHandover, "blue-6", m.at)
	r.run(2 * time.Second)
	if r.wrote(m, 0) == 0 && !has[event.Completed](m, since) {
		t.Errorf("HANDOVER of the listed manager, by a directed route, is not taken: %v", m.events)
	}
}

// orderByRoute is order by the directed route between two hosts.
func (g *rogue) orderByRoute(r *rivals, c smp.SMControl, from string, to place) {
	path := r.route(r.host(from), to)
	p := mad.SMP{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnDirected, Method: mad.MethodSet,
		TransactionID: uint64(c), AttributeID: smp.AttrSMInfo, AttributeModifier: uint32(c),
		DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive, HopCount: uint8(len(path)),
	}
	for i, n := range path {
		p.InitialPath[i+1] = byte(n)
	}
	if g.info.Encode(&p.Data) == nil {
		g.out, g.dlid = append(g.out, p), append(g.dlid, ib.LIDPermissive)
	}
}

// route is a shortest directed route.
func (w *world) route(from, to place) []ib.PortNum {
	type step struct {
		at   place
		path []ib.PortNum
	}
	seen := map[ib.NodeGUID]bool{from.node: true}
	queue := []step{{from, nil}}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		ports := []ib.PortNum{s.at.num}
		if s.at.node != from.node {
			ports = nil
			for n := range w.agent(s.at.node).NodeInfo(0).NumPorts {
				ports = append(ports, ib.PortNum(n)+1)
			}
		}
		for _, n := range ports {
			far, ok := w.peer(place{s.at.node, n})
			if !ok || seen[far.node] {
				continue
			}
			path := append(slices.Clone(s.path), n)
			if far == to {
				return path
			}
			if w.agent(far.node).SwitchInfo() != nil {
				seen[far.node] = true
				queue = append(queue, step{far, path})
			}
		}
	}
	w.t.Fatalf("no way from %v to %v", from, to)
	return nil
}

// However a host below the kernel fills in a directed route, it shows where it
// came from: the switches on its way write that, last of all those at the end.
func TestForgedDirectedRoutes(t *testing.T) {
	r := newRivals(t)
	y := halves(hosts(r.list))
	first := r.joinAs("mgmt-1", engine.Config{Profile: protect.Tenant}, y)
	r.run(time.Second)
	r.leave(first)
	listed := guidOf(r.list, "blue-6")
	master := &rogue{impostor: impostor{info: smp.SMInfo{GUID: listed, SMState: smp.SMMaster}}}
	r.seat("blue-6", func(*rival) link.Engine { return master })
	m := r.joinAs("mgmt-1", engine.Config{Election: engine.Election{Priority: 1, Trusted: []ib.PortGUID{listed}}, Profile: protect.Tenant}, y)
	r.run(2 * time.Second)
	const seed = 12
	rnd := rand.New(rand.NewPCG(seed, 0))
	arrived, since := 0, r.fabric.Now()
	for range 20_000 {
		if p, ok := r.forge(rnd, master.info, r.host("red-3"), m.at); ok {
			arrived++
			m.engine.Receive(r.fabric.Now(), p, ib.LIDPermissive)
		}
	}
	t.Logf("seed %d: %d packets arrived", seed, arrived)
	r.run(2 * time.Second)
	if n := r.wrote(m, since); n != 0 || has[event.Completed](m, since) || arrived < 1000 {
		t.Errorf("%d of 20000 arrived, %d writes, %v", arrived, n, m.events)
	}
	p, ok := r.carry(honest(master.info, r.route(r.host("blue-6"), m.at)), r.host("blue-6"), m.at)
	if !ok {
		t.Fatal("the listed manager's own route does not arrive")
	}
	m.engine.Receive(r.fabric.Now(), p, ib.LIDPermissive)
	r.run(2 * time.Second)
	if !has[event.Completed](m, since) {
		t.Errorf("the listed manager's own HANDOVER is not taken: %v", m.events)
	}
}

// honest is HANDOVER as it leaves the port of its sender.
func honest(info smp.SMInfo, path []ib.PortNum) *mad.SMP {
	p := &mad.SMP{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnDirected, Method: mad.MethodSet,
		TransactionID: 9, AttributeID: smp.AttrSMInfo, AttributeModifier: uint32(smp.SMControlHandover),
		DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive, HopPointer: 1, HopCount: uint8(len(path)),
	}
	for i, n := range path {
		p.InitialPath[i+1] = byte(n)
	}
	_ = info.Encode(&p.Data) // of these values none is out of range
	return p
}

// forge is HANDOVER with a route that pretends to begin at the listed manager, or
// anywhere, as it comes to a manager by way of honest switches.
func (r *rivals) forge(rnd *rand.Rand, info smp.SMInfo, from, to place) (*mad.SMP, bool) {
	truth := r.route(from, to)
	p := honest(info, truth)
	lead := rnd.IntN(5) // hops made up before the attacker's own
	back := append(r.route(to, r.host("blue-6")), 0)
	p.HopPointer, p.HopCount = uint8(1+lead), uint8(len(truth)+lead-rnd.IntN(2)*rnd.IntN(2))
	for i := range p.ReturnPath {
		p.ReturnPath[i] = byte(rnd.IntN(9))
	}
	for i := range p.InitialPath {
		p.InitialPath[i] = byte(rnd.IntN(9))
	}
	for i, n := range truth {
		p.InitialPath[1+lead+i] = byte(n)
	}
	if rnd.IntN(2) == 0 {
		for i := range back {
			p.ReturnPath[max(0, int(p.HopCount)-i)] = byte(back[i])
		}
	}
	if rnd.IntN(8) == 0 {
		p.DrSLID = r.info(r.host("blue-6")).LID
	}
	return r.carry(p, from, to)
}

// carry takes a packet that has left a port through the switches on its way, by
// the rules of directed routes.
func (r *rivals) carry(p *mad.SMP, from, to place) (*mad.SMP, bool) {
	var bytes [mad.Size]byte
	r.must(p.Encode(&bytes))
	at, ok := r.peer(from)
	for hops := 0; ok && hops < mad.MaxHops; hops++ {
		isSwitch := r.agent(at.node).SwitchInfo() != nil
		d := fabric.Direct(&bytes, fabric.DirectedLocation{IsSwitch: isSwitch, Ports: 40, In: at.num})
		if d.Action == fabric.Take && at == to {
			var out mad.SMP
			r.must(out.UnmarshalBinary(bytes[:]))
			return &out, true
		}
		if d.Action != fabric.Leave {
			return nil, false
		}
		at, ok = r.peer(place{at.node, d.Port})
	}
	return nil, false
}

// Two managers that share a secret, and what the first has written down of it, guard
// the same fabric one after the other: the one that waits reads it, keeps hearing
// the master though its port has an M_Key that hides everything, and goes on with
// the same keys when it takes over.
func TestKeyedManagersTakeTurns(t *testing.T) {
	r := newRivals(t)
	y := halves(hosts(r.list))
	config := func(priority uint8) engine.Config {
		c := keyed()
		c.Election.Priority, c.Election.SMKeys, c.LearnCables, c.Profile = priority, keyRing(1).SMKey, true, protect.Strict
		return c
	}
	first := r.joinAs("mgmt-1", config(5), y)
	r.run(2 * time.Second)
	keys := r.wantGuarded()
	book, err := json.Marshal(first.engine.(*engine.Engine).Keys())
	r.must(err)
	other := config(1)
	r.must(json.Unmarshal(book, other.Keys.Keys.Book))
	other.Cables = first.engine.(*engine.Engine).Cables()
	second := r.joinAs("blue-6", other, y)
	r.run(time.Minute)
	if n := r.wrote(second, 0); n != 0 || has[event.Deferred](first, 0) || len(alarms(second, 0)) > 0 {
		t.Errorf("the standby wrote %d times; %v\n%v", n, first.events, second.events)
	}
	// It cannot say who it is before it has swept the fabric, and is not fenced for it.
	for _, h := range alarms(first, 0) {
		if a := h.Event.(event.RogueManager); a.Reason != "it does not say who it is" {
			t.Errorf("the master: %v", a)
		}
	}
	since := r.fabric.Now()
	r.leave(first)
	r.run(20 * time.Second)
	if !has[event.Completed](second, since) {
		t.Fatalf("the standby did not take over: %v", second.events)
	}
	r.self = second.at
	r.checkKeys(y)
	r.checkGuards()
	if now := r.wantGuarded(); !maps.Equal(keys, now) {
		t.Errorf("M_Keys are others: %v, were %v", now, keys)
	}
}
