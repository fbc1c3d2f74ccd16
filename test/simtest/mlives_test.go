package simtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// usher looks at the multicast tables of all agents before every Set: no
// multicast LID may lead to a host that neither policy in force puts into its
// partition, and no packet may go round or come twice.
type usher struct {
	*groups
	rules []tenancy
	// owner is the partition that a multicast LID was of last, as far as any
	// manager knew.
	owner map[ib.LID]ib.PKeyBase
	looks int
	bad   string
}

func (x *usher) saw(s fabric.Sighting) {
	if mad.Method(s.MAD[3]) == mad.MethodSet && x.bad == "" {
		x.look()
	}
}

func (x *usher) look() {
	x.looks++
	set := x.runner.Administration().Groups()
	for _, g := range set.Groups() {
		x.owner[g.MLID] = g.Partition
	}
	for _, r := range set.Retired() {
		if r.Partition != 0 { // else an earlier manager left it
			x.owner[r.MLID] = r.Partition
		}
	}
	for lid := ib.LIDMulticastMin; lid < ib.LIDMulticastMin+24; lid++ {
		for at, from := range x.hosts {
			for to, copies := range x.walk(at, lid) {
				switch {
				case copies > 1:
					x.bad = fmt.Sprintf("MLID %s: %d copies of a packet from %s get to %s", lid, copies, from, to)
				case !x.in(to, x.owner[lid]):
					x.bad = fmt.Sprintf("MLID %s of partition %s leads from %s to %s, which is not in it", lid, x.owner[lid], from, to)
				}
			}
		}
	}
}

// in reports whether a policy in force puts a host into a partition.
func (x *usher) in(g ib.PortGUID, base ib.PKeyBase) bool {
	return slices.ContainsFunc(x.rules, func(y tenancy) bool {
		return slices.ContainsFunc(y.tenants, func(t tenant) bool {
			return t.base == base && (slices.Contains(t.full, g) || slices.Contains(t.limited, g))
		})
	})
}

// walkMax is more links than a packet without circles crosses here.
const walkMax = 200

// walk follows a packet from a host by the tables of the agents.
func (w *groups) walk(from place, lid ib.LID) map[ib.PortGUID]int {
	out := map[ib.PortGUID]int{}
	next := []place{from}
	for steps := 0; len(next) > 0; steps++ {
		exit := next[0]
		next = next[1:]
		node, in, ok := w.fabric.Peer(exit.node, exit.num)
		if !ok || !w.carries(exit) || !w.carries(place{node, in}) {
			continue
		}
		if guid, isHost := w.hosts[place{node, in}]; isHost {
			out[guid]++
		}
		a := w.fabric.Agent(node)
		if a.SwitchInfo() == nil {
			continue
		}
		if steps > walkMax {
			out[0] = 2 // round and round
			return out
		}
		exits := a.MulticastExits(in, lid)
		for num := range exits.All() {
			if num != 0 {
				next = append(next, place{node, num})
			}
		}
	}
	return out
}

func (w *groups) carries(p place) bool {
	s := w.fabric.Agent(p.node).Port(p.num).PortState
	return s == smp.PortActive || s == smp.PortArmed
}

// TestGroupsStayApart lets hosts join and leave at random while the policy and
// the cables change, packets are lost and managers follow each other: at no step
// does a table lead packets out of their partition or round, and whenever things
// are quiet every member gets what every other sends.
func TestGroupsStayApart(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for n, spec := range []string{"fattree,radix=4,levels=2", "torus,x=3,y=2,hosts=2", "demo"} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			list := generate(t, spec)
			y := randomTenancy(r, hosts(list), 2)
			c := fabric.DefaultConfig()
			c.Seed = seed
			w := newGroups(t, list, c, y.ipoib())
			x := &usher{groups: w, rules: []tenancy{y}, owner: map[ib.LID]ib.PKeyBase{}}
			w.watch = x.saw
			w.settle()
			reached := 0
			for round := range 14 {
				w.quarter(r, y)
				if round%2 == 0 {
					next := randomTenancy(r, hosts(list), 1+r.IntN(3))
					x.rules = []tenancy{y, next}
					y = next
					if err := w.fabric.SetLoss([]float64{0, 0.02}[r.IntN(2)]); err != nil {
						t.Fatal(err)
					}
					switch r.IntN(3) {
					case 0:
						w.restart(y.ipoib(), r.IntN(2) == 0)
					default:
						w.change(y.ipoib())
					}
				}
				if err := w.fabric.SetLoss(0); err != nil {
					t.Fatal(err)
				}
				w.run(2 * engine.DefaultSweepInterval)
				x.rules = []tenancy{y}
				x.look()
				reached += w.probe()
				if x.bad != "" || t.Failed() {
					t.Fatalf("seed %d round %d: %s", seed, round, x.bad)
				}
			}
			t.Logf("%d looks, %d packets arrived, %d groups", x.looks, reached, len(w.runner.Administration().Groups().Groups()))
			if reached == 0 {
				t.Error("no packet of any group arrived")
			}
		})
	}
}

// quarter lets a few hosts join and leave.
func (w *groups) quarter(r *rand.Rand, y tenancy) {
	w.t.Helper()
	all := slices.Sorted(maps.Values(w.hosts))
	states := []sa.JoinState{sa.JoinFull, sa.JoinFull, sa.JoinNon, sa.JoinSendOnlyNon, sa.JoinSendOnlyFull}
	for range 10 {
		h, part := w.host(all[r.IntN(len(all))]), y.tenants[r.IntN(len(y.tenants))]
		mgid := broadcastOf(part.base)
		if r.IntN(2) == 0 {
			mgid = ipGroup(part.base, uint32(allHosts+r.IntN(3)))
		}
		request := &sa.MCMemberRecord{
			MGID: mgid, PortGID: h.gid(), PKey: part.base.Full(), JoinState: states[r.IntN(len(states))], QKey: 0xB1B,
			MTUSelector: sa.SelectExactly, MTU: ib.MTU2048, RateSelector: sa.SelectExactly, Rate: 3,
		}
		method, mask := mad.MethodSet, joinsOther
		if mgid == broadcastOf(part.base) {
			mask = joinsBroadcast
		}
		if r.IntN(4) == 0 {
			method, mask = mad.MethodDelete, leaves
		}
		_, status := h.ask(method, mask, request)
		if in := w.holds(h, part.base); status == mad.StatusOK && !in && method == mad.MethodSet {
			w.t.Errorf("%s joins %s without a key of %s", h.guid, mgid, part.base)
		}
	}
}
