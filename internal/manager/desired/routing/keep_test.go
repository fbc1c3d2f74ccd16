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

// repaired is a graph whose links go and come back.
type repaired struct {
	*routingtest.Builder
	t      *testing.T
	seed   uint64
	cables []*observed.Port
	first  *Tables
	now    *Tables
	// standing is what the judge holds of now.
	standing *routes.Standing
}

func newRepaired(t *testing.T, seed uint64) (*repaired, *rand.Rand) {
	rng := rand.New(rand.NewPCG(seed, 181))
	m := &repaired{Builder: routingtest.New(rng), t: t, seed: seed}
	engine := UpDown
	switch rng.IntN(4) {
	case 0:
		m.Irregular(rng, 2+rng.IntN(20), rng.IntN(40))
	case 1:
		m.FatTree2(2+rng.IntN(8), 2+rng.IntN(4), 1+rng.IntN(6), 1+rng.IntN(2))
		engine = []Engine{UpDown, FatTree}[rng.IntN(2)]
	case 2:
		m.FatTree3(4 + 2*rng.IntN(2))
		engine = []Engine{UpDown, FatTree, Auto}[rng.IntN(3)]
	case 3:
		m.Torus(2+rng.IntN(4), 2+rng.IntN(4), 1)
	}
	for _, n := range m.Fabric.Switches() {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Peer != nil && p.Peer.Node.Switch != nil && p.IsTrained() && n.Index < p.Peer.Node.Index {
				m.cables = append(m.cables, p)
			}
		}
	}
	var err error
	if m.first, err = Compute(m.Fabric, m.Destinations, engine, graph.Room{VLs: 1, Layers: 16}); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	m.now = m.first
	v, standing := routes.JudgeAndKeep(m.Judged(&m.now.Routes, 1))
	if !v.Right() || standing == nil {
		t.Fatalf("seed %d: %v", seed, v.Reasons())
	}
	m.standing = standing
	return m, rng
}

// leadsOver reports whether the way from a switch to a LID leads over a link that is not
// there.
func leadsOver(tables *Tables, at *observed.Node, lid ib.LID) bool {
	for range tables.Graph.Nodes {
		exit := tables.Linear[at.Index][lid]
		if exit == 0 || int(exit) >= len(at.Ports) || at.Ports[exit].Peer == nil || at.Ports[exit].Peer.Node.Switch == nil {
			return false
		}
		if !at.Ports[exit].IsTrained() {
			return true
		}
		at = at.Ports[exit].Peer.Node
	}
	return false
}

// check compares routes with those before.
func (m *repaired) check(after *Tables, down bool) (moved, stayed int) {
	m.t.Helper()
	if v := m.Judge(&after.Routes, 1); !v.Right() {
		m.t.Fatalf("seed %d: repaired routes are not right: %v", m.seed, v.Reasons())
	}
	for _, n := range m.now.Graph.Nodes {
		for _, d := range m.Destinations {
			for l := range d.LMC.Count() {
				lid := d.LID + ib.LID(l)
				was, is := m.now.Linear[n.Index][lid], after.Linear[n.Index][lid]
				concerned := leadsOver(m.now, n, lid)
				switch {
				case was == is:
					stayed++
				case down && !concerned:
					m.t.Fatalf("seed %d: %s has another exit for LID %d, whose way leads over no link that went", m.seed, n.Name(), lid)
				case !down && is != m.first.Linear[n.Index][lid]:
					m.t.Fatalf("seed %d: a link came back, and %s has an exit for LID %d that is not the engine's", m.seed, n.Name(), lid)
				default:
					moved++
				}
			}
		}
	}
	return moved, stayed
}

