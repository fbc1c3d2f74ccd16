package simtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
)

// asking looks whether each host can ask subnet administration, as Linux does:
// with the default key where the host has one, else with the key at index 0.
type asking struct {
	w     *world
	hosts []end
	self  place
	// tried counts the looks at hosts, cut those that could not ask.
	tried, cut int
	first      string
}

func newAsking(w *world) *asking {
	a := &asking{w: w}
	for _, e := range w.ends() {
		if e.guid == w.selfGUID() {
			a.self = e.place
		} else if !e.isSwitch {
			a.hosts = append(a.hosts, e)
		}
	}
	return a
}

// key is the one that a host asks with.
func (a *asking) key(e end) ib.PKey {
	table := a.w.table(e.place)
	if i := slices.IndexFunc(table, func(k ib.PKey) bool { return k.Base() == ib.PKeyBaseDefault }); i >= 0 {
		return table[i]
	}
	if len(table) == 0 {
		return ib.PKeyInvalid
	}
	return table[0]
}

// passes reports whether the switch port before a port lets a partition pass.
func (a *asking) passes(at place, base ib.PKeyBase) bool {
	guard, ok := a.w.peer(at)
	if !ok || a.w.agent(guard.node).SwitchInfo() == nil {
		return true
	}
	info := a.w.info(guard)
	return !info.PartitionEnforcementInbound && !info.PartitionEnforcementOutbound || holds(a.w.table(guard), base) != outsider
}

// look asks on behalf of the hosts that have a tenant.
func (a *asking) look(tenants []ib.PortGUID) {
	mine := a.w.table(a.self)
	for _, e := range a.hosts {
		if !slices.Contains(tenants, e.guid) {
			continue
		}
		a.tried++
		k := a.key(e)
		if !slices.ContainsFunc(mine, k.Matches) || !a.passes(e.place, k.Base()) || !a.passes(a.self, k.Base()) {
			if a.cut++; a.cut == 1 {
				a.first = fmt.Sprintf("%v: %s asks with %v, the manager holds %v", a.w.fabric.Now(), e.name, k, mine)
			}
		}
	}
}

// members are the ports that are in some partition of a tenancy.
func (y tenancy) members() (out []ib.PortGUID) {
	for _, x := range y.tenants {
		out = append(append(out, x.full...), x.limited...)
	}
	return out
}

// From a shared default partition to none and back, on a fabric that is up:
// nobody reaches anybody between two writes that neither policy lets, and no host
// with a tenant is for a moment unable to ask subnet administration.
func TestGoingToNoDefaultAndBack(t *testing.T) {
	for seed := range uint64(16) {
		t.Run(fmt.Sprintf("PK-36 seed %d", seed), func(t *testing.T) {
			t.Parallel()
			list := generate(t, fmt.Sprintf("random,seed=%d,switches=3,hosts=8,ca-ports=2", seed))
			r := rand.New(rand.NewPCG(seed, 12))
			y := randomTenancy(r, ends(list), 1+r.IntN(5))
			y.none = seed%2 != 0
			s := setup{list: list, policy: y.policy()}
			s.fabric.Seed = seed
			w := bringUp(t, s)
			ask := newAsking(w)
			for range 4 {
				next := y
				next.none = !y.none
				safety := w.watchSafety(y, next)
				watch := w.watch
				w.watch = func(a arrival) {
					watch(a)
					if isSet(a) {
						ask.look(y.members())
					}
				}
				w.forget()
				w.change(next.policy())
				safety.look()
				ask.look(y.members())
				w.watch = nil
				w.checkKeys(next)
				w.checkResult()
				y = next
			}
			if ask.cut > 0 || ask.tried == 0 && len(y.members()) > 1 {
				t.Errorf("%d of %d times a host could not ask, first %s", ask.cut, ask.tried, ask.first)
			}
		})
	}
}
