package simtest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// generated are topologies of every kind that can be generated.
var generated = []string{
	"demo",
	"fattree,radix=8,levels=2",
	"fattree,radix=4,levels=3",
	"fattree,radix=8,levels=3,hosts=40",
	"torus,x=4,y=4",
	"torus,x=3,y=2,z=3,hosts=2",
	"torus,x=1,y=1",
	"dragonfly,groups=3",
	"dragonfly,groups=5,leafs=3,spines=2,hosts=3",
}

const randomTopologies = 20

func topologies() []string {
	specs := append([]string{}, generated...)
	for seed := range randomTopologies {
		specs = append(specs, fmt.Sprintf("random,seed=%d,switches=%d,hosts=%d,routers=%d,ca-ports=%d,ports=%d",
			seed+1, 2+seed%9, 12+seed, seed%4, 1+seed%3, 12+seed))
	}
	return specs
}

// mixed makes every device another one, by chance: forwarding tables of both
// kinds, enhanced management ports, switches that enforce in one direction,
// with small tables or not at all, different virtual lanes and payloads. Random
// forwarding tables have so many entries.
func mixed(seed uint64, entries uint16) func(*topology.Node, *sma.Config) {
	return func(n *topology.Node, c *sma.Config) {
		r := rand.New(rand.NewPCG(seed, uint64(n.GUID)))
		for i := range c.Ports {
			vary(r, &c.Ports[i])
		}
		c.PartitionCap = []uint16{16, 32, 33, 128}[r.IntN(4)]
		s := c.Switch
		if s == nil {
			return
		}
		vary(r, &s.Port0)
		s.EnhancedPort0 = r.IntN(3) == 0
		if r.IntN(2) == 0 {
			s.LinearFDBCap, s.RandomFDBCap = 0, entries
		}
		s.OptimizedSLToVL = r.IntN(2) == 0
		switch r.IntN(6) {
		case 0:
			s.PartitionEnforcementCap = 0
		case 1:
			s.PartitionEnforcementCap = 2
		case 2:
			s.InboundEnforcementCap = false
		case 3:
			s.OutboundEnforcementCap = false
		}
	}
}

func vary(r *rand.Rand, p *sma.PortConfig) {
	p.VLCap, p.MTUCap = uint8(1+r.IntN(5)), ib.MTU(1+r.IntN(5))
	p.VLArbitrationHighCap, p.VLArbitrationLowCap = 0, 0
	if p.VLCap > 1 {
		p.VLArbitrationHighCap, p.VLArbitrationLowCap = uint8(1+r.IntN(64)), uint8(1+r.IntN(64))
	}
}

// A fabric of any shape comes up: see checkUp for what that means.
func TestBringUp(t *testing.T) {
	for i, spec := range topologies() {
		for _, profile := range []string{"plain", "mixed"} {
			t.Run(profile+"/"+spec, func(t *testing.T) {
				t.Parallel()
				seed := uint64(i + 1)
				t.Logf("seed %d", seed)
				list := generate(t, spec)
				s := setup{list: list}
				if profile == "mixed" {
					s.fabric.Profile = mixed(seed, 256)
				}
				y := randomTenancy(rand.New(rand.NewPCG(seed, 1)), ends(list), 5)
				s.policy = y.policy()
				w := newWorld(t, s)
				order := w.watchOrder()
				w.settle()
				order.check()
				w.checkUp(y)
				w.checkResult()
				if w.result().Faults != 0 {
					t.Errorf("faults: %v", all[event.SweepFault](w))
				}
			})
		}
	}
}

// checkResult: what the manager says is so.
func (w *world) checkResult() {
	w.t.Helper()
	r := w.result()
	want := isolation.Isolated
	if !w.allGuarded() {
		want = isolation.ByEndPorts
	}
	if w.manager.Keys != nil && w.onlyCables(r.Proof.Changeable) {
		want = isolation.Unguarded
	}
	if r.Proof.Verdict != want {
		w.t.Errorf("verdict %v, want %v: %q", r.Proof.Verdict, want, r.Proof.Reasons)
	}
	if !r.Reached() {
		w.t.Errorf("failures %d, inactive %d: %v", r.Failures, r.Inactive, w.events)
	}
	if links := len(w.list.Links()); r.Counts.Links != links || r.Counts.Nodes != len(w.list.Nodes) {
		w.t.Errorf("found %+v, want %d nodes and %d links", r.Counts, len(w.list.Nodes), links)
	}
}

// order watches the states that links are brought to.
type order struct {
	w *world
	// first is what isolated when the first link was asked to go Active.
	first string
	asked map[place][]smp.PortState
}

func (w *world) watchOrder() *order {
	o := &order{w: w, asked: map[place][]smp.PortState{}}
	w.watch = func(a arrival) {
		if a.AttributeID != smp.AttrPortInfo || !isSet(a) {
			return
		}
		var info smp.PortInfo
		if info.UnmarshalBinary(a.Data[:]) != nil || info.PortState == smp.PortStateNoChange {
			return
		}
		at := place{a.node, a.in}
		if w.agent(a.node).SwitchInfo() != nil {
			at.num = ib.PortNum(a.AttributeModifier)
		}
		o.asked[at] = append(o.asked[at], info.PortState)
		if now := w.info(at).PortState; now != info.PortState-1 {
			w.t.Errorf("node %v port %d is asked to go %v and is %v", at.node, at.num, info.PortState, now)
		}
		if info.PortState != smp.PortActive {
			return
		}
		if far, ok := w.peer(at); ok && w.info(far).PortState < smp.PortArmed {
			w.t.Errorf("node %v port %d is asked to go Active, its peer is %v", at.node, at.num, w.info(far).PortState)
		}
		if o.first == "" {
			o.first = w.isolating()
		}
	}
	return o
}

// check: keys and enforcement stood before the first link went Active, and
// every link went from Initialize to Armed to Active.
func (o *order) check() {
	o.w.t.Helper()
	o.w.watch = nil
	if o.first == "" {
		o.w.t.Error("no link was asked to go Active")
	}
	if d := firstDifference(o.first, o.w.isolating()); d != "" {
		o.w.t.Errorf("when the first link went Active not everything stood: %s", d)
	}
	for at, states := range o.asked {
		if len(states) != 2 || states[0] != smp.PortArmed || states[1] != smp.PortActive {
			o.w.t.Errorf("node %v port %d was asked to go %v, want Armed and Active", at.node, at.num, states)
		}
	}
}
