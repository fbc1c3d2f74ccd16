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
// switch does that changes its lane. A packet too short to have one is left
// alone.
func SealVCRC(packet []byte) {
	if end := len(packet) - VCRCSize; end >= LRHSize {
		binary.LittleEndian.PutUint16(packet[end:], vcrc(packet[:end]))
	}
}

// crcOfOnes is the state of the ICRC after the eight octets of ones that stand
// for the LRH of a global packet.
const crcOfOnes uint32 = 0xDEBB_20E3

// icrc is the CRC-32 of Ethernet over b, with the fields that change on the
// way replaced by ones: the lane in the LRH and octet 4 of the BTH; with a GRH
// the whole LRH and TClass, FlowLabel and HopLmt too.
func icrc(b []byte) (uint32, error) {
	h, err := ParseLRH(b)
	if err != nil {
		return 0, err
	}
	var crc uint32
	bth := LRHSize
	switch h.LNH() {
	case LNHLocal:
		if len(b) < bth+BTHSize {
			return 0, shortError(b, "LRH and BTH", bth+BTHSize)
		}
		crc = ^crcOctet(^uint32(0), b[0]|0xF0)
		crc = crc32.Update(crc, crc32.IEEETable, b[1:bth+bthVariant])
	case LNHGlobal:
		bth += GRHSize
		if len(b) < bth+BTHSize {
			return 0, shortError(b, "LRH, GRH and BTH", bth+BTHSize)
		}
		crc = ^crcOfGRH((*GRH)(b[LRHSize:]))
		crc = crc32.Update(crc, crc32.IEEETable, b[LRHSize+8:bth+bthVariant])
	default:
		return 0, ErrNoICRC
	}
	crc = ^crcOctet(^crc, 0xFF)
	return crc32.Update(crc, crc32.IEEETable, b[bth+bthVariant+1:]), nil
}

// crcOfGRH is the state after the LRH and the first 8 octets of the GRH.
func crcOfGRH(h *GRH) uint32 {
	crc := crcOctet(crcOfOnes, h[0]|0x0F)
	for range 3 { // rest of TClass, FlowLabel
		crc = crcOctet(crc, 0xFF)
	}
	for _, x := range h[4:7] { // PayLen, NxtHdr
		crc = crcOctet(crc, x)
	}
	return crcOctet(crc, 0xFF) // HopLmt
}

// crcOctet feeds one octet. The masked octets go this way because a buffer
// handed to crc32.Update would be allocated for each packet.
func crcOctet(crc uint32, x byte) uint32 { return crc32.IEEETable[byte(crc)^x] ^ crc>>8 }

func shortError(b []byte, what string, want int) error {
	return fmt.Errorf("packet: %d octets, %s alone have %d", len(b), what, want)
}

// vcrcPolynomial is 0x100B with its bits reversed.
const vcrcPolynomial = 0xD008

// vcrcTables[k][x] is the effect of octet x followed by k octets of zero.
var vcrcTables = func() (tables [8][256]uint16) {
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
	for k := 1; k < 8; k++ {
		for x := range 256 {
			crc := tables[k-1][x]
			tables[k][x] = crc>>8 ^ tables[0][byte(crc)]
		}
	}
	return tables
}()

// vcrc is the CRC-16 over b, eight octets at a time.
func vcrc(b []byte) uint16 {
	t := &vcrcTables
	crc := ^uint16(0)
	for len(b) >= 8 {
		crc ^= binary.LittleEndian.Uint16(b)
		crc = t[7][byte(crc)] ^ t[6][crc>>8] ^ t[5][b[2]] ^ t[4][b[3]] ^
			t[3][b[4]] ^ t[2][b[5]] ^ t[1][b[6]] ^ t[0][b[7]]
		b = b[8:]
	}
	for _, x := range b {
		crc = crc>>8 ^ t[0][byte(crc)^x]
	}
	return ^crc
}
