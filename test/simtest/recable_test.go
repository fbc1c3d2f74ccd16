package simtest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// Cables that are swapped between discovery and the last write: what was written
// through them was meant for somebody else, and no link becomes Active over which
// a host would have the keys of another. The next sweep puts it right.
func TestCablesSwappedWhileApplying(t *testing.T) {
	need.Long(t, "seconds of processor time")
	noticed := 0
	for sets := range 120 {
		t.Run(fmt.Sprintf("after %d Sets", sets), func(t *testing.T) {
			list := topology.Demo()
			y := halves(hosts(list))
			w := newWorld(t, setup{list: list, policy: y.policy()})
			red, blue := w.switchPort("red-1"), w.switchPort("blue-6")
			if y.keys(guidOf(list, "red-1"), 0)[1] == y.keys(guidOf(list, "blue-6"), 0)[1] {
				t.Fatal("both are in one partition")
			}
			done := 0
			w.watch = func(a arrival) {
				if !isSet(a) {
					return
				}
				if done++; done == sets+1 {
					w.fabric.At(w.fabric.Now()+time.Nanosecond, func() { w.must(w.fabric.Swap(red.node, red.num, blue.node, blue.num)) })
				}
				for _, id := range []string{"red-1", "blue-6"} {
					host := w.host(id)
					if at, ok := w.peer(host); !ok || w.info(host).PortState != smp.PortActive || w.info(at).PortState != smp.PortActive {
						continue
					}
					want := map[uint16]bool{}
					for _, k := range y.keys(guidOf(list, id), 0) {
						want[uint16(k)] = true
					}
					for _, k := range valid(w.table(host)) {
						if !want[uint16(k)] {
							t.Errorf("%v: the link of %s is Active and it holds %v", a.at, id, k)
						}
					}
				}
			}
			w.settle()
			for _, e := range all[event.Failed](w) {
				if errors.Is(e.Failure.Err, apply.ErrRecabled) {
					noticed++
				}
			}
			w.run(3 * engine.DefaultSweepInterval)
			w.settle()
			w.watch = nil
			w.checkUp(y)
			if !w.result().Reached() || !w.result().Proof.Verdict.Holds() {
				t.Errorf("%d failures, %v", w.result().Failures, w.result().Proof.Verdict)
			}
		})
	}
	if noticed == 0 {
		t.Error("no link was found to lead elsewhere")
	}
	t.Logf("%d ends of links were found to lead elsewhere", noticed)
}

// The same on a fabric whose cables are listed, at any moment of a bring-up: each of
// the two ends fenced, nobody with the keys of another, and all is well when the
// cables are put back. On one that is still to learn them, whatever it learned
// holds: a host is where the list has it, or fenced.
func TestCablesSwappedWhileHeld(t *testing.T) {
	const step = 12 // Sets, or packets of the first sweep, between two cases
	for _, learning := range []bool{false, true} {
		for moment := 0; moment < 10*step; moment += step {
			t.Run(fmt.Sprintf("learning %v, moment %d", learning, moment), func(t *testing.T) {
				if moment%(4*step) != 0 {
					need.Long(t, "the moments between")
				}
				t.Parallel()
				list := topology.Demo()
				y := halves(hosts(list))
				s := setup{list: list, policy: y.policy(), manager: knowing(topology.Demo())}
				if learning {
					s.manager = held()
				}
				x := tap(&s)
				w := newWorld(t, s)
				x.w = w
				red, blue := w.switchPort("red-1"), w.switchPort("blue-6")
				done, swapped := 0, false
				w.watch = func(a arrival) {
					if isSet(a) == learning { // learning is done before the first Set
						return
					}
					if done++; done > moment && !swapped {
						swapped = true
						w.fabric.At(w.fabric.Now()+time.Nanosecond, func() { w.must(w.fabric.Swap(red.node, red.num, blue.node, blue.num)) })
					}
				}
				w.settle()
				w.watch = nil
				w.calm()
				if !swapped {
					t.Fatal("the cables were not swapped")
				}
				found := x.check(y, []string{"red-1", "blue-6"})
				found.none(t)
				for _, at := range []place{red, blue} {
					peer, _ := w.peer(at)
					_, listed, _ := w.engine.Cables().Place(guidOfNode(list, peer.node))
					fenced := len(valid(w.table(at))) == 0
					if here := listed.Node == at.node && listed.Port == at.num; here == fenced {
						t.Errorf("%v: listed here %v, fenced %v", at, here, fenced)
					}
				}
				if learning {
					return
				}
				w.must(w.fabric.Swap(red.node, red.num, blue.node, blue.num))
				w.calm()
				w.checkUp(y)
				if r := w.result(); len(r.Fences) != 0 || !r.Reached() {
					t.Errorf("put back: %+v", r.Fences)
				}
			})
		}
	}
}

// guidOfNode is the GUID of the first port of a CA.
func guidOfNode(l *topology.Netlist, g ib.NodeGUID) ib.PortGUID {
	for _, n := range l.Nodes {
		if n.GUID == g {
			return n.Ports[1].GUID
		}
	}
	return 0
}
