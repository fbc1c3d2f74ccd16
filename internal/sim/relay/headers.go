package relay

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Headers is what a relay looks at in a packet. It points into the bytes.
type Headers struct {
	LRH *packet.LRH
	GRH *packet.GRH // nil without one
	BTH *packet.BTH // nil in a raw packet

	bytes []byte // LRH to VCRC
}

// Read finds the headers of a whole packet, LRH to VCRC. What the transport
// makes of its own headers is not looked at. The verdict is Pass or Malformed.
func Read(bytes []byte) (h Headers, v Verdict) {
	if len(bytes) < packet.LRHSize+packet.VCRCSize {
		return h, Malformed
	}
	h.bytes, h.LRH = bytes, (*packet.LRH)(bytes)
	if h.LRH.LVer() != 0 || int(h.LRH.PktLen())*4+packet.VCRCSize != len(bytes) {
		return h, Malformed
	}
	rest := bytes[packet.LRHSize : len(bytes)-packet.VCRCSize]
	switch h.LRH.LNH() {
	case packet.LNHRaw, packet.LNHRawIPv6:
		return h, Pass
	case packet.LNHGlobal:
		if len(rest) < packet.GRHSize {
			return h, Malformed
		}
		h.GRH, rest = (*packet.GRH)(rest), rest[packet.GRHSize:]
		if h.GRH.IPVer() != ipVer || h.GRH.NxtHdr() != nextBTH {
			return h, Malformed
		}
	}
	if len(rest) < packet.BTHSize+packet.ICRCSize {
		return h, Malformed
	}
	h.BTH = (*packet.BTH)(rest)
	return h, Pass
}

// The only GRH that has a BTH behind it.
const (
	ipVer   = 6
	nextBTH = 0x1B
)

// payload is the length in bytes of what an MTU bounds: all that lies behind
// the headers and before the CRCs, pad included. Of a packet whose opcode is not
// known, everything behind the BTH counts.
func (h *Headers) payload() int {
	n := len(h.bytes) - packet.LRHSize - packet.VCRCSize
	if h.BTH == nil {
		if h.LRH.LNH() == packet.LNHRaw {
			n -= packet.RWHSize
		}
		return max(n, 0)
	}
	if h.GRH != nil {
		n -= packet.GRHSize
	}
	return max(n-packet.BTHSize-packet.ICRCSize-h.BTH.OpCode().Headers().Size(), 0)
}

// Offence is what traps tell of a packet refused for its P_Key. QP1 is that of
// the sender when the packet names it, 0 otherwise.
func (h *Headers) Offence() smp.BadKeyDetails {
	o := smp.BadKeyDetails{LID1: h.LRH.SLID(), LID2: h.LRH.DLID(), SL: h.LRH.SL()}
	if h.GRH != nil {
		o.GID1, o.GID2 = h.GRH.SGID(), h.GRH.DGID()
	}
	if h.BTH == nil {
		return o
	}
	o.Key, o.QP2 = uint32(h.BTH.PKey()), h.BTH.DestQP()
	if v, err := packet.Parse(h.bytes); err == nil && v.DETH != nil {
		o.QP1 = v.DETH.SrcQP()
	}
	return o
}

// Shift gives a sealed packet another virtual lane. The VCRC is computed again only when
// the virtual lane is another.
func Shift(bytes []byte, vl ib.VL) {
	if h := (*packet.LRH)(bytes); h.VL() != vl {
		h.SetVL(vl)
		packet.SealVCRC(bytes)
	}
}

// Readdress does what a router does to a packet with a GRH: it takes one from
// the hop limit and gives the packet a local route of the next subnet. The ICRC
// leaves these fields out; the VCRC is computed again.
func (h *Headers) Readdress(slid, dlid ib.LID) {
	h.GRH.SetHopLmt(h.GRH.HopLmt() - 1)
	h.LRH.SetSLID(slid)
	h.LRH.SetDLID(dlid)
	packet.SealVCRC(h.bytes)
}

// Spoil makes the VCRC of a sealed packet wrong.
func Spoil(bytes []byte) {
	if end := len(bytes) - packet.VCRCSize; end >= 0 {
		crc := binary.LittleEndian.Uint16(bytes[end:])
		binary.LittleEndian.PutUint16(bytes[end:], ^crc)
	}
}
