package inproc_test

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// tooLong is no time in which anything is answered.
const tooLong = 100 * time.Millisecond

// flooded is the demonstration fabric with a manager, two hosts of one tenant, and
// what the first does whenever time passes.
type flooded struct {
	*testing.T
	fabric           *fabric.Fabric
	runner           *daemon.Runner
	attacker, victim *host
	attack           func()
	policy           *policy.Policy
}

func newFlooded(t *testing.T) *flooded {
	t.Helper()
	topology := topology.Demo()
	f, err := fabric.New(topology, fabric.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	node, num, err := topology.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	l, err := inproc.New(f, node.GUID, num, false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := daemon.DemoPolicy()
	if err != nil {
		t.Fatal(err)
	}
	x := &flooded{T: t, fabric: f, policy: p}
	x.runner = daemon.NewRunner(l, engine.Config{Routing: routing.UpDown, Profile: protect.Tenant, Periods: engine.Periods{Sweep: time.Minute, Drift: time.Hour}}, server.Config{}, p, quiet{})
	x.run(x.runner.Engine().Settled)
	var hosts []ib.NodeGUID
	for _, n := range topology.Nodes {
		if n.Type == ib.NodeCA && n.GUID != node.GUID && f.Agent(n.GUID).PKeys(1)[0].Base() == 0x10 {
			hosts = append(hosts, n.GUID)
		}
	}
	x.attacker, x.victim = newHost(t, f, hosts[0]), newHost(t, f, hosts[1])
	return x
}

// TestTrustedOfThePolicy: a port may ask for the tables of switches while the
// policy trusts it, and its neighbour may not.
func TestTrustedOfThePolicy(t *testing.T) {
	x := newFlooded(t)
	guid, _ := x.fabric.Agent(x.victim.node).GUID(1, 0)
	trusting := *x.policy
	trusting.Trusted = []policy.TrustedPorts{{Selector: policy.Selector{Kind: policy.SelectPort, GUID: guid}}}
	for name, c := range map[string]struct {
		p    *policy.Policy
		want mad.Status
	}{"trusted": {&trusting, mad.StatusOK}, "no more": {x.policy, sa.StatusDenied}} {
		x.runner.Engine().SetPolicy(c.p)
		x.runner.Engine().Expire(x.fabric.Now())
		x.run(x.runner.Engine().Settled)
		for h, want := range map[*host]mad.Status{x.victim: c.want, x.attacker: sa.StatusDenied} {
			h.send(t, request(t, mad.MethodGetTable, sa.AttrSwitchInfoRecord))
			var got [][mad.Size]byte
			x.run(func() bool { got = append(got, h.received(t)...); return len(got) > 0 })
			if len(got) == 0 || mad.Status(binary.BigEndian.Uint16(got[0][4:])) != want {
				t.Errorf("%s: %v is answered with %v, want %v", name, h.node, got, want)
			}
			stop := got[0] // of a transaction that is not to come again
			stop[3], stop[25], stop[26], stop[27] = byte(mad.MethodGetTable), byte(mad.RMPPStop), byte(mad.RMPPActive), byte(mad.RMPPResourcesExhausted)
			h.send(t, &stop)
			x.run(func() bool { return len(h.received(t)) >= 0 })
		}
	}
}

func (x *flooded) run(done func() bool) {
	x.Helper()
	end := x.fabric.Now() + tooLong
	if err := x.runner.Run(x.Context(), func() bool {
		if x.attack != nil {
			x.attack()
		}
		return done() || x.fabric.Now() > end
	}); err != nil {
		x.Fatal(err)
	}
}

// ask has the victim ask for the paths to everybody, many times over, in a request
// of several segments. It gives the time that the answer took, or a minute.
func (x *flooded) ask(tid uint64) time.Duration {
	x.Helper()
	q := &sa.MultiPathRecord{SGIDs: []ib.GID{x.victim.gid()}, DGIDs: []ib.GID{x.attacker.gid()}}
	for n := range 60 {
		q.DGIDs = append(q.DGIDs, ib.MakeGID(ib.DefaultGIDPrefix, ib.PortGUID(n+1)))
	}
	body, err := q.AppendBinary(nil)
	if err != nil {
		x.Fatal(err)
	}
	m := rmpp.Message{Body: body}
	head := request(x.T, mad.MethodGetMulti, sa.AttrMultiPathRecord)
	copy(m.Head[:], head[:])
	binary.BigEndian.PutUint64(m.Head[8:], tid)
	binary.BigEndian.PutUint64(m.Head[48:], uint64(sa.MultiPathRecordSGIDCount|sa.MultiPathRecordDGIDCount))
	e := rmpp.New[int](rmpp.DefaultLimits())
	if err := e.Send(x.fabric.Now(), 1, &m); err != nil {
		x.Fatal(err)
	}
	began := x.fabric.Now()
	var answer *rmpp.Message
	x.run(func() bool {
		for _, in := range x.victim.received(x.T) {
			if got := e.Receive(x.fabric.Now(), 1, &in); got != nil {
				answer = got
			}
		}
		e.Expire(x.fabric.Now())
		for {
			out := new([mad.Size]byte) // it is read when it leaves
			if _, ok := e.Next(x.fabric.Now(), out); !ok {
				break
			}
			x.victim.send(x.T, out)
		}
		return answer != nil
	})
	if answer == nil {
		return tooLong
	}
	if len(answer.Body) < sa.PathRecordSize {
		x.Errorf("the answer has %d bytes, want a path", len(answer.Body))
	}
	return x.fabric.Now() - began
}

// TestUnfinishedLongRequests: a host sends first segments of long requests, and
// nothing but those, as fast as its port can; another's long request is answered
// within twice its usual time.
func TestUnfinishedLongRequests(t *testing.T) {
	x := newFlooded(t)
	usual := x.ask(1)
	x.attacker.received(t)
	n := uint64(0)
	x.attack = func() {
		x.attacker.received(t)
		for range 4 {
			m := request(t, mad.MethodGetMulti, sa.AttrMultiPathRecord)
			binary.BigEndian.PutUint64(m[8:], 1000+n)
			m[24], m[25], m[26], m[31] = mad.RMPPVersion, byte(mad.RMPPData), byte(mad.RMPPActive|mad.RMPPFirst), 1
			if x.attacker.qp.PostSend(endpoint.SendRequest{
				Op: endpoint.OpSend, Data: m[:], RemoteQP: 1, RemoteQKey: ib.QKeyGSI, To: endpoint.Address{DLID: x.attacker.to},
			}) == nil { // else its queue is full
				n++
			}
		}
	}
	end := x.fabric.Now() + 200*time.Microsecond
	x.run(func() bool { return x.fabric.Now() >= end })
	worst := time.Duration(0)
	for tid := uint64(2); tid < 22 && worst <= 2*usual; tid++ {
		worst = max(worst, x.ask(tid))
	}
	t.Logf("usually %v, at worst %v while %d first segments came", usual, worst, n)
	if worst > 2*usual {
		t.Errorf("a long request took %v, usually %v", worst, usual)
	}
	if n < 300 {
		t.Errorf("only %d first segments: the attack was none", n)
	}
}
