package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Attribute says of an attribute that devices are written what its blocks hold, so that
// a plan fills its writes, and a change keeps both ends of them, by one description.
// Modifiers are those of the request that reads or writes the block.
type Attribute struct {
	// Held is a block as it was read; read is false when it was not, and the block
	// then what the device may hold without that being known.
	Held func(p *observed.Port, modifier uint32) (block Encoder, read bool)
	// Wanted is the block that d wants.
	Wanted func(p *observed.Port, d *observed.Desired, modifier uint32) Encoder
	// Enter makes d want a block that a change kept; what the block says beyond the
	// tables of the device is left out. It is nil for PortInfo, of which a change keeps
	// single elements.
	Enter func(p *observed.Port, d *observed.Desired, modifier uint32, block []byte) error
	// MustBeRead reports whether a block is written only over what is known: it isolates,
	// and could not be undone otherwise.
	MustBeRead bool

	// fill is what a write of the plan holds, where that is not what is wanted whole.
	fill func(*Plan, Op) (Write, error)
}

// Encoder is an attribute to write.
type Encoder interface {
	Encode(*[mad.DataSize]byte) error
}

// attributes are those that plans write. Held, Wanted and Enter of the multicast forwarding
// table are missing: no change writes it, since the groups of hosts come and go by
// themselves.
var attributes = map[mad.AttributeID]Attribute{
	smp.AttrPKeyTable:                pkeyTable,
	smp.AttrGUIDInfo:                 guidInfo,
	smp.AttrPortInfo:                 portInfo,
	smp.AttrSwitchInfo:               switchInfo,
	smp.AttrMulticastForwardingTable: {fill: (*Plan).fillMulticast},
	smp.AttrLinearForwardingTable:    linearForwarding,
	smp.AttrRandomForwardingTable:    randomForwarding,
	smp.AttrSLToVLMappingTable:       slToVL,
	smp.AttrVLArbitrationTable:       vlArbitration,
}

// Attributes are those that plans write, ordered by number.
func Attributes() []mad.AttributeID { return slices.Sorted(maps.Keys(attributes)) }

// Describe gives what a change has to know of an attribute; an error means that no
// change writes it.
func Describe(id mad.AttributeID) (Attribute, error) {
	a, ok := attributes[id]
	if !ok || a.Held == nil {
		return a, fmt.Errorf("no change writes %s", smp.AttributeName(id))
	}
	return a, nil
}

// Fill works out what op writes, from the snapshot as it is now.
func (p *Plan) Fill(op Op) (Write, error) {
	a, ok := attributes[op.Attribute]
	switch {
	case !ok:
		return Write{}, fmt.Errorf("%s: no plan writes %s", op.Port, smp.AttributeName(op.Attribute))
	case a.fill != nil:
		return a.fill(p, op)
	}
	return p.encoded(Write{}, a.Wanted(op.Port, p.desired, op.Modifier))
}

// encoded enters what a write holds. By way of p, since a Write whose own bytes were passed on would
// be allocated for each.
func (p *Plan) encoded(w Write, a Encoder) (Write, error) {
	p.room = [mad.DataSize]byte{}
	err := a.Encode(&p.room)
	w.Data = p.room
	return w, err
}
