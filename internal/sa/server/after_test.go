package server

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// changing is a subnet that changes at random.
type changing struct {
	r     *rand.Rand
	hosts []*observed.Port
	s     observed.Subnet
}

func newChanging(seed uint64) *changing {
	b := subnettest.New()
	b.PortInfo = smp.PortInfo{NeighborMTU: ib.MTU4096, MTUCap: ib.MTU4096, LinkWidthActive: smp.LinkWidth4X, LinkSpeedActive: smp.LinkSpeedQDR}
	c := &changing{r: rand.New(rand.NewPCG(seed, 18))}
	n := b.Switch(10, "switch")
	for i := range 8 {
		h := b.Host(n, fmt.Sprintf("h%d", i))
		h.PKeys, h.PKeysRead = make([]ib.PKey, smp.PKeysPerBlock+i), []bool{true, true} // the second block is not whole
		c.hosts = append(c.hosts, h)
	}
	b.Route()
	n.Switch.Info.LinearFDBTop = 20
	b.Fabric.Self = &n.Ports[0]
	c.s = observed.Subnet{Fabric: b.Fabric, Epoch: 1, GIDPrefix: ib.DefaultGIDPrefix}
	return c
}

func (c *changing) guids() (list []ib.PortGUID) {
	for range c.r.IntN(6) {
		list = append(list, c.hosts[c.r.IntN(len(c.hosts))].GUID)
	}
	if c.r.IntN(5) == 0 {
		list = append(list, 0x99) // not there
	}
	return list
}

// change changes one thing; what was given before is left as it is, but for the tables.
func (c *changing) change() {
	r, h := c.r, c.hosts[c.r.IntN(len(c.hosts))]
	parts := slices.Clone(c.s.Partitions)
	defer func() { c.s.Partitions = parts }()
	switch r.IntN(12) {
	case 0, 1, 2:
		k := ib.PKeyBase(r.IntN(7)).Limited()
		if r.IntN(3) > 0 {
			k = k.Base().Full()
		}
		h.PKeys[r.IntN(len(h.PKeys))] = k
	case 3:
		block := r.IntN(len(h.PKeysRead))
		h.PKeysRead[block] = !h.PKeysRead[block]
	case 4, 5, 6:
		if len(parts) == 0 {
			return
		}
		switch p := &parts[r.IntN(len(parts))]; r.IntN(5) {
		case 0:
			p.SL = ib.SL(r.IntN(16))
		case 1, 2:
			p.Full = c.guids()
		default:
			p.Limited = c.guids()
		}
	case 7, 8: // anywhere, of any number
		parts = slices.Insert(parts, r.IntN(len(parts)+1), observed.Partition{
			Base: ib.PKeyBase(r.IntN(7)), SL: ib.SL(r.IntN(16)), Full: c.guids(), Limited: c.guids(),
		})
		if r.IntN(3) > 0 { // mostly as a manager has them
			slices.SortStableFunc(parts, func(a, b observed.Partition) int { return int(a.Base) - int(b.Base) })
			parts = slices.CompactFunc(parts, func(a, b observed.Partition) bool { return a.Base == b.Base })
		}
	case 9:
		if len(parts) > 0 {
			i := r.IntN(len(parts))
			parts = slices.Delete(parts, i, i+1)
		}
	case 10:
		c.s.Aliases = map[ib.PortGUID][]ib.PortGUID{h.GUID: {0, ib.PortGUID(0x700 + r.IntN(3))}}
	default:
		c.changePorts(h)
	}
}

