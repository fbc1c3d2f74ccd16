package sa

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// Offsets and lengths inside a datagram of subnet administration, in bytes.
const (
	DataOffset = 56  // of the records
	DataSize   = 200 // of the records

	OffsetSMKey           = mad.HeaderSize + mad.RMPPHeaderSize
	OffsetAttributeOffset = 44
	OffsetComponentMask   = 48
)

// MAD is a datagram of subnet administration, or one segment of a longer
// message.
type MAD struct {
	mad.Header      `ib:"0,192"`
	RMPP            mad.RMPP       `ib:"192,96"`
	SMKey           ib.SMKey       `ib:"288,64"` // of a subnet manager that asks with authority, else 0
	AttributeOffset uint16         `ib:"352,16"` // from record to record in a table, in units of 8 bytes
	ComponentMask   ComponentMask  `ib:"384,64"` // of a query: what the records must equal
	Data            [DataSize]byte `ib:"448,1600"`

	reserved46 uint16 `ib:"368,16"` // bytes 46-47
}

var madFormat = layout.Of[*MAD]("SA MAD", mad.Size)

// String prints the fields; reserved bytes are left out.
func (m MAD) String() string { return layout.Print(m) }

// UnmarshalBinary reads a whole datagram of exactly mad.Size bytes. It must be
// of the class of subnet administration.
func (m *MAD) UnmarshalBinary(data []byte) error {
	if len(data) != mad.Size {
		return fmt.Errorf("SA MAD: %d bytes, want %d", len(data), mad.Size)
	}
	if err := checkClass(mad.Class(data[mad.OffsetClass])); err != nil {
		return err
	}
	madFormat.Decode(m, data)
	return nil
}

// AppendBinary appends the mad.Size bytes of the datagram to b. It fails for
// another class, and for a value of the RMPP header that does not fit its
// bits.
func (m *MAD) AppendBinary(b []byte) ([]byte, error) {
	if err := checkClass(m.Class); err != nil {
		return b, err
	}
	return madFormat.Append(b, m)
}

func checkClass(c mad.Class) error {
	if c != mad.ClassSubnAdm {
		return fmt.Errorf("SA MAD: management class 0x%02x, want 0x%02x", uint8(c), uint8(mad.ClassSubnAdm))
	}
	return nil
}