// Links go one after the other and come back. Only exits whose way leads over a link that is
// gone become others, the judge finds all of them right, and in the end they are those of the
// engine. What the judge says by what differs it says of the whole too.
func TestOnlyWhatLedOverALinkMoves(t *testing.T) {
	first, rounds := need.Seed(t, 1), need.Rounds(need.Share[uint64](50, 150), 10_000)
	refused, asked, repairs, moved, stayed, differing, wrong := 0, 0, 0, 0, 0, 0, 0
	for seed := first; seed < first+rounds; seed++ {
		m, rng := newRepaired(t, seed)
		var gone []*observed.Port
		for range 1 + rng.IntN(6) {
			down := len(gone) == 0 || rng.IntN(3) > 0
			if down {
				p := m.cables[rng.IntN(len(m.cables))]
				if !p.IsTrained() {
					continue
				}
				routingtest.Cut(p)
				gone = append(gone, p)
			} else {
				i := rng.IntN(len(gone))
				routingtest.Repair(gone[i])
				gone = slices.Delete(gone, i, i+1)
			}
			var after *Tables
			var ok bool
			if rng.IntN(2) == 0 {
				after, ok = m.now.Again(m.Fabric, m.Destinations)
			} else {
				after, ok = m.now.Around()
			}
			if !ok { // what is not connected any more, or not in order, is for the engine
				asked++
				break
			}
			if v := m.Judge(&after.Routes, 1); v.Deadlock != nil && v.Unreachable == 0 && v.Counts.Loops == 0 { // out of order
				refused++
				break
			}
			x, y := m.check(after, down)
			moved, stayed, repairs = moved+x, stayed+y, repairs+1
			in := m.Judged(&after.Routes, 1)
			stands := *m.standing
			if rng.IntN(2) == 0 && stands.Again(in) || stands.Around(in.Tables, nil) {
				differing++
			}
			wrong += m.corrupt(rng, after)
			m.now = after
			if !m.standing.Again(in) {
				var v *routes.Result
				if v, m.standing = routes.JudgeAndKeep(in); m.standing == nil {
					t.Fatalf("seed %d: %v", seed, v.Reasons())
				}
			}
		}
		for _, p := range gone {
			routingtest.Repair(p)
		}
		last, ok := m.now.Again(m.Fabric, m.Destinations)
		if !ok {
			t.Fatalf("seed %d: all links are back, and the engine has to be asked", seed)
		}
		for i, row := range m.first.Linear {
			if !slices.Equal(row, last.Linear[i]) {
				t.Fatalf("seed %d: all links are back, and %s has another table than at first", seed, m.Fabric.Nodes[i].Name())
			}
		}
	}
	t.Logf("%d times repaired, %d times refused, %d times for the engine; %d exits moved and %d stayed; %d judged by what differs; %d wrong tables", repairs, refused, asked, moved, stayed, differing, wrong)
	if repairs < 2*asked || repairs < 5*refused || moved == 0 || differing < repairs*9/10 || wrong == 0 {
		t.Error("too little was tried")
	}
}

// corrupt changes a few exits: what the judge finds wrong in the whole is never right by what
// differs. It returns the number of tables that were wrong.
func (m *repaired) corrupt(rng *rand.Rand, after *Tables) (wrong int) {
	for range 3 {
		bad := after.Routes
		bad.Linear = slices.Clone(bad.Linear)
		for range 1 + rng.IntN(3) {
			n := after.Graph.Nodes[rng.IntN(len(after.Graph.Nodes))]
			row := slices.Clone(bad.Linear[n.Index])
			row[m.Destinations[rng.IntN(len(m.Destinations))].LID] = ib.PortNum(rng.IntN(len(n.Ports)))
			bad.Linear[n.Index] = row
		}
		in := m.Judged(&bad, 1)
		right := routes.Judge(in).Right()
		for _, stands := range []routes.Standing{*m.standing, *m.standing} {
			again := stands.Again(in)
			if stands = *m.standing; again != stands.Around(in.Tables, nil) {
				m.t.Fatalf("seed %d: Again and Around do not agree", m.seed)
			}
			if again && !right {
				m.t.Fatalf("seed %d: right by what differs, and not as a whole: %v", m.seed, routes.Judge(in).Reasons())
			}
		}
		if !right {
			wrong++
		}
	}
	return wrong
}
