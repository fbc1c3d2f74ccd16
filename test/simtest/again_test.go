package simtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/test/need"
)

// A pass over a fabric that is as it should be writes nothing: another sweep of
// the same manager, light sweeps for as long as it takes to read everything
// back, and the first pass of a manager that comes in its place.
func TestSecondPassWritesNothing(t *testing.T) {
	for lmc := range ib.LMCMax + 1 {
		for _, routes := range []routing.Engine{routing.UpDown, routing.MinHop} {
			t.Run(fmt.Sprintf("PK-30 PI-51 LMC %d %s", lmc, routes), func(t *testing.T) {
				if lmc != 0 && lmc != ib.LMCMax {
					need.Long(t, "the LMCs between")
				}
				t.Parallel()
				seed := uint64(lmc) + 1
				t.Logf("seed %d", seed)
				list := generate(t, fmt.Sprintf("random,seed=%d,switches=6,hosts=14,routers=2,ca-ports=2", seed))
				y := randomTenancy(rand.New(rand.NewPCG(seed, 2)), ends(list), 4)
				y.tenants[0].sl = ib.SL(seed % 2) // virtual lanes are written, or not
				s := setup{list: list, policy: y.policy(), manager: engine.Config{LMC: lmc, Routing: routes}}
				s.fabric.Profile = mixed(seed, 4096)
				w := bringUp(t, s)
				w.checkUp(y)
				w.calm()
				lids, dump := w.lids(), w.dump()
				unchanged := func(what string) {
					t.Helper()
					if sets := w.sets(); len(sets) != 0 {
						t.Errorf("%s: %d Sets, the first of %s to node %v", what, len(sets), smp.AttributeName(sets[0].AttributeID), sets[0].node)
					}
					if now := w.lids(); !maps.Equal(lids, now) {
						t.Errorf("%s: LIDs %v, were %v", what, now, lids)
					}
					if d := firstDifference(dump, w.dump()); d != "" {
						t.Errorf("%s: %s", what, d)
					}
				}
				w.forget()
				w.run(2 * engine.DefaultDriftPeriod)
				unchanged("light sweeps")
				w.forget()
				w.engine.SetPolicy(y.policy())
				w.run(5 * time.Second)
				if len(all[event.Completed](w)) == 0 {
					t.Error("no second pass")
				}
				unchanged("second pass")
				w.restart(y.policy())
				w.settle()
				unchanged("another manager")
				w.checkResult()
			})
		}
	}
}

// A manager that comes to another port takes the fabric over: addresses and
// routes stay, and only the settings that name the manager change, its keys
// included.
func TestManagerMoves(t *testing.T) {
	for _, at := range []string{"SM-03 CA", "SM-03 router", "SM-03 switch"} {
		t.Run(at, func(t *testing.T) {
			list := generate(t, "random,seed=5,switches=5,hosts=12,routers=2")
			y := halves(hosts(list))
			w := bringUp(t, setup{list: list, policy: y.policy()})
			lids := w.lids()
			node, num, err := list.Attach(map[string]string{"SM-03 CA": "H7", "SM-03 router": "R1", "SM-03 switch": "S2"}[at])
			if err != nil {
				t.Fatal(err)
			}
			w.stop()
			w.self = place{node.GUID, num}
			w.forget()
			w.start(y.policy())
			w.settle()
			w.checkUp(y)
			if now := w.lids(); !maps.Equal(lids, now) {
				t.Errorf("LIDs %v, were %v", now, lids)
			}
			for _, a := range w.sets() {
				if a.AttributeID != smp.AttrPortInfo && a.AttributeID != smp.AttrPKeyTable {
					t.Errorf("Set(%s)", smp.AttributeName(a.AttributeID))
				}
			}
			if states := w.asked(); len(states) != 0 {
				t.Errorf("links were moved: %v", states)
			}
		})
	}
}

// asked lists the link states that Sets asked for.
func (w *world) asked() []smp.PortState {
	var out []smp.PortState
	for _, a := range w.sets(smp.AttrPortInfo) {
		var info smp.PortInfo
		if info.UnmarshalBinary(a.Data[:]) == nil && info.PortState != smp.PortStateNoChange {
			out = append(out, info.PortState)
		}
	}
	return out
}

// A manager that comes to a fabric for the first time, behind any kind of port,
// becomes its master and brings it up.
func TestFirstManager(t *testing.T) {
	for at, id := range map[string]string{"SM-03 CA": "H7", "SM-03 router": "R1", "SM-03 switch": "S2"} {
		t.Run(at, func(t *testing.T) {
			list := generate(t, "random,seed=6,switches=5,hosts=12,routers=2")
			y := halves(hosts(list))
			w := bringUp(t, setup{list: list, at: id, policy: y.policy()})
			w.checkUp(y)
			w.checkResult()
		})
	}
}

// What an earlier run assigned stays with its owner, absent or not.
func TestKnownLIDsStay(t *testing.T) {
	list := generate(t, "fattree,radix=4,levels=2")
	y := halves(hosts(list))
	known := desired.Assigned{LIDs: map[ib.PortGUID]ib.LID{}}
	for i, g := range ends(list) {
		known.LIDs[g] = ib.LID(1000 - 7*i)
	}
	absent := ib.LID(1)
	known.LIDs[0x4711] = absent
	w := bringUp(t, setup{list: list, policy: y.policy(), manager: engine.Config{Known: known}})
	w.checkUp(y)
	for g, lid := range w.lids() {
		if known.LIDs[g] != lid {
			t.Errorf("port %v has LID %d, was assigned %d", g, lid, known.LIDs[g])
		}
	}
	if w.engine.Assigned().LIDs[0x4711] != absent {
		t.Error("the LID of an absent port is forgotten")
	}
}
