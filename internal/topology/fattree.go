package topology

import "github.com/ibwarden/ibwarden/ib"

// fatTree builds a folded Clos of switches with k ports each, half of them down
// and half of them up, but for the top, where all go down.
func fatTree(p *params) (*builder, error) {
	levels := p.number("levels", 2, 2, 3)
	k := p.number("radix", required, 2, MaxPorts)
	if k%2 != 0 {
		p.fail("radix", "%d: want an even number", k)
	}
	leafs, above, pods := k, k/2, k
	if levels == 3 {
		pods = p.number("pods", k, 1, k)
		leafs, above = pods*(k/2), pods*(k/2)+(k/2)*(k/2)
	}
	hosts := p.number("hosts", leafs*(k/2), 1, leafs*max(k/2, 1))
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := fits(hosts, leafs+above, 2*hosts+(leafs+above)*(k+1)); err != nil {
		return nil, err
	}
	// onLeaf is the number of hosts on a leaf.
	onLeaf := func(leaf int) int {
		n := hosts / leafs
		if leaf < hosts%leafs {
			n++
		}
		return n
	}
	if levels == 2 {
		return fatTree2(k, onLeaf), nil
	}
	return fatTree3(k, pods, onLeaf), nil
}

// fatTree2 builds k leaf switches under k/2 spines: port k/2+1+i of leaf l goes to
// port l+1 of spine i.
func fatTree2(k int, onLeaf func(int) int) *builder {
	b := newBuilder()
	half := k / 2
	leafs := make([]*Node, k)
	for l := range leafs {
		leafs[l] = b.add(ib.NodeSwitch, k, "L%d", l)
	}
	for s := range half {
		spine := b.add(ib.NodeSwitch, k, "SP%d", s)
		for l, leaf := range leafs {
			b.link(leaf, half+s+1, spine, l+1)
		}
	}
	for l, leaf := range leafs {
		for i := range onLeaf(l) {
			b.host(leaf, i+1, "H%d_%d", l, i)
		}
	}
	return b
}

// fatTree3 builds pods, up to k, of k/2 edge and k/2 aggregation switches under k²/4 core
// switches: edge e and aggregation a of a pod share the cable from port k/2+1+a
// to port e+1, and port k/2+1+i of aggregation a of pod p goes to port p+1 of
// core a*k/2+i.
func fatTree3(k, pods int, onLeaf func(int) int) *builder {
	b := newBuilder()
	half := k / 2
	var edges, aggregations []*Node // of all pods
	for p := range pods {
		for e := range half {
			edges = append(edges, b.add(ib.NodeSwitch, k, "E%d_%d", p, e))
		}
		for a := range half {
			aggregations = append(aggregations, b.add(ib.NodeSwitch, k, "A%d_%d", p, a))
		}
	}
	for c := range half * half {
		core := b.add(ib.NodeSwitch, k, "C%d", c)
		for p := range pods {
			b.link(aggregations[p*half+c/half], half+c%half+1, core, p+1)
		}
	}
	for leaf, edge := range edges {
		p, e := leaf/half, leaf%half
		for a := range half {
			b.link(edge, half+a+1, aggregations[p*half+a], e+1)
		}
		for i := range onLeaf(leaf) {
			b.host(edge, i+1, "H%d_%d_%d", p, e, i)
		}
	}
	return b
}
