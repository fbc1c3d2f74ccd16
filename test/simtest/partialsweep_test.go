package simtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// asKnown is what a snapshot says of a fabric, in an order that is the same
// however it was read.
func asKnown(f *observed.Fabric) (out []string) {
	for _, n := range f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			if !p.Reached || p.Info.PortState == smp.PortDown {
				continue
			}
			peer := "nobody"
			if p.Peer != nil {
				peer = fmt.Sprint(p.Peer.Node.GUID(), p.Peer.Num)
			}
			keys := []ib.PKey{}
			if p.IsEnd() || p.FacesEnd() {
				keys = valid(p.PKeys)
			}
			out = append(out, fmt.Sprint(n.GUID(), n.Description, i, p.GUID, peer, p.Info.LID, p.Info.PortState,
				p.Info.PartitionEnforcementInbound, keys, lanesOf(p)))
		}
	}
	slices.Sort(out)
	return out
}

// lanesOf are the tables of virtual lanes of a port for packets that can come in.
func lanesOf(p *observed.Port) (out []string) {
	for in, t := range p.SLToVL {
		if in != p.Num && (in == 0 || p.Node.Ports[in].IsUp()) {
			out = append(out, fmt.Sprint(in, t))
		}
	}
	slices.Sort(out)
	return append(out, fmt.Sprint(p.VLArbitration))
}

// What a look behind the links that have changed comes to is what reading the
// whole subnet comes to.
func TestPartialSweepEqualsFullSweep(t *testing.T) {
	for _, e := range []routing.Engine{routing.UpDown, routing.DFSSSP} {
		t.Run(string(e), func(t *testing.T) { partialSweep(t, e) })
	}
}

func partialSweep(t *testing.T, routes routing.Engine) {
	seed, soak := soakSeed(t)
	rounds := 10
	if soak {
		rounds = 200
	}
	t.Logf("SOAK_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 8))
	list := generate(t, "random,seed=5,switches=5,hosts=12,routers=1,ca-ports=2")
	y := randomTenancy(r, ends(list), 4)
	w := bringUp(t, setup{list: list, policy: y.policy(), manager: engine.Config{Routing: routes}})
	w.calm()
	parts := 0
	var lost [][2]place // cables that the round before left out
	for round := range rounds {
		w.forget()
		for _, c := range lost {
			w.must(w.fabric.Link(c[0].node, c[0].num, c[1].node, c[1].num))
		}
		lost = nil
		for range 1 + r.IntN(3) {
			n := list.Nodes[r.IntN(len(list.Nodes))]
			if n.GUID == w.self.node {
				continue
			}
			switch at := (place{n.GUID, ib.PortNum(1 + r.IntN(len(n.Ports)-1))}); r.IntN(3) {
			case 0:
				if far, ok := w.peer(at); ok && far.node != w.self.node {
					w.must(w.fabric.Unlink(at.node, at.num))
					w.run(time.Duration(r.IntN(3)) * time.Second)
					w.must(w.fabric.Link(at.node, at.num, far.node, far.num))
				}
			case 1:
				w.must(w.fabric.PowerOff(n.GUID))
				w.run(time.Duration(r.IntN(3)) * time.Second)
				w.must(w.fabric.PowerOn(n.GUID))
			case 2:
				if far, ok := w.peer(at); ok && far.node != w.self.node {
					w.must(w.fabric.Unlink(at.node, at.num))
					lost = append(lost, [2]place{at, far})
				}
			}
			w.run(time.Second)
		}
		w.run(2*time.Minute + 2*engine.DefaultSweepInterval) // a link that moved too often is left alone so long
		w.settle()
		for _, e := range all[event.Resweeping](w) {
			if e.Links > 0 {
				parts++
			}
		}
		part := asKnown(w.engine.Fabric())
		w.engine.SetCables(nil)
		w.run(3 * time.Second)
		w.settle()
		if whole := asKnown(w.engine.Fabric()); !slices.Equal(part, whole) {
			for _, x := range part {
				if !slices.Contains(whole, x) {
					t.Errorf("round %d: only a part knows %s", round, x)
				}
			}
			for _, x := range whole {
				if !slices.Contains(part, x) {
					t.Errorf("round %d: only the whole knows %s", round, x)
				}
			}
			return
		}
	}
	if parts < rounds {
		t.Errorf("%d looks behind links that changed", parts)
	}
}
