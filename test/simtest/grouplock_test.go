package simtest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/test/need"
)

const (
	// loadGroups is the number of groups, of some hosts each.
	loadGroups = 8
	// castEvery is after how many datagrams to hosts one goes to a group, castsEach how
	// many each member sends to it.
	castEvery = 2
	castsEach = 6
)

// caster is a member of a group that sends to it.
type caster struct {
	group                  *group.Group
	qp                     *endpoint.QP
	every                  time.Duration
	posted, sent, received int
	others                 int // that send to it too
}

// casts has hosts join groups, and gives each member a queue pair.
func (l *load) casts() (out []*caster) {
	l.t.Helper()
	groups := make([]group.Group, loadGroups)
	for i := range groups {
		g := &groups[i]
		*g = group.Group{
			MGID: ib.GID{0: 0xFF, 1: 0x12, 15: byte(i)}, MLID: ib.LIDMulticastMin + ib.LID(i), Partition: ib.PKeyBase(0x7FFF),
			Settings: group.Settings{MTU: ib.MTU2048, QKey: loadKey},
		}
		for k, h := range l.hosts {
			if (k*7+i*3)%5 < 2 {
				continue
			}
			p := l.agent(h.port.node).NodeInfo(h.port.num).PortGUID
			g.Members = append(g.Members, group.Member{Port: p, State: sa.JoinFull})
			q := l.newQP(h.port.node, 0)
			l.must(q.AttachMulticast(g.MLID, g.MGID))
			out = append(out, &caster{group: g, qp: q, every: h.every * castEvery})
		}
		slices.SortFunc(g.Members, func(a, b group.Member) int { return cmp.Compare(a.Port, b.Port) })
	}
	for _, c := range out {
		c.others = len(c.group.Members) - 1
	}
	l.engine.SetGroups(groups)
	l.engine.Expire(l.fabric.Now())
	l.settle()
	return out
}

// cast has a member send its next datagram to its group.
func (l *load) cast(c *caster, sl ib.SL) {
	if l.pollCaster(c); c.posted-c.sent < loadDepth {
		l.must(c.qp.PostSend(endpoint.SendRequest{
			ID: sendID, Data: l.bytes[:], RemoteQP: ib.QPMulticast, RemoteQKey: loadKey,
			To: endpoint.Address{DLID: c.group.MLID, SL: sl, Global: true, DGID: c.group.MGID, HopLimit: 1},
		}))
		c.posted++
	}
	if c.posted < castsEach {
		l.fabric.At(l.fabric.Now()+c.every, func() { l.cast(c, sl) })
	}
}

func (l *load) pollCaster(c *caster) {
	for {
		n := c.qp.Poll(l.done)
		for _, d := range l.done[:n] {
			switch {
			case d.Status != endpoint.Success:
				l.t.Errorf("a member: completion %v", d.Status)
			case d.ID == sendID:
				c.sent++
			default:
				c.received++
				l.must(c.qp.PostReceive(endpoint.ReceiveRequest{Buffer: l.buffer}))
			}
		}
		if n < len(l.done) {
			return
		}
	}
}

// Under full load, from host to host and to groups at once, no packet waits for ever: on the
// virtual lanes that path records and the records of groups name.
func TestNoPacketOfGroupsWaitsForEver(t *testing.T) {
	forever := policy.DefaultSettings()
	forever.LifeTimeValue, forever.HOQLife, forever.LeafHOQLife = 31, 31, 31
	for _, c := range []struct {
		engine    routing.Engine
		spec      string
		asUnicast bool // hosts send to groups on the level of paths in their switch
		deadlocks bool
		long      bool
	}{
		{routing.MinHop, "torus,x=5,y=5,hosts=2", false, true, true}, // the test can fail
		{routing.DOR, "torus,x=5,y=5,hosts=2", true, true, false},
		{routing.DOR, "torus,x=5,y=5,hosts=2", false, false, false},
		{routing.UpDown, "torus,x=5,y=5,hosts=2", false, false, true},
		{routing.DFSSSP, "torus,x=5,y=5,hosts=2", false, false, true},
		{routing.DFSSSP, "random,switches=12,hosts=36,seed=3", false, false, true},
		{routing.FatTree, "fattree,radix=6,levels=3", false, false, true},
		{routing.Dragonfly, "dragonfly,groups=6,leafs=3,spines=2,hosts=2", false, false, true},
	} {
		t.Run(fmt.Sprintf("%s on %s %v", c.engine, c.spec, c.asUnicast), func(t *testing.T) {
			if c.long {
				need.Long(t, "a fabric under full load; a share: DOR on a torus")
			}
			w := bringUp(t, setup{
				list:    generate(t, c.spec),
				policy:  &policy.Policy{Default: policy.Full, Settings: &forever},
				manager: engine.Config{Routing: c.engine},
				fabric:  fabric.Config{Profile: slow, WireTime: true},
			})
			w.mum = true
			l := newLoad(w, 100)
			casters := l.casts()
			subnet, ok := w.engine.Subnet()
			if !ok {
				t.Fatal("no policy stands")
			}
			ends := map[place]*observed.Port{}
			for _, p := range subnet.Fabric.EndPorts() {
				ends[place{p.Node.GUID(), p.Num}] = p
			}
			l.paths = func(from, to place) ib.SL { return subnet.Levels.Between(0, ends[from], ends[to]) }
			l.allToAll(len(l.hosts)-1, 1)
			sl := subnet.Levels.OfGroup(0)
			if c.asUnicast {
				sl = 0
			}
			for i, x := range casters {
				l.wanted += x.others * castsEach
				l.fabric.At(l.fabric.Now()+x.every*time.Duration(i)/time.Duration(len(casters)), func() { l.cast(x, sl) })
			}
			l.besides = func() (received int) {
				for _, x := range casters {
					l.pollCaster(x)
					received += x.received
				}
				return received
			}
			waiting, posted := l.stuck()
			arrived, copies := 0, l.besides()
			for _, h := range l.hosts {
				l.poll(h)
				arrived += h.received
			}
			t.Logf("%d hosts, groups on SL %d: %d of %d datagrams and %d of %d copies arrived, %d wait for ever", len(l.hosts), sl, arrived, posted, copies, l.wanted, waiting)
			if deadlocked := waiting > 0; deadlocked != c.deadlocks {
				t.Errorf("deadlock %v, want %v", deadlocked, c.deadlocks)
			}
			if !c.deadlocks && (arrived != posted || copies != l.wanted) {
				t.Errorf("%d of %d, and %d of %d copies arrived; the others: %v", arrived, posted, copies, l.wanted, l.drops())
			}
		})
	}
}
