package sa

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/ibwarden/ibwarden/ib/internal/describe"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// Descriptor describes an attribute of subnet administration. Each is in the
// file of its record; ClassPortInfo is package mad's (mad.AttrClassPortInfo) and has
// none.
type Descriptor struct {
	ID   mad.AttributeID
	Name string
	// Size is the length in bytes, without what fills it up to a multiple of 8; 0
	// for MultiPathRecord, which has none of its own.
	Size int
	// New makes an empty record.
	New func() Record
}

// descriptors are those of all records of the package.
var descriptors describe.Table[Descriptor]

// add enters the descriptor of T when the package is initialized, and gives the layout of its
// fields.
func add[T any, P interface {
	*T
	Record
}](d Descriptor) *layout.Layout[P] {
	d.Name, d.New = reflect.TypeFor[T]().Name(), func() Record { return P(new(T)) }
	descriptors.Add(d.ID, d)
	return layout.Of[P](d.Name, d.Size).FillTo(offsetUnit)
}

// Describe gives what is known of an attribute.
func Describe(id mad.AttributeID) (Descriptor, bool) { return descriptors.Find(id) }

// Attributes lists what is known, ordered by number.
func Attributes() []Descriptor { return descriptors.All() }

// ErrUnknown means that an attribute is none of this package's.
var ErrUnknown = errors.New("no attribute of subnet administration")

// Decode reads the record of an attribute from the start of data.
func Decode(id mad.AttributeID, data []byte) (Record, error) {
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

// AttributeName is the name of a subnet-administration attribute, or its
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
