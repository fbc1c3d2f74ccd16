package dfsssp

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
)

// fuller is by what share of its load, in powers of 2, the fullest link may carry more than
// the fullest did before routes move that need not.
const fuller = 3

// keeper routes as before where that leads on: it chooses exits only for switches whose last
// one is gone or no longer on a shortest path, and layers only for pairs whose paths changed.
type keeper struct {
	*evener
	last *graph.Last
	// was is, by switch, its place before, -1 for what was not there.
	was []int
	// grown are, by link, those that were not there before.
	grown    []bool
	anyGrown bool
	// before is the load of the fullest link without what is missing.
	before uint64
	// moved are pairs of switches with a path that is not that of before.
	moved [][]bool

	dist  []uint16
	queue []uint16
	kept  []bool // by switch: sends as before, and so do those that its packets pass
	path  []uint64
}

// again routes as before where it can, and returns nil where it cannot: where the routes of
// before were of another kind, or there is no room for those that have to move.
func again(in *graph.Input, lids [][]ib.LID, room int) *graph.Routes {
	last := in.Last
	lanes := last.Routes.Lanes
	if lanes != nil && (lanes.Lane != nil || lanes.Layers > room) {
		return nil
	}
	k := newKeeper(in, lids, room)
	if k == nil {
		return nil
	}
	k.inherit()
	if !k.layers(lanes) {
		return nil
	}
	k.settle()
	follow(in.Graph, k.linear, lids)
	return &graph.Routes{Linear: k.linear, Lanes: k.lanesKept(), Order: k.height}
}

// newKeeper is nil where the order of the home layer is not known.
func newKeeper(in *graph.Input, lids [][]ib.LID, room int) *keeper {
	last, n := in.Last, len(in.Nodes)
	if len(last.Routes.Order) != len(last.Nodes) {
		return nil
	}
	places := make(map[ib.NodeGUID]int, len(last.Nodes))
	for i, s := range last.Nodes {
		places[s.GUID()] = i
	}
	was := make([]int, n)
	for s, node := range in.Nodes {
		i, ok := places[node.GUID()]
		if was[s] = i; !ok {
			was[s] = -1
		}
	}
	order := make([]uint16, n)
	for s := range order {
		order[s] = uint16(s)
	}
	height := func(s uint16) int { // new switches are the lowest
		if was[s] < 0 {
			return len(last.Nodes)
		}
		return int(last.Routes.Order[was[s]])
	}
	slices.SortStableFunc(order, func(a, b uint16) int { return cmp.Compare(height(a), height(b)) })
	c := newCabling(in.Graph, order)
	h := &chooser{cabling: c, linear: in.Unrouted(), load: make([]uint64, len(c.To)), layer: make([][]uint8, n)}
	k := &keeper{
		last: last, was: was, grown: make([]bool, len(c.To)), moved: make([][]bool, n),
		dist: make([]uint16, n), kept: make([]bool, n), path: make([]uint64, n),
	}
	for s := range h.layer {
		h.layer[s], k.moved[s] = make([]uint8, n), make([]bool, n)
	}
	k.evener = newEvener(newRepairer(h, lids), room, false)
	k.findGrown()
	return k
}

// findGrown finds the links that were not there before.
func (k *keeper) findGrown() {
	old := k.last.Graph
	for l, to := range k.To {
		s := k.was[k.from[l]]
		if k.grown[l] = true; s < 0 {
			continue
		}
		i, found := slices.BinarySearch(old.Port[old.First[s]:old.First[s+1]], k.Port[l])
		k.grown[l] = !found || k.was[to] != int(old.To[int(old.First[s])+i])
	}
	k.anyGrown = slices.Contains(k.grown, true)
}

// exitBefore is the link by which a switch sent to a LID, noLink where it is gone.
func (k *keeper) exitBefore(s uint16, lid ib.LID) int32 {
	if k.was[s] < 0 {
		return noLink
	}
	row := k.last.Routes.Linear[k.last.Nodes[k.was[s]].Index]
	if int(lid) >= len(row) {
		return noLink
	}
	e := k.place[s][row[lid]]
	if e == noExit || k.grown[k.First[s]+int32(e)] {
		return noLink
	}
	return k.First[s] + int32(e)
}

// part is a LID whose exits are not all as before.
type part struct {
	end graph.End
	lid ib.LID
}

