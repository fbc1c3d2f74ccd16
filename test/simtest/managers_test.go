package simtest

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// rivals are several managers on one fabric. The world has none of its own; its
// self is the manager that ought to be master.
type rivals struct {
	*world
	managers []*rival
	// written are the Sets that left each node, SMInfo not counted.
	written map[ib.NodeGUID][]time.Duration
}

type rival struct {
	at     place
	port   *fabric.Attachment
	engine link.Engine
	events []happened
}

// quietHost sends no traps.
const quietHost = "blue-5"

func newRivals(t *testing.T) *rivals {
	t.Helper()
	return newRivalsOn(t, topology.Demo())
}

func newRivalsOn(t *testing.T, list *topology.Netlist) *rivals {
	t.Helper()
	r := &rivals{world: &world{t: t, list: list}, written: map[ib.NodeGUID][]time.Duration{}}
	c := fabric.DefaultConfig()
	c.Profile = func(n *topology.Node, d *sma.Config) {
		if n.ID == quietHost {
			d.Ports[0].CapabilityMask &^= smp.CapTrapSupported
		}
	}
	c.Trace = func(s fabric.Sighting) {
		r.world.trace(s)
		var p mad.SMP
		own := s.What == fabric.SeenByAgent && p.HopCount == 0 // what a manager asks of its own port
		if p.UnmarshalBinary(s.MAD[:]) == nil && p.Method == mad.MethodSet && p.AttributeID != smp.AttrSMInfo &&
			(own && p.HopCount == 0 || s.What == fabric.SeenLeaving) {
			r.written[s.Node] = append(r.written[s.Node], s.At)
		}
	}
	var err error
	if r.fabric, err = fabric.New(r.list, c); err != nil {
		t.Fatal(err)
	}
	return r
}

// seat attaches an engine to a host.
func (r *rivals) seat(id string, engine func(*rival) link.Engine) *rival {
	r.t.Helper()
	return r.seatAt(r.host(id), engine)
}

// seatAt attaches an engine to an end port.
func (r *rivals) seatAt(at place, engine func(*rival) link.Engine) *rival {
	r.t.Helper()
	m := &rival{at: at}
	var err error
	if m.port, err = r.fabric.Attach(m.at.node, m.at.num); err != nil {
		r.t.Fatal(err)
	}
	m.engine = engine(m)
	m.port.SetIsSM(true)
	r.managers = append(r.managers, m)
	return m
}

// join seats a manager.
func (r *rivals) join(id string, priority uint8, y tenancy, trusted ...ib.PortGUID) *rival {
	r.t.Helper()
	return r.joinAt(r.host(id), priority, y, trusted...)
}

// joinAt seats a manager at an end port.
func (r *rivals) joinAt(at place, priority uint8, y tenancy, trusted ...ib.PortGUID) *rival {
	r.t.Helper()
	return r.seatAt(at, func(m *rival) link.Engine {
		limits := transact.DefaultLimits()
		limits.FirstTimeout, limits.MinTimeout = 50*time.Microsecond, 20*time.Microsecond
		c := engine.Config{Limits: limits, Routing: routing.UpDown, Election: engine.Election{Priority: priority, Trusted: trusted}}
		return engine.New(c, y.policy(), func(e event.Event) { m.events = append(m.events, happened{r.fabric.Now(), e}) })
	})
}

// leave takes a manager away without a word.
func (r *rivals) leave(m *rival) {
	m.port.Detach()
	for i := range r.managers {
		if r.managers[i] == m {
			r.managers = append(r.managers[:i], r.managers[i+1:]...)
			return
		}
	}
}

// run lets time pass for all managers.
func (r *rivals) run(d time.Duration) {
	r.t.Helper()
	for end := r.fabric.Now() + d; r.fabric.Now() < end; {
		busy := false
		for _, m := range r.managers {
			busy = r.exchange(m) || busy
		}
		if busy {
			continue
		}
		next := end
		if at, ok := r.fabric.NextEvent(); ok {
			next = min(next, at)
		}
		for _, m := range r.managers {
			if at, ok := m.engine.Deadline(); ok {
				next = min(next, at)
			}
		}
		r.fabric.AdvanceTo(max(next, r.fabric.Now()))
		for _, m := range r.managers {
			m.engine.Expire(r.fabric.Now())
		}
	}
}

// exchange lets a manager send and receive all that it can.
func (r *rivals) exchange(m *rival) (some bool) {
	var p mad.SMP
	for {
		dlid, ok := m.engine.Next(r.fabric.Now(), &p)
		if !ok {
			break
		}
		var bytes [mad.Size]byte
		r.must(p.Encode(&bytes))
		m.port.Send(&bytes, dlid)
		some = true
	}
	var d fabric.Delivery
	for m.port.Receive(&d) {
		if p.UnmarshalBinary(d.MAD[:]) == nil {
			m.engine.Receive(r.fabric.Now(), &p, d.SLID)
		}
		some = true
	}
	return some
}

