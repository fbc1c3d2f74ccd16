package topology

import "github.com/ibwarden/ibwarden/ib"

// CheckLIDs reports an error when nodes of l that cables join need more unicast LIDs than
// a subnet has, with 2^lmc of them for each CA and router port.
func (l *Netlist) CheckLIDs(lmc ib.LMC) error {
	seen := make(map[*Node]bool, len(l.Nodes))
	for _, n := range l.Nodes {
		if seen[n] {
			continue
		}
		if err := n.checkLIDs(lmc, seen); err != nil {
			return err
		}
	}
	return nil
}

// CheckLIDs is Netlist.CheckLIDs of a node and those that cables join to it.
func (n *Node) CheckLIDs(lmc ib.LMC) error { return n.checkLIDs(lmc, make(map[*Node]bool)) }

func (n *Node) checkLIDs(lmc ib.LMC, seen map[*Node]bool) error {
	ends, switches := 0, 0
	seen[n] = true
	for queue := []*Node{n}; len(queue) > 0; {
		at := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		switch {
		case at.Type != ib.NodeSwitch:
		case at.EnhancedPort0 && lmc > 0:
			ends++
		default:
			switches++
		}
		for p := range at.Ports {
			to := at.Ports[p].Peer
			if to == nil {
				continue
			}
			if at.Type != ib.NodeSwitch {
				ends++
			}
			if !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	return ib.CheckLIDs(ends, switches, lmc)
}
