package layout

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// place is where a field is.
type place struct {
	path   string  // its name in errors; of a structure what comes before those of its fields
	memory uintptr // offset in the outermost structure
	bit    int     // offset on the wire
	bits   int     // length on the wire
}

// compiler makes a plan.
type compiler struct {
	plan
	used []bool // by bit
}

var decodes = reflect.TypeFor[encoding.BinaryUnmarshaler]()

// structure enters the fields of a structure.
func (c *compiler) structure(t reflect.Type, in place) {
	var last *reflect.StructField // takes what the others leave
	for i := range t.NumField() {
		f := t.Field(i)
		at := place{path: in.path + f.Name, memory: in.memory + f.Offset}
		tag := f.Tag.Get("ib")
		if tag == "spare" {
			last = &f
			continue
		}
		offset, length, _ := strings.Cut(tag, ",")
		bit, err := strconv.Atoi(offset)
		bits, err2 := strconv.Atoi(length)
		if err != nil || err2 != nil || bit < 0 || bits <= 0 || bit+bits > in.bits {
			panic(fmt.Sprintf("%s: tag %q, want the offset and the length in bits, within %d", at.path, tag, in.bits))
		}
		at.bit, at.bits = in.bit+bit, bits
		element := f.Type
		if f.Type.Kind() == reflect.Array {
			element = f.Type.Elem()
		}
		switch {
		case element.Kind() != reflect.Struct:
		case f.Anonymous || element != f.Type: // errors say its fields as those of the structure around
			at.path = in.path
		case reflect.PointerTo(element).Implements(decodes):
			at.path += ": " + element.Name() + "."
		default:
			at.path += "."
		}
		c.value(f.Type, at, !f.IsExported())
	}
	if last != nil {
		c.spare(*last, in)
	}
}

// value enters a field.
func (c *compiler) value(t reflect.Type, at place, reserved bool) {
	switch t.Kind() {
	case reflect.Struct:
		c.structure(t, at)
	case reflect.Array:
		c.array(t, at, reserved)
	case reflect.Bool, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if size := int(t.Size()); at.bits > 8*size || t.Kind() == reflect.Bool && at.bits != 1 {
			panic(fmt.Sprintf("%s: %d bits in a %s", at.path, at.bits, t.Kind()))
		}
		c.mark(at, reserved, t.Size())
		c.number(at, int(t.Size()))
	default:
		panic(fmt.Sprintf("%s: a field of type %s has no layout", at.path, t))
	}
}

// number enters a number of size bytes in memory.
func (c *compiler) number(at place, size int) {
	first, end := at.bit/8, at.bit+at.bits
	switch n := (end+7)/8 - first; {
	case size == 1 && n == 1:
		c.small(short(first), short(at.memory), uint8(8*(first+1)-end), math.MaxUint8>>(8-at.bits))
	case n == size && at.bits == 8*size:
		c.run(size, run{short(at.memory), short(first), 1})
	case n > 8 || c.size < 8:
		panic(fmt.Sprintf("%s: %d bits in %d bytes of %d", at.path, at.bits, n, c.size))
	default:
		first = min(first, c.size-8)
		c.odd = append(c.odd, odd{short(at.memory), short(first), uint8(8*(first+8) - end), uint8(size), math.MaxUint64 >> (64 - at.bits)})
	}
}

// small enters a number of a byte in memory and in one of the wire.
func (c *compiler) small(at, field uint16, shift, mask uint8) {
	for i := range c.pairs {
		if p := &c.pairs[i]; p.at == at && p.a == p.b {
			p.b, p.bShift, p.bMask, p.bTimes = field, shift, mask, 1<<shift
			return
		}
	}
	c.pairs = append(c.pairs, pair{at: at, a: field, b: field, aShift: shift, aMask: mask, aTimes: 1 << shift, bShift: shift, bMask: mask, bTimes: 1 << shift})
}

// run enters elements of size bytes, joined with those before where they follow in memory and on the wire.
func (c *compiler) run(size int, r run) {
	runs := map[int]*[]run{1: &c.bytes, 2: &c.run16, 4: &c.run32, 8: &c.run64}[size]
	if n := len(*runs) - 1; n >= 0 {
		before := &(*runs)[n]
		length := before.n * uint16(size)
		if before.field+length == r.field && before.at+length == r.at {
			before.n += r.n
			return
		}
	}
	*runs = append(*runs, r)
}