// inherit takes the exits of before, and completes what is missing by the load.
func (k *keeper) inherit() {
	var parts []part
	for r := range k.Nodes {
		k.queue = k.Distances(k.dist, k.queue, uint16(r))
		for _, e := range k.EndsOf(uint16(r)) {
			for i := range e.LMC.Count() {
				lid := e.LID + ib.LID(i)
				k.linear[k.Nodes[r].Index][lid] = e.Port
				if e.Port == 0 && k.Hosts[r] > 0 {
					continue // goes the way of the CAs
				}
				if k.copy(e, lid) {
					k.read(e.At, lid)
					for _, s := range k.t.order {
						k.load[k.t.exit[s]] += uint64(k.flow[s])
					}
				} else {
					parts = append(parts, part{e, lid})
					k.weigh(e, 1)
				}
			}
		}
	}
	k.before = slices.Max(append(k.load[:len(k.load):len(k.load)], 0))
	at := -1
	for _, p := range parts {
		if int(p.end.At) != at {
			at = int(p.end.At)
			k.queue = k.Distances(k.dist, k.queue, p.end.At)
		}
		k.copy(p.end, p.lid)
		k.weigh(p.end, -1)
		k.complete(p)
		k.weigh(p.end, 1)
	}
}

// copy takes the exits of before to a LID behind the switch at hand, from which queue and
// dist are, where they are on shortest paths. It reports whether no exit is missing.
func (k *keeper) copy(e graph.End, lid ib.LID) bool {
	t := k.t
	t.root, t.lid = e.At, lid
	t.exit[e.At] = noLink
	for _, s := range k.queue[1:] {
		t.exit[s] = k.exitBefore(s, lid)
	}
	all := k.keepShortest()
	if e.Port == 0 && !k.anyGrown && !all {
		all = k.keepLed(lid)
	}
	for _, s := range k.queue[1:] {
		if l := t.exit[s]; l != noLink {
			k.linear[k.Nodes[s].Index][lid] = k.Port[l]
		}
	}
	return all
}

// keepShortest keeps the exits that are on shortest paths, and reports whether no other is
// missing.
func (k *keeper) keepShortest() bool {
	t, all := k.t, true
	clear(k.kept)
	k.kept[t.root] = true
	for _, s := range k.queue[1:] {
		l := t.exit[s]
		if l == noLink || k.dist[k.To[l]]+1 != k.dist[s] {
			t.exit[s], all = noLink, false
			continue
		}
		k.kept[s] = k.kept[k.To[l]]
	}
	return all
}

// keepLed keeps the exits to a switch without CAs, to which paths need not be shortest, where
// they lead to it. Other switches are led to a neighbour that is led. All exits are there then.
func (k *keeper) keepLed(lid ib.LID) bool {
	t := k.t
	for _, s := range k.queue[1:] {
		t.exit[s] = k.exitBefore(s, lid)
	}
	clear(k.kept)
	k.kept[t.root] = true
	var led []uint16
	for _, s := range k.queue {
		at := s
		for hops := 0; !k.kept[at] && t.exit[at] != noLink && hops < len(k.queue); hops++ {
			at = k.To[t.exit[at]]
		}
		if k.kept[at] {
			for at = s; !k.kept[at]; at = k.To[t.exit[at]] {
				k.kept[at] = true
			}
			led = append(led, s)
		}
	}
	known := slices.Clone(k.kept)
	for i := 0; i < len(led); i++ {
		for l := k.First[led[i]]; l < k.First[led[i]+1]; l++ {
			s, back := k.To[l], k.Back[l]
			if known[s] {
				continue
			}
			known[s] = true
			led = append(led, s)
			t.exit[s] = back
			k.moved[s][t.root], k.moved[t.root][s] = true, true
		}
	}
	return true
}

// weigh adds what CAs send to the LID at hand to the links, or takes it away with -1, as
// far as there are exits, and enters these in the tables.
func (k *keeper) weigh(e graph.End, sign int) {
	t := k.t
	clear(k.flow)
	if e.Port != 0 {
		copy(k.flow, k.Hosts)
	}
	for _, s := range slices.Backward(k.queue[1:]) {
		if l := t.exit[s]; l != noLink {
			k.linear[k.Nodes[s].Index][t.lid] = k.Port[l]
			k.flow[k.To[l]] += k.flow[s]
			k.load[l] += uint64(sign * int(k.flow[s]))
		}
	}
}

