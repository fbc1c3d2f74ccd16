package observed

import (
	"cmp"
	"slices"
)

// OrderFromManager puts Nodes into an order that does not depend on which answer
// came first: breadth first from the manager's own node, the ports of each node by
// number, and what no cable leads to last, by node GUID. Call it when all links are
// known, and before anything is computed that goes by Node.Index.
func (f *Fabric) OrderFromManager() {
	if f.Self == nil {
		return
	}
	f.Nodes = f.FromManager()
	for i, n := range f.Nodes {
		n.Index = i
	}
}

// FromManager is Nodes in the order of OrderFromManager. f stays as it is.
func (f *Fabric) FromManager() []*Node {
	if f.Self == nil {
		return slices.Clone(f.Nodes)
	}
	seen := make(map[*Node]bool, len(f.Nodes))
	order := make([]*Node, 0, len(f.Nodes))
	arrive := func(n *Node) {
		if !seen[n] {
			seen[n] = true
			order = append(order, n)
		}
	}
	arrive(f.Self.Node)
	for at := 0; at < len(order); at++ {
		for i := range order[at].Ports {
			if peer := order[at].Ports[i].Peer; peer != nil {
				arrive(peer.Node)
			}
		}
	}
	rest := slices.DeleteFunc(slices.Clone(f.Nodes), func(n *Node) bool { return seen[n] })
	slices.SortStableFunc(rest, func(a, b *Node) int { return cmp.Compare(a.GUID(), b.GUID()) })
	return append(order, rest...)
}
