package sa

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// Descriptor says what an attribute of subnet administration is. Each stands in the
// file of its record; ClassPortInfo is package mad's (mad.AttrClassPortInfo) and has
// none.
type Descriptor struct {
	ID   mad.AttributeID
	Name string
	// Size is the length in octets, without what fills it up to a multiple of 8; 0
	// for MultiPathRecord, which has none of its own.
	Size int
	// New makes an empty record.
	New func() Record
}

// descriptors are those of all records of the package. Nothing is added once the
// package is initialized.
var descriptors = map[mad.AttributeID]*Descriptor{}

// describe enters a descriptor when the package is initialized.
func describe(d Descriptor) bool {
	if descriptors[d.ID] != nil {
		panic(fmt.Sprintf("attribute 0x%04x is described twice", uint16(d.ID)))
	}
	descriptors[d.ID] = &d
	return true
}

// Describe gives what is known of an attribute.
func Describe(id mad.AttributeID) (Descriptor, bool) {
	d, ok := descriptors[id]
	if !ok {
		return Descriptor{}, false
	}
	return *d, true
}

// Attributes lists what is known, ordered by number.
func Attributes() []Descriptor {
	var out []Descriptor
	for _, d := range slices.SortedFunc(maps.Values(descriptors), func(a, b *Descriptor) int { return cmp.Compare(a.ID, b.ID) }) {
		out = append(out, *d)
	}
	return out
}

// ErrUnknown says that an attribute is none of this package's.
var ErrUnknown = errors.New("no attribute of subnet administration")

// Decode reads the record of an attribute from the start of data.
func Decode(id mad.AttributeID, data []byte) (Record, error) {
	d, ok := descriptors[id]
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
	if d, ok := descriptors[id]; ok {
		return d.Name
	}
	if id == mad.AttrClassPortInfo {
		return "ClassPortInfo"
	}
	return fmt.Sprintf("attribute 0x%04x", uint16(id))
}
