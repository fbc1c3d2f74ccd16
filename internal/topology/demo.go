package topology

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
)

// Sizes of the demonstration fabric.
const (
	demoLeafs     = 4
	demoSpines    = 2
	demoPorts     = 8 // of each switch
	demoLeafHosts = 4
	demoParallel  = 2 // cables between a leaf and a spine
)

// Demo is the demonstration fabric: a two-level fat tree of 4 leaf and 2 spine
// switches with two cables between each leaf and each spine, and 16 hosts at
// 4xHDR. The hosts are named for what they do (mgmt-1, where the subnet
// manager runs, storage-1 to 3, red-1 to 6, blue-1 to 6) and every leaf has some
// of both tenants.
func Demo() *Netlist {
	b := newBuilder()
	leafs := make([]*Node, demoLeafs)
	for l := range leafs {
		leafs[l] = b.add(ib.NodeSwitch, demoPorts, "leaf-%d", l+1)
	}
	for s := range demoSpines {
		spine := b.add(ib.NodeSwitch, demoPorts, "spine-%d", s+1)
		for l, leaf := range leafs {
			for c := range demoParallel {
				b.link(leaf, demoLeafHosts+s*demoParallel+c+1, spine, l*demoParallel+c+1)
			}
		}
	}
	host := 0
	for _, role := range []struct {
		name  string
		count int
	}{{"mgmt", 1}, {"storage", 3}, {"red", 6}, {"blue", 6}} {
		for i := range role.count {
			h := b.host(leafs[host%demoLeafs], host/demoLeafs+1, "%s-%d", role.name, i+1)
			h.Description = fmt.Sprintf("%s HCA-1", h.ID)
			host++
		}
	}
	n := b.netlist()
	rates := Rates{
		Width:    Width1x | Width4x,
		Speed:    speedMask,
		ExtSpeed: ExtSpeedFDR | ExtSpeedEDR | ExtSpeedHDR,
	}
	for _, node := range n.Nodes {
		for p := range node.Ports {
			node.Ports[p].Enabled = rates
		}
	}
	return n
}
