package packet

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
)

// BTHSize is the length of the base transport header in bytes.
const BTHSize = 12

// bthVariant is the byte of the BTH that changes on the way (FECN, BECN and
// reserved bits), so that the ICRC leaves it out.
const bthVariant = 4

// BTH is the base transport header, in every packet that is not raw.
type BTH [BTHSize]byte

// OpCode is the transport, the operation and the headers that follow.
func (h *BTH) OpCode() OpCode { return OpCode(h[0]) }

// SetOpCode sets the opcode.
func (h *BTH) SetOpCode(v OpCode) { h[0] = byte(v) }

// SolicitedEvent (SE) asks for an event at the responder.
func (h *BTH) SolicitedEvent() bool { return bit(h[1], 7) }

// SetSolicitedEvent sets SE.
func (h *BTH) SetSolicitedEvent(v bool) { setBit(&h[1], 7, v) }

// MigReq (M) is the path migration state.
func (h *BTH) MigReq() bool { return bit(h[1], 6) }

// SetMigReq sets M.
func (h *BTH) SetMigReq(v bool) { setBit(&h[1], 6, v) }

// PadCnt is the number of pad bytes after the payload, 0 to 3.
func (h *BTH) PadCnt() uint8 { return h[1] >> 4 & 3 }

// SetPadCnt sets the number of pad bytes (2 bits).
func (h *BTH) SetPadCnt(v uint8) { h[1] = h[1]&^0x30 | v&3<<4 }

// TVer is the version of the transport headers, 0.
func (h *BTH) TVer() uint8 { return h[1] & 0x0F }

// SetTVer sets the version of the transport headers (4 bits).
func (h *BTH) SetTVer(v uint8) { h[1] = h[1]&0xF0 | v&0x0F }

// PKey is the partition key.
func (h *BTH) PKey() ib.PKey { return ib.PKey(binary.BigEndian.Uint16(h[2:])) }

// SetPKey sets the partition key.
func (h *BTH) SetPKey(v ib.PKey) { binary.BigEndian.PutUint16(h[2:], uint16(v)) }

// FECN reports whether the packet experienced congestion.
func (h *BTH) FECN() bool { return bit(h[bthVariant], 7) }

// SetFECN sets FECN.
func (h *BTH) SetFECN(v bool) { setBit(&h[bthVariant], 7, v) }

// BECN answers a FECN.
func (h *BTH) BECN() bool { return bit(h[bthVariant], 6) }

// SetBECN sets BECN.
func (h *BTH) SetBECN(v bool) { setBit(&h[bthVariant], 6, v) }

// DestQP is the destination queue pair.
func (h *BTH) DestQP() ib.QPN { return ib.QPN(uint24(h[5:])) }

// SetDestQP sets the destination queue pair (24 bits).
func (h *BTH) SetDestQP(v ib.QPN) { putUint24(h[5:], uint32(v)) }

// AckReq (A) asks for an acknowledgement.
func (h *BTH) AckReq() bool { return bit(h[8], 7) }

// SetAckReq sets A.
func (h *BTH) SetAckReq(v bool) { setBit(&h[8], 7, v) }

// PSN is the packet sequence number, 24 bits.
func (h *BTH) PSN() uint32 { return uint24(h[9:]) }

// SetPSN sets the packet sequence number (24 bits).
func (h *BTH) SetPSN(v uint32) { putUint24(h[9:], v) }

const maxUint24 = 1<<24 - 1

func bit(b byte, n int) bool { return b>>n&1 != 0 }

func setBit(b *byte, n int, v bool) {
	*b &^= 1 << n
	if v {
		*b |= 1 << n
	}
}

func uint24(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

func putUint24(b []byte, v uint32) {
	b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v)
}
