package packet

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
)

// Append lays out a packet after the bytes of b: LRH, a GRH if global, BTH,
// the extended headers of op, payload and pad, with room for the CRCs. Lengths,
// LNH, IPVer, NxtHdr, OpCode and PadCnt are set, all else is zero. The caller
// fills in the rest through the View, which lies over the new bytes, and ends
// with Seal. It fails for an opcode that is not known, for a payload where op
// has none, and for one that PktLen cannot describe.
func Append(b []byte, op OpCode, global bool, payload []byte) ([]byte, View, error) {
	var v View
	b, err := v.Append(b, op, global, payload)
	return b, v, err
}

// Append is the function Append for a View that is used again. After an error
// it is empty.
func (v *View) Append(b []byte, op OpCode, global bool, payload []byte) ([]byte, error) {
	*v = View{}
	l := &layouts[op]
	switch {
	case !l.valid:
		return b, fmt.Errorf("packet: unknown opcode 0x%02x", uint8(op))
	case !l.payload && len(payload) != 0:
		return b, fmt.Errorf("packet: payload of %d bytes, %v has none", len(payload), op)
	}
	headers := LRHSize + BTHSize + l.size
	lnh := LNHLocal
	if global {
		headers += GRHSize
		lnh = LNHGlobal
	}
	pad := -len(payload) & (wordSize - 1)
	size := headers + len(payload) + pad + ICRCSize
	if size > maxPktLen*wordSize {
		return b, fmt.Errorf("packet: payload of %d bytes makes %d words, PktLen ends at %d",
			len(payload), size/wordSize, maxPktLen)
	}
	start := len(b)
	var zero [LRHSize + GRHSize + BTHSize + RDETHSize + DETHSize + AtomicETHSize]byte
	b = append(b, zero[:headers]...)
	b = append(b, payload...)
	b = append(b, zero[:pad+ICRCSize+VCRCSize]...)

	packet := b[start:]
	end := len(packet) - VCRCSize
	v.LRH, v.VCRC = (*LRH)(packet), (*[VCRCSize]byte)(packet[end:])
	v.LRH.SetLNH(lnh)
	v.LRH.SetPktLen(uint16(size / wordSize))
	rest := packet[LRHSize:end:end]
	if global {
		v.GRH = (*GRH)(rest)
		v.GRH.SetIPVer(grhIPVer)
		v.GRH.SetNxtHdr(grhNxtHdrBTH)
		v.GRH.SetPayLen(uint16(size - LRHSize - GRHSize))
		rest = rest[GRHSize:]
	}
	bth := (*BTH)(rest)
	bth.SetOpCode(op)
	bth.SetPadCnt(uint8(pad))
	v.layTransport(bth, l, rest)
	return b, nil
}

// madSize is the length of a management datagram in bytes.
const madSize = 256

// MADPacket is a management datagram with the values of its packet headers. It travels
// between queue pairs of the same number, and that number decides the rest: on QP0, for
// subnet management, VL 15, P_Key 0xFFFF and Q_Key 0; on QP1, for all other classes,
// Q_Key 0x80010000. The datagram is not parsed.
type MADPacket struct {
	QP   ib.QPN // ib.QP0 or ib.QP1
	SLID ib.LID
	DLID ib.LID
	SL   ib.SL   // 0 to 15
	VL   ib.VL   // 0 to 14; ignored on QP0
	PKey ib.PKey // ignored on QP0
	// QP0PKey is the key of a packet on QP0, 0 for the default one, which QP0 sends by
	// convention. It is ignored on QP1.
	QP0PKey ib.PKey
	PSN     uint32 // 24 bits
	MAD     []byte // 256 bytes
}

// AppendBinary appends the whole packet to b, LRH to VCRC. It fails for values
// outside the ranges above.
func (p *MADPacket) AppendBinary(b []byte) ([]byte, error) {
	vl, pkey, qkey := p.VL, p.PKey, ib.QKeyGSI
	if p.QP == ib.QP0 {
		vl, pkey, qkey = ib.VLManagement, ib.PKeyDefaultFull, 0
		if p.QP0PKey != 0 {
			pkey = p.QP0PKey
		}
	}
	switch {
	case len(p.MAD) != madSize:
		return b, fmt.Errorf("MAD packet: datagram of %d bytes, want %d", len(p.MAD), madSize)
	case p.QP != ib.QP0 && p.QP != ib.QP1:
		return b, fmt.Errorf("MAD packet: QP %d, want 0 or 1", p.QP)
	case p.QP == ib.QP1 && vl >= ib.VLManagement:
		return b, fmt.Errorf("MAD packet: VL %d on QP1, want 0 to 14", vl)
	case p.SL > 15:
		return b, fmt.Errorf("MAD packet: SL %d, want 0 to 15", p.SL)
	case p.PSN > maxUint24:
		return b, fmt.Errorf("MAD packet: PSN 0x%x, want 24 bits", p.PSN)
	}
	start := len(b)
	b, v, err := Append(b, OpCodeUDSendOnly, false, p.MAD)
	if err != nil {
		return b, fmt.Errorf("MAD packet: %w", err)
	}
	v.LRH.SetVL(vl)
	v.LRH.SetSL(p.SL)
	v.LRH.SetDLID(p.DLID)
	v.LRH.SetSLID(p.SLID)
	v.BTH.SetPKey(pkey)
	v.BTH.SetDestQP(p.QP)
	v.BTH.SetPSN(p.PSN)
	v.DETH.SetQKey(qkey)
	v.DETH.SetSrcQP(p.QP)
	return b, Seal(b[start:])
}
