package routing

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/routes"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// placed are tenants of random sizes, whose hosts are anywhere.
func placed(b *routingtest.Builder, r *rand.Rand, tenants int) (lists []graph.Tenant, judged []routes.Tenant) {
	lists, judged = make([]graph.Tenant, tenants), make([]routes.Tenant, tenants)
	for _, d := range b.Destinations {
		if d.Port.Node.Switch != nil {
			continue
		}
		i := min(r.IntN(tenants), r.IntN(tenants)) // the first have most
		lists[i].Full, judged[i].Full = append(lists[i].Full, d.Port.GUID), append(judged[i].Full, d.Port)
	}
	return lists, judged
}

// tenantLoad is what the flows between members of tenants do to links, by the judge.
func tenantLoad(t *testing.T, b *routingtest.Builder, tables *Tables, tenants []routes.Tenant) routes.Load {
	t.Helper()
	d := observed.NewDesired(b.Fabric)
	if err := tables.Enter(b.Fabric, d); err != nil {
		t.Fatal(err)
	}
	var ends []routes.End
	for _, x := range b.Destinations {
		ends = append(ends, routes.End{Port: x.Port, LID: x.LID, LMC: x.LMC})
	}
	load := routes.Prepare(routes.WantedFor(b.Fabric, d, ends)).Tenants(tenants)
	if load.Lost > 0 {
		t.Errorf("%d flows are lost", load.Lost)
	}
	return load
}

// With 40 tenants placed at random, routes that are balanced for them load the fullest link
// less than those that are balanced for all pairs, where there is a choice of paths, and are as
// sound.
func TestBalanceForTenants(t *testing.T) {
	for _, c := range []struct {
		name   string
		build  func(b *routingtest.Builder)
		choice []Engine // those with several paths to choose from
	}{
		{"fat tree of 432 hosts", func(b *routingtest.Builder) { b.FatTree3(12) }, []Engine{UpDown, MinHop}},
		{"dragonfly+ of 324 hosts, a cable between groups", func(b *routingtest.Builder) { b.Dragonfly(9, 6, 6, 6) }, nil},
		{"dragonfly of 240 hosts, 4 cables between groups", func(b *routingtest.Builder) { b.FullDragonfly(5, 8, 4, 6) }, []Engine{MinHop}},
	} {
		for _, e := range []Engine{UpDown, MinHop} {
			worst, before := uint64(0), uint64(0)
			for seed := range need.Share[uint64](1, 3) {
				r := rand.New(rand.NewPCG(seed, 40))
				b := routingtest.New(r)
				c.build(b)
				lists, judged := placed(b, r, 40)
				all := tenantLoad(t, b, compute(t, b, e), judged)
				tables, err := Request{Engine: e, Room: graph.Room{VLs: 1, Layers: 1}, Tenants: lists}.Compute(b.Fabric, b.Destinations)
				if err != nil {
					t.Fatal(err)
				}
				b.EachRoute(t, &tables.Routes, nil)
				for _, n := range b.Fabric.Switches() {
					for lid, exit := range tables.Linear[n.Index][1:] {
						if exit == ib.PortNone {
							t.Fatalf("%s has no exit for LID %d", n.Name(), lid+1)
						}
					}
				}
				own := tenantLoad(t, b, tables, judged)
				before, worst = before+all.Worst, worst+own.Worst
				t.Logf("%s, %s, seed %d: fullest link %d flows, mean %.1f; balanced for tenants %d, mean %.1f",
					c.name, e, seed, all.Worst, all.Mean, own.Worst, own.Mean)
			}
			if worst > before || worst == before && slices.Contains(c.choice, e) {
				t.Errorf("%s, %s: %d flows on the fullest links, %d before", c.name, e, worst, before)
			}
		}
	}
}

// Who is in no tenant is reached by everybody all the same, and so are switches.
func TestBalanceReachesEverybody(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	b := routingtest.New(r)
	b.FatTree3(6)
	ports := func(at ...int) (out []ib.PortGUID) {
		for _, i := range at {
			out = append(out, b.Destinations[i].Port.GUID)
		}
		return out
	}
	last := len(b.Destinations) - 1
	for _, tenants := range [][]graph.Tenant{{}, {{}}, {{Limited: ports(last, last-1)}}, {{Full: ports(last), Limited: ports(last-5, last-9)}, {Full: []ib.PortGUID{77}}}} {
		for _, e := range []Engine{UpDown, MinHop, FatTree, DFSSSP} {
			tables, err := Request{Engine: e, Room: graph.Room{VLs: 8, Layers: 8}, Tenants: tenants}.Compute(b.Fabric, b.Destinations)
			if err != nil {
				t.Fatal(err)
			}
			if v := b.Judge(&tables.Routes, 8); v.Unreachable > 0 || v.Counts.Loops > 0 {
				t.Errorf("%s: %v", e, v.Reasons())
			}
		}
	}
}
