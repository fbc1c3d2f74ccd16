package smp

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// Attribute is what every attribute of this package can do.
type Attribute interface {
	// ID is the attribute's number in the MAD header.
	ID() mad.AttributeID
	// UnmarshalBinary reads the attribute from its bytes.
	UnmarshalBinary(data []byte) error
	// AppendBinary appends mad.DataSize bytes to b; on an error b is
	// returned as it was.
	AppendBinary(b []byte) ([]byte, error)
	// Encode writes the whole of dst; on an error dst stays as it was.
	Encode(dst *[mad.DataSize]byte) error
}

// appendEncoded is the AppendBinary of every attribute.
func appendEncoded(b []byte, a Attribute) ([]byte, error) {
	n := len(b)
	b = append(b, make([]byte, mad.DataSize)...)
	if err := a.Encode((*[mad.DataSize]byte)(b[n:])); err != nil {
		return b[:n], err
	}
	return b, nil
}

// checkLength refuses data that cannot be an attribute of size bytes.
func checkLength(attribute string, data []byte, size int) error {
	if len(data) < size || len(data) > mad.DataSize {
		return fmt.Errorf("%s: %d bytes, want %d to %d", attribute, len(data), size, mad.DataSize)
	}
	return nil
}

// spare holds the bits of an attribute that no field covers, at their places;
// Encode starts from it.
type spare [mad.DataSize]byte

// widths finds the first field whose value does not fit its bits.
type widths struct {
	field string
	value uint64
	bits  uint
}

func (w *widths) check(field string, value uint64, bits uint) {
	if value>>bits != 0 && w.field == "" {
		*w = widths{field, value, bits}
	}
}

func (w *widths) err(attribute string) error {
	if w.field == "" {
		return nil
	}
	return fmt.Errorf("%s.%s: value %#x does not fit %d bits", attribute, w.field, w.value, w.bits)
}

// flag is bit number n of a byte, when set.
func flag(set bool, n uint) byte {
	if set {
		return 1 << n
	}
	return 0
}

// isSet reports bit number n of a byte.
func isSet(b byte, n uint) bool { return b>>n&1 != 0 }

// uint24 reads three bytes.
func uint24(b []byte) uint32 {
	return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
}

// putUint24 writes the low 24 bits of v.
func putUint24(b []byte, v uint32) {
	b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v)
}
