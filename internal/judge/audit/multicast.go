package audit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// mlidFirst is the first multicast LID.
const mlidFirst = 0xC000

// multicastLeak holds the hosts that each multicast LID leads to against each
// other: without a partition in common one of them gets packets of a partition
// that it is not in.
func (a *auditor) multicastLeak() {
	reached := map[ib.LID][]*observed.Port{}
	for _, n := range a.f.Switches() {
		if !a.switchInfo(n) {
			continue
		}
		for block := range n.MFTBlocks() {
			for position := range n.MFTPositions() {
				t, read := n.Switch.MFT[smp.MFTModifier(uint16(block), uint8(position))]
				if !read {
					a.unknown(nodePlace(n), "the multicast forwarding table was not read as a whole")
				}
				gather(reached, n, block, position, &t)
			}
		}
	}
	for _, mlid := range slices.Sorted(maps.Keys(reached)) {
		if ports := reached[mlid]; len(ports) > 1 && !a.haveCommonPartition(ports) && !slices.ContainsFunc(ports, unreadKeys) {
			a.found(fmt.Sprintf("multicast LID 0x%04x", uint16(mlid)), "it leads to %d hosts, %s and %s among them, and in no partition are all of them members and one full",
				len(ports), place(ports[0]), place(ports[len(ports)-1]))
		}
	}
}

// gather enters the hosts that a block of a switch's table sends packets to.
func gather(reached map[ib.LID][]*observed.Port, n *observed.Node, block, position int, t *smp.MulticastForwardingTable) {
	for i, mask := range t.Masks {
		for bit := range smp.PortsPerPosition {
			num := position*smp.PortsPerPosition + bit
			if mask>>bit&1 == 0 || num >= len(n.Ports) || !n.Ports[num].FacesEnd() {
				continue
			}
			mlid := ib.LID(mlidFirst + block*smp.MLIDsPerBlock + i)
			reached[mlid] = append(reached[mlid], n.Ports[num].Peer)
		}
	}
}

func unreadKeys(p *observed.Port) bool { return !p.PKeysKnown() }

func (a *auditor) haveCommonPartition(ports []*observed.Port) bool {
	members, full := map[ib.PKeyBase]int{}, map[ib.PKeyBase]bool{}
	for _, p := range ports {
		own := map[ib.PKeyBase]bool{}
		for _, k := range a.keys(p) {
			if !own[k.Base()] {
				own[k.Base()] = true
				members[k.Base()]++
			}
			full[k.Base()] = full[k.Base()] || k.IsFull()
		}
	}
	for base, n := range members {
		if n == len(ports) && full[base] {
			return true
		}
	}
	return false
}
