package simtest

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// SI-38: switches let packets wait as long as OpenSM's do, and longer than other packets
// take, on the fabric as the manager leaves it; nothing is written for it again.
func TestSwitchLifetime(t *testing.T) {
	list := topology.Demo()
	w := bringUp(t, setup{list: list, policy: halves(hosts(list)).policy()})
	for _, n := range list.Nodes {
		if info := w.agent(n.GUID).SwitchInfo(); info != nil && info.LifeTimeValue != 18 {
			t.Errorf("%s: LifeTimeValue %d, want 18", n.ID, info.LifeTimeValue)
		}
	}
	w.calm()
	w.forget()
	w.run(2 * engine.DefaultDriftPeriod)
	if sets := w.sets(smp.AttrSwitchInfo); len(sets) > 0 {
		t.Errorf("%d Sets of SwitchInfo though nothing changed", len(sets))
	}
}
