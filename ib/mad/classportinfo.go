package mad

import (
	"encoding/binary"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
)

// AttrClassPortInfo is the attribute that general management classes have in
// common.
const AttrClassPortInfo AttributeID = 0x0001

// ClassPortInfoSize is the length of ClassPortInfo in bytes.
const ClassPortInfoSize = 72

// ClassCapability is ClassPortInfo.CapabilityMask: what the agent of a class
// can do. Bits from 8 up have a meaning of their own in each class.
type ClassCapability uint16

// The bits of ClassCapability that all classes share.
const (
	ClassCapTraps           ClassCapability = 1 << 0 // it sends traps
	ClassCapNotice          ClassCapability = 1 << 1 // it answers Get and Set of Notice
	ClassCapCapabilityMask2 ClassCapability = 1 << 2 // CapabilityMask2 is valid
)

// Has reports whether all bits of want are set.
func (c ClassCapability) Has(want ClassCapability) bool { return c&want == want }

// ClassCapability2 is ClassPortInfo.CapabilityMask2, of 27 bits. All have a meaning of
// their own in each class, and none unless ClassCapCapabilityMask2 is set.
type ClassCapability2 uint32

// Has reports whether all bits of want are set.
func (c ClassCapability2) Has(want ClassCapability2) bool { return c&want == want }

// ClassAddress is where datagrams of a class are to go.
type ClassAddress struct {
	GID  ib.GID
	TC   uint8  // traffic class
	SL   ib.SL  // 4 bits
	FL   uint32 // flow label, 20 bits
	LID  ib.LID // 0: by GID
	PKey ib.PKey
	HL   uint8  // hop limit; reserved in ClassPortInfo.Redirect
	QP   ib.QPN // 24 bits
	QKey ib.QKey
}

// ClassPortInfo describes the agent of a management class. All but Trap is read
// only.
type ClassPortInfo struct {
	BaseVersion     uint8
	ClassVersion    uint8
	CapabilityMask  ClassCapability
	CapabilityMask2 ClassCapability2 // 27 bits
	RespTimeValue   ib.TimeValue     // 5 bits: longest time to a response
	Redirect        ClassAddress     // of the agent that answers in its place; zero for itself
	Trap            ClassAddress     // of the receiver of the agent's traps
}

const (
	offRedirect = 8
	offTrap     = 40
)

// ID is AttrClassPortInfo.
func (*ClassPortInfo) ID() AttributeID { return AttrClassPortInfo }

// UnmarshalBinary reads the first ClassPortInfoSize bytes of data.
func (c *ClassPortInfo) UnmarshalBinary(data []byte) error {
	if len(data) < ClassPortInfoSize {
		return fmt.Errorf("ClassPortInfo: %d bytes, want %d", len(data), ClassPortInfoSize)
	}
	word := binary.BigEndian.Uint32(data[4:])
	*c = ClassPortInfo{
		BaseVersion:     data[0],
		ClassVersion:    data[1],
		CapabilityMask:  ClassCapability(binary.BigEndian.Uint16(data[2:])),
		CapabilityMask2: ClassCapability2(word >> 5),
		RespTimeValue:   ib.TimeValue(word & 0x1F),
		Redirect:        readClassAddress(data[offRedirect:]),
		Trap:            readClassAddress(data[offTrap:]),
	}
	return nil
}

// AppendBinary appends the ClassPortInfoSize bytes of the attribute to b. It
// fails for a value that does not fit its bits.
func (c *ClassPortInfo) AppendBinary(b []byte) ([]byte, error) {
	if err := fits("ClassPortInfo.CapabilityMask2", uint64(c.CapabilityMask2), 27); err != nil {
		return b, err
	}
	if err := fits("ClassPortInfo.RespTimeValue", uint64(c.RespTimeValue), 5); err != nil {
		return b, err
	}
	if err := c.Redirect.check("ClassPortInfo.Redirect"); err != nil {
		return b, err
	}
	if err := c.Trap.check("ClassPortInfo.Trap"); err != nil {
		return b, err
	}
	b = append(b, c.BaseVersion, c.ClassVersion)
	b = binary.BigEndian.AppendUint16(b, uint16(c.CapabilityMask))
	b = binary.BigEndian.AppendUint32(b, uint32(c.CapabilityMask2)<<5|uint32(c.RespTimeValue))
	return c.Trap.append(c.Redirect.append(b)), nil
}

func readClassAddress(b []byte) ClassAddress {
	route := binary.BigEndian.Uint32(b[16:])
	queue := binary.BigEndian.Uint32(b[24:])
	return ClassAddress{
		GID:  ib.GID(b[:16]),
		TC:   uint8(route >> 24),
		SL:   ib.SL(route >> 20 & 0x0F),
		FL:   route & 0xF_FFFF,
		LID:  ib.LID(binary.BigEndian.Uint16(b[20:])),
		PKey: ib.PKey(binary.BigEndian.Uint16(b[22:])),
		HL:   uint8(queue >> 24),
		QP:   ib.QPN(queue & 0xFF_FFFF),
		QKey: ib.QKey(binary.BigEndian.Uint32(b[28:])),
	}
}

func (a *ClassAddress) check(field string) error {
	if err := fits(field+".SL", uint64(a.SL), 4); err != nil {
		return err
	}
	if err := fits(field+".FL", uint64(a.FL), 20); err != nil {
		return err
	}
	return fits(field+".QP", uint64(a.QP), 24)
}

func (a *ClassAddress) append(b []byte) []byte {
	b = append(b, a.GID[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(a.TC)<<24|uint32(a.SL)<<20|a.FL)
	b = binary.BigEndian.AppendUint16(b, uint16(a.LID))
	b = binary.BigEndian.AppendUint16(b, uint16(a.PKey))
	b = binary.BigEndian.AppendUint32(b, uint32(a.HL)<<24|uint32(a.QP))
	return binary.BigEndian.AppendUint32(b, uint32(a.QKey))
}
