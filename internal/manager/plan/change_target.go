package plan

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Target is what a fabric, as it is now, ought to hold for a change to stand
// at one of its ends. What the change does not write is left alone. The fabric
// must not be Elsewhere.
func (c *Change) Target(f *observed.Fabric, s ChangeSide) (*observed.Desired, error) {
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
func (b *ChangedBlock) size(f *observed.Fabric, d *observed.Desired, s ChangeSide) error {
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

func (b *ChangedBlock) side(s ChangeSide) []byte {
	if s == OldSide {
		return b.Before[:]
	}
	return b.After[:]
}

// enter wants one side of a block.
func (b *ChangedBlock) enter(p *observed.Port, d *observed.Desired, s ChangeSide) error {
	if s == OldSide && b.Unread {
		return nil
	}
	data := b.side(s)
	if b.Attribute == smp.AttrPortInfo {
		var info smp.PortInfo
		if err := info.UnmarshalBinary(data); err != nil {
			return err
		}
		want := d.Port(p)
		want.Elements |= b.Elements
		b.Elements.Copy(&want.Info, &info)
		want.Activate = b.Activate && s == NewSide
		return nil
	}
	what, err := Describe(b.Attribute)
	if err != nil {
		return err
	}
	return what.Enter(p, d, b.Modifier, data)
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
