// A Change is a plan in the journal: for each block the old and the new value, so that
// after a crash the change can be finished or undone.
//
//	ChangeOf        makes a Change from a plan, before anything is written
//	Change.Compare  says how far a fabric is between old and new
//	Change.Target   gives the desired tables of either end, for the fabric as it is now
//	NextStep        splits the change into steps, node by node
//
// A block that holds neither value, nor one that occurs on the way from one to the
// other, is Elsewhere: another manager has written it, and then finishing and undoing
// are undefined.
//
// Some writes are not undone: links that were brought to Active stay so, and virtual
// lanes and P_Key blocks that could not be read before have no old value.

package plan

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// ChangedBlock is one attribute block that a change writes.
type ChangedBlock struct {
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
	// Before and After are the attribute's bytes. Of PortInfo only the
	// Elements count, of SwitchInfo only LinearFDBTop and DefaultPort. Of a
	// block that was not read Before is zero and Unread is set.
	Before, After [mad.DataSize]byte
	Unread        bool
}

// Change is all the blocks that a plan writes, each once.
type Change struct{ Blocks []ChangedBlock }

type blockKey struct {
	port      *observed.Port
	attribute mad.AttributeID
	modifier  uint32
}

// ChangeOf makes the Change of a plan that leads from f to d and of which nothing was
// carried out yet. A P_Key table that was not read whole is an error: nobody
// could undo it.
func ChangeOf(f *observed.Fabric, d *observed.Desired, p *Plan) (*Change, error) {
	c := &Change{}
	seen := map[blockKey]int{}
	for _, s := range p.Stages {
		for _, op := range s.Ops {
			if op.Kind == Counters {
				continue // no change of the policy: a running manager does it
			}
			k := blockKey{op.Port, op.Attribute, op.Modifier}
			at, again := seen[k]
			if !again {
				b, err := changedBlockOf(op, d)
				if err != nil {
					return nil, err
				}
				at = len(c.Blocks)
				seen[k] = at
				c.Blocks = append(c.Blocks, b)
			}
			if op.Kind == Activate {
				c.Blocks[at].Activate = true
			}
		}
	}
	return c, nil
}

func changedBlockOf(op Op, d *observed.Desired) (b ChangedBlock, err error) {
	p := op.Port
	b = ChangedBlock{Node: p.Node.GUID(), Port: p.Num, Name: p.String(), Attribute: op.Attribute, Modifier: op.Modifier}
	what, err := Describe(op.Attribute)
	if err != nil {
		return b, fmt.Errorf("%s: %w", p, err)
	}
	held, read := what.Held(p, op.Modifier)
	if b.Unread = !read; b.Unread && what.MustBeRead {
		return b, fmt.Errorf("%s: block %d of its %s could not be read: it could not be undone", p, op.Modifier&0xFFFF, smp.AttributeName(op.Attribute))
	}
	if op.Attribute == smp.AttrPortInfo {
		b.Elements = Differing(p, d)
	}
	if err = held.Encode(&b.Before); err == nil {
		err = what.Wanted(p, d, op.Modifier).Encode(&b.After)
	}
	return b, err
}

// HasAliases reports whether the change writes tables of GUIDs, which sweeps do
// not read unasked.
func (c *Change) HasAliases() bool {
	return slices.ContainsFunc(c.Blocks, func(b ChangedBlock) bool { return b.Attribute == smp.AttrGUIDInfo })
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