// has reports whether a manager had an event of a type since a moment.
func has[E event.Event](m *rival, since time.Duration) bool {
	for _, h := range m.events {
		if _, ok := h.Event.(E); ok && h.at >= since {
			return true
		}
	}
	return false
}

// wrote counts what a manager wrote since a moment, SMInfo apart.
func (r *rivals) wrote(m *rival, since time.Duration) int {
	n := 0
	for _, at := range r.written[m.at.node] {
		if at >= since {
			n++
		}
	}
	return n
}

// checkMaster: the fabric is as this manager wants it, and no link was touched
// since the moment.
func (r *rivals) checkMaster(m *rival, y tenancy, since time.Duration) {
	r.t.Helper()
	r.self = m.at
	r.checkUp(y)
	if since == 0 {
		return
	}
	for _, a := range r.sets(smp.AttrPortInfo) {
		var info smp.PortInfo
		if a.at >= since && info.UnmarshalBinary(a.Data[:]) == nil && info.PortState != smp.PortStateNoChange {
			r.t.Errorf("node %v: a link is asked to go %v", a.node, info.PortState)
		}
	}
}

// A manager that comes to a fabric with a master stands by and writes nothing.
func TestStandbyWritesNothing(t *testing.T) {
	need.Long(t, "seconds of processor time")
	for _, x := range []struct {
		name     string
		priority uint8
		profile  protect.Profile
	}{
		{"AT-08 PK-28 SM-16 lower GUID is master", 0, protect.None},
		{"AT-08 PK-28 SM-16 higher priority is master", 3, protect.None},
		{"AT-08 PK-28 SM-16 where managers are named", 3, protect.Tenant},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := newRivals(t)
			y := halves(hosts(r.list))
			config := func(priority uint8) engine.Config {
				return engine.Config{Election: engine.Election{Priority: priority, SMKeys: ring(1)}, Profile: x.profile}
			}
			first := r.joinAs("mgmt-1", config(x.priority), y)
			r.run(time.Second)
			second := r.joinAs("blue-6", config(0), halves(hosts(r.list)[2:])) // would write, if it might
			r.run(5 * time.Minute)
			if n := r.wrote(second, 0); n != 0 {
				t.Errorf("the standby wrote %d times", n)
			}
			if !has[event.Deferred](second, 0) || has[event.Deferred](first, 0) {
				t.Errorf("first %v, second %v", first.events, second.events)
			}
			if r.wrote(first, 0) == 0 {
				t.Error("the master wrote nothing: not counted right")
			}
			r.checkMaster(first, y, 0)
		})
	}
}

// SM-03: a master is found behind every kind of port, and whoever comes later, of
// higher rank or not, stands by until it has mastership from it.
func TestSM03MastersAreFound(t *testing.T) {
	list := generate(t, "random,seed=6,switches=5,hosts=12,routers=2,ca-ports=2")
	y := halves(hosts(list))
	for name, x := range map[string]struct {
		id  string
		num ib.PortNum
	}{"CA, second port": {"H8", 2}, "router": {"R1", 1}, "switch": {"S2", 0}} {
		for _, priority := range []uint8{0, 9} {
			t.Run(fmt.Sprintf("%s, priority %d", name, priority), func(t *testing.T) {
				r := newRivalsOn(t, list)
				first := r.joinAt(place{r.node(x.id).GUID, x.num}, 3, y)
				r.run(time.Second)
				second := r.join("H2", priority, y)
				r.run(5 * time.Minute)
				master := first
				if priority > 3 {
					master = second
				}
				if !has[event.Deferred](second, 0) || has[event.Deferred](first, 0) != (master == second) {
					t.Errorf("first %v, second %v", first.events, second.events)
				}
				if n := r.wrote(second, 0); (n != 0) != (master == second) {
					t.Errorf("the second manager wrote %d times", n)
				}
				r.checkMaster(master, y, 0)
			})
		}
	}
}

// Managers that start at the same moment agree on one.
func TestManagersStartTogether(t *testing.T) {
	for _, x := range []struct {
		name           string
		a, b           uint8 // priorities
		delay          time.Duration
		wantSecondMain bool
	}{
		{"AT-08 SM-16 tie", 0, 0, 0, false},
		{"AT-08 SM-16 first higher", 9, 1, 0, false},
		{"AT-08 SM-16 second higher", 1, 9, 0, true},
		{"AT-08 SM-16 a little later", 1, 9, 100 * time.Microsecond, true},
		{"AT-08 SM-16 later", 1, 9, 250 * time.Microsecond, true},
		{"AT-08 SM-16 in the end", 1, 9, 365 * time.Microsecond, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := newRivals(t)
			y := halves(hosts(r.list))
			master := r.join("mgmt-1", x.a, y)
			r.run(x.delay)
			standby := r.join("blue-6", x.b, y)
			if x.wantSecondMain {
				master, standby = standby, master
			}
			r.run(2 * time.Minute)
			since := r.fabric.Now()
			r.run(2 * time.Minute)
			if n := r.wrote(standby, since); n != 0 {
				t.Errorf("the standby wrote %d times", n)
			}
			r.checkMaster(master, y, 0)
		})
	}
}

