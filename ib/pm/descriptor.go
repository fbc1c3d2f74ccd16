package pm

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/ibwarden/ibwarden/ib/internal/describe"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// Descriptor describes an attribute of performance management. Each is in the
// file of its type; ClassPortInfo is package mad's (mad.AttrClassPortInfo) and has
// none.
type Descriptor struct {
	ID   mad.AttributeID
	Name string
	// Size is the length in bytes.
	Size int
	// New makes an empty attribute.
	New func() Attribute
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
	return layout.Of[P](d.Name, d.Size)
}

// Describe gives what is known of an attribute.
func Describe(id mad.AttributeID) (Descriptor, bool) { return descriptors.Find(id) }

// Attributes lists what is known, ordered by number.
func Attributes() []Descriptor { return descriptors.All() }

// ErrUnknown means that an attribute is none of this package's.
var ErrUnknown = errors.New("no attribute of performance management")

// Decode reads the attribute of a number from the start of data.
func Decode(id mad.AttributeID, data []byte) (Attribute, error) {
	d, ok := descriptors.Find(id)
	if !ok {
		return nil, fmt.Errorf("%s: %w", AttributeName(id), ErrUnknown)
	}
	r := d.New()
	if err := r.UnmarshalBinary(data); err != nil {
		return nil, err
	}
	return r, nil
}

// AttributeName is the name of a performance-management attribute, or its
// number when it has none.
func AttributeName(id mad.AttributeID) string {
	if d, ok := descriptors.Find(id); ok {
		return d.Name
	}
	if id == mad.AttrClassPortInfo {
		return "ClassPortInfo"
	}
	return fmt.Sprintf("attribute 0x%04x", uint16(id))
}
