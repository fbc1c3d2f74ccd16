package views

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/api/racks"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// node is a device of a map: one that was found, or one that is listed alone.
type node struct {
	guid  ib.NodeGUID
	kind  ib.NodeType
	name  string
	found *observed.Node // nil for one that was not
}

// mapLink is a cable of a map.
type mapLink struct {
	a, b  observed.Place
	state int
}

// nodes are all devices, by GUID: those found, and those listed and not found.
func (f *MapFacts) nodes() []node {
	all := make([]node, 0, len(f.Snapshot.Fabric.Nodes))
	for _, n := range f.Snapshot.Fabric.Nodes {
		all = append(all, node{n.GUID(), n.Type(), n.Name(), n})
	}
	if list := f.list(); list != nil {
		for _, d := range list.Devices {
			if f.Snapshot.Fabric.Node(d.GUID) == nil {
				all = append(all, node{d.GUID, d.Type, cmp.Or(d.Name, d.GUID.String()), nil})
			}
		}
	}
	slices.SortFunc(all, func(a, b node) int { return cmp.Compare(a.guid, b.guid) })
	return all
}

// links are all cables, by their lower ends: those found, and those listed and not found.
func (f *MapFacts) links() []mapLink {
	list := f.list()
	var listed map[Cable]bool
	if list != nil {
		listed = make(map[Cable]bool, len(list.Cables))
		for _, c := range list.Cables {
			listed[c.Ordered()] = true
		}
	}
	var all []mapLink
	for _, l := range f.Snapshot.Fabric.Links() {
		c := Cable{l.A.Place(), l.B.Place()}.Ordered()
		state := linkInactive
		switch {
		case list != nil && !listed[c]:
			state = linkUnlisted
		case isActive(l.A) && isActive(l.B):
			state = linkActive
		}
		delete(listed, c)
		all = append(all, mapLink{c.A, c.B, state})
	}
	if len(listed) == 0 {
		return all
	}
	for c := range maps.Keys(listed) {
		all = append(all, mapLink{c.A, c.B, linkMissing})
	}
	slices.SortFunc(all, func(x, y mapLink) int { return cmp.Or(x.a.Compare(y.a), x.b.Compare(y.b)) })
	return all
}

func isActive(p *observed.Port) bool { return p.InfoRead && p.Info.PortState == smp.PortActive }

// arrange finds out where the devices stand: by their cables, and by the file of racks.
func (m *MapMaker) arrange(by *racks.File) {
	nodes, links, place := m.nodes, m.links, m.place
	graph := make([]observed.LevelNode, len(nodes))
	for i, n := range nodes {
		graph[i] = observed.LevelNode{Switch: n.kind == ib.NodeSwitch, Key: uint64(n.guid), Name: n.name}
	}
	cables := make([]observed.LevelLink, len(links))
	for i, l := range links {
		cables[i] = observed.LevelLink{A: int32(place[l.a.Node]), B: int32(place[l.b.Node])}
	}
	m.layout = observed.LevelsOf(graph, cables)
	m.racks, m.racked = by.Arrange(graph, cables, &m.layout)
}

// kinds are the numbers of types of devices.
var kinds = map[ib.NodeType]int{ib.NodeSwitch: 1, ib.NodeRouter: 2}

// empty is a map of nothing, for so many nodes and cables.
func empty(nodes, links int) MapContent {
	column := func(n int) []int { return make([]int, 0, n) }
	return MapContent{
		Owners: []string{}, Parties: []string{}, Groups: []Group{}, States: states, Verdicts: verdicts, LinkStates: linkStates,
		Nodes: Nodes{
			GUID: make([]string, 0, nodes), Name: make([]string, 0, nodes), Type: column(nodes), LID: column(nodes), Level: column(nodes),
			Group: column(nodes), Owner: column(nodes), Party: column(nodes), State: column(nodes), Verdict: column(nodes),
		},
		Links: Links{A: column(links), APort: column(links), B: column(links), BPort: column(links), State: column(links)},
	}
}

// whole is the map of everything, for the provider.
func (m *MapMaker) whole(f *MapFacts) MapContent {
	m.lay(f)
	out := empty(len(m.nodes), len(m.links))
	out.Listed = f.list() != nil
	for _, g := range m.layout.Groups {
		out.Groups = append(out.Groups, Group{g.Name, g.Nodes})
	}
	out.Racks, out.Nodes.Rack = m.racks, m.racked
	owners, party := f.enterOwners(&out), map[ib.PortGUID]int{}
	if f.Parties != nil {
		var names []string
		names, party = f.Parties()
		out.Parties = append(out.Parties, names...)
	}
	fenced, any := f.fences(), func(*observed.Port) bool { return true }
	for i, n := range m.nodes {
		x := row{level: int(m.layout.Level[i]), group: int(m.layout.Group[i]), owner: ownerNobody, party: ownerNobody, state: stateMissing, verdict: unknown}
		if n.found != nil {
			x.lid, x.state, x.verdict = lidOf(n.found, any), f.stateOf(n.found, fenced, any), f.verdictOn(n.found, any)
			x.owner = commonLevel(n.found, func(p *observed.Port) (int, bool) { i, some := owners[f.owners[p.GUID]]; return i, some })
			x.party = commonLevel(n.found, func(p *observed.Port) (int, bool) { i, some := party[p.GUID]; return i, some })
		}
		out.Nodes.add(n, x)
	}
	for _, l := range m.links {
		out.Links.add(m.place, l)
	}
	return out
}