// A master that dies is followed by the standby, which takes the fabric over as
// it is: no link is touched, LIDs and keys stay.
func TestStandbyTakesOver(t *testing.T) {
	r := newRivals(t)
	y := halves(hosts(r.list))
	first := r.join("mgmt-1", 5, y)
	r.run(time.Second)
	second := r.join("blue-6", 0, y)
	r.run(time.Minute)
	lids := r.lids()
	since := r.fabric.Now()
	r.leave(first)
	r.run(10 * time.Second)
	if !has[event.Completed](second, since) {
		t.Fatalf("PK-28 SM-15: the standby did not take over: %v", second.events)
	}
	r.checkMaster(second, y, since)
	if now := r.lids(); !maps.Equal(lids, now) {
		t.Errorf("LIDs %v, were %v", now, lids)
	}
	t.Run("SM-16 the first comes back", func(t *testing.T) {
		r.t = t
		r.managers = append(r.managers, second)[:1]
		since := r.fabric.Now()
		first := r.join("mgmt-1", 5, y)
		r.run(30 * time.Second)
		r.checkMaster(first, y, since)
		since = r.fabric.Now()
		r.run(3 * time.Minute)
		if n := r.wrote(second, since); n != 0 {
			t.Errorf("the former master wrote %d times", n)
		}
	})
}

// A manager of higher rank is handed the subnet, whatever the master is about:
// from then on the old one writes nothing.
func TestHandover(t *testing.T) {
	for _, x := range []struct {
		name, heir string
		busy       bool
	}{
		{"SM-06 SM-07 idle", "blue-6", false},
		{"SM-06 SM-07 in the middle of a change", "blue-6", true},
		{"SM-06 SM-07 no trap announces it", quietHost, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := newRivals(t)
			y := halves(hosts(r.list))
			old := r.join("mgmt-1", 1, y)
			r.run(30 * time.Second)
			since := r.fabric.Now()
			if x.busy {
				y = halves(hosts(r.list)[5:])
			}
			heir := r.join(x.heir, 9, y)
			if x.busy { // the change comes while the heir is asked
				for !has[event.PhaseBegun](old, since) {
					r.run(5 * time.Microsecond)
				}
				old.engine.(*engine.Engine).SetPolicy(y.policy())
			}
			r.run(engine.DefaultDriftPeriod + 30*time.Second)
			if !has[event.Deferred](old, since) {
				t.Fatalf("not handed over: %v", old.events)
			}
			for _, h := range old.events {
				if _, ok := h.Event.(event.Deferred); ok {
					if n := r.wrote(old, h.at+50*time.Microsecond); n != 0 {
						t.Errorf("the old master wrote %d times after it had handed over", n)
					}
					break
				}
			}
			r.checkMaster(heir, y, since)
		})
	}
}

// Of managers of higher rank only one that is trusted is handed the subnet.
func TestTrustedManagers(t *testing.T) {
	for _, x := range []struct {
		trusted string
		handed  bool
	}{{"blue-5", false}, {"blue-6", true}} {
		t.Run(x.trusted, func(t *testing.T) {
			r := newRivals(t)
			y := halves(hosts(r.list))
			first := r.join("mgmt-1", 1, y, r.node(x.trusted).Ports[1].GUID)
			r.run(30 * time.Second)
			second := r.join("blue-6", 9, y)
			r.run(time.Minute)
			since := r.fabric.Now()
			r.run(3 * time.Minute)
			master, other := first, second
			if x.handed {
				master, other = second, first
			}
			if n := r.wrote(other, since); n != 0 {
				t.Errorf("the manager at %v wrote %d times", other.at, n)
			}
			if got := has[event.Deferred](first, 0); got != x.handed {
				t.Errorf("the first manager gave way: %v, want %v", got, x.handed)
			}
			r.checkMaster(master, y, 0)
		})
	}
}

// impostor answers as a subnet manager with any SMInfo.
type impostor struct {
	info smp.SMInfo
	out  []mad.SMP
	dlid []ib.LID
}

func (i *impostor) Next(_ time.Duration, p *mad.SMP) (ib.LID, bool) {
	if len(i.out) == 0 {
		return 0, false
	}
	*p = i.out[0]
	dlid := i.dlid[0]
	i.out, i.dlid = i.out[1:], i.dlid[1:]
	return dlid, true
}

