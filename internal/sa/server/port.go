package server

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// ports are all ports that the asker sees, each with the end port whose LID its
// records have.
func (x *search) ports(yield func(*Port, *observed.Port) bool) {
	for end := range x.ends {
		n := end.Node
		if n.Switch == nil {
			if !yield(end, end.Port) {
				return
			}
			continue
		}
		for i := range n.Ports {
			if p := &n.Ports[i]; x.View.SeesPort(x.Asker, p) && !yield(end, p) {
				return
			}
		}
	}
}

// offCapabilityMask is the place of PortInfo.CapabilityMask in PortInfoRecord.
const offCapabilityMask = 4 + 20

// portInfos gives the PortInfo of every port that answered it; the M_Key to
// trusted askers only.
func (x *search) portInfos() {
	byBits := x.Modifier&sa.PortInfoRecordMatchCapabilities != 0 && x.Mask.Has(sa.PortInfoRecordCapabilityMask)
	var bits smp.CapabilityMask
	if byBits {
		if len(x.Data) < offCapabilityMask+4 {
			return
		}
		bits = smp.CapabilityMask(binary.BigEndian.Uint32(x.Data[offCapabilityMask:]))
	}
	for end, p := range x.ports {
		if !p.InfoRead || byBits && !p.Info.CapabilityMask.Has(bits) {
			continue
		}
		r := sa.PortInfoRecord{EndportLID: end.LID, PortNum: p.Num, PortInfo: p.Info}
		if !x.Trusted || x.NoKeys {
			r.PortInfo.MKey = 0
		}
		x.give(&r)
	}
}

// pkeyTables gives the blocks of P_Key tables that were read.
func (x *search) pkeyTables() {
	for end, p := range x.ports {
		for block, read := range p.PKeysRead {
			if !read {
				continue
			}
			r := sa.PKeyTableRecord{LID: end.LID, BlockNum: uint16(block), PortNum: p.Num}
			copy(r.Table.Keys[:], p.PKeys[block*smp.PKeysPerBlock:])
			x.give(&r)
		}
	}
}

// slToVL gives the SLtoVLMappingTables that were read.
func (x *search) slToVL() {
	for end, p := range x.ports {
		for in := range p.Node.Ports {
			t, read := p.SLToVL[ib.PortNum(in)]
			if !read || p.Node.Switch != nil && !x.View.SeesPort(x.Asker, &p.Node.Ports[in]) {
				continue
			}
			r := sa.SLToVLMappingTableRecord{LID: end.LID, InputPortNum: ib.PortNum(in), OutputPortNum: p.Num, Table: t}
			if p.Node.Switch == nil {
				r.InputPortNum, r.OutputPortNum = 0, 0
			}
			x.give(&r)
		}
	}
}

// vlArbitration gives the VLArbitrationTables that were read.
func (x *search) vlArbitration() {
	for end, p := range x.ports {
		for part, t := range p.VLArbitration {
			x.give(&sa.VLArbitrationTableRecord{LID: end.LID, OutputPortNum: p.Num, BlockNum: smp.VLArbPart(part + 1), Table: t})
		}
	}
}

// guidInfos gives the GUIDs of end ports: the port's own and its aliases.
func (x *search) guidInfos() {
	for p := range x.ends {
		for block := range GUIDBlocks(&p.Info) {
			r := sa.GUIDInfoRecord{LID: p.LID, BlockNum: uint8(block)}
			if block == 0 {
				r.Table.GUIDs[0] = uint64(p.GUID)
			}
			if x.Aliases != nil {
				for i, g := range x.Aliases(p.GUID) {
					if at := i + 1; at/smp.GUIDsPerBlock == block {
						r.Table.GUIDs[at%smp.GUIDsPerBlock] = uint64(g)
					}
				}
			}
			x.give(&r)
		}
	}
}

// GUIDBlocks is the number of blocks of GUIDInfo that a port has.
func GUIDBlocks(p *smp.PortInfo) int {
	return min((int(p.GUIDCap)+smp.GUIDsPerBlock-1)/smp.GUIDsPerBlock, smp.GUIDInfoBlocks)
}

// linearTables gives the blocks of linear tables that were read.
func (x *search) linearTables() {
	for p := range x.switches {
		s := p.Node.Switch
		for block, read := range s.LFTRead {
			if !read {
				continue
			}
			r := sa.LinearForwardingTableRecord{LID: p.LID, BlockNum: uint16(block)}
			first := block * smp.LIDsPerLinearBlock
			copy(r.Table.Ports[:], s.LFT[first:])
			for i := range r.Table.Ports {
				if !x.seesLID(ib.LID(first + i)) {
					r.Table.Ports[i] = ib.PortNone
				}
			}
			x.give(&r)
		}
	}
}

// seesLID reports whether the asker sees the port that has a LID; it never sees
// what has none.
func (x *search) seesLID(lid ib.LID) bool { return x.Sees(x.View.At(lid)) }

// randomTables gives the blocks of random tables that were read.
func (x *search) randomTables() {
	for p := range x.switches {
		s := p.Node.Switch
		for block, read := range s.RFTRead {
			if !read {
				continue
			}
			r := sa.RandomForwardingTableRecord{LID: p.LID, BlockNum: uint16(block)}
			copy(r.Table.Entries[:], s.RFT[block*smp.RandomEntriesPerBlock:])
			for i, e := range r.Table.Entries {
				if !x.seesLID(e.LID) {
					r.Table.Entries[i] = smp.RandomEntry{}
				}
			}
			x.give(&r)
		}
	}
}

// multicastTables gives the blocks of multicast tables, of which an asker sees
// the groups of its own partitions, up to the last block with one of them.
func (x *search) multicastTables() {
	for p := range x.switches {
		last := -1
		tables := make(map[uint32]smp.MulticastForwardingTable)
		for modifier, t := range p.Node.Switch.MFT {
			block, _, _ := smp.SplitMFTModifier(modifier)
			for j := range t.Masks {
				mlid := ib.LIDMulticastMin + ib.LID(int(block)*len(t.Masks)+j)
				if g := x.Groups.ByMLID(mlid); g == nil || !x.Knows(g.Partition) {
					t.Masks[j] = 0
				}
			}
			tables[modifier] = t
			if t != (smp.MulticastForwardingTable{}) {
				last = max(last, int(block))
			}
		}
		for _, modifier := range slices.Sorted(maps.Keys(tables)) {
			if block, position, _ := smp.SplitMFTModifier(modifier); int(block) <= last {
				x.give(&sa.MulticastForwardingTableRecord{LID: p.LID, Position: position, BlockNum: block, Table: tables[modifier]})
			}
		}
	}
}