// lay finds out what there is and where it stands, unless that is known.
func (m *MapMaker) lay(f *MapFacts) {
	if m.of == f.Snapshot && m.list == f.list() && m.by == f.Racks {
		return
	}
	m.nodes, m.links = f.nodes(), f.links()
	m.place = make(map[ib.NodeGUID]int, len(m.nodes))
	for i, n := range m.nodes {
		m.place[n.guid] = i
	}
	m.arrange(f.Racks)
	m.of, m.list, m.by = f.Snapshot, f.list(), f.Racks
}

// Place is the level of a device, and the name of its group.
func (m *MapMaker) Place(f *MapFacts, g ib.NodeGUID) (level int, group string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lay(f)
	i, there := m.place[g]
	if !there {
		return 0, ""
	}
	group = m.layout.Groups[m.layout.Group[i]].Name
	if m.racked != nil && m.racked[i] != racks.NoRack {
		group += ", " + m.racks[m.racked[i]]
	}
	return int(m.layout.Level[i]), group
}

// Differences are where the fabric is not as the list of cables says, and how many cables it
// has; none and nil without a list.
func (m *MapMaker) Differences(f *MapFacts) (all []Difference, cables *int) {
	list := f.list()
	if list == nil || f.Cabling.Differences == nil {
		return []Difference{}, nil
	}
	n := len(list.Cables)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.compared != f.Snapshot || m.comparedTo != list {
		m.differences, m.compared, m.comparedTo = f.Cabling.Differences(f.Snapshot.Fabric), f.Snapshot, list
	}
	return m.differences, &n
}

// own is the map of a tenant: of the devices that are no switches and have an end port of
// the tenant, by what those ports are.
func (f *MapFacts) own(tenant string) MapContent {
	own := func(p *observed.Port) bool { return p.Node.Switch == nil && p.InfoRead && f.sees[p.GUID] }
	nodes := slices.DeleteFunc(f.nodes(), func(n node) bool { return n.found == nil || !hasEnd(n.found, own) })
	place := make(map[ib.NodeGUID]int, len(nodes))
	out := empty(len(nodes), 0)
	fenced := f.fences()
	for i, n := range nodes {
		place[n.guid] = i
		out.Nodes.add(n, row{lid: lidOf(n.found, own), state: f.stateOf(n.found, fenced, own), verdict: f.verdictOn(n.found, own)})
	}
	if len(nodes) == 0 {
		return out
	}
	out.Owners, out.Parties, out.Groups = []string{tenant}, []string{tenant}, []Group{{Nodes: len(nodes)}}
	for _, n := range nodes {
		for p := range ends(n.found) {
			if p.Peer == nil || !own(p) || !own(p.Peer) || p.Place().Compare(p.Peer.Place()) > 0 {
				continue
			}
			state := linkInactive
			if isActive(p) && isActive(p.Peer) {
				state = linkActive
			}
			out.Links.add(place, mapLink{p.Place(), p.Peer.Place(), state})
		}
	}
	return out
}

func hasEnd(n *observed.Node, is func(*observed.Port) bool) bool {
	for p := range ends(n) {
		if is(p) {
			return true
		}
	}
	return false
}

// enterOwners enters those who own an end port of a device that is no switch, and returns
// their places.
func (f *MapFacts) enterOwners(out *MapContent) map[string]int {
	place := map[string]int{}
	for _, n := range f.Snapshot.Fabric.Nodes {
		if n.Switch != nil {
			continue
		}
		for p := range ends(n) {
			if owner := f.owners[p.GUID]; owner != "" {
				place[owner] = 0
			}
		}
	}
	out.Owners = append(out.Owners, slices.Sorted(maps.Keys(place))...)
	for i, name := range out.Owners {
		place[name] = i
	}
	return place
}

// commonLevel is what the end ports of a device that is no switch have in commonLevel: what of says of
// each, nobody where that is nothing, and several where they differ.
func commonLevel(n *observed.Node, of func(*observed.Port) (int, bool)) int {
	out, some := ownerNobody, false
	if n.Switch != nil {
		return out
	}
	for p := range ends(n) {
		x, known := of(p)
		if !known {
			x = ownerNobody
		}
		if some && x != out {
			return ownerSeveral
		}
		out, some = x, true
	}
	return out
}

// lidOf is the lowest LID of the end ports of a node that count; 0 for none.
func lidOf(n *observed.Node, counts func(*observed.Port) bool) (lid int) {
	for p := range ends(n) {
		if l := p.Info.LID; p.InfoRead && counts(p) && l.IsUnicast() && (lid == 0 || int(l) < lid) {
			lid = int(l)
		}
	}
	return lid
}

// row is what a map says of a node besides who it is.
type row struct{ lid, level, group, owner, party, state, verdict int }

func (c *Nodes) add(n node, x row) {
	c.GUID, c.Name, c.Type, c.LID = append(c.GUID, n.guid.String()), append(c.Name, n.name), append(c.Type, kinds[n.kind]), append(c.LID, x.lid)
	c.Level, c.Group, c.Owner = append(c.Level, x.level), append(c.Group, x.group), append(c.Owner, x.owner)
	c.Party, c.State, c.Verdict = append(c.Party, x.party), append(c.State, x.state), append(c.Verdict, x.verdict)
}

func (c *Links) add(place map[ib.NodeGUID]int, l mapLink) {
	c.A, c.APort = append(c.A, place[l.a.Node]), append(c.APort, int(l.a.Port))
	c.B, c.BPort = append(c.B, place[l.b.Node]), append(c.BPort, int(l.b.Port))
	c.State = append(c.State, l.state)
}
