package simtest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/test/need"
)

// flow is a pair of hosts.
type flow struct{ from, to place }

// flows are the pairs of hosts whose packets arrive now, and the links that they take: every
// link Active at both ends, every table as the device holds it.
func (w *world) flows() map[flow][]place { return w.flowsFrom(1) }

// flowsFrom is flows of every n-th host.
func (w *world) flowsFrom(n int) map[flow][]place {
	lids := w.lids()
	out := map[flow][]place{}
	type end struct {
		at  place
		lid ib.LID
	}
	var all []end
	for _, n := range w.list.Nodes {
		if n.Type == ib.NodeCA {
			all = append(all, end{place{n.GUID, 1}, lids[guidOfNode(w.list, n.GUID)]})
		}
	}
	for i, a := range all {
		for _, b := range all {
			if i%n != 0 {
				break
			}
			if way := w.wayOf(a.at, b.at, b.lid); way != nil && a != b {
				out[flow{a.at, b.at}] = way
			}
		}
	}
	return out
}

// wayOf is the links by which packets get from one host to another; nil where they are lost.
func (w *world) wayOf(from, to place, lid ib.LID) (way []place) {
	at := from
	for range len(w.list.Nodes) {
		next, ok := w.peer(at)
		if !ok || w.agent(at.node).Port(at.num).PortState != smp.PortActive || w.agent(next.node).Port(next.num).PortState != smp.PortActive {
			return nil
		}
		way = append(way, at, next)
		if next == to {
			return way
		}
		a := w.agent(next.node)
		if a.SwitchInfo() == nil {
			return nil
		}
		exit, ok := a.UnicastExit(next.num, lid)
		if !ok || exit == 0 {
			return nil
		}
		at = place{next.node, exit}
	}
	return nil
}

// Cables and switches go, begin again with empty tables, and come back; a switch is drained
// and undrained. After every write that a device takes, each flow arrives whose way did not
// lead over what is gone.
func TestOthersLoseNothing(t *testing.T) {
	seed := need.Seed(t, 1)
	rounds := need.Rounds(1, 20)
	for _, c := range []struct {
		engine routing.Engine
		spec   string
	}{{routing.FatTree, "fattree,radix=6,levels=3"}, {routing.UpDown, "fattree,radix=6,levels=3"}, {routing.UpDown, "random,seed=5,switches=9,hosts=20"}, {routing.DFSSSP, "torus,x=3,y=3,hosts=2"}} {
		t.Run(fmt.Sprintf("%s on %s", c.engine, c.spec), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 18))
			w := bringUp(t, setup{list: generate(t, c.spec), policy: &policy.Policy{Default: policy.Full}, manager: engine.Config{Routing: c.engine}})
			w.calm()
			var switches, cables []place
			for _, n := range w.list.Nodes {
				if n.Type != ib.NodeSwitch {
					continue
				}
				hosts := false
				for num := 1; num < len(n.Ports); num++ {
					at := place{n.GUID, ib.PortNum(num)}
					if far, ok := w.peer(at); ok && w.agent(far.node).SwitchInfo() == nil {
						hosts = true
					} else if ok {
						cables = append(cables, at)
					}
				}
				if !hosts {
					switches = append(switches, place{n.GUID, 0})
				}
			}
			looked := 0
			// during lets something happen and looks at all flows but those over what is gone.
			during := func(what string, gone func(place) bool, do func()) {
				t.Helper()
				all := w.flows()
				for f, way := range all {
					for _, at := range way {
						if gone(at) {
							delete(all, f)
							break
						}
					}
				}
				look := func() {
					looked++
					now := w.flows()
					for f := range all {
						if now[f] == nil {
							for _, h := range w.events[max(0, len(w.events)-14):] {
								t.Logf("%v %T %.160s", h.at, h.Event, fmt.Sprint(h.Event))
							}
							t.Fatalf("%s: packets from %v to %v are lost, whose way did not lead there", what, f.from, f.to)
						}
					}
				}
				due := false
				w.watch = func(a arrival) {
					if due {
						look() // at what the one before has done
					}
					due = a.Method == mad.MethodSet && a.AttributeID != smp.AttrSwitchInfo
				}
				do()
				w.run(3 * time.Second)
				w.settle()
				w.watch = nil
				look()
			}
			for range rounds {
				for range 2 { // another cable each time, and not so often that it is left alone
					at := cables[rng.IntN(len(cables))]
					far, _ := w.peer(at)
					during("a cable breaks", func(p place) bool { return p == at || p == far }, func() { w.must(w.fabric.Unlink(at.node, at.num)) })
					during("a cable is back", func(place) bool { return false }, func() { w.must(w.fabric.Link(at.node, at.num, far.node, far.num)) })
				}
				if len(switches) > 0 {
					s := switches[rng.IntN(len(switches))].node
					during("a switch dies", func(p place) bool { return p.node == s }, func() { w.must(w.fabric.PowerOff(s)) })
					w.run(2 * time.Minute) // until the manager knows that it is gone, behind whichever link
					w.settle()
					during("a switch is back with empty tables", func(place) bool { return false }, func() { w.must(w.fabric.PowerOn(s)) })
				}
				w.run(2 * time.Minute) // what changes too often is left alone
				w.settle()
			}
			if looked < 20*int(rounds) {
				t.Errorf("looked %d times", looked)
			}
			if n := len(w.flows()); n == 0 {
				t.Error("no flow")
			}
		})
	}
}
