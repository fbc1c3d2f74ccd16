package change

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Block is one attribute block that a change writes.
type Block struct {
	Node ib.NodeGUID
	Port ib.PortNum
	// Name is the port for people.
	Name      string
	Attribute mad.AttributeID
	Modifier  uint32
	// Elements are those of PortInfo that change; Activate asks for the link
	// to be brought to Active.
	Elements observed.Element
	Activate bool
	// Before and After are the attribute's octets. Of PortInfo only the
	// Elements count, of SwitchInfo only LinearFDBTop and DefaultPort. Of a
	// block that was not read Before is zero and Unread is set.
	Before, After [mad.DataSize]byte
	Unread        bool
}

// Change is all the blocks that a plan writes, each once.
type Change struct{ Blocks []Block }

type blockKey struct {
	port      *observed.Port
	attribute mad.AttributeID
	modifier  uint32
}

// Of makes the Change of a plan that leads from f to d and of which nothing was
// carried out yet. A P_Key table that was not read whole is an error: nobody
// could undo it.
func Of(f *observed.Fabric, d *observed.Desired, p *plan.Plan) (*Change, error) {
	c := &Change{}
	seen := map[blockKey]int{}
	for _, s := range p.Stages {
		for _, op := range s.Ops {
			k := blockKey{op.Port, op.Attribute, op.Modifier}
			at, again := seen[k]
			if !again {
				b, err := blockOf(op, d)
				if err != nil {
					return nil, err
				}
				at = len(c.Blocks)
				seen[k] = at
				c.Blocks = append(c.Blocks, b)
			}
			if op.Kind == plan.Activate {
				c.Blocks[at].Activate = true
			}
		}
	}
	return c, nil
}

func blockOf(op plan.Op, d *observed.Desired) (b Block, err error) {
	p := op.Port
	b = Block{Node: p.Node.GUID(), Port: p.Num, Name: p.String(), Attribute: op.Attribute, Modifier: op.Modifier}
	want := d.Port(p)
	switch op.Attribute {
	case smp.AttrPKeyTable:
		block := int(op.Modifier & 0xFFFF)
		if !p.PKeyBlockRead(block) {
			return b, fmt.Errorf("%s: block %d of its P_KeyTable could not be read: it could not be undone", p, block)
		}
		err = encode(&b.Before, &smp.PKeyTable{Keys: smp.PKeyBlock(p.PKeys, block)})
		if err == nil {
			err = encode(&b.After, &smp.PKeyTable{Keys: smp.PKeyBlock(want.PKeys, block)})
		}
	case smp.AttrPortInfo:
		b.Elements = (want.Elements &^ p.Forgets).Differ(&p.Info, &want.Info)
		info := p.Info
		b.Elements.Copy(&info, &want.Info)
		if err = encode(&b.Before, &p.Info); err == nil {
			err = encode(&b.After, &info)
		}
	case smp.AttrSwitchInfo:
		info := p.Node.Switch.Info
		if n := len(d.Nodes[p.Node.Index].LFT); n > 0 {
			info.LinearFDBTop = ib.LID(n - 1)
		}
		if len(d.Nodes[p.Node.Index].RFT) > 0 {
			info.DefaultPort = d.Nodes[p.Node.Index].DefaultPort
		}
		if err = encode(&b.Before, &p.Node.Switch.Info); err == nil {
			err = encode(&b.After, &info)
		}
	case smp.AttrGUIDInfo:
		block := int(op.Modifier)
		held, read := plan.HeldGUIDs(p, block)
		b.Unread = !read
		if err = encode(&b.Before, &smp.GUIDInfo{GUIDs: held}); err == nil {
			err = encode(&b.After, &smp.GUIDInfo{GUIDs: plan.WantedGUIDs(p, want.GUIDs, block)})
		}
	default:
		err = b.routesOrLanes(p, d)
	}
	return b, err
}

// routesOrLanes fills in a block of a forwarding table or of the tables of
// virtual lanes.
func (b *Block) routesOrLanes(p *observed.Port, d *observed.Desired) (err error) {
	have, want := p.Node.Switch, &d.Nodes[p.Node.Index]
	n := int(b.Modifier)
	switch b.Attribute {
	case smp.AttrLinearForwardingTable:
		// Beyond what a sweep reads there are no routes.
		if err = encode(&b.Before, &smp.LinearForwardingTable{Ports: smp.LinearBlock(have.LFT, n)}); err == nil {
			err = encode(&b.After, &smp.LinearForwardingTable{Ports: smp.LinearBlock(want.LFT, n)})
		}
	case smp.AttrRandomForwardingTable:
		if err = encode(&b.Before, &smp.RandomForwardingTable{Entries: smp.RandomBlock(have.RFT, n)}); err == nil {
			err = encode(&b.After, &smp.RandomForwardingTable{Entries: smp.RandomBlock(want.RFT, n)})
		}
	case smp.AttrSLToVLMappingTable:
		t, read := p.SLToVL[inputOf(p, b.Modifier)]
		b.Unread = !read
		if err = encode(&b.Before, &t); err == nil {
			err = encode(&b.After, d.Port(p).SLToVL)
		}
	case smp.AttrVLArbitrationTable:
		part := int(b.Modifier>>16) - 1
		var t smp.VLArbitrationTable
		if b.Unread = part >= len(p.VLArbitration); !b.Unread {
			t = p.VLArbitration[part]
		}
		if err = encode(&b.Before, &t); err == nil {
			err = encode(&b.After, d.Port(p).VLArbitration[part])
		}
	default:
		err = fmt.Errorf("%s: no change writes %s", p, smp.AttributeName(b.Attribute))
	}
	return err
}

// inputOf is an input port that a modifier of SLToVLMappingTable speaks of.
func inputOf(p *observed.Port, modifier uint32) ib.PortNum {
	if p.Node.Switch == nil {
		return 0
	}
	t, _ := smp.SplitSLToVLModifier(modifier)
	return t.In
}

type encoder interface {
	Encode(*[mad.DataSize]byte) error
}

func encode(to *[mad.DataSize]byte, a encoder) error { return a.Encode(to) }

// HasAliases reports whether the change writes tables of GUIDs, which sweeps do
// not read unasked.
func (c *Change) HasAliases() bool {
	return slices.ContainsFunc(c.Blocks, func(b Block) bool { return b.Attribute == smp.AttrGUIDInfo })
}

// HasLanes reports whether the change writes tables of virtual lanes, which sweeps do
// not read unasked.
func (c *Change) HasLanes() bool {
	for i := range c.Blocks {
		if a := c.Blocks[i].Attribute; a == smp.AttrSLToVLMappingTable || a == smp.AttrVLArbitrationTable {
			return true
		}
	}
	return false
}
