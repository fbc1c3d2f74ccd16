package change

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Target is what a fabric, as it is now, ought to hold for a change to stand
// at one of its ends. What the change does not write is left alone. The fabric
// must not be Elsewhere.
func (c *Change) Target(f *observed.Fabric, s Side) (*observed.Desired, error) {
	d := observed.NewDesired(f)
	for i := range c.Blocks {
		if err := c.Blocks[i].size(f, d, s); err != nil {
			return nil, err
		}
	}
	for i := range c.Blocks {
		b := &c.Blocks[i]
		p := b.port(f)
		if p == nil {
			continue
		}
		if err := b.enter(p, d, s); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// size makes room for the routes of a switch: up to the top that one side
// wants, or up to the one that stands.
func (b *Block) size(f *observed.Fabric, d *observed.Desired, s Side) error {
	p := b.port(f)
	if p == nil || b.Attribute != smp.AttrSwitchInfo && b.Attribute != smp.AttrLinearForwardingTable {
		return nil
	}
	have, node := p.Node.Switch, &d.Nodes[p.Node.Index]
	if have.Info.LinearFDBCap == 0 {
		return nil
	}
	if b.Attribute == smp.AttrLinearForwardingTable {
		if node.LFT == nil {
			node.LFT = resized(have.LFT, int(have.Info.LinearFDBTop)+1)
		}
		return nil
	}
	var info smp.SwitchInfo
	if err := info.UnmarshalBinary(b.side(s)); err != nil {
		return err
	}
	node.LFT = resized(have.LFT, int(info.LinearFDBTop)+1)
	return nil
}

func (b *Block) side(s Side) []byte {
	if s == Old {
		return b.Before[:]
	}
	return b.After[:]
}

// enter wants one side of a block.
func (b *Block) enter(p *observed.Port, d *observed.Desired, s Side) error {
	if s == Old && b.Unread {
		return nil
	}
	data := b.side(s)
	want, node := d.Port(p), &d.Nodes[p.Node.Index]
	switch b.Attribute {
	case smp.AttrPKeyTable:
		var t smp.PKeyTable
		if err := t.UnmarshalBinary(data); err != nil {
			return err
		}
		if want.PKeys == nil {
			want.PKeys = slices.Clone(p.PKeys)
		}
		if start := int(b.Modifier&0xFFFF) * smp.PKeysPerBlock; start < len(want.PKeys) {
			copy(want.PKeys[start:], t.Keys[:])
		}
	case smp.AttrGUIDInfo:
		var t smp.GUIDInfo
		if err := t.UnmarshalBinary(data); err != nil {
			return err
		}
		want.GUIDs = withGUIDs(p, want.GUIDs, int(b.Modifier), t.GUIDs)
	case smp.AttrPortInfo:
		var info smp.PortInfo
		if err := info.UnmarshalBinary(data); err != nil {
			return err
		}
		want.Elements |= b.Elements
		b.Elements.Copy(&want.Info, &info)
		want.Activate = b.Activate && s == New
	case smp.AttrSwitchInfo:
		var info smp.SwitchInfo
		if err := info.UnmarshalBinary(data); err != nil {
			return err
		}
		node.DefaultPort = info.DefaultPort
	case smp.AttrLinearForwardingTable:
		var t smp.LinearForwardingTable
		if err := t.UnmarshalBinary(data); err != nil {
			return err
		}
		copy(node.LFT[min(int(b.Modifier)*smp.LIDsPerLinearBlock, len(node.LFT)):], t.Ports[:])
	default:
		return b.enterOther(p, d, data)
	}
	return nil
}

// withGUIDs is a table of GUIDs, that which a port holds for nil, with one block
// as it is wanted.
func withGUIDs(p *observed.Port, table []ib.PortGUID, block int, guids [smp.GUIDsPerBlock]uint64) []ib.PortGUID {
	if table == nil {
		table = make([]ib.PortGUID, p.Info.GUIDCap)
		for _, a := range p.Aliases() {
			table[a.Index] = a.GUID
		}
	}
	for i, g := range guids {
		if index := block*smp.GUIDsPerBlock + i; index < len(table) {
			table[index] = ib.PortGUID(g)
		}
	}
	return table
}

func (b *Block) enterOther(p *observed.Port, d *observed.Desired, data []byte) error {
	want, node := d.Port(p), &d.Nodes[p.Node.Index]
	switch b.Attribute {
	case smp.AttrRandomForwardingTable:
		var t smp.RandomForwardingTable
		if err := t.UnmarshalBinary(data); err != nil {
			return err
		}
		if node.RFT == nil {
			node.RFT = slices.Clone(p.Node.Switch.RFT)
			node.DefaultPort = p.Node.Switch.Info.DefaultPort
		}
		if start := int(b.Modifier) * smp.RandomEntriesPerBlock; start < len(node.RFT) {
			copy(node.RFT[start:], t.Entries[:])
		}
	case smp.AttrSLToVLMappingTable:
		var t smp.SLToVLMappingTable
		if err := t.UnmarshalBinary(data); err != nil {
			return err
		}
		want.SLToVL = &t
	case smp.AttrVLArbitrationTable:
		var t smp.VLArbitrationTable
		if err := t.UnmarshalBinary(data); err != nil {
			return err
		}
		if part := int(b.Modifier>>16) - 1; part < len(want.VLArbitration) {
			want.VLArbitration[part] = &t
		}
	}
	return nil
}

// resized is a table of routes for so many LIDs; past its end nothing has one.
func resized(t []ib.PortNum, n int) []ib.PortNum {
	out := make([]ib.PortNum, n)
	for i := range out {
		out[i] = ib.PortNone
		if i < len(t) {
			out[i] = t[i]
		}
	}
	return out
}
