package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/master"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint/gsi"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// pair is a fabric with several managers, each with its subnet administration.
type pair struct {
	t      testing.TB
	list   *topology.Netlist
	fabric *fabric.Fabric
	seats  []*seat
	// sets counts what arrived at agents, by attribute, reregister those that ask a host
	// to register again, and downs those that take a link down.
	sets              map[mad.AttributeID]int
	reregister, downs int
	watch             func(*mad.SMP, fabric.Sighting)
}

// seat is a manager at a port.
type seat struct {
	link   *inproc.Link
	engine *master.Engine
	events []happened
	gone   bool
}

func newPair(t testing.TB, list *topology.Netlist) *pair {
	t.Helper()
	x := &pair{t: t, list: list, sets: map[mad.AttributeID]int{}}
	c := fabric.DefaultConfig()
	c.Trace = x.trace
	var err error
	if x.fabric, err = fabric.New(list, c); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *pair) trace(s fabric.Sighting) {
	// Method is the fourth octet of a datagram: most are not looked at further.
	if s.What != fabric.SeenByAgent || mad.Method(s.MAD[3]) != mad.MethodSet && x.watch == nil {
		return
	}
	var p mad.SMP
	if p.UnmarshalBinary(s.MAD[:]) != nil {
		return
	}
	if p.Method == mad.MethodSet && p.AttributeID != smp.AttrSMInfo {
		x.sets[p.AttributeID]++
		var info smp.PortInfo
		if p.AttributeID == smp.AttrPortInfo && info.UnmarshalBinary(p.Data[:]) == nil {
			if info.ClientReregister {
				x.reregister++
			}
			if info.PortState == smp.PortDown || info.PortPhysicalState != smp.PhysNoChange {
				x.downs++
			}
		}
	}
	if x.watch != nil {
		x.watch(&p, s)
	}
}

// forget begins to count anew.
func (x *pair) forget() {
	clear(x.sets)
	x.reregister, x.downs = 0, 0
}

// writes is how many Sets there were.
func (x *pair) writes() (n int) {
	for _, k := range x.sets {
		n += k
	}
	return n
}

// sit seats a manager at the i-th host.
func (x *pair) sit(i int, c engine.Config, y tenancy) *seat {
	x.t.Helper()
	node := x.hostNodes()[i]
	m := &seat{}
	var err error
	if m.link, err = inproc.New(x.fabric, node.GUID, 1, false); err != nil {
		x.t.Fatal(err)
	}
	if err := m.link.SetIsSM(true); err != nil {
		x.t.Fatal(err)
	}
	c.Limits, c.Routing = m.link.Limits(), routing.UpDown
	m.engine = master.New(c, server.Config{}, y.policy(), func(e event.Event) {
		m.events = append(m.events, happened{x.fabric.Now(), e})
	})
	x.seats = append(x.seats, m)
	return m
}

func (x *pair) hostNodes() (out []*topology.Node) {
	for _, n := range x.list.Nodes {
		if n.Type == ib.NodeCA {
			out = append(out, n)
		}
	}
	return out
}

// kill ends a manager without a word.
func (x *pair) kill(m *seat) {
	m.gone = true
	if err := m.link.Close(); err != nil {
		x.t.Fatal(err)
	}
}

// until lets time pass until done reports true, and fails after most.
func (x *pair) until(what string, most time.Duration, done func() bool) {
	x.t.Helper()
	for end := x.fabric.Now() + most; !done(); {
		busy := false
		for _, m := range x.seats {
			if m.gone {
				continue
			}
			some, err := m.link.Pump(m.engine)
			if err != nil {
				x.t.Fatal(err)
			}
			busy = busy || some
		}
		if busy {
			continue
		}
		next := end
		if at, ok := x.fabric.NextEvent(); ok {
			next = min(next, at)
		}
		for _, m := range x.seats {
			if at, ok := m.engine.Deadline(); ok && !m.gone {
				next = min(next, at)
			}
		}
		if x.fabric.Now() >= end {
			x.t.Fatalf("%s: not within %v", what, most)
		}
		x.fabric.AdvanceTo(max(next, x.fabric.Now()))
		for _, m := range x.seats {
			if m.gone {
				continue
			}
			if _, err := m.link.Pump(m.engine); err != nil {
				x.t.Fatal(err)
			}
			m.engine.Expire(x.fabric.Now())
		}
	}
}

// run lets a stretch of time pass.
func (x *pair) run(d time.Duration) {
	x.t.Helper()
	over := false
	x.fabric.At(x.fabric.Now()+d, func() { over = true })
	x.until("time passes", d+time.Second, func() bool { return over })
}

// proved reports whether a manager has proved the subnet since a time.
func (m *seat) proved(since time.Duration) bool {
	for _, h := range m.events {
		if c, ok := h.Event.(event.Completed); ok && h.at >= since && c.Result.Proof.Verdict.Holds() && c.Result.Reached() {
			return true
		}
	}
	return false
}

