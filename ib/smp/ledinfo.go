package smp

import (
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// LEDInfoSize is the length of LEDInfo in bytes.
const LEDInfoSize = 4

// LEDInfo switches the locating light of a port.
type LEDInfo struct {
	LEDMask bool `ib:"0,1"` // true: on

	spare spare `ib:"spare"`
}

// AttrLEDInfo is the number of LEDInfo.
const AttrLEDInfo mad.AttributeID = 0x0031

var ledInfoFormat = add[LEDInfo](Descriptor{ID: AttrLEDInfo, Size: LEDInfoSize, Access: AccessGetSet, Modifier: ModifierNone, Of: OfNode})

// ID is AttrLEDInfo.
func (*LEDInfo) ID() mad.AttributeID { return AttrLEDInfo }

// String prints the fields; reserved bits are left out.
func (a LEDInfo) String() string { return layout.Print(a) }

// UnmarshalBinary reads LEDInfoSize bytes.
func (l *LEDInfo) UnmarshalBinary(data []byte) error { return ledInfoFormat.Unmarshal(l, data) }

// Encode writes the 64 bytes of data; it cannot fail.
func (l *LEDInfo) Encode(dst *[mad.DataSize]byte) error { return ledInfoFormat.Encode(l, dst[:]) }

// AppendBinary appends the 64 bytes of data.
func (l *LEDInfo) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, l) }