func (i *impostor) Receive(_ time.Duration, p *mad.SMP, slid ib.LID) {
	if p.Method != mad.MethodGet || p.AttributeID != smp.AttrSMInfo {
		return
	}
	i.info.ActCount++
	reply := *p
	if i.info.Encode(&reply.Data) != nil {
		return
	}
	reply.MakeResponse(mad.StatusOK)
	i.out, i.dlid = append(i.out, reply), append(i.dlid, slid)
}

func (i *impostor) Lost(time.Duration, *mad.SMP)            {}
func (i *impostor) Expire(time.Duration)                    {}
func (i *impostor) Deadline() (at time.Duration, some bool) { return 0, false }

// What another manager says of itself decides who writes: states that mean
// nothing do not count.
func TestStatesOfOthers(t *testing.T) {
	for state := range smp.SMState(16) {
		for _, priority := range []uint8{0, 15} {
			r := newRivals(t)
			y := halves(hosts(r.list))
			guid := r.node("blue-6").Ports[1].GUID
			r.seat("blue-6", func(*rival) link.Engine {
				return &impostor{info: smp.SMInfo{GUID: guid, Priority: priority, SMState: state}}
			})
			m := r.join("mgmt-1", 7, y)
			r.run(time.Second)
			standsBy := state == smp.SMMaster || priority > 7 && (state == smp.SMDiscovering || state == smp.SMStandby)
			if wrote := r.wrote(m, 0) != 0; wrote == standsBy {
				t.Errorf("SM-18: a manager of priority %d in %v: wrote %v, want %v: %v", priority, state, wrote, !standsBy, m.events)
			}
		}
	}
}

// order is a control packet of a master to the manager at a port.
func (i *impostor) order(c smp.SMControl, to ib.LID) {
	p := mad.SMP{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnLID, Method: mad.MethodSet,
		TransactionID: uint64(c), AttributeID: smp.AttrSMInfo, AttributeModifier: uint32(c),
	}
	if i.info.Encode(&p.Data) == nil {
		i.out, i.dlid = append(i.out, p), append(i.dlid, to)
	}
}

// A standby does what its master tells it, and nothing that no master says.
func TestOrders(t *testing.T) {
	r := newRivals(t)
	y := halves(hosts(r.list))
	first := r.join("mgmt-1", 0, y)
	r.run(time.Second)
	r.leave(first)
	master := &impostor{info: smp.SMInfo{GUID: guidOf(r.list, "blue-6"), Priority: 9, SMState: smp.SMMaster}}
	r.seat("blue-6", func(*rival) link.Engine { return master })
	m := r.join("red-1", 0, y)
	r.run(3 * time.Second)
	state := func() smp.SMState {
		t.Helper()
		asker, err := r.fabric.Attach(r.host("blue-1").node, 1)
		r.must(err)
		defer asker.Detach()
		p := mad.SMP{
			BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnLID,
			Method: mad.MethodGet, TransactionID: 1, AttributeID: smp.AttrSMInfo,
		}
		var bytes [mad.Size]byte
		r.must(p.Encode(&bytes))
		asker.Send(&bytes, r.info(m.at).LID)
		r.run(wait)
		var d fabric.Delivery
		var info smp.SMInfo
		if !asker.Receive(&d) || p.UnmarshalBinary(d.MAD[:]) != nil || info.UnmarshalBinary(p.Data[:]) != nil {
			t.Fatal("no SMInfo")
		}
		return info.SMState
	}
	for _, x := range []struct {
		name  string
		order smp.SMControl
		want  smp.SMState
	}{
		{"SM-18 standby at first", 0, smp.SMStandby},
		{"SM-05 there is no order 6", 6, smp.SMStandby},
		{"SM-09 not for a standby", smp.SMControlStandby, smp.SMStandby},
		{"SM-08 DISABLE", smp.SMControlDisable, smp.SMNotActive},
		{"SM-10 not for one that is not active", smp.SMControlDiscover, smp.SMNotActive},
		{"SM-09 STANDBY", smp.SMControlStandby, smp.SMStandby},
		{"SM-10 DISCOVER", smp.SMControlDiscover, smp.SMStandby}, // it finds the master again
	} {
		t.Run(x.name, func(t *testing.T) {
			since := r.fabric.Now()
			master.order(x.order, r.info(m.at).LID)
			r.run(2 * time.Second)
			if got := state(); got != x.want {
				t.Errorf("%v, want %v", got, x.want)
			}
			if x.order == smp.SMControlDiscover && x.want == smp.SMStandby && !has[event.Found](m, since) {
				t.Error("no sweep begins")
			}
		})
	}
	t.Run("AT-08 nothing is written", func(t *testing.T) {
		if n := r.wrote(m, 0); n != 0 {
			t.Errorf("%d writes", n)
		}
	})
}