// client is a host that asks for a path again and again.
type client struct {
	*pair
	place place
	gsi   *gsi.Pair
	to    ib.GID
	self  ib.GID
	tid   uint64
	last  time.Duration
	asked int
	// right is how many right answers came.
	right int
}

func (x *pair) client(from, to int) *client {
	x.t.Helper()
	nodes := x.hostNodes()
	d, err := x.fabric.Device(nodes[from].GUID)
	if err != nil {
		x.t.Fatal(err)
	}
	c := &client{pair: x, place: place{nodes[from].GUID, 1}}
	if c.gsi, err = gsi.Open(d, 1); err != nil {
		x.t.Fatal(err)
	}
	gid := func(i int) ib.GID { return ib.MakeGID(ib.DefaultGIDPrefix, nodes[i].Ports[1].GUID) }
	c.self, c.to = gid(from), gid(to)
	return c
}

// clientInterval is the time between two requests of a client that gets no answer.
const clientInterval = 5 * time.Millisecond

// turn takes answers, and asks again when it is time.
func (c *client) turn() {
	c.gsi.Receive(func(_ *endpoint.Completion, m *[mad.Size]byte) {
		var got sa.MAD
		var path sa.PathRecord
		if got.UnmarshalBinary(m[:]) == nil && got.TransactionID == c.tid && got.Status == mad.StatusOK &&
			path.UnmarshalBinary(got.Data[:]) == nil && path.DGID == c.to && path.DLID.IsUnicast() {
			c.right++
		}
	})
	if now := c.fabric.Now(); now >= c.last+clientInterval {
		c.last = now
		c.ask()
	}
}

func (c *client) ask() {
	c.tid++
	c.asked++
	q := sa.PathRecord{SGID: c.self, DGID: c.to}
	q.NumbPath = 1
	b, err := q.AppendBinary(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	m := sa.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
		Method: mad.MethodGet, TransactionID: c.tid, AttributeID: sa.AttrPathRecord,
	}, ComponentMask: sa.PathRecordSGID | sa.PathRecordDGID | sa.PathRecordNumbPath}
	copy(m.Data[:], b)
	octets, err := m.AppendBinary(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	to := c.fabric.Agent(c.place.node).Port(c.place.num).MasterSMLID
	_ = c.gsi.Send((*[mad.Size]byte)(octets), endpoint.SendRequest{RemoteQP: ib.QP1, To: endpoint.Address{DLID: to}}) // refused is lost
}

// sizesOfFailovers are fabrics of 648 and 3,456 hosts.
var sizesOfFailovers = []string{"fattree,radix=36,levels=2", "fattree,radix=24,levels=3"}

// failover is what one takeover took.
type failover struct {
	answered, proved         time.Duration // from the kill, in the fabric's time
	answeredWall, provedWall time.Duration // what the machine took for that
	sets                     map[mad.AttributeID]int
	reregister, downs        int
}

// BenchmarkFailover kills the master of a fabric and takes the time to the first right
// answer of subnet administration, and to the first proof, in the fabric's time and in
// that of the processor, which serves the simulated devices too.
func BenchmarkFailover(b *testing.B) {
	for _, spec := range sizesOfFailovers {
		list := generate(b, spec)
		b.Run(fmt.Sprintf("%d hosts", len(hosts(list))), func(b *testing.B) {
			y := tenantsOf(hosts(list))
			for range b.N {
				x := newPair(b, list)
				config := func(priority uint8) engine.Config {
					return engine.Config{Priority: priority, Profile: protect.Tenant, SMKeys: ring(1), AcceptPolicy: true}
				}
				first := x.sit(0, config(5), y)
				x.until("the first proof", time.Minute, func() bool { return first.proved(0) })
				second := x.sit(40, config(0), y)
				x.run(30 * time.Second)
				f := x.failover(first, second, x.client(2, 2+len(y.tenants)))
				b.ReportMetric(f.answered.Seconds(), "s-to-answer")
				b.ReportMetric(f.proved.Seconds(), "s-to-proof")
				b.ReportMetric(f.answeredWall.Seconds(), "clock-s-to-answer")
				b.ReportMetric(f.provedWall.Seconds(), "clock-s-to-proof")
				b.Logf("%+v", f)
			}
		})
	}
}

func (x *pair) failover(first, second *seat, c *client) (f failover) {
	x.t.Helper()
	x.forget()
	x.kill(first)
	since, began := x.fabric.Now(), time.Now()
	x.until("a right answer", time.Minute, func() bool {
		c.turn()
		return c.right > 0
	})
	f.answered, f.answeredWall = x.fabric.Now()-since, time.Since(began)
	x.until("a proof", time.Minute, func() bool { return second.proved(since) })
	f.proved, f.provedWall = x.fabric.Now()-since, time.Since(began)
	f.sets, f.reregister, f.downs = x.sets, x.reregister, x.downs
	return f
}
