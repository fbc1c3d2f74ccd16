// Package layout reads, writes and prints structures whose fields say where they are on the wire,
// in a tag with the two numbers of the architecture's tables: the offset in bits from the
// most significant bit of the first byte, and the length in bits.
//
//	PortState PortState `ib:"260,4"`
//
// The length of an array is that of all its elements, and a structure inside another counts
// offsets from its own start. Fields that are not exported hold reserved bits: those that the tag names,
// or with `ib:"spare"` those that no other field has, as bytes at their places or, behind all
// others, as a string. Every bit is in one field and no other, or Of panics: a
// mistake in a tag shows when the program starts.
package layout

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// Layout says where the fields of the structure that a P points to are. It has the pointer's type for
// its own, since the compiler makes code for all pointers once and for each structure again.
type Layout[P any] struct{ plan }

// Of is the layout of what a P points to in so many bytes, from the tags of its fields. name is that of
// the structure in errors.
func Of[P any](name string, size int) *Layout[P] {
	t := reflect.TypeFor[P]().Elem()
	c := compiler{plan: plan{name: name, size: size, filled: size}, used: make([]bool, 8*size)}
	c.structure(t, place{path: name + ".", bits: 8 * size})
	if bit := slices.Index(c.used, false); bit >= 0 {
		panic(fmt.Sprintf("%s: no field has bit %d", name, bit))
	}
	c.limit(int(t.Size()))
	return &Layout[P]{c.plan}
}

// Decode reads all fields of v from data, which has the size of the layout at least.
func (l *Layout[P]) Decode(v P, data []byte) { l.decode(pointer(&v), data) }

// Encode writes all fields of v to data, which has the size of the layout at least. It fails for a value
// that needs more bits than its field has, and names the first; nothing is written then.
func (l *Layout[P]) Encode(v P, data []byte) error { return l.encode(pointer(&v), data) }

// pointer is a pointer of whatever type as one of none. What has a type parameter is short enough
// here for the compiler to put it into its caller: of what is not, it takes arguments to escape, so
// that they would be allocated.
func pointer[P any](p *P) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(p)) }

// From lets Unmarshal take data of so many bytes and more, but none behind the layout: what is
// missing counts as zero. The layout may have up to shortMax bytes. It returns l.
func (l *Layout[P]) From(least int) *Layout[P] {
	if l.size > shortMax {
		panic(fmt.Sprintf("%s: %d bytes, want at most %d", l.name, l.size, shortMax))
	}
	l.least = least
	return l
}

// FillTo lets Append fill up with zeros to a multiple of so many bytes. It returns l.
func (l *Layout[P]) FillTo(unit int) *Layout[P] {
	l.filled = (l.size + unit - 1) / unit * unit
	return l
}

// Unmarshal is Decode from the start of data. It fails when data is too short.
func (l *Layout[P]) Unmarshal(v P, data []byte) error { return l.unmarshal(pointer(&v), data) }

// Append appends v to b. It fails as Encode does, and then returns b as it was.
func (l *Layout[P]) Append(b []byte, v P) ([]byte, error) { return l.append(b, pointer(&v)) }

// Field is a number or an array of bytes with its place.
type Field struct {
	// Name is that of errors: "PortInfo.LMC", "ClassPortInfo.Trap.SL",
	// "PortInfoRecord.PortInfo: PortInfo.LMC".
	Name string
	// Bit is the offset, and Bits the length, in bits.
	Bit, Bits int
	// Reserved is set where users do not see it.
	Reserved bool

	field uint16
	size  uint8 // of the number in memory in bytes, 0 of bytes
}

// Fields are the fields in the order of the structure, those of structures inside among them; arrays
// of whole numbers are one field, others have one for each element.
func (l *Layout[P]) Fields() []Field { return l.fields }