// changePorts lets a port come or go, or get another LID, as far as a subnet says so.
func (c *changing) changePorts(h *observed.Port) {
	switch c.r.IntN(4) {
	case 0:
		c.s.Expelled = maps.Clone(c.s.Expelled)
		if c.s.Expelled == nil {
			c.s.Expelled = make(map[*observed.Port]bool)
		}
		if c.s.Expelled[h] {
			delete(c.s.Expelled, h)
		} else {
			c.s.Expelled[h] = true
		}
	case 1:
		c.s.LIDs = maps.Clone(c.s.LIDs)
		if c.s.LIDs == nil {
			c.s.LIDs = make(map[*observed.Port]observed.Assigned)
		}
		c.s.LIDs[h] = observed.Assigned{LID: ib.LID(2 + c.r.IntN(12))}
	case 2:
		h.InfoRead, c.s.Epoch = !h.InfoRead, c.s.Epoch+1
	default:
		h.GUID, c.s.Epoch = c.hosts[c.r.IntN(len(c.hosts))].GUID, c.s.Epoch+1
	}
}

// differs says what two views do not agree on, or nothing.
func differs(a, b *View) string {
	if len(a.Ports) != len(b.Ports) {
		return fmt.Sprintf("%d ports and %d", len(a.Ports), len(b.Ports))
	}
	for i, p := range a.Ports {
		q := b.Ports[i]
		if p.Port != q.Port || p.LID != q.LID || p.Contested != q.Contested || !slices.Equal(p.Keys, q.Keys) {
			return fmt.Sprintf("%s with LID %d and keys %v, %s with LID %d and keys %v", p, p.LID, p.Keys, q, q.LID, q.Keys)
		}
	}
	for base := range ib.PKeyBase(9) {
		x, y := a.Partition(base), b.Partition(base)
		if (x == nil) != (y == nil) || x != nil && (x.SL != y.SL || x.RateLimit != y.RateLimit || !slices.Equal(x.ByService, y.ByService) || !slices.Equal(x.Full, y.Full)) {
			return fmt.Sprintf("partition %s: %+v and %+v", base, x, y)
		}
	}
	for g := range ib.PortGUID(4) {
		x, yes := a.Alias(0x700 + g)
		y, too := b.Alias(0x700 + g)
		if x != y || yes != too {
			return fmt.Sprintf("alias %s: %s and %s", 0x700+g, x, y)
		}
	}
	return ""
}

// After every change the view that follows is the one from nothing.
func TestAfterIsNew(t *testing.T) {
	keys := map[int]bool{}
	for seed := range uint64(60) {
		c := newChanging(seed)
		var v *View
		for step := range 200 {
			c.change()
			v = After(v, c.s)
			if what := differs(NewView(c.s), v); what != "" {
				t.Fatalf("seed %d, step %d: from nothing and after: %s", seed, step, what)
			}
			for _, p := range v.Ports {
				keys[len(p.Keys)] = true
			}
		}
	}
	if !keys[0] || !keys[1] || !keys[3] {
		t.Errorf("ports had so many keys: %v", keys)
	}
}

// Where one membership changes, the other ports keep their lists.
func TestAfterKeepsKeys(t *testing.T) {
	c := newChanging(0)
	a, b := c.hosts[0], c.hosts[1]
	a.PKeys[0], b.PKeys[0] = 0x8001, 0x8001
	c.s.Partitions = []observed.Partition{{Base: 1, Full: []ib.PortGUID{a.GUID, b.GUID}}}
	v := NewView(c.s)
	kept := v.Owner(a.GUID).Keys
	if len(kept) != 1 {
		t.Fatalf("keys %v", kept)
	}
	c.s.Partitions = []observed.Partition{{Base: 1, Full: []ib.PortGUID{a.GUID}}, {Base: 2, Full: []ib.PortGUID{b.GUID}}}
	c.s.Partitions[0].SL = 3
	b.PKeys[0] = 0x8002
	v = After(v, c.s)
	if got := v.Owner(b.GUID).Keys; !slices.Equal(got, []ib.PKey{0x8002}) || v.Partition(1).SL != 3 {
		t.Errorf("keys %v, service level %d", got, v.Partition(1).SL)
	}
	if got := v.Owner(a.GUID).Keys; len(got) != 1 || &got[0] != &kept[0] {
		t.Errorf("keys %v are worked out again", got)
	}
}
