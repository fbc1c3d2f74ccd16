package desired

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/routes"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// laned is a fabric whose ports have 2^(code-1) virtual lanes, and whose switches take groups.
func laned(code uint8, rng *rand.Rand, build func(b *routingtest.Builder)) *observed.Fabric {
	b := routingtest.New(rng)
	b.PortInfo.VLCap, b.PortInfo.VLArbitrationLowCap = code, 64
	b.PortInfo.MTUCap = ib.MTU4096
	b.SwitchInfo.MulticastFDBCap = 256
	build(b)
	for _, p := range b.Fabric.EndPorts() {
		if p.Node.Switch == nil {
			b.Fabric.Self = p
			break
		}
	}
	return b.Fabric
}

// hold puts the multicast tables into the switches, as if they were written.
func hold(r *Result) {
	for _, n := range r.in.Fabric.Switches() {
		if w := r.Tables.Nodes[n.Index].Multicast; w != nil {
			n.Switch.MFT = w.Blocks
		}
	}
}

// judgeGroups is the judge's opinion of unicast routes and multicast trees together.
func judgeGroups(t *testing.T, r *Result) *routes.Result {
	t.Helper()
	levels := r.levels.ServiceLevels()
	used := r.in.Policy.Levels()
	in := routes.WantedFor(r.in.Fabric, r.Tables, nil)
	for p, at := range r.LIDs() {
		in.Ends = append(in.Ends, routes.End{Port: p, LID: at.LID, LMC: at.LMC})
	}
	in = routes.WantedFor(r.in.Fabric, r.Tables, in.Ends)
	in.Levels = routes.PathLevels(levels, used...)
	sls := map[ib.LID]routes.SLs{}
	for _, g := range r.in.Groups {
		sls[g.MLID] = routes.SL(levels.OfGroup(g.SL))
	}
	in.Groups = routes.WantedGroups(r.in.Fabric, r.Tables, func(l ib.LID) routes.SLs { return sls[l] })
	return routes.Judge(in)
}

// kinds of fabric, and the engines that take them.
var kinds = []struct {
	name    string
	engines []routing.Engine
	build   func(rng *rand.Rand, b *routingtest.Builder)
}{
	{"torus", []routing.Engine{routing.UpDown, routing.DOR, routing.DFSSSP, routing.Auto},
		func(rng *rand.Rand, b *routingtest.Builder) { b.Torus(3+rng.IntN(3), 3+rng.IntN(3), 1+rng.IntN(2)) }},
	{"mesh", []routing.Engine{routing.UpDown, routing.DOR, routing.DFSSSP},
		func(rng *rand.Rand, b *routingtest.Builder) { b.Grid([]int{3 + rng.IntN(2), 4}, false, 1, 2) }},
	{"tree", []routing.Engine{routing.UpDown, routing.FatTree, routing.DFSSSP, routing.Default},
		func(rng *rand.Rand, b *routingtest.Builder) { b.FatTree3(4 + 2*rng.IntN(2)) }},
	{"dragonfly", []routing.Engine{routing.UpDown, routing.Dragonfly, routing.DFSSSP},
		func(rng *rand.Rand, b *routingtest.Builder) { b.Dragonfly(4+rng.IntN(3), 3, 2, 1+rng.IntN(2)) }},
	{"irregular", []routing.Engine{routing.UpDown, routing.DFSSSP, routing.Auto},
		func(rng *rand.Rand, b *routingtest.Builder) { b.Irregular(rng, 3+rng.IntN(14), rng.IntN(20)) }},
}

// Multicast trees and unicast paths of every engine close no circle together, on the service
// levels that packets have, while ports join and leave and hosts ask for any level.
func TestGroupsWaitInNoCircle(t *testing.T) {
	policies := []*policy.Policy{
		{Default: policy.Full},
		{Default: policy.Full, Partitions: []policy.Partition{{Name: "red", SL: 3}}},
	}
	for _, k := range kinds {
		for _, engine := range k.engines {
			t.Run(fmt.Sprintf("%s on a %s", engine, k.name), func(t *testing.T) {
				for seed := range uint64(6) {
					rng := rand.New(rand.NewPCG(seed, 18))
					code := []uint8{4, 5, 3, 4, 5, 4}[seed%6] // with three lanes for each level, at least
					f := laned(code, nil, func(b *routingtest.Builder) { k.build(rng, b) })
					in := Input{Fabric: f, Routing: engine}
					var groups []*group.Group
					for i := range 6 {
						groups = append(groups, &group.Group{
							MGID: ib.GID{0: 0xFF, 1: 0x12, 15: byte(i)}, MLID: ib.LIDMulticastMin + ib.LID(i), Partition: 0x7FFF,
							Settings: group.Settings{MTU: ib.MTU256, SL: ib.SL(rng.IntN(smp.SLCount))},
						})
					}
					ends := f.EndPorts()
					for range 4 {
						for _, g := range groups {
							churn(rng, g, ends)
						}
						in.Groups = groups
						r := compute(t, in, policies[seed%2])
						if v := judgeGroups(t, r); v.Deadlock != nil || !v.Arrives() {
							t.Fatalf("seed %d: %s", seed, strings.Join(v.Reasons(), "\n"))
						}
						if told := strings.Join(r.Warnings, "\n"); strings.Contains(told, "credit loop") {
							t.Fatalf("seed %d: told %s", seed, told)
						}
						hold(r)
						in.Routes, in.Known = r.Routes, r.Assigned
					}
				}
			})
		}
	}
}

