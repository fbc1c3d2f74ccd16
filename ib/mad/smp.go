package mad

import (
	"encoding/binary"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
)

// Offsets and lengths inside a subnet-management packet, in bytes.
const (
	DataOffset = 64 // of the attribute
	DataSize   = 64 // of the attribute
	MaxHops    = 63 // of a directed route; element 0 of a path is never used
	PathSize   = 64 // of InitialPath and of ReturnPath

	directionBit uint16 = 0x8000 // of the Status field in a directed-route SMP
)

// SMP is a subnet-management packet, LID routed (ClassSubnLID) or directed
// route (ClassSubnDirected). The directed-route fields are kept for both
// classes, since they are reserved bytes of the LID-routed form.
type SMP struct {
	BaseVersion       uint8
	Class             Class
	ClassVersion      uint8
	Method            Method
	Direction         bool   // D: false outgoing, true returning; directed route only
	Status            Status // 15 bits in a directed-route SMP
	HopPointer        uint8
	HopCount          uint8 // hops of InitialPath, at most MaxHops
	TransactionID     uint64
	AttributeID       AttributeID
	AttributeModifier uint32
	MKey              ib.MKey
	DrSLID            ib.LID
	DrDLID            ib.LID
	Data              [DataSize]byte
	InitialPath       [PathSize]byte // element i is the exit port of hop i
	ReturnPath        [PathSize]byte // element i is the entry port of hop i

	reserved18 uint16   // bytes 18-19
	reserved36 [28]byte // bytes 36-63
}

// String prints the fields; reserved bytes are left out.
func (p SMP) String() string { return layout.Print(p) }

// UnmarshalBinary reads a whole datagram of exactly Size bytes. The packet
// must be of one of the two subnet-management classes.
func (p *SMP) UnmarshalBinary(data []byte) error {
	if len(data) != Size {
		return fmt.Errorf("SMP: %d bytes, want %d", len(data), Size)
	}
	class := Class(data[1])
	if class != ClassSubnLID && class != ClassSubnDirected {
		return fmt.Errorf("SMP: management class 0x%02x, want 0x01 or 0x81", data[1])
	}
	p.BaseVersion = data[0]
	p.Class = class
	p.ClassVersion = data[2]
	p.Method = Method(data[3])
	status := binary.BigEndian.Uint16(data[4:])
	p.Direction = false
	if class == ClassSubnDirected {
		p.Direction = status&directionBit != 0
		status &^= directionBit
	}
	p.Status = Status(status)
	p.HopPointer, p.HopCount = data[6], data[7]
	p.TransactionID = binary.BigEndian.Uint64(data[8:])
	p.AttributeID = AttributeID(binary.BigEndian.Uint16(data[16:]))
	p.reserved18 = binary.BigEndian.Uint16(data[18:])
	p.AttributeModifier = binary.BigEndian.Uint32(data[20:])
	p.MKey = ib.MKey(binary.BigEndian.Uint64(data[OffsetMKey:]))
	p.DrSLID = ib.LID(binary.BigEndian.Uint16(data[OffsetDrSLID:]))
	p.DrDLID = ib.LID(binary.BigEndian.Uint16(data[OffsetDrDLID:]))
	copy(p.reserved36[:], data[36:DataOffset])
	copy(p.Data[:], data[DataOffset:OffsetInitialPath])
	copy(p.InitialPath[:], data[OffsetInitialPath:OffsetReturnPath])
	copy(p.ReturnPath[:], data[OffsetReturnPath:])
	return nil
}

// AppendBinary appends the Size bytes of the packet to b. It fails when the
// status of a directed-route SMP needs more than its 15 bits.
func (p *SMP) AppendBinary(b []byte) ([]byte, error) {
	var buf [Size]byte
	if err := p.Encode(&buf); err != nil {
		return b, err
	}
	return append(b, buf[:]...), nil
}

// Encode writes the packet into buf without allocating; it fails as
// AppendBinary does, and then leaves buf as it was.
func (p *SMP) Encode(buf *[Size]byte) error {
	status := uint16(p.Status)
	if p.Class == ClassSubnDirected {
		if status&directionBit != 0 {
			return fmt.Errorf("SMP: status 0x%04x does not fit the 15 bits of a directed-route SMP", status)
		}
		if p.Direction {
			status |= directionBit
		}
	}
	buf[0] = p.BaseVersion
	buf[1] = byte(p.Class)
	buf[2] = p.ClassVersion
	buf[3] = byte(p.Method)
	binary.BigEndian.PutUint16(buf[4:], status)
	buf[6], buf[7] = p.HopPointer, p.HopCount
	binary.BigEndian.PutUint64(buf[8:], p.TransactionID)
	binary.BigEndian.PutUint16(buf[16:], uint16(p.AttributeID))
	binary.BigEndian.PutUint16(buf[18:], p.reserved18)
	binary.BigEndian.PutUint32(buf[20:], p.AttributeModifier)
	binary.BigEndian.PutUint64(buf[OffsetMKey:], uint64(p.MKey))
	binary.BigEndian.PutUint16(buf[OffsetDrSLID:], uint16(p.DrSLID))
	binary.BigEndian.PutUint16(buf[OffsetDrDLID:], uint16(p.DrDLID))
	copy(buf[36:DataOffset], p.reserved36[:])
	copy(buf[DataOffset:], p.Data[:])
	copy(buf[OffsetInitialPath:], p.InitialPath[:])
	copy(buf[OffsetReturnPath:], p.ReturnPath[:])
	return nil
}

// MakeResponse turns a request into its response: GetResp, the given status
// and, for a directed route, the returning direction. Everything else stays.
func (p *SMP) MakeResponse(status Status) {
	p.Method = MethodGetResp
	p.Status = status
	if p.Class == ClassSubnDirected {
		p.Direction = true
	}
}

// Path is a directed route: the exit port of each hop in order.
type Path []ib.PortNum

// String prints the path as the diagnostics do: 0, then each exit port.
func (p Path) String() string {
	s := "0"
	for _, n := range p {
		s += fmt.Sprintf(",%d", n)
	}
	return s
}
