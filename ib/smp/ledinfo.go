package smp

import (
	"github.com/ibwarden/ibwarden/ib/internal/show"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// LEDInfoSize is the length of LEDInfo in bytes.
const LEDInfoSize = 4

// LEDInfo switches the locating light of a port.
type LEDInfo struct {
	LEDMask bool // true: on

	spare spare
}

// AttrLEDInfo is the number of LEDInfo.
const AttrLEDInfo mad.AttributeID = 0x0031

var _ = add(Descriptor{
	ID: AttrLEDInfo, Name: "LEDInfo", Size: LEDInfoSize, Access: AccessGetSet, Modifier: ModifierNone, Of: OfNode,
	New: func() Attribute { return new(LEDInfo) },
})

// ID is AttrLEDInfo.
func (*LEDInfo) ID() mad.AttributeID { return AttrLEDInfo }

// String prints the fields; reserved bits are left out.
func (a LEDInfo) String() string { return show.Fields(a) }

// UnmarshalBinary reads LEDInfoSize bytes.
func (l *LEDInfo) UnmarshalBinary(data []byte) error {
	if err := checkLength("LEDInfo", data, LEDInfoSize); err != nil {
		return err
	}
	*l = LEDInfo{LEDMask: isSet(data[0], 7)}
	copy(l.spare[:], data)
	l.spare[0] &^= flag(true, 7)
	return nil
}

// Encode writes the 64 bytes of data; it cannot fail.
func (l *LEDInfo) Encode(dst *[mad.DataSize]byte) error {
	*dst = l.spare
	dst[0] |= flag(l.LEDMask, 7)
	return nil
}

// AppendBinary appends the 64 bytes of data.
func (l *LEDInfo) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, l) }