// churn has some ports join or leave.
func churn(rng *rand.Rand, g *group.Group, ends []*observed.Port) {
	for range 1 + rng.IntN(4) {
		p := ends[rng.IntN(len(ends))]
		i := slices.IndexFunc(g.Members, func(m group.Member) bool { return m.Port == p.GUID })
		if i >= 0 {
			g.Members = slices.Delete(g.Members, i, i+1)
		} else {
			g.Members = append(g.Members, group.Member{Port: p.GUID, State: sa.JoinFull})
		}
	}
	slices.SortFunc(g.Members, func(a, b group.Member) int { return int(a.Port) - int(b.Port) })
}

// Groups of routes with virtual lanes have a level apart, which no unicast path has, and
// which stays the same for a level of the policy whichever number of layers there is.
func TestLevelOfGroups(t *testing.T) {
	for _, c := range []struct {
		engine routing.Engine
		code   uint8
		want   ib.SL // of groups of level 0
	}{{routing.DOR, 4, 15}, {routing.DOR, 3, 15}, {routing.DOR, 2, 0}, {routing.DFSSSP, 4, 0}, {routing.UpDown, 4, 0}} { // the order of the first layer of dfsssp is that of trees
		f := laned(c.code, nil, func(b *routingtest.Builder) { b.Torus(5, 5, 1) })
		r := compute(t, Input{Fabric: f, Routing: c.engine}, &policy.Policy{Default: policy.Full})
		levels := r.levels.ServiceLevels()
		if got := levels.OfGroup(0); got != c.want || levels.GroupLevel(got) != 0 {
			t.Errorf("%s with %d lanes: SL %d, of level %d; want %d", c.engine, smp.DataVLs(c.code), got, levels.GroupLevel(got), c.want)
		}
		if levels == nil {
			continue
		}
		for level, sls := range levels.SL {
			for layer, sl := range sls {
				if c.want != 0 && layer > 0 && sl == c.want && level == 0 {
					t.Errorf("%s: SL %d is of layer %d too", c.engine, sl, layer)
				}
				// A host that asks for the level of a layer gets that of groups.
				if level == 0 && levels.OfGroup(sl) != c.want {
					t.Errorf("%s: a group of SL %d has %d, want %d", c.engine, sl, levels.OfGroup(sl), c.want)
				}
			}
		}
	}
}

// Groups that change without new routes are judged beside those that stand: a tree that
// leads round is told, and no longer when it has gone. What is said is what a judgement of
// everything says.
func TestGroupsAreJudgedAgain(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 81))
		f := laned(4, nil, func(b *routingtest.Builder) { b.Torus(4, 5, 2) })
		engine := []routing.Engine{routing.UpDown, routing.DOR, routing.DFSSSP}[seed%3]
		var groups []*group.Group
		for i := range 4 {
			groups = append(groups, &group.Group{
				MGID: ib.GID{0: 0xFF, 1: 0x12, 15: byte(i)}, MLID: ib.LIDMulticastMin + ib.LID(i), Partition: 0x7FFF,
				Settings: group.Settings{MTU: ib.MTU256},
			})
		}
		r := compute(t, Input{Fabric: f, Routing: engine, Groups: groups}, &policy.Policy{Default: policy.Full})
		order := r.Routes.order
		told := 0
		for range 20 {
			churn(rng, groups[rng.IntN(len(groups))], f.EndPorts())
			r.Routes.order = order
			if rng.IntN(3) == 0 {
				r.Routes.order = nil // trees that keep to nothing
				for _, n := range f.Switches() {
					n.Switch.MFT = nil
				}
			}
			if err := r.Lead(groups); err != nil {
				t.Fatal(err)
			}
			before := r.circles
			got, v := r.JudgeGroups(), judgeGroups(t, r)
			if (r.circles != "") != (v.Deadlock != nil) || (got != nil) != (r.circles != "" && r.circles != before) {
				t.Fatalf("seed %d: says %q, of everything is said %v", seed, got, v.Reasons())
			}
			if v.Deadlock != nil {
				told++
			}
			hold(r)
		}
		if told == 0 && engine == routing.UpDown {
			t.Errorf("seed %d: no tree led round", seed)
		}
	}
}
