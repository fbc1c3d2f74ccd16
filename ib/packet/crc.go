package packet

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Lengths of the checksums in bytes.
const (
	ICRCSize = 4
	VCRCSize = 2
)

// ErrNoICRC is the error of asking for the ICRC of a raw packet.
var ErrNoICRC = errors.New("a raw packet has no ICRC")

// AppendICRC appends the invariant CRC to b, which holds a packet from the LRH
// to the last pad byte. It fails when b is too short for the headers that the
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
			return fmt.Errorf("packet: %d bytes, no room for the VCRC", len(packet))
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
// way replaced by ones: the virtual lane in the LRH and byte 4 of the BTH; with a GRH
// the whole LRH and TClass, FlowLabel and HopLmt too.
func icrc(b []byte) (uint32, error) {
	h, err := ParseLRH(b)
	if err != nil {
		return 0, err
	}
	word := binary.LittleEndian.Uint64
	switch h.LNH() {
	case LNHLocal:
		if len(b) < LRHSize+BTHSize {
			return 0, shortError(b, "LRH and BTH", LRHSize+BTHSize)
		}
		return ^crc32Of(^uint32(0), word(b)|onesOfLRH, word(b[LRHSize:])|onesOfBTH, b[LRHSize+8:]), nil
	case LNHGlobal:
		const bth = LRHSize + GRHSize
		if len(b) < bth+BTHSize {
			return 0, shortError(b, "LRH, GRH and BTH", bth+BTHSize)
		}
		crc := crc32Of(^uint32(0), ^uint64(0), word(b[LRHSize:])|onesOfGRH, b[LRHSize+8:bth])
		if rest := b[bth:]; len(rest) >= 16 {
			return ^crc32Of(crc, word(rest)|onesOfBTH, word(rest[8:]), rest[16:]), nil
		}
		return ^crc32Rest(crcWord(crc, word(b[bth:])|onesOfBTH), b[bth+8:]), nil
	}
	return 0, ErrNoICRC
}

// Fields of the first bytes of headers that change on the way, as words whose
// first byte is the lowest.
const (
	onesOfLRH uint64 = 0xF0                  // VL
	onesOfGRH uint64 = 0xFF00_0000_FFFF_FF0F // TClass, FlowLabel, HopLmt
	onesOfBTH uint64 = 0xFF << 32            // FECN, BECN and the reserved bits after them
)

// crc32Of feeds 16 bytes, the first the lowest of first, and then rest, which follows 16
// bytes in memory.
func crc32Of(crc uint32, first, second uint64, rest []byte) uint32 {
	if canFold {
		return fold(icrcFolding, first^uint64(crc), second, rest)
	}
	return crc32Rest(crcWord(crcWord(crc, first), second), rest)
}

// vcrc is the CRC-16 over b.
func vcrc(b []byte) uint16 {
	if canFold && len(b) >= 16 {
		word := binary.LittleEndian.Uint64
		return ^uint16(fold(vcrcFolding, word(b)^0xFFFF, word(b[8:]), b[16:]))
	}
	return vcrcByTables(b)
}

func shortError(b []byte, what string, want int) error {
	return fmt.Errorf("packet: %d bytes, %s alone have %d", len(b), what, want)
}
