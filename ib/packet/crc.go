package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// Lengths of the checksums in octets.
const (
	ICRCSize = 4
	VCRCSize = 2
)

// ErrNoICRC is the error of asking for the ICRC of a raw packet.
var ErrNoICRC = errors.New("a raw packet has no ICRC")

// AppendICRC appends the invariant CRC to b, which holds a packet from the LRH
// to the last pad octet. It fails when b is too short for the headers that the
// CRC treats apart, and with ErrNoICRC for a raw packet.
func AppendICRC(b []byte) ([]byte, error) {
	crc, err := icrc(b)
	if err != nil {
		return b, err
	}
	return binary.LittleEndian.AppendUint32(b, crc), nil
}

// AppendVCRC appends the variant CRC to b, which holds a packet from the LRH
// to the ICRC (or to the payload of a raw packet).
func AppendVCRC(b []byte) []byte {
	return binary.LittleEndian.AppendUint16(b, vcrc(b))
}

// CheckICRC reports whether the invariant CRC of a whole packet, LRH to VCRC,
// is right. It fails where AppendICRC does.
func CheckICRC(packet []byte) (bool, error) {
	end := len(packet) - VCRCSize - ICRCSize
	crc, err := icrc(packet[:max(end, 0)])
	if err != nil {
		return false, err
	}
	return crc == binary.LittleEndian.Uint32(packet[end:]), nil
}

// CheckVCRC reports whether the variant CRC of a whole packet, LRH to VCRC, is
// right. A packet too short to have one is not right.
func CheckVCRC(packet []byte) bool {
	end := len(packet) - VCRCSize
	return end >= LRHSize && vcrc(packet[:end]) == binary.LittleEndian.Uint16(packet[end:])
}

// Seal computes the CRCs of a whole packet, LRH to VCRC, and puts them in
// their places at its end. It fails where AppendICRC does, except that a raw
// packet gets its VCRC only.
func Seal(packet []byte) error {
	h, err := ParseLRH(packet)
	if err != nil {
		return err
	}
	if h.LNH().IsRaw() {
		if len(packet) < LRHSize+VCRCSize {
			return fmt.Errorf("packet: %d octets, no room for the VCRC", len(packet))
		}
	} else {
		end := len(packet) - VCRCSize - ICRCSize
		crc, err := icrc(packet[:max(end, 0)])
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint32(packet[end:], crc)
	}
	SealVCRC(packet)
	return nil
}

// SealVCRC computes the variant CRC of a whole packet, LRH to VCRC, as every
// switch does that changes its virtual lane. A packet too short to have one is left
// alone.
func SealVCRC(packet []byte) {
	if end := len(packet) - VCRCSize; end >= LRHSize {
		binary.LittleEndian.PutUint16(packet[end:], vcrc(packet[:end]))
	}
}

// icrc is the CRC-32 of Ethernet over b, with the fields that change on the
// way replaced by ones: the virtual lane in the LRH and octet 4 of the BTH; with a GRH
// the whole LRH and TClass, FlowLabel and HopLmt too.
func icrc(b []byte) (uint32, error) {
	h, err := ParseLRH(b)
	if err != nil {
		return 0, err
	}
	word := binary.LittleEndian.Uint64
	crc := ^uint32(0)
	bth := LRHSize
	switch h.LNH() {
	case LNHLocal:
		if len(b) < bth+BTHSize {
			return 0, shortError(b, "LRH and BTH", bth+BTHSize)
		}
		crc = crcWord(crc, word(b)|onesOfLRH)
	case LNHGlobal:
		bth += GRHSize
		if len(b) < bth+BTHSize {
			return 0, shortError(b, "LRH, GRH and BTH", bth+BTHSize)
		}
		crc = crcWord(crc, ^uint64(0))
		crc = crcWord(crc, word(b[LRHSize:])|onesOfGRH)
		for at := LRHSize + 8; at < bth; at += 8 {
			crc = crcWord(crc, word(b[at:]))
		}
	default:
		return 0, ErrNoICRC
	}
	crc = crcWord(crc, word(b[bth:])|onesOfBTH)
	rest := b[bth+8:]
	if long := len(rest) &^ (crcStride - 1); long >= crcLong {
		crc = ^crc32.Update(^crc, crc32.IEEETable, rest[:long])
		rest = rest[long:]
	}
	for ; len(rest) >= 8; rest = rest[8:] {
		crc = crcWord(crc, word(rest))
	}
	if len(rest) >= 4 {
		crc = crcHalf(crc, binary.LittleEndian.Uint32(rest))
		rest = rest[4:]
	}
	for _, x := range rest {
		crc = crc32.IEEETable[byte(crc)^x] ^ crc>>8
	}
	return ^crc, nil
}

// Fields of the first octets of headers that change on the way, as words whose
// first octet is the lowest.
const (
	onesOfLRH uint64 = 0xF0                  // VL
	onesOfGRH uint64 = 0xFF00_0000_FFFF_FF0F // TClass, FlowLabel, HopLmt
	onesOfBTH uint64 = 0xFF << 32            // FECN, BECN and the reserved bits after them
)

// crcLong is from how many octets on hash/crc32 is faster: it has the means of
// the processor, for whole strides; the rest it takes octet by octet.
const (
	crcLong   = 64
	crcStride = 16
)

// crcTables[k][x] is the effect of octet x followed by k octets of zero.
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

// crcWord feeds eight octets, the first the lowest.
func crcWord(crc uint32, w uint64) uint32 {
	t := &crcTables
	rest := t[3][byte(w>>32)] ^ t[2][byte(w>>40)] ^ t[1][byte(w>>48)] ^ t[0][byte(w>>56)]
	crc ^= uint32(w)
	return rest ^ (t[7][byte(crc)] ^ t[6][byte(crc>>8)] ^ t[5][byte(crc>>16)] ^ t[4][byte(crc>>24)])
}

// crcHalf feeds four octets, the first the lowest.
func crcHalf(crc, w uint32) uint32 {
	t := &crcTables
	w ^= crc
	return t[3][byte(w)] ^ t[2][byte(w>>8)] ^ t[1][byte(w>>16)] ^ t[0][byte(w>>24)]
}

func shortError(b []byte, what string, want int) error {
	return fmt.Errorf("packet: %d octets, %s alone have %d", len(b), what, want)
}

// vcrcPolynomial is 0x100B with its bits reversed.
const vcrcPolynomial = 0xD008

// vcrcTables[k][x] is the effect of octet x followed by k octets of zero.
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

// vcrc is the CRC-16 over b, sixteen octets at a time. Only two of those depend on
// the CRC of what went before, and come last, so that the processor has the others
// ready by then.
func vcrc(b []byte) uint16 {
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
