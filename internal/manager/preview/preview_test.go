package preview

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

func TestKeys(t *testing.T) {
	const none = ib.PKeyInvalid
	for _, x := range []struct {
		name       string
		now, after []ib.PKey
		want       []Key
	}{
		{"nothing", []ib.PKey{0x7fff, 0x8010}, []ib.PKey{0x7fff, 0x8010, 0}, []Key{}},
		{"another entry without a key", []ib.PKey{0x7fff, 0x8000}, []ib.PKey{0x7fff, 0}, []Key{}},
		{"added", []ib.PKey{0x7fff}, []ib.PKey{0x7fff, 0x8010}, []Key{{Added, 1, 0x8010, none, 1}}},
		{"removed", []ib.PKey{0x7fff, 0x8010}, []ib.PKey{0x7fff}, []Key{{Removed, 1, 0x8010, none, 1}}},
		{"membership", []ib.PKey{0x8010}, []ib.PKey{0x0010}, []Key{{Membership, 0, 0x0010, 0x8010, 0}}},
		{"moved", []ib.PKey{0x8010, 0}, []ib.PKey{0, 0x8010}, []Key{{Moved, 1, 0x8010, 0x8010, 0}}},
		{"replaced", []ib.PKey{0x8010}, []ib.PKey{0x8020}, []Key{{Added, 0, 0x8020, none, 0}, {Removed, 0, 0x8010, none, 0}}},
		{"one of both goes", []ib.PKey{0x8010, 0x0010}, []ib.PKey{0x8010}, []Key{{Removed, 1, 0x0010, none, 1}}},
		{"the other comes", []ib.PKey{0x8010}, []ib.PKey{0x8010, 0x0010}, []Key{{Added, 1, 0x0010, none, 1}}},
	} {
		if got := keys(x.now, x.after); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
}

// hub is a switch with hosts that hold these tables, wanted to hold others.
func hub(now, after [][]ib.PKey) (*observed.Fabric, *observed.Desired) {
	b := subnettest.New()
	b.NodeInfo.PartitionCap, b.SwitchInfo.PartitionEnforcementCap = 8, 8
	b.GUID = 1
	sw := b.Switch(len(now), "")
	f := b.Fabric
	for i := range now {
		b.GUID = ib.NodeGUID(0x100 + i)
		p := b.Host(sw, "")
		subnettest.SetPKeys(p, now[i]...)
		subnettest.Enforce(p.Peer, false, false)
	}
	d := observed.NewDesired(f)
	for i := range now {
		d.Port(f.Nodes[i+1].Port(1)).PKeys = after[i]
	}
	return f, d
}

// TestReachAgreesWithEveryPair holds the counts against going through all
// pairs, on random tables.
func TestReachAgreesWithEveryPair(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	table := func() []ib.PKey {
		out := make([]ib.PKey, 0, 8)
		for base := ib.PKeyBase(1); base <= 4; base++ {
			switch r.IntN(4) {
			case 0:
				out = append(out, base.Full())
			case 1:
				out = append(out, base.Limited())
			}
		}
		r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		return out
	}
	can := func(a, b []ib.PKey) bool {
		return slices.ContainsFunc(a, func(k ib.PKey) bool {
			return slices.ContainsFunc(b, func(m ib.PKey) bool { return k.Matches(m) })
		})
	}
	for range 300 {
		n := 2 + r.IntN(9)
		now, after := make([][]ib.PKey, n), make([][]ib.PKey, n)
		groups := []Set{{Name: "even"}, {Name: "odd"}}
		for i := range now {
			now[i], after[i] = table(), table()
			if r.IntN(3) == 0 {
				after[i] = now[i]
			}
			groups[i%2].Ports = append(groups[i%2].Ports, ib.PortGUID(0x101+i))
		}
		f, d := hub(now, after)
		p, err := Look(Input{Fabric: f, Desired: d, Plan: plan.Diff(f, d), Groups: groups})
		if err != nil {
			t.Fatal(err)
		}
		var want Reach
		byGroups := map[[2]string][2]int{}
		for i := range n {
			for j := range i {
				was, will := can(now[i], now[j]), can(after[i], after[j])
				names := [2]string{groups[j%2].Name, groups[i%2].Name}
				slices.Sort(names[:])
				c := byGroups[names]
				if was {
					want.PairsBefore++
				}
				if will {
					want.PairsAfter++
				}
				if will && !was {
					want.Gained++
					c[0]++
				}
				if was && !will {
					want.Lost++
					c[1]++
				}
				if c != [2]int{} {
					byGroups[names] = c
				}
			}
		}
		got := p.Reach
		if got.PairsBefore != want.PairsBefore || got.PairsAfter != want.PairsAfter || got.Gained != want.Gained || got.Lost != want.Lost {
			t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
		}
		for _, g := range got.Groups {
			if byGroups[[2]string{g.A, g.B}] != [2]int{g.Gained, g.Lost} {
				t.Fatalf("seed %d: %+v, want %v", seed, g, byGroups)
			}
			delete(byGroups, [2]string{g.A, g.B})
		}
		if len(byGroups) != 0 {
			t.Fatalf("seed %d: not said: %v", seed, byGroups)
		}
	}
}

func kinds(t *testing.T, now, after [][]ib.PKey, change func(*observed.Fabric, *observed.Desired)) (out []string) {
	t.Helper()
	f, d := hub(now, after)
	if change != nil {
		change(f, d)
	}
	p, err := Look(Input{Fabric: f, Desired: d, Plan: plan.Diff(f, d)})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range p.Findings {
		out = append(out, x.Kind+" "+x.Where)
	}
	return out
}

func TestFindings(t *testing.T) {
	a, b := ib.PKey(0x8001), ib.PKey(0x8002)
	service, guest := ib.PKey(0x8003), ib.PKey(0x0003)
	tenants := [][]ib.PKey{{a}, {a}, {b}, {b}, {service}}
	limitedGuests := [][]ib.PKey{{a, guest}, {a, guest}, {b, guest}, {b, guest}, {service}}
	const dflt = ib.PKeyDefaultLimited
	shared := [][]ib.PKey{{dflt, a}, {dflt, a}, {dflt, b}, {dflt, b}, {ib.PKeyDefaultFull}}
	private := [][]ib.PKey{{a}, {a}, {b}, {b}, {a, b}}
	manager := func(f *observed.Fabric, _ *observed.Desired) { f.Self = f.Nodes[5].Port(1) }
	for _, x := range []struct {
		name       string
		now, after [][]ib.PKey
		change     func(*observed.Fabric, *observed.Desired)
		want       []string
	}{
		{"nothing", tenants, tenants, nil, nil},
		{"guests are limited", tenants, limitedGuests, nil, nil},
		{"a tenant is a full member", tenants, [][]ib.PKey{{a, service}, {a, guest}, {b, guest}, {b, guest}, {service}}, nil,
			[]string{"shared-full 0x0003"}},
		{"all are full members", tenants, [][]ib.PKey{{a, service}, {a, service}, {b, service}, {b, service}, {service}}, nil,
			[]string{"shared-full 0x0003"}},
		{"a bridge", tenants, [][]ib.PKey{{a, b}, {a}, {b}, {b}, {service}}, nil, []string{"bridge 0x0000000000000100"}},
		{"tenants change keys", tenants, [][]ib.PKey{{b}, {b}, {a}, {a}, {service}}, nil,
			[]string{"reused-key 0x0001", "reused-key 0x0002", "index-0 0x0000000000000100", "index-0 0x0000000000000101",
				"index-0 0x0000000000000102", "index-0 0x0000000000000103"}},
		{"a key stands behind a dead port", tenants, [][]ib.PKey{{a, 0x8009}, {a, 0x8009}, {b}, {b}, {service}},
			func(f *observed.Fabric, d *observed.Desired) {
				q := &f.Nodes[0].Ports[5]
				q.Peer, q.PKeys[0] = nil, 0x8009
			}, []string{"reused-key 0x0009"}},
		{"the default partition goes, and the manager is in all", shared, private, manager, []string{"default-key 0x7fff"}},
		{"the default partition comes", private, shared, manager, []string{"default-key 0x7fff"}},
		{"not the manager, and in all", private, private, nil, []string{"bridge 0x0000000000000104"}},
		{"a port that did not check does not", tenants, tenants, func(f *observed.Fabric, d *observed.Desired) {
			d.Port(&f.Nodes[0].Ports[1]).Elements = observed.ElementEnforcement
		}, nil},
		{"a guard goes", tenants, tenants, func(f *observed.Fabric, d *observed.Desired) {
			q := &f.Nodes[0].Ports[1]
			q.Info.PartitionEnforcementInbound, q.Info.PartitionEnforcementOutbound = true, true
			d.Port(q).Elements = observed.ElementEnforcement
		}, []string{"guard-off 0x0000000000000001:1"}},
	} {
		if got := kinds(t, x.now, x.after, x.change); !slices.Equal(got, x.want) {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}
