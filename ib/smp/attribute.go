package smp

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/describe"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// AttrVendorMin is the lowest of the attributes left to vendors, which reach up to
// 0xFFFF.
const AttrVendorMin mad.AttributeID = 0xFF00

// Descriptor describes an attribute. Each is in the file of its attribute.
type Descriptor struct {
	ID   mad.AttributeID
	Name string
	// Size is how many of the mad.DataSize bytes have a meaning.
	Size int
	// Access lists the methods of the attribute.
	Access Access
	// Modifier is the meaning of the attribute modifier.
	Modifier Modifier
	// PerBlock is how many entries of a table a block has, where entries are counted
	// on over the blocks; 0 for what is no such table.
	PerBlock int
	// Of is what the attribute, or the table, belongs to.
	Of Owner
	// New makes an empty attribute.
	New func() Attribute
}

// Access is a set of methods.
type Access uint8

// The methods of an attribute. Notice may be sent as Trap too.
const (
	AccessGet    Access = 1
	AccessGetSet Access = 3
)

// CanSet reports whether there is a Set.
func (a Access) CanSet() bool { return a == AccessGetSet }

// Owner is what an attribute belongs to.
type Owner uint8

// What attributes belong to.
const (
	OfNode    Owner = iota // the device as a whole
	OfSwitch               // a switch as a whole; other devices do not have it
	OfEndPort              // a CA or router port, or port 0 of a switch
	OfPort                 // any port; on a switch the modifier names it
)

// Modifier is what the attribute modifier means.
type Modifier uint8

// The meanings of the modifier.
const (
	ModifierNone          Modifier = iota // 0
	ModifierPort                          // PortInfoModifier: a port of a switch
	ModifierBlock                         // the number of a block
	ModifierPortBlock                     // PKeyModifier: port of a switch and block
	ModifierPartPort                      // VLArbModifier: part of the table and port of a switch
	ModifierInputOutput                   // SLToVLModifier: two ports of a switch
	ModifierBlockPosition                 // MFTModifier: block and group of 16 ports
	ModifierControl                       // of SMInfo: what a Set asks for
)

// For is the attribute modifier for one or two numbers, zero where there is none: a
// port (PortInfo), a block and its position (MulticastForwardingTable), a part
// (VLArbitrationTable), the input and the output port (SLToVLMappingTable), else a
// block. own is the port of a switch that is asked about, and 0 for other nodes.
func (m Modifier) For(own ib.PortNum, n uint16, second uint8) uint32 {
	switch m {
	case ModifierPort:
		if n == 0 {
			n = uint16(own)
		}
	case ModifierPortBlock:
		return PKeyModifier(own, n)
	case ModifierPartPort:
		return VLArbModifier(VLArbPart(n), own)
	case ModifierInputOutput:
		return uint32(n)<<8 | uint32(second)
	case ModifierBlockPosition:
		return uint32(second)<<28 | uint32(n)
	}
	return uint32(n)
}

// descriptors are those of all attributes of the package.
var descriptors describe.Table[Descriptor]

// add enters the descriptor of T when the package is initialized, and gives the layout of its
// fields.
func add[T any, P interface {
	*T
	Attribute
}](d Descriptor) *layout.Layout[P] {
	d.Name, d.New = reflect.TypeFor[T]().Name(), func() Attribute { return P(new(T)) }
	descriptors.Add(d.ID, d)
	return layout.Of[P](d.Name, mad.DataSize).From(d.Size)
}

// Describe gives what is known of an attribute.
func Describe(id mad.AttributeID) (Descriptor, bool) { return descriptors.Find(id) }

// Attributes lists what is known, ordered by number.
func Attributes() []Descriptor { return descriptors.All() }

// ErrUnknown means that an attribute is none of this package's.
var ErrUnknown = errors.New("no attribute of subnet management")

// Decode reads the attribute of a number from its bytes.
func Decode(id mad.AttributeID, data []byte) (Attribute, error) {
	d, ok := descriptors.Find(id)
	if !ok {
		return nil, fmt.Errorf("%s: %w", AttributeName(id), ErrUnknown)
	}
	a := d.New()
	if err := a.UnmarshalBinary(data); err != nil {
		return nil, err
	}
	return a, nil
}

// AttributeName is the name of a subnet-management attribute, or its number
// when it has none.
func AttributeName(id mad.AttributeID) string {
	if d, ok := descriptors.Find(id); ok {
		return d.Name
	}
	if id >= AttrVendorMin {
		return fmt.Sprintf("vendor attribute 0x%04x", uint16(id))
	}
	return fmt.Sprintf("attribute 0x%04x", uint16(id))
}

// Field is a field of an attribute for people.
type Field struct{ Name, Value string }

// Fields are the fields of an attribute, in their order, without reserved bits. Of an M_Key
// and an SM_Key they say only whether it is 0.
func Fields(a Attribute) []Field {
	list := layout.PrintedFields(a)
	out := make([]Field, len(list))
	for i, f := range list {
		out[i] = Field(f)
	}
	return out
}
