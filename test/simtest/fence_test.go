package simtest

import (
	"context"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// step lets the manager do what it has been told, which takes effect when it is
// told the time.
func (w *world) step() {
	w.t.Helper()
	w.engine.Expire(w.fabric.Now())
	if err := w.link.Drive(context.Background(), w.engine, w.engine.Settled); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

// smPlace is a port in the manager's words.
func smPlace(p place) observed.Place { return observed.Place{Node: p.node, Port: p.num} }

// A fenced port lets nothing pass, others keep what they had; it stays so through
// sweeps, link failures and the manager's end, until it is lifted.
func TestFence(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy()})
	w.calm()
	host, guard := w.host("red-1"), w.switchPort("red-1")
	before := slices.Clone(valid(w.table(guard)))
	if len(before) == 0 {
		t.Fatal("the guard of red-1 holds nothing before it is fenced")
	}
	fenced := func(when string) {
		t.Helper()
		info := w.info(guard)
		if got := valid(w.table(guard)); len(got) != 0 || !info.PartitionEnforcementInbound || !info.PartitionEnforcementOutbound {
			t.Errorf("%s: the guard holds %v, checks %v and %v", when, got, info.PartitionEnforcementInbound, info.PartitionEnforcementOutbound)
		}
		if r := w.result(); len(r.Fences) != 1 || r.Fences[0].At != smPlace(guard) || r.Proof.Verdict != isolation.Isolated {
			t.Errorf("%s: fences %v, verdict %v", when, r.Fences, r.Proof.Verdict)
		}
		if other := w.switchPort("red-2"); len(valid(w.table(other))) != len(before) {
			t.Errorf("%s: the guard of red-2 holds %v", when, valid(w.table(other)))
		}
	}
	for range 2 { // the second changes nothing
		if !w.engine.Fence(smPlace(guard), "a test says so") {
			t.Fatal("a host's switch port cannot be fenced")
		}
	}
	w.step()
	fenced("fenced")
	if said := all[event.Fenced](w); len(said) != 1 || said[0].Fence.Reason != "a test says so" {
		t.Errorf("said %v", said)
	}
	if err := w.fabric.Unlink(guard.node, guard.num); err != nil {
		t.Fatal(err)
	}
	w.run(2 * engine.DefaultSweepInterval)
	if err := w.fabric.Link(guard.node, guard.num, host.node, host.num); err != nil {
		t.Fatal(err)
	}
	w.calm()
	if s := w.info(guard).PortState; s != smp.PortInit {
		t.Errorf("its link is %v after it came up again, want Initialize", s)
	}
	known := w.engine.Assigned()
	w.manager.Known = known
	w.restart(y.policy())
	w.settle()
	fenced("after the manager came again")
	w.engine.Unfence(smPlace(guard), "the test is over")
	w.calm()
	if got := valid(w.table(guard)); !slices.Equal(got, before) || w.info(guard).PortState != smp.PortActive {
		t.Errorf("lifted: the guard holds %v, want %v; its link is %v", got, before, w.info(guard).PortState)
	}
	if r := w.result(); len(r.Fences) != 0 || !r.Reached() {
		t.Errorf("lifted: %+v", r.Fences)
	}
}

// What the subnet goes on through, and the manager's own port, cannot be fenced.
func TestFenceNot(t *testing.T) {
	w := bringUp(t, setup{list: topology.Demo(), policy: halves(hosts(topology.Demo())).policy()})
	own, _ := w.peer(w.self)
	trunk := place{w.node("spine-1").GUID, 1}
	for _, at := range []place{own, trunk, {own.node, 0}, w.host("red-1")} {
		if w.engine.Fence(smPlace(at), "a test says so") {
			t.Errorf("%v was fenced", at)
		}
	}
	w.calm()
	if r := w.result(); len(r.Fences) != 0 || !r.Reached() {
		t.Errorf("%+v", r)
	}
}
