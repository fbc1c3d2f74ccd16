package packet

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
)

// GRHSize is the length of the global route header in bytes.
const GRHSize = 40

const (
	grhIPVer      = 6    // the only version
	grhNxtHdrBTH  = 0x1B // a BTH follows
	maskFlowLabel = 0xF_FFFF
)

// GRH is the global route header, in the layout of an IPv6 header.
type GRH [GRHSize]byte

// IPVer is the version of the header, 6.
func (h *GRH) IPVer() uint8 { return h[0] >> 4 }

// SetIPVer sets the version of the header (4 bits).
func (h *GRH) SetIPVer(v uint8) { h[0] = v<<4 | h[0]&0x0F }

// TClass is the traffic class.
func (h *GRH) TClass() uint8 { return h[0]<<4 | h[1]>>4 }

// SetTClass sets the traffic class.
func (h *GRH) SetTClass(v uint8) {
	h[0] = h[0]&0xF0 | v>>4
	h[1] = v<<4 | h[1]&0x0F
}

// FlowLabel is the flow label, 20 bits.
func (h *GRH) FlowLabel() uint32 { return binary.BigEndian.Uint32(h[0:]) & maskFlowLabel }

// SetFlowLabel sets the flow label (20 bits).
func (h *GRH) SetFlowLabel(v uint32) {
	rest := binary.BigEndian.Uint32(h[0:]) &^ maskFlowLabel
	binary.BigEndian.PutUint32(h[0:], rest|v&maskFlowLabel)
}

// PayLen is the number of bytes after the GRH, the ICRC counted and the VCRC
// not.
func (h *GRH) PayLen() uint16 { return binary.BigEndian.Uint16(h[4:]) }

// SetPayLen sets the number of bytes after the GRH.
func (h *GRH) SetPayLen(v uint16) { binary.BigEndian.PutUint16(h[4:], v) }

// NxtHdr is the type of the next header, 0x1B for a BTH.
func (h *GRH) NxtHdr() uint8 { return h[6] }

// SetNxtHdr sets what follows.
func (h *GRH) SetNxtHdr(v uint8) { h[6] = v }

// HopLmt is the number of routers that the packet may still pass.
func (h *GRH) HopLmt() uint8 { return h[7] }

// SetHopLmt sets the hop limit.
func (h *GRH) SetHopLmt(v uint8) { h[7] = v }

// SGID is the source.
func (h *GRH) SGID() ib.GID { return ib.GID(h[8:24]) }

// SetSGID sets the source.
func (h *GRH) SetSGID(v ib.GID) { copy(h[8:24], v[:]) }

// DGID is the destination.
func (h *GRH) DGID() ib.GID { return ib.GID(h[24:40]) }

// SetDGID sets the destination.
func (h *GRH) SetDGID(v ib.GID) { copy(h[24:40], v[:]) }
