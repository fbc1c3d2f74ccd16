package pm

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// ClassVersion is the class version of performance management.
const ClassVersion uint8 = 1

// Offset and length of the attribute inside a datagram, in bytes.
const (
	DataOffset = 64
	DataSize   = 192
)

// The bits of ClassPortInfo.CapabilityMask that performance management adds.
const (
	CapAllPortSelect       mad.ClassCapability = 1 << 8  // PortSelect may be AllPorts
	CapExtendedWidth       mad.ClassCapability = 1 << 9  // PortCountersExtended is there
	CapExtendedWidthTotals mad.ClassCapability = 1 << 10 // the same, without unicast and multicast counters
	CapPortXmitWait        mad.ClassCapability = 1 << 12 // PortCounters.PortXmitWait is there
	CapQP1Dropped          mad.ClassCapability = 1 << 15 // PortCounters.QP1Dropped is there
)

// Cap2ExtendedErrors is the bit of ClassPortInfo.CapabilityMask2 that announces that
// PortCountersExtended has the counters behind PortMulticastRcvPkts.
const Cap2ExtendedErrors mad.ClassCapability2 = 1 << 1

// Attribute is what every attribute of this package can do.
type Attribute interface {
	// ID is the attribute's number in the MAD header.
	ID() mad.AttributeID
	// UnmarshalBinary reads the attribute from the start of data.
	UnmarshalBinary(data []byte) error
	// AppendBinary appends the attribute to b; on an error b is returned as
	// it was.
	AppendBinary(b []byte) ([]byte, error)
}

// MAD is a datagram of performance management.
type MAD struct {
	mad.Header `ib:"0,192"`
	Data       [DataSize]byte `ib:"512,1536"`

	reserved24 [DataOffset - mad.HeaderSize]byte `ib:"192,320"`
}

var madFormat = layout.Of[*MAD]("PM MAD", mad.Size)

// String prints the fields; reserved bytes are left out.
func (m MAD) String() string { return layout.Print(m) }

// UnmarshalBinary reads a whole datagram of exactly mad.Size bytes. It must be
// of the class of performance management.
func (m *MAD) UnmarshalBinary(data []byte) error {
	if len(data) != mad.Size {
		return fmt.Errorf("PM MAD: %d bytes, want %d", len(data), mad.Size)
	}
	if err := checkClass(mad.Class(data[mad.OffsetClass])); err != nil {
		return err
	}
	madFormat.Decode(m, data)
	return nil
}

// AppendBinary appends the mad.Size bytes of the datagram to b. It fails for
// another class.
func (m *MAD) AppendBinary(b []byte) ([]byte, error) {
	if err := checkClass(m.Class); err != nil {
		return b, err
	}
	return madFormat.Append(b, m)
}

func checkClass(c mad.Class) error {
	if c != mad.ClassPerfMgt {
		return fmt.Errorf("PM MAD: management class 0x%02x, want 0x%02x", uint8(c), uint8(mad.ClassPerfMgt))
	}
	return nil
}
