package routingtest

import (
	"cmp"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/routes"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Step is one exit of a switch, and the virtual lane of the link behind it.
type Step struct {
	From *observed.Node
	Exit ib.PortNum
	VL   ib.VL
}

// Input is what an engine is given for the fabric as it is now, with so many virtual lanes
// and all service levels.
func (b *Builder) Input(t testing.TB, vls int) *graph.Input {
	t.Helper()
	destinations, err := graph.Checked(b.Fabric, b.Destinations)
	if err != nil {
		t.Fatal(err)
	}
	return &graph.Input{Graph: graph.New(b.Fabric, destinations), Room: graph.Room{VLs: vls, Layers: smp.SLCount}}
}

// Walk follows the routes from a switch, which a packet entered by port in, to a LID; ok
// is false when they drop the packet, lead out of the fabric, or go round.
func (b *Builder) Walk(r *graph.Routes, from *observed.Node, in ib.PortNum, d graph.Destination, lid ib.LID) (steps []Step, ok bool) {
	places := b.places()
	layer := r.Lanes.LayerOf(places[from], places[Behind(d.Port)])
	for at := from; len(steps) <= len(b.Fabric.Nodes); {
		exit := r.Linear[at.Index][lid]
		if exit == 0 {
			return steps, d.Port == &at.Ports[0]
		}
		if int(exit) >= len(at.Ports) {
			return steps, false
		}
		p := &at.Ports[exit]
		if !p.IsUp() || p.Peer == nil || !p.Peer.IsUp() {
			return steps, false
		}
		if p.Peer.Node.Switch == nil {
			return steps, d.Port == p.Peer
		}
		steps = append(steps, Step{at, exit, r.Lanes.LaneOf(places[at], in, exit, layer)})
		at, in = p.Peer.Node, p.Peer.Num
	}
	return steps, false
}

// Judge is the judge's opinion of routes over links with so many virtual lanes: every end
// port sends to every other, port 0 of switches included, and the service level of a path is
// its layer.
func (b *Builder) Judge(r *graph.Routes, vls int) *routes.Result {
	return routes.Judge(b.Judged(r, vls))
}

// Judged is what Judge asks about.
func (b *Builder) Judged(r *graph.Routes, vls int) *routes.Input {
	in := &routes.Input{Fabric: b.Fabric, Tables: make([]routes.Table, len(b.Fabric.Nodes)), Talk: routes.Everybody}
	for _, d := range b.Destinations {
		in.Ends = append(in.Ends, routes.End{Port: d.Port, LID: d.LID, LMC: d.LMC})
	}
	places := b.places()
	in.Levels.Place = slices.Repeat([]int32{-1}, len(b.Fabric.Nodes))
	for n, place := range places {
		in.Levels.Place[n.Index] = int32(place)
		in.Tables[n.Index].Exits = r.Linear[n.Index]
	}
	if r.Lanes != nil {
		for sl := range ib.SL(r.Lanes.Layers) {
			in.Levels.Of = append(in.Levels.Of, routes.SL(sl))
		}
		in.Levels.Layer = r.Lanes.Layer
	}
	in.VLs = func(*observed.Port) int { return vls }
	in.Lanes = func(out *observed.Port) routes.Mapping {
		if out.Node.Switch == nil || r.Lanes == nil {
			return routes.Mapping{}
		}
		var m routes.Mapping
		for num := range out.Node.Ports {
			t := &smp.SLToVLMappingTable{}
			for layer := range uint8(r.Lanes.Layers) {
				if out.FacesEnd() {
					continue // an end port takes what arrives, by any lane
				}
				t.VLs[layer] = r.Lanes.LaneOf(places[out.Node], ib.PortNum(num), out.Num, layer)
			}
			m.By = append(m.By, t)
		}
		return m
	}
	return in
}

// places are those of the switches in a graph.Graph.
func (b *Builder) places() map[*observed.Node]uint16 {
	if n := len(b.Fabric.Nodes); b.placed == nil || n != b.of {
		switches := b.Fabric.Switches()
		slices.SortFunc(switches, func(x, y *observed.Node) int { return cmp.Compare(x.GUID(), y.GUID()) })
		b.placed, b.of = make(map[*observed.Node]uint16, len(switches)), n
		for i, s := range switches {
			b.placed[s] = uint16(i)
		}
	}
	return b.placed
}

// entry is a port by which packets of the hosts of a switch enter it; 0, that of the
// switch itself, where it has none.
func entry(n *observed.Node) ib.PortNum {
	for i := 1; i < len(n.Ports); i++ {
		if p := &n.Ports[i]; p.IsUp() && p.Peer != nil && p.Peer.Node.Switch == nil {
			return p.Num
		}
	}
	return 0
}

// EachRoute walks from every switch to every LID that is connected with it, and fails on
// what does not arrive.
func (b *Builder) EachRoute(t testing.TB, r *graph.Routes, visit func(from *observed.Node, d graph.Destination, lid ib.LID, steps []Step)) {
	t.Helper()
	for _, s := range b.Fabric.Switches() {
		near := Hops(s)
		for _, d := range b.Destinations {
			if n := Behind(d.Port); n == nil {
				continue
			} else if _, connected := near[n]; !connected {
				continue
			}
			for l := range d.LMC.Count() {
				lid := d.LID + ib.LID(l)
				steps, ok := b.Walk(r, s, entry(s), d, lid)
				if !ok {
					t.Fatalf("no way from %s to LID %d of %s: %v", s.Name(), lid, d.Port, steps)
				}
				if visit != nil {
					visit(s, d, lid, steps)
				}
			}
		}
	}
}

// Hops are the shortest distances from one switch.
func Hops(from *observed.Node) map[*observed.Node]int {
	dist := map[*observed.Node]int{from: 0}
	for queue := []*observed.Node{from}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		for i := 1; i < len(n.Ports); i++ {
			p := &n.Ports[i]
			if p.Peer == nil || !p.IsUp() || !p.Peer.IsUp() || p.Peer.Node.Switch == nil {
				continue
			}
			if _, seen := dist[p.Peer.Node]; !seen {
				dist[p.Peer.Node] = dist[n] + 1
				queue = append(queue, p.Peer.Node)
			}
		}
	}
	return dist
}

