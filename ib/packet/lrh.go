package packet

import (
	"encoding/binary"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
)

// LRHSize is the length of the local route header in bytes.
const LRHSize = 8

// wordSize is the unit of LRH.PktLen in bytes.
const wordSize = 4

// LNH is the link next header: what follows the local route header.
type LNH uint8

// The values of LNH.
const (
	LNHRaw     LNH = 0 // raw packet, RWH follows
	LNHRawIPv6 LNH = 1 // raw packet, IPv6 header follows
	LNHLocal   LNH = 2 // BTH follows
	LNHGlobal  LNH = 3 // GRH follows, then BTH
)

// IsRaw reports whether the packet is raw: it has no BTH and no ICRC.
func (n LNH) IsRaw() bool { return n == LNHRaw || n == LNHRawIPv6 }

// LRH is the local route header, the first of every packet.
type LRH [LRHSize]byte

// ParseLRH views the first bytes of a packet as its local route header,
// without looking at anything else.
func ParseLRH(packet []byte) (*LRH, error) {
	if len(packet) < LRHSize {
		return nil, fmt.Errorf("packet: %d bytes, an LRH alone has %d", len(packet), LRHSize)
	}
	return (*LRH)(packet), nil
}

// VL is the virtual lane, 15 for every SMP.
func (h *LRH) VL() ib.VL { return ib.VL(h[0] >> 4) }

// SetVL sets the virtual lane (4 bits).
func (h *LRH) SetVL(v ib.VL) { h[0] = byte(v)<<4 | h[0]&0x0F }

// LVer is the version of the link layer, 0.
func (h *LRH) LVer() uint8 { return h[0] & 0x0F }

// SetLVer sets the version of the link layer (4 bits).
func (h *LRH) SetLVer(v uint8) { h[0] = h[0]&0xF0 | v&0x0F }

// SL is the service level.
func (h *LRH) SL() ib.SL { return ib.SL(h[1] >> 4) }

// SetSL sets the service level (4 bits).
func (h *LRH) SetSL(v ib.SL) { h[1] = byte(v)<<4 | h[1]&0x0F }

// LNH is the type of the next header.
func (h *LRH) LNH() LNH { return LNH(h[1] & 0x03) }

// SetLNH sets which header follows (2 bits).
func (h *LRH) SetLNH(v LNH) { h[1] = h[1]&^0x03 | byte(v)&0x03 }

// DLID is the destination.
func (h *LRH) DLID() ib.LID { return ib.LID(binary.BigEndian.Uint16(h[2:])) }

// SetDLID sets the destination.
func (h *LRH) SetDLID(v ib.LID) { binary.BigEndian.PutUint16(h[2:], uint16(v)) }

// PktLen is the length of the packet in words of 4 bytes, from the LRH to the
// last word before the VCRC.
func (h *LRH) PktLen() uint16 { return binary.BigEndian.Uint16(h[4:]) & maxPktLen }

// SetPktLen sets the length in words (11 bits).
func (h *LRH) SetPktLen(v uint16) {
	rest := binary.BigEndian.Uint16(h[4:]) &^ maxPktLen
	binary.BigEndian.PutUint16(h[4:], rest|v&maxPktLen)
}

// SLID is the source.
func (h *LRH) SLID() ib.LID { return ib.LID(binary.BigEndian.Uint16(h[6:])) }

// SetSLID sets the source.
func (h *LRH) SetSLID(v ib.LID) { binary.BigEndian.PutUint16(h[6:], uint16(v)) }
