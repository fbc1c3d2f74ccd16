package sa

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Record is what every record of this package can do.
type Record interface {
	// ID is the record's number in the MAD header.
	ID() mad.AttributeID
	// UnmarshalBinary reads the record from the start of data.
	UnmarshalBinary(data []byte) error
	// AppendBinary appends the record to b, filled up to a multiple of 8
	// bytes; on an error b is returned as it was.
	AppendBinary(b []byte) ([]byte, error)
}

// offsetUnit is the unit of MAD.AttributeOffset in bytes.
const offsetUnit = 8

// coded is a record that describes its layout once, for both directions.
type coded interface {
	ID() mad.AttributeID
	// layout gives every field to c, in order and without gaps.
	layout(c *coder)
}

// decode reads the size bytes of a record from the start of data.
func decode[T any, P interface {
	*T
	coded
}](r P, size int, data []byte) error {
	if len(data) < size {
		return fmt.Errorf("%s: %d bytes, want %d", AttributeName(r.ID()), len(data), size)
	}
	var v T
	c := coder{data: data[:size]}
	P(&v).layout(&c)
	if err := c.result(r); err != nil {
		return err
	}
	*r = v
	return nil
}

// encode appends the size bytes of a record to b, and filling.
func encode(r coded, size int, b []byte) ([]byte, error) {
	start := len(b)
	filled := (size + offsetUnit - 1) / offsetUnit * offsetUnit
	whole := append(b, make([]byte, filled)...)
	c := coder{data: whole[start:], writing: true}
	r.layout(&c)
	if err := c.result(r); err != nil {
		return b, err
	}
	return whole, nil
}

// coder goes over the bytes of a record field by field.
type coder struct {
	data    []byte // when writing, zero from here on
	at      int    // next bit, 0 being the most significant of the first byte
	writing bool
	err     error // the first
}

func (c *coder) result(r coded) error {
	if c.err != nil {
		return fmt.Errorf("%s.%w", AttributeName(r.ID()), c.err)
	}
	return nil
}

// number reads or writes a field of up to 64 bits.
func number[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *coder, name string, field *T, width int) {
	if !c.writing {
		*field = T(c.get(width))
		return
	}
	value := uint64(*field)
	if value>>width != 0 && c.err == nil {
		c.err = fmt.Errorf("%s: value %#x does not fit %d bits", name, value, width)
	}
	c.put(value, width)
}

// numbers reads or writes an array of fields that fill their type.
func numbers[T ~uint8 | ~uint16 | ~uint32 | ~uint64](c *coder, fields []T, width int) {
	for i := range fields {
		number(c, "", &fields[i], width)
	}
}

// flag reads or writes one bit.
func (c *coder) flag(field *bool) {
	if !c.writing {
		*field = c.get(1) != 0
		return
	}
	if *field {
		c.put(1, 1)
	} else {
		c.put(0, 1)
	}
}

// bytes reads or writes whole bytes; the next bit begins one.
func (c *coder) bytes(field []byte) {
	at := c.data[c.at/8:]
	if c.writing {
		copy(at, field)
	} else {
		copy(field, at)
	}
	c.at += 8 * len(field)
}

// attribute reads or writes the first size bytes of a subnet-management
// attribute; the next bit begins a byte.
func (c *coder) attribute(name string, a smp.Attribute, size int) {
	at := c.data[c.at/8:][:size]
	c.at += 8 * size
	var err error
	if c.writing {
		var whole [mad.DataSize]byte
		err = a.Encode(&whole)
		copy(at, whole[:])
	} else {
		err = a.UnmarshalBinary(at)
	}
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("%s: %w", name, err)
	}
}

// get takes the next width bits.
func (c *coder) get(width int) (value uint64) {
	for width > 0 {
		at, room, n := c.step(width)
		value = value<<n | uint64(*at>>(room-n)&(1<<n-1))
		width -= n
	}
	return value
}

// put sets the next width bits to the low bits of value.
func (c *coder) put(value uint64, width int) {
	for width > 0 {
		at, room, n := c.step(width)
		width -= n
		*at |= byte(value>>width) & (1<<n - 1) << (room - n)
	}
}

// step goes on by up to width bits inside one byte: it gives the byte, the
// bits that were left in it, and how many of them are taken.
func (c *coder) step(width int) (at *byte, room, n int) {
	at = &c.data[c.at/8]
	room = 8 - c.at%8
	n = min(room, width)
	c.at += n
	return at, room, n
}
