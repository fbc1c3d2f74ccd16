package observed

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Leads reports whether packets for a multicast LID may be led anywhere by the
// forwarding table of a switch, as far as it was read.
func (f *Fabric) Leads(mlid ib.LID) bool {
	block, index := smp.MFTPlace(mlid)
	for _, n := range f.Switches() {
		if !n.Switch.InfoRead {
			return true
		}
		for position := range n.MFTPositions() {
			t, read := n.Switch.MFT[smp.MFTModifier(block, uint8(position))]
			if t.Masks[index] != 0 || !read && int(block) < n.MFTBlocks() {
				return true
			}
		}
	}
	return false
}

// Led are the multicast LIDs that the forwarding table of a switch leads
// somewhere, or may lead somewhere since it was not read.
func (f *Fabric) Led() map[ib.LID]bool {
	led := make(map[ib.LID]bool)
	for _, n := range f.Switches() {
		for block := range n.MFTBlocks() {
			for position := range n.MFTPositions() {
				t, read := n.Switch.MFT[smp.MFTModifier(uint16(block), uint8(position))]
				for i, mask := range t.Masks {
					if mask != 0 || !read {
						led[ib.LIDMulticastMin+ib.LID(block*len(t.Masks)+i)] = true
					}
				}
			}
		}
	}
	return led
}