// complete chooses the least loaded of the exits where there is none, and notes the pairs
// whose path is another one.
func (k *keeper) complete(p part) {
	t := k.t
	k.path[p.end.At] = 0
	for _, s := range k.queue[1:] {
		if t.exit[s] == noLink {
			least := ^uint64(0)
			for l := k.First[s]; l < k.First[s+1]; l++ {
				if k.dist[k.To[l]]+1 != k.dist[s] {
					continue
				}
				load := k.load[l] + k.path[k.To[l]]
				if k.shared(p.end, s, l) {
					load += costTaken
				}
				if load < least {
					t.exit[s], least = l, load
				}
			}
		}
		k.path[s] = k.load[t.exit[s]] + k.path[k.To[t.exit[s]]]
		if !k.kept[s] {
			k.moved[s][p.end.At], k.moved[p.end.At][s] = true, true
		}
	}
}

// layers gives pairs the layers of before, and others to those that moved where they have to
// have them.
func (k *keeper) layers(lanes *graph.Lanes) bool {
	order, n := k.linkOrder(), 1
	if lanes != nil {
		n = lanes.Layers
	}
	for s := range k.Nodes {
		for r := range s {
			if a, b := k.was[s], k.was[r]; a >= 0 && b >= 0 {
				layer := lanes.LayerOf(uint16(a), uint16(b))
				k.layer[s][r], k.layer[r][s] = layer, layer
			}
		}
	}
	for range n {
		k.ranks = append(k.ranks, order)
	}
	k.fill(k.moved)
	for i, set := range k.sets {
		if !set.sort() {
			return false // not what this engine made
		}
		k.ranks[i] = set.at
	}
	var open [][2]uint16
	p := &packer{cabling: k.cabling, linear: k.linear, lids: k.lids, sets: k.sets}
	for s := range k.Nodes {
		for r := range s {
			switch {
			case !k.moved[s][r] || k.find(p, uint16(s), uint16(r)):
			case k.Hosts[s] > 0 && k.Hosts[r] > 0:
				return false
			default:
				k.layer[s][r], k.layer[r][s] = home, home
				open = append(open, [2]uint16{uint16(s), uint16(r)})
			}
		}
	}
	k.ranks = k.ranks[:0]
	for _, set := range k.sets {
		k.ranks = append(k.ranks, set.at)
	}
	if len(open) > 0 {
		if !k.escapes() {
			return false
		}
		k.repairer.run(open)
		k.fill(nil)
	}
	for _, set := range k.sets {
		clear(set.refused)
	}
	return true
}

// escapes reports whether every switch but one of each island has a neighbour that is higher,
// so that the home layer has a path between any two.
func (k *keeper) escapes() bool {
	tops := 0
	for s := range k.Nodes {
		if !slices.Contains(k.up[k.First[s]:k.First[s+1]], true) {
			tops++
		}
	}
	return tops == len(k.Islands())
}

// find gives a pair a layer: that of before, or another one, or a new one.
func (k *keeper) find(p *packer, s, r uint16) bool {
	old := k.layer[s][r]
	if p.try(k.sets[old], s, r) {
		return true
	}
	limit := k.room
	if k.Hosts[s] == 0 || k.Hosts[r] == 0 {
		limit = len(k.sets)
	}
	for i := range limit {
		if i == len(k.sets) {
			k.sets = append(k.sets, newAcyclic(k.cabling, k.ranks[home]))
		}
		if i != int(old) && p.try(k.sets[i], s, r) {
			k.layer[s][r], k.layer[r][s] = uint8(i), uint8(i)
			return true
		}
	}
	return false
}

// settle moves routes to new links, and away from a link that has become fuller than any was.
func (k *keeper) settle() {
	if k.anyGrown {
		k.round(k.newer)
	}
	if k.fullest = slices.Max(append(k.load, 0)); k.fullest > k.before+k.before>>fuller {
		k.round(k.emptier)
	}
}

// newer is a new exit of s by which the fullest link of its way is emptier than that of the
// way that it takes now, noLink where there is none.
func (k *keeper) newer(e graph.End, s uint16) int32 {
	for l := k.First[s]; l < k.First[s+1]; l++ {
		if k.grown[l] && k.leads(s, l) && !k.shared(e, s, l) {
			if was, then := k.evener.compare(s, l); then < was {
				return l
			}
		}
	}
	return noLink
}

// lanesKept are the lanes with the layers as they are, nil for one.
func (k *keeper) lanesKept() *graph.Lanes {
	if len(k.sets) == 1 {
		return nil
	}
	return &graph.Lanes{Layers: len(k.sets), VLs: len(k.sets), Layer: k.layer}
}