// plan is what is done to read or write a structure, sorted by kind: each has a loop that decides
// nothing, in a function of its own, where all its variables are in registers. A PortInfo of 59 fields
// takes two to four times as long as code written for it alone would. Fields are addressed by
// their offset in memory, as reflect gave it for the type that Layout is bound to; reflect.Value
// would be too slow for what a sweep reads of a large fabric.
type plan struct {
	name   string
	size   int
	least  int // that Unmarshal takes; 0 for size and more
	filled int // size as Append writes it
	limits []limit
	pairs  []pair
	odd    []odd
	bytes  []run // [n]uint8
	run16  []run // whole numbers of 2, 4 and 8 bytes, which begin with a byte
	run32  []run
	run64  []run
	rest   []run // strings: n bytes, those at the end left out that are zero
	clear  []run // bytes that nothing on the wire corresponds to
	fields []Field
}

// limit is eight bytes of memory, and the bits of them that are zero when each number there fits
// its field.
type limit struct {
	at   uint16
	mask uint64
}

// pair is two flags or numbers of a byte each in memory, a and b, that are in one byte of the wire, or
// twice the same one. One by one they would take longer.
type pair struct {
	at             uint16
	a, b           uint16
	aShift, aMask  uint8
	bShift, bMask  uint8
	aTimes, bTimes uint8    // 1<<shift: times is faster than a shift that varies
	_              [4]uint8 // a power of two in length
}

// odd is any other number. It is in the eight bytes from at on.
type odd struct {
	field, at   uint16
	shift, size uint8 // size in memory
	mask        uint64
}

// run is n elements in a row, in memory and on the wire.
type run struct{ field, at, n uint16 }

// shortMax is the most bytes of a layout of which data may be shorter.
const shortMax = 64

func (p *plan) unmarshal(to unsafe.Pointer, data []byte) error {
	var whole [shortMax]byte
	switch {
	case p.least == 0 && len(data) < p.size:
		return fmt.Errorf("%s: %d bytes, want %d", p.name, len(data), p.size)
	case p.least > 0 && (len(data) < p.least || len(data) > p.size):
		return fmt.Errorf("%s: %d bytes, want %d to %d", p.name, len(data), p.least, p.size)
	case len(data) < p.size:
		copy(whole[:], data)
		data = whole[:]
	}
	p.decode(to, data)
	return nil
}

func (p *plan) append(b []byte, from unsafe.Pointer) ([]byte, error) {
	whole := append(b, make([]byte, p.filled)...)
	if err := p.encode(from, whole[len(b):]); err != nil {
		return b, err
	}
	return whole, nil
}

func (p *plan) decode(to unsafe.Pointer, data []byte) {
	data = data[:p.size]
	decodePairs(p.pairs, to, data)
	decode16(p.run16, to, data)
	decode32(p.run32, to, data)
	decode64(p.run64, to, data)
	decodeOdd(p.odd, to, data)
	for _, o := range p.bytes {
		copy(o.memory(to), data[o.at:])
	}
	for _, o := range p.clear {
		clear(o.memory(to))
	}
	for _, o := range p.rest {
		*(*string)(unsafe.Add(to, o.field)) = string(bytes.TrimRight(data[o.at:][:o.n], "\x00"))
	}
}

// memory is the run as an array of bytes.
func (o run) memory(of unsafe.Pointer) []uint8 {
	return unsafe.Slice((*uint8)(unsafe.Add(of, o.field)), o.n)
}

// Inside decode its variables would not be in registers, and so below.
//
//go:noinline
func decodePairs(list []pair, to unsafe.Pointer, data []byte) {
	for i := range list {
		o := &list[i]
		b := data[o.at]
		*(*uint8)(unsafe.Add(to, o.a)) = b >> (o.aShift & 7) & o.aMask
		*(*uint8)(unsafe.Add(to, o.b)) = b >> (o.bShift & 7) & o.bMask
	}
}

func decode16(list []run, to unsafe.Pointer, data []byte) {
	for _, o := range list {
		dst, src := unsafe.Slice((*uint16)(unsafe.Add(to, o.field)), o.n), data[o.at:]
		for i := range dst {
			dst[i] = binary.BigEndian.Uint16(src[2*i:])
		}
	}
}

func decode32(list []run, to unsafe.Pointer, data []byte) {
	for _, o := range list {
		dst, src := unsafe.Slice((*uint32)(unsafe.Add(to, o.field)), o.n), data[o.at:]
		for i := range dst {
			dst[i] = binary.BigEndian.Uint32(src[4*i:])
		}
	}
}

