package packet

import "fmt"

// maxPktLen is the largest LRH.PktLen, in words.
const maxPktLen = 1<<11 - 1

// MaxSize is the length of the longest packet that an LRH can describe, in
// bytes, VCRC included.
const MaxSize = maxPktLen*wordSize + VCRCSize

// View is a packet taken apart. Headers, payload and CRCs lie inside the
// bytes that were parsed: what is written through them changes the packet.
type View struct {
	LRH *LRH
	GRH *GRH // nil without one
	RWH *RWH // nil unless LNH is LNHRaw
	BTH *BTH // nil in a raw packet

	// The extended headers that the opcode calls for; nil for the others.
	RDETH        *RDETH
	DETH         *DETH
	RETH         *RETH
	AtomicETH    *AtomicETH
	AETH         *AETH
	AtomicAckETH *AtomicAckETH
	ImmDt        *ImmDt
	IETH         *IETH

	Payload []byte          // without pad; with its IPv6 header when LNH is LNHRawIPv6
	Pad     []byte          // BTH.PadCnt bytes
	ICRC    *[ICRCSize]byte // nil in a raw packet
	VCRC    *[VCRCSize]byte
}

// Parse takes a whole packet apart, LRH to VCRC. The error says which length
// or version is wrong; CRCs are not checked.
func Parse(packet []byte) (View, error) {
	var v View
	err := v.Parse(packet)
	return v, err
}

// Parse is the function Parse for a View that is used again. After an error it
// is empty.
func (v *View) Parse(packet []byte) error {
	*v = View{}
	if err := v.parse(packet); err != nil {
		*v = View{}
		return err
	}
	return nil
}

func (v *View) parse(packet []byte) error {
	h, err := ParseLRH(packet)
	if err != nil {
		return err
	}
	if h.LVer() != 0 {
		return fmt.Errorf("packet: LVer %d, want 0", h.LVer())
	}
	if want := int(h.PktLen())*wordSize + VCRCSize; len(packet) != want {
		return fmt.Errorf("packet: %d bytes, PktLen %d and the VCRC make %d",
			len(packet), h.PktLen(), want)
	}
	end := len(packet) - VCRCSize
	v.LRH, v.VCRC = h, (*[VCRCSize]byte)(packet[end:])
	rest := packet[LRHSize:end:end]
	switch h.LNH() {
	case LNHRaw:
		if len(rest) < RWHSize {
			return fmt.Errorf("packet: raw with %d bytes after the LRH, an RWH has %d", len(rest), RWHSize)
		}
		v.RWH = (*RWH)(rest)
		v.Payload = rest[RWHSize:]
		return nil
	case LNHRawIPv6:
		v.Payload = rest
		return nil
	case LNHGlobal:
		if rest, err = v.parseGRH(rest); err != nil {
			return err
		}
	}
	return v.parseTransport(rest)
}

// parseGRH takes the GRH off b and returns what follows.
func (v *View) parseGRH(b []byte) ([]byte, error) {
	if len(b) < GRHSize {
		return nil, fmt.Errorf("packet: %d bytes after the LRH, a GRH has %d", len(b), GRHSize)
	}
	h := (*GRH)(b)
	rest := b[GRHSize:]
	switch {
	case h.IPVer() != grhIPVer:
		return nil, fmt.Errorf("packet: GRH with IPVer %d, want %d", h.IPVer(), grhIPVer)
	case h.NxtHdr() != grhNxtHdrBTH:
		return nil, fmt.Errorf("packet: GRH with NxtHdr 0x%02x, want 0x%02x (BTH)", h.NxtHdr(), grhNxtHdrBTH)
	case int(h.PayLen()) != len(rest):
		return nil, fmt.Errorf("packet: GRH with PayLen %d, %d bytes follow", h.PayLen(), len(rest))
	}
	v.GRH = h
	return rest, nil
}

// parseTransport takes b apart, which reaches from the BTH to the ICRC.
func (v *View) parseTransport(b []byte) error {
	if len(b) < BTHSize+ICRCSize {
		return fmt.Errorf("packet: %d bytes from the BTH to the ICRC, want at least %d", len(b), BTHSize+ICRCSize)
	}
	h := (*BTH)(b)
	if h.TVer() != 0 {
		return fmt.Errorf("packet: BTH with TVer %d, want 0", h.TVer())
	}
	l := &layouts[h.OpCode()]
	if !l.valid {
		return fmt.Errorf("packet: unknown opcode 0x%02x", uint8(h.OpCode()))
	}
	end := len(b) - ICRCSize
	rest := b[BTHSize:end:end]
	pad := int(h.PadCnt())
	switch payload := len(rest) - l.size - pad; {
	case payload < 0:
		return fmt.Errorf("packet: %d bytes between BTH and ICRC, %v has %d of headers and PadCnt is %d",
			len(rest), h.OpCode(), l.size, pad)
	case !l.payload && payload+pad != 0:
		return fmt.Errorf("packet: %v with a payload of %d bytes and PadCnt %d, want none",
			h.OpCode(), payload, pad)
	}
	v.layTransport(h, l, b)
	return nil
}

// layTransport lays headers, payload and pad over b, which reaches from the BTH
// to the ICRC and is long enough for what h says.
func (v *View) layTransport(h *BTH, l *layout, b []byte) {
	end := len(b) - ICRCSize
	rest, pad := b[BTHSize:end:end], int(h.PadCnt())
	v.BTH = h
	v.ICRC = (*[ICRCSize]byte)(b[end:])
	v.viewExtended(l.headers, rest)
	rest = rest[l.size:]
	v.Payload, v.Pad = rest[:len(rest)-pad:len(rest)-pad], rest[len(rest)-pad:]
}

// viewExtended lays the headers of set over b, which is long enough for them.
func (v *View) viewExtended(set HeaderSet, b []byte) {
	if set.Has(HasRDETH) {
		v.RDETH, b = (*RDETH)(b), b[RDETHSize:]
	}
	if set.Has(HasDETH) {
		v.DETH, b = (*DETH)(b), b[DETHSize:]
	}
	if set.Has(HasRETH) {
		v.RETH, b = (*RETH)(b), b[RETHSize:]
	}
	if set.Has(HasAtomicETH) {
		v.AtomicETH, b = (*AtomicETH)(b), b[AtomicETHSize:]
	}
	if set.Has(HasAETH) {
		v.AETH, b = (*AETH)(b), b[AETHSize:]
	}
	if set.Has(HasAtomicAckETH) {
		v.AtomicAckETH, b = (*AtomicAckETH)(b), b[AtomicAckETHSize:]
	}
	if set.Has(HasImmDt) {
		v.ImmDt, b = (*ImmDt)(b), b[ImmDtSize:]
	}
	if set.Has(HasIETH) {
		v.IETH = (*IETH)(b)
	}
}
