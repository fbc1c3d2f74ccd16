package simtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// movedHost watches a host that moves from one tenant to another in one change.
type movedHost struct {
	w        *world
	host     place
	guarded  bool
	old, new []ib.PKeyBase
	outSince time.Duration // since when it is in no partition of either, 0 while it is in one
	out      time.Duration // how long it was
}

// in reports whether the host reaches one of the partitions: as the switch port lets it or, where that checks
// nothing, as its own table has it.
func (m *movedHost) in(bases []ib.PKeyBase) bool {
	at := m.host
	if m.guarded {
		at, _ = m.w.peer(m.host)
	}
	for _, b := range bases {
		if holds(m.w.table(at), b) != outsider {
			return true
		}
	}
	return false
}

func (m *movedHost) look() {
	m.w.t.Helper()
	before, after := m.in(m.old), m.in(m.new)
	if before && after {
		m.w.t.Error("the host is in partitions of both tenants at once")
	}
	switch now := m.w.fabric.Now(); {
	case !before && !after && m.outSince == 0:
		m.outSince = now
	case (before || after) && m.outSince != 0:
		m.out, m.outSince = m.out+now-m.outSince, 0
	}
}

// TestMovedHostIsInOneTenant: AU-07 while one change moves a host from tenant to tenant it is at no packet in partitions of both,
// though packets are lost and devices refuse writes, with tables of one block and of several. In neither it is
// for less than 20 ms where nothing goes wrong.
func TestMovedHostIsInOneTenant(t *testing.T) {
	const outMost = 20 * time.Millisecond
	unguarded := func(_ *topology.Node, c *sma.Config) {
		if c.Switch != nil {
			c.Switch.PartitionEnforcementCap = 0
		}
	}
	for _, guarded := range []bool{true, false} {
		for _, keys := range []int{1, 40} {
			for _, trouble := range []string{"", "loss", "leaf-1", "red-1"} {
				t.Run(fmt.Sprintf("guarded %v/%d keys/%s", guarded, keys, trouble), func(t *testing.T) {
					list := topology.Demo()
					red, stays, blue := guidOf(list, "red-1"), guidOf(list, "red-2"), guidOf(list, "blue-2")
					var old, next tenancy
					m := &movedHost{guarded: guarded}
					for i := range keys {
						a, b := ib.PKeyBase(0x10+i), ib.PKeyBase(0x110+i)
						m.old, m.new = append(m.old, a), append(m.new, b)
						old.tenants = append(old.tenants, tenant{base: a, full: []ib.PortGUID{red, stays}}, tenant{base: b, full: []ib.PortGUID{blue}})
						next.tenants = append(next.tenants, tenant{base: a, full: []ib.PortGUID{stays}}, tenant{base: b, full: []ib.PortGUID{red, blue}})
					}
					s := setup{list: list, at: "blue-6", policy: old.policy()}
					if s.fabric.Profile = unguarded; guarded {
						s.fabric.Profile = nil
					}
					m.w = bringUp(t, s)
					m.host = m.w.host("red-1")
					safety := m.w.watchSafety(old, next)
					m.w.watch = func(a arrival) {
						m.look()
						if isSet(a) && keys == 1 {
							safety.look()
						}
					}
					switch trouble {
					case "":
					case "loss":
						m.w.must(m.w.fabric.SetLoss(0.2))
					default:
						m.w.deaf(trouble, smp.AttrPKeyTable, true)
					}
					m.w.change(next.policy())
					m.w.run(2 * engine.DefaultDriftPeriod)
					m.w.must(m.w.fabric.SetLoss(0))
					if trouble == "leaf-1" || trouble == "red-1" {
						m.w.mute(trouble, false)
					}
					m.w.run(engine.DefaultDriftPeriod + 2*engine.DefaultSweepInterval)
					m.w.settle()
					m.look()
					m.w.watch = nil
					m.w.checkUp(next)
					if trouble == "" && m.out > outMost {
						t.Errorf("the host was in neither tenant for %v: want at most %v", m.out, outMost)
					}
					t.Logf("in neither for %v", m.out)
				})
			}
		}
	}
}
