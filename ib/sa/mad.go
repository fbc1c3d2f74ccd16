package sa

import (
	"encoding/binary"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/show"
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
	mad.Header
	RMPP            mad.RMPP
	SMKey           ib.SMKey      // of a subnet manager that asks with authority, else 0
	AttributeOffset uint16        // from record to record in a table, in units of 8 bytes
	ComponentMask   ComponentMask // of a query: what the records must equal
	Data            [DataSize]byte

	reserved46 uint16 // bytes 46-47
}

// String prints the fields; reserved bytes are left out.
func (m MAD) String() string { return show.Fields(m) }

// UnmarshalBinary reads a whole datagram of exactly mad.Size bytes. It must be
// of the class of subnet administration.
func (m *MAD) UnmarshalBinary(data []byte) error {
	if len(data) != mad.Size {
		return fmt.Errorf("SA MAD: %d bytes, want %d", len(data), mad.Size)
	}
	var v MAD
	if err := v.Header.UnmarshalBinary(data); err != nil {
		return fmt.Errorf("SA MAD: %w", err)
	}
	if v.Class != mad.ClassSubnAdm {
		return fmt.Errorf("SA MAD: management class 0x%02x, want 0x%02x", uint8(v.Class), uint8(mad.ClassSubnAdm))
	}
	if err := v.RMPP.UnmarshalBinary(data[mad.HeaderSize:]); err != nil {
		return fmt.Errorf("SA MAD: %w", err)
	}
	v.SMKey = ib.SMKey(binary.BigEndian.Uint64(data[OffsetSMKey:]))
	v.AttributeOffset = binary.BigEndian.Uint16(data[OffsetAttributeOffset:])
	v.reserved46 = binary.BigEndian.Uint16(data[OffsetAttributeOffset+2:])
	v.ComponentMask = ComponentMask(binary.BigEndian.Uint64(data[OffsetComponentMask:]))
	copy(v.Data[:], data[DataOffset:])
	*m = v
	return nil
}

// AppendBinary appends the mad.Size bytes of the datagram to b. It fails for
// another class, and for a value of the RMPP header that does not fit its
// bits.
func (m *MAD) AppendBinary(b []byte) ([]byte, error) {
	if m.Class != mad.ClassSubnAdm {
		return b, fmt.Errorf("SA MAD: management class 0x%02x, want 0x%02x", uint8(m.Class), uint8(mad.ClassSubnAdm))
	}
	whole, err := m.Header.AppendBinary(b)
	if err == nil {
		whole, err = m.RMPP.AppendBinary(whole)
	}
	if err != nil {
		return b, fmt.Errorf("SA MAD: %w", err)
	}
	whole = binary.BigEndian.AppendUint64(whole, uint64(m.SMKey))
	whole = binary.BigEndian.AppendUint16(whole, m.AttributeOffset)
	whole = binary.BigEndian.AppendUint16(whole, m.reserved46)
	whole = binary.BigEndian.AppendUint64(whole, uint64(m.ComponentMask))
	return append(whole, m.Data[:]...), nil
}
