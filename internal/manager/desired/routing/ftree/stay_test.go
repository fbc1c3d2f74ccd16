package ftree

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/routingtest"
)

// kill takes all links of a switch down.
func kill(s *observed.Node) {
	for i := 1; i < len(s.Ports); i++ {
		if s.Ports[i].Peer != nil {
			routingtest.Cut(&s.Ports[i])
		}
	}
}

// moves counts entries for CAs: all, those whose exit led to a switch that died, those that
// changed, and those that changed though their way did not pass that switch.
type moves struct{ all, next, moved, needless int }

func (m moves) String() string {
	share := func(n int) string { return fmt.Sprintf("%.2f%%", 100*float64(n)/float64(m.all)) }
	return fmt.Sprintf("%s of %d entries lead to it, %s move, %s without need", share(m.next), m.all, share(m.moved), share(m.needless))
}

// count compares the routes before and after a switch died.
func (m *moves) count(t testing.TB, b *routingtest.Builder, before, after *graph.Routes, dead *observed.Node) {
	b.EachRoute(t, after, func(from *observed.Node, d graph.Destination, lid ib.LID, _ []routingtest.Step) {
		if d.Port.Node.Switch != nil {
			return
		}
		m.all++
		passed := 0 // the hop at which the old way came to the switch
		for at, hop := from, 1; hop < len(b.Fabric.Nodes); hop++ {
			p := at.Ports[before.Linear[at.Index][lid]].Peer
			if p.Node.Switch == nil {
				break
			}
			if at = p.Node; at == dead {
				passed = hop
				break
			}
		}
		if passed == 1 {
			m.next++
		}
		if before.Linear[from.Index][lid] != after.Linear[from.Index][lid] {
			m.moved++
			if passed == 0 {
				m.needless++
			}
		}
	})
}

// dies routes a tree with and without one of its switches.
func dies(t testing.TB, m *moves, level, i int, build func() (*routingtest.Builder, [][]*observed.Node)) {
	b, made := build()
	before := route(t, b)
	kill(made[level][i])
	m.count(t, b, before, route(t, b), made[level][i])
}

// someSwitches is how many switches of a level die in CI, one by one; in a soak all do.
const someSwitches = 5

// needlessShare: in a broken tree one entry in so many may move that need not.
const needlessShare = 40

// When a switch dies, whichever it is, only routes that led over it move; in a tree that was
// broken before, few others.
func TestSwitchDies(t *testing.T) {
	for name, c := range wholeTrees {
		for seed := range need.Share[uint64](1, 2) {
			for _, broken := range []float64{0, 0.03} {
				build := func() (*routingtest.Builder, [][]*observed.Node) {
					b := routingtest.New(rand.New(rand.NewPCG(seed, 5)))
					made := b.Tree(c.hosts, c.levels...)
					b.Break(rand.New(rand.NewPCG(seed, 6)), broken, 0)
					return b, made
				}
				_, made := build()
				for level := range made {
					m, which := moves{}, rand.New(rand.NewPCG(seed, 8)).Perm(len(made[level]))
					if !need.Soak() {
						which = which[:min(len(which), someSwitches)]
					}
					for _, i := range which {
						dies(t, &m, level, i, build)
					}
					text := fmt.Sprintf("%s, seed %d, %g of the cables gone, a switch of level %d dies: %s", name, seed, broken, level, m)
					t.Log(text)
					if broken == 0 && m.needless > 0 || m.needless*needlessShare > m.all {
						t.Error(text)
					}
					if m.moved < m.next {
						t.Errorf("%s: those that lead to it have to move", text)
					}
				}
			}
		}
	}
}

// rewired is the same tree with the cables at other ports, which say nothing.
func rewired(b *routingtest.Builder, rng *rand.Rand) *routingtest.Builder {
	out := routingtest.New(rng)
	made := map[*observed.Node]*observed.Node{}
	hosts := map[*observed.Node]int{}
	type cable struct{ x, y *observed.Node }
	var cables []cable
	for _, s := range b.Fabric.Switches() {
		made[s] = out.Switch(len(s.Ports)-1, "%s", s.Description)
		for i := 1; i < len(s.Ports); i++ {
			switch p := s.Ports[i].Peer; {
			case p.Node.Switch == nil:
				hosts[s]++
			case p.Node.Index < s.Index:
				cables = append(cables, cable{s, p.Node})
			}
		}
	}
	rng.Shuffle(len(cables), func(i, j int) { cables[i], cables[j] = cables[j], cables[i] })
	for _, c := range cables {
		subnettest.Join(made[c.x], made[c.y])
	}
	for _, s := range b.Fabric.Switches() {
		out.Hosts(made[s], hosts[s])
	}
	return out
}

// Where ports do not tell the places of switches, a whole tree still does not block, and what
// is left of it when a switch dies is sound.
func TestPortsSayNothing(t *testing.T) {
	for name, c := range wholeTrees {
		for seed := range uint64(3) {
			regular := routingtest.New(nil)
			regular.Tree(c.hosts, c.levels...)
			rng := rand.New(rand.NewPCG(seed, 7))
			b := rewired(regular, rng)
			if worst := worstShift(t, b, route(t, b)); worst != 1 {
				t.Errorf("%s, seed %d: a link carries %d flows of a shift", name, seed, worst)
			}
			all := b.Fabric.Switches()
			kill(all[rng.IntN(len(all))])
			b.Sound(t, route(t, b), 1)
		}
	}
}

// Without a spine a link carries two flows of a shift, which is the least; three of some,
// where two cables led to that spine.
func TestShiftsWithoutASpine(t *testing.T) {
	for _, cables := range []int{1, 2} {
		for spine := range 8 / cables {
			b := routingtest.New(nil)
			made := b.Tree(8, level{10, 8 / cables, cables})
			kill(made[1][spine])
			if worst := worstShift(t, b, route(t, b)); worst != 1+cables {
				t.Errorf("%d cables, without spine %d: a link carries %d flows of a shift", cables, spine, worst)
			}
		}
	}
}