// Behind is the switch that delivers to an end port, nil where none does.
func Behind(p *observed.Port) *observed.Node {
	if p.Node.Switch != nil {
		return p.Node
	}
	if !p.IsUp() || p.Peer == nil || !p.Peer.IsUp() || p.Peer.Node.Switch == nil {
		return nil
	}
	return p.Peer.Node
}

// Deadlocks reports whether the links and virtual lanes that the routes use in turn
// depend on each other in a circle. It fails on a virtual lane beyond vls.
func (b *Builder) Deadlocks(t testing.TB, r *graph.Routes, vls int) bool {
	t.Helper()
	if r.Lanes != nil && r.Lanes.Layer != nil {
		for x, row := range r.Lanes.Layer {
			for y, layer := range row {
				if int(layer) >= r.Lanes.Layers || layer != r.Lanes.Layer[y][x] {
					t.Fatalf("layer %d from switch %d to %d, %d back, of %d", layer, x, y, r.Lanes.Layer[y][x], r.Lanes.Layers)
				}
			}
		}
	}
	after := map[Step]map[Step]bool{}
	b.EachRoute(t, r, func(from *observed.Node, _ graph.Destination, lid ib.LID, steps []Step) {
		for i, s := range steps {
			if int(s.VL) >= vls {
				t.Fatalf("from %s to LID %d: VL %d after %s, there are %d", from.Name(), lid, s.VL, s.From.Name(), vls)
			}
			if i == 0 {
				continue
			}
			if after[steps[i-1]] == nil {
				after[steps[i-1]] = map[Step]bool{}
			}
			after[steps[i-1]][s] = true
		}
	})
	const open, done = 1, 2
	state := map[Step]int{}
	var visit func(Step) bool
	visit = func(s Step) bool {
		state[s] = open
		for next := range after[s] {
			if state[next] == open || state[next] == 0 && visit(next) {
				return true
			}
		}
		state[s] = done
		return false
	}
	for s := range after {
		if state[s] == 0 && visit(s) {
			return true
		}
	}
	return false
}

// Sound fails unless all that is connected stays connected, no packets can wait for each
// other in a circle, and the routes ask for no more than vls virtual lanes; by the checks
// here, and by the judge.
func (b *Builder) Sound(t testing.TB, r *graph.Routes, vls int) {
	t.Helper()
	b.EachRoute(t, r, nil)
	if b.Deadlocks(t, r, vls) {
		t.Error("links depend on each other in a circle")
	}
	if r.Lanes != nil && r.Lanes.VLs > vls {
		t.Errorf("%d virtual lanes, there are %d", r.Lanes.VLs, vls)
	}
	if v := b.Judge(r, vls); !v.Right() {
		t.Errorf("the judge says: %v", v.Reasons())
	}
}