// array enters an array: at once when its elements are whole bytes or numbers, else one by one.
func (c *compiler) array(t reflect.Type, at place, reserved bool) {
	n, element := t.Len(), t.Elem()
	width := at.bits / n
	if width*n != at.bits {
		panic(fmt.Sprintf("%s: %d elements in %d bits", at.path, n, at.bits))
	}
	if size := int(element.Size()); element.Kind() >= reflect.Uint8 && element.Kind() <= reflect.Uint64 && at.bit%8 == 0 && width == 8*size {
		c.mark(at, reserved, 0)
		c.run(size, run{short(at.memory), short(at.bit / 8), short(n)})
		return
	}
	for i := range n {
		c.value(element, place{at.path, at.memory + uintptr(i)*element.Size(), at.bit + i*width, width}, reserved)
	}
}

// mark takes the bits of a field, which no other may have.
func (c *compiler) mark(at place, reserved bool, size uintptr) {
	for bit := at.bit; bit < at.bit+at.bits; bit++ {
		if c.used[bit] {
			panic(fmt.Sprintf("%s: another field has bit %d", at.path, bit))
		}
		c.used[bit] = true
	}
	c.fields = append(c.fields, Field{Name: at.path, Bit: at.bit, Bits: at.bits, Reserved: reserved, field: short(at.memory), size: uint8(size)})
}

// spare enters the field for the bits that no other of its structure has: an array in which each
// byte has its place, or a string with those behind the others.
func (c *compiler) spare(f reflect.StructField, in place) {
	path, memory, bytes := in.path+f.Name, in.memory+f.Offset, in.bits/8
	if in.bit%8 != 0 || in.bits%8 != 0 || f.Type.Kind() == reflect.Array && (f.Type.Elem().Kind() != reflect.Uint8 || f.Type.Len() < bytes) {
		panic(fmt.Sprintf("%s: a %s cannot hold the spare bits of %d", path, f.Type, in.bits))
	}
	if f.Type.Kind() == reflect.String {
		n := 0
		for n < bytes && !slices.Contains(c.used[in.bit+in.bits-8*(n+1):in.bit+in.bits-8*n], true) {
			n++
		}
		at := place{path, memory, in.bit + in.bits - 8*n, 8 * n}
		c.mark(at, true, 0)
		c.rest = append(c.rest, run{short(memory), short(at.bit / 8), short(n)})
		return
	}
	for i := 0; i < bytes; {
		at := place{path, memory + uintptr(i), in.bit + 8*i, 0}
		for at.bits < 8*(bytes-i) && !c.used[at.bit+at.bits] {
			at.bits++
		}
		if whole := at.bits / 8; whole > 0 {
			at.bits = 8 * whole
			c.mark(at, true, 0)
			c.run(1, run{short(at.memory), short(at.bit / 8), short(whole)})
			i += whole
			continue
		}
		c.spareBits(at)
		i++
	}
	if behind := f.Type.Len() - bytes; behind > 0 {
		c.clear = append(c.clear, run{field: short(memory + uintptr(bytes)), n: short(behind)})
	}
}

// spareBits enters the bits of one byte that are spare. They stay where they are in the byte.
func (c *compiler) spareBits(at place) {
	var mask uint8
	for i := range 8 {
		if !c.used[at.bit+i] {
			mask |= 0x80 >> i
			c.used[at.bit+i] = true
		}
	}
	if mask != 0 {
		c.fields = append(c.fields, Field{Name: at.path, Bit: at.bit, Bits: 8, Reserved: true, field: short(at.memory), size: 1})
		c.small(short(at.bit/8), short(at.memory), 0, mask)
	}
}

// limit enters the limits of a structure of so many bytes.
func (c *compiler) limit(memory int) {
	masks := make([]byte, max(memory, 8))
	for _, f := range c.fields {
		at, wide := masks[f.field:], uint64(math.MaxUint64)<<f.Bits
		switch f.size {
		case 1:
			at[0] = uint8(wide)
		case 2:
			binary.NativeEndian.PutUint16(at, uint16(wide))
		case 4:
			binary.NativeEndian.PutUint32(at, uint32(wide))
		case 8:
			binary.NativeEndian.PutUint64(at, wide)
		}
	}
	for at := 0; at < memory; at += 8 {
		at := max(0, min(at, memory-8)) // the last overlap when they are not whole
		if mask := binary.NativeEndian.Uint64(masks[at:]); mask != 0 {
			if memory < 8 {
				panic(c.name + ": numbers of less bits than their type in less than 8 bytes")
			}
			c.limits = append(c.limits, limit{short(at), mask})
		}
	}
}

// short is an offset or a length, which are short.
func short[T int | uintptr](n T) uint16 {
	if n > math.MaxUint16 {
		panic("a layout of more than 65535 bytes")
	}
	return uint16(n)
}