func decode64(list []run, to unsafe.Pointer, data []byte) {
	for _, o := range list {
		dst, src := unsafe.Slice((*uint64)(unsafe.Add(to, o.field)), o.n), data[o.at:]
		for i := range dst {
			dst[i] = binary.BigEndian.Uint64(src[8*i:])
		}
	}
}

func decodeOdd(list []odd, to unsafe.Pointer, data []byte) {
	for i := range list {
		o := &list[i]
		v, at := binary.BigEndian.Uint64(data[o.at:])>>(o.shift&63)&o.mask, unsafe.Add(to, o.field)
		switch o.size {
		case 1:
			*(*uint8)(at) = uint8(v)
		case 2:
			*(*uint16)(at) = uint16(v)
		case 4:
			*(*uint32)(at) = uint32(v)
		default:
			*(*uint64)(at) = v
		}
	}
}

func (p *plan) encode(from unsafe.Pointer, data []byte) error {
	data = data[:p.size]
	if !p.fits(from) {
		return p.tooWide(from)
	}
	clear(data)
	encodePairs(p.pairs, from, data)
	encodeOdd(p.odd, from, data)
	encode16(p.run16, from, data)
	encode32(p.run32, from, data)
	encode64(p.run64, from, data)
	for _, o := range p.bytes {
		copy(data[o.at:], o.memory(from))
	}
	for _, o := range p.rest {
		copy(data[o.at:][:o.n], *(*string)(unsafe.Add(from, o.field)))
	}
	return nil
}

// fits reports whether all values have no more bits than their fields.
func (p *plan) fits(from unsafe.Pointer) bool {
	var wide uint64
	for _, l := range p.limits {
		wide |= binary.NativeEndian.Uint64((*[8]byte)(unsafe.Add(from, l.at))[:]) & l.mask
	}
	return wide == 0
}

//go:noinline
func encodePairs(list []pair, from unsafe.Pointer, data []byte) {
	for i := range list {
		o := &list[i]
		data[o.at] |= *(*uint8)(unsafe.Add(from, o.a))*o.aTimes | *(*uint8)(unsafe.Add(from, o.b))*o.bTimes
	}
}

func encode16(list []run, from unsafe.Pointer, data []byte) {
	for _, o := range list {
		dst := data[o.at:]
		for i, v := range unsafe.Slice((*uint16)(unsafe.Add(from, o.field)), o.n) {
			binary.BigEndian.PutUint16(dst[2*i:], v)
		}
	}
}

func encode32(list []run, from unsafe.Pointer, data []byte) {
	for _, o := range list {
		dst := data[o.at:]
		for i, v := range unsafe.Slice((*uint32)(unsafe.Add(from, o.field)), o.n) {
			binary.BigEndian.PutUint32(dst[4*i:], v)
		}
	}
}

func encode64(list []run, from unsafe.Pointer, data []byte) {
	for _, o := range list {
		dst := data[o.at:]
		for i, v := range unsafe.Slice((*uint64)(unsafe.Add(from, o.field)), o.n) {
			binary.BigEndian.PutUint64(dst[8*i:], v)
		}
	}
}

func encodeOdd(list []odd, from unsafe.Pointer, data []byte) {
	for i := range list {
		o := &list[i]
		word := data[o.at:]
		v := number(unsafe.Add(from, o.field), o.size) << (o.shift & 63)
		binary.BigEndian.PutUint64(word, binary.BigEndian.Uint64(word)|v)
	}
}

// number is a number of size bytes in memory.
func number(at unsafe.Pointer, size uint8) uint64 {
	switch size {
	case 1:
		return uint64(*(*uint8)(at))
	case 2:
		return uint64(*(*uint16)(at))
	case 4:
		return uint64(*(*uint32)(at))
	}
	return *(*uint64)(at)
}

// tooWide is the error for the first field whose value does not fit.
func (p *plan) tooWide(from unsafe.Pointer) error {
	for _, f := range p.fields {
		if f.size == 0 || f.Bits == 8*int(f.size) {
			continue
		}
		if v := number(unsafe.Add(from, f.field), f.size); v>>f.Bits != 0 {
			return fmt.Errorf("%s: value %#x does not fit %d bits", f.Name, v, f.Bits)
		}
	}
	return nil
}
