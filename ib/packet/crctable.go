package packet

import (
	"encoding/binary"
	"hash/crc32"
)

// crc32Rest feeds bytes of any number by tables, and by what hash/crc32 knows of the
// processor.
func crc32Rest(crc uint32, rest []byte) uint32 {
	if long := len(rest) &^ (crcStride - 1); long >= crcLong {
		crc = ^crc32.Update(^crc, crc32.IEEETable, rest[:long])
		rest = rest[long:]
	}
	for ; len(rest) >= 8; rest = rest[8:] {
		crc = crcWord(crc, binary.LittleEndian.Uint64(rest))
	}
	if len(rest) >= 4 {
		crc = crcHalf(crc, binary.LittleEndian.Uint32(rest))
		rest = rest[4:]
	}
	for _, x := range rest {
		crc = crc32.IEEETable[byte(crc)^x] ^ crc>>8
	}
	return crc
}

// crcLong is from how many bytes on hash/crc32 is faster: it has the means of
// the processor, for whole strides; the rest it takes byte by byte.
const (
	crcLong   = 64
	crcStride = 16
)

// crcTables[k][x] is the effect of byte x followed by k bytes of zero.
var crcTables = func() (tables [8][256]uint32) {
	tables[0] = *crc32.IEEETable
	for k := 1; k < 8; k++ {
		for x := range 256 {
			crc := tables[k-1][x]
			tables[k][x] = crc>>8 ^ tables[0][byte(crc)]
		}
	}
	return tables
}()

// crcWord feeds eight bytes, the first the lowest.
func crcWord(crc uint32, w uint64) uint32 {
	t := &crcTables
	rest := t[3][byte(w>>32)] ^ t[2][byte(w>>40)] ^ t[1][byte(w>>48)] ^ t[0][byte(w>>56)]
	crc ^= uint32(w)
	return rest ^ (t[7][byte(crc)] ^ t[6][byte(crc>>8)] ^ t[5][byte(crc>>16)] ^ t[4][byte(crc>>24)])
}

// crcHalf feeds four bytes, the first the lowest.
func crcHalf(crc, w uint32) uint32 {
	t := &crcTables
	w ^= crc
	return t[3][byte(w)] ^ t[2][byte(w>>8)] ^ t[1][byte(w>>16)] ^ t[0][byte(w>>24)]
}

// vcrcPolynomial is 0x100B with its bits reversed.
const vcrcPolynomial = 0xD008

// vcrcTables[k][x] is the effect of byte x followed by k bytes of zero.
var vcrcTables = func() (tables [16][256]uint16) {
	for x := range 256 {
		crc := uint16(x)
		for range 8 {
			if crc&1 != 0 {
				crc = crc>>1 ^ vcrcPolynomial
			} else {
				crc >>= 1
			}
		}
		tables[0][x] = crc
	}
	for k := 1; k < len(tables); k++ {
		for x := range 256 {
			crc := tables[k-1][x]
			tables[k][x] = crc>>8 ^ tables[0][byte(crc)]
		}
	}
	return tables
}()

// vcrcByTables is the CRC-16 over b, sixteen bytes at a time. Only two of those depend on
// the CRC of what went before, and come last, so that the processor has the others
// ready by then.
func vcrcByTables(b []byte) uint16 {
	t := &vcrcTables
	crc := ^uint16(0)
	for ; len(b) >= 16; b = b[16:] {
		w, x := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		first := t[13][byte(w>>16)] ^ t[12][byte(w>>24)] ^
			t[11][byte(w>>32)] ^ t[10][byte(w>>40)] ^ t[9][byte(w>>48)] ^ t[8][byte(w>>56)]
		second := t[7][byte(x)] ^ t[6][byte(x>>8)] ^ t[5][byte(x>>16)] ^ t[4][byte(x>>24)] ^
			t[3][byte(x>>32)] ^ t[2][byte(x>>40)] ^ t[1][byte(x>>48)] ^ t[0][byte(x>>56)]
		crc ^= uint16(w)
		crc = first ^ second ^ (t[15][byte(crc)] ^ t[14][byte(crc>>8)])
	}
	if len(b) >= 8 {
		w := binary.LittleEndian.Uint64(b)
		rest := t[5][byte(w>>16)] ^ t[4][byte(w>>24)] ^
			t[3][byte(w>>32)] ^ t[2][byte(w>>40)] ^ t[1][byte(w>>48)] ^ t[0][byte(w>>56)]
		crc ^= uint16(w)
		crc = rest ^ (t[7][byte(crc)] ^ t[6][byte(crc>>8)])
		b = b[8:]
	}
	if len(b) >= 4 {
		w := binary.LittleEndian.Uint32(b) ^ uint32(crc)
		crc = t[3][byte(w)] ^ t[2][byte(w>>8)] ^ t[1][byte(w>>16)] ^ t[0][byte(w>>24)]
		b = b[4:]
	}
	for _, x := range b {
		crc = crc>>8 ^ t[0][byte(crc)^x]
	}
	return ^crc
}
