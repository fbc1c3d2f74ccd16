package smp

import (
	"github.com/ibwarden/ibwarden/ib/internal/layout"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// VendorDiagDataSize is the length of VendorDiag.DiagData in bytes.
const VendorDiagDataSize = 62

// VendorDiag is one block of a chain of diagnostic data. The modifier is the
// index of the block. Read only.
type VendorDiag struct {
	NextIndex uint16                   `ib:"0,16"` // of the next block of the chain, 0 at its end
	DiagData  [VendorDiagDataSize]byte `ib:"16,496"`
}

// AttrVendorDiag is the number of VendorDiag.
const AttrVendorDiag mad.AttributeID = 0x0030

var vendorDiagFormat = add[VendorDiag](Descriptor{ID: AttrVendorDiag, Size: mad.DataSize, Access: AccessGet, Modifier: ModifierBlock, Of: OfEndPort})

// ID is AttrVendorDiag.
func (*VendorDiag) ID() mad.AttributeID { return AttrVendorDiag }

// String prints the fields; reserved bits are left out.
func (a VendorDiag) String() string { return layout.Print(a) }

// UnmarshalBinary reads 64 bytes.
func (d *VendorDiag) UnmarshalBinary(data []byte) error { return vendorDiagFormat.Unmarshal(d, data) }

// Encode writes the 64 bytes of data; it cannot fail.
func (d *VendorDiag) Encode(dst *[mad.DataSize]byte) error { return vendorDiagFormat.Encode(d, dst[:]) }

// AppendBinary appends the 64 bytes of data.
func (d *VendorDiag) AppendBinary(b []byte) ([]byte, error) { return appendEncoded(b, d) }

// DiagCode is PortInfo.DiagCode, the health of a port.
type DiagCode uint16

// The universal codes, the low 4 bits of DiagCode. Higher ones are reserved.
const (
	DiagReady        = 0
	DiagSelfTest     = 1
	DiagInitializing = 2
	DiagSoftError    = 3 // an error, but the port works
	DiagHardFailure  = 4
)

// Universal is the part of the code that has the same meaning everywhere.
func (c DiagCode) Universal() uint8 { return uint8(c & 0x0F) }

// Meaning says what the universal code means, for people. It never calls a code
// healthy that is not: bits 3:0 of zero with other bits set, and the reserved codes,
// have no meaning.
func (c DiagCode) Meaning() string {
	switch c.Universal() {
	case DiagSelfTest:
		return "self-test running"
	case DiagInitializing:
		return "initializing"
	case DiagSoftError:
		return "soft error, port works"
	case DiagHardFailure:
		return "hard failure"
	}
	if c.IsReady() {
		return "ready"
	}
	return "unknown code"
}

// IsReady reports whether the code is 0.
func (c DiagCode) IsReady() bool { return c == DiagReady }

// IsOperative reports whether a port that says c carries data: it does not while it
// tests itself or initializes, nor after a hard failure. A code without a meaning
// says nothing of that.
func (c DiagCode) IsOperative() bool {
	switch c.Universal() {
	case DiagSelfTest, DiagInitializing, DiagHardFailure:
		return false
	}
	return true
}

// VendorDiagIndex is the modifier of the first VendorDiag block about an
// error, when there is one.
func (c DiagCode) VendorDiagIndex() (index uint16, ok bool) {
	u := c.Universal()
	if u != DiagSoftError && u != DiagHardFailure || c>>15 == 0 {
		return 0, false
	}
	return uint16(c >> 4 & 0x7FF), true
}

// VendorCode is what the vendor says about an error without a VendorDiag
// block.
func (c DiagCode) VendorCode() (code uint16, ok bool) {
	u := c.Universal()
	if u != DiagSoftError && u != DiagHardFailure || c>>15 != 0 {
		return 0, false
	}
	return uint16(c >> 4), true
}
