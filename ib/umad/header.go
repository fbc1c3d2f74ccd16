package umad

import (
	"encoding/binary"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
)

// Sizes in bytes.
const (
	// HeaderSize is the length of the header with a P_Key index,
	// OldHeaderSize of the one without.
	HeaderSize    = 64
	OldHeaderSize = 56
	// LeastMAD is the least of a datagram that a write must hold.
	LeastMAD = 36
)

// Header precedes each datagram, in both directions.
type Header struct {
	ID uint32 // of the agent
	// Status is 0, or ETIMEDOUT for what was sent and never answered.
	Status uint32
	// TimeoutMilliseconds is how long the kernel waits for an answer to what
	// is written; 0: none is expected.
	TimeoutMilliseconds uint32
	// Retries is how often the kernel sends again before it gives up.
	Retries uint32
	// Length, in what is read: of the header and the whole message.
	Length uint32
	QPN    uint32 // of the other side
	QKey   uint32 // of the other side; only in what is written
	// LID is of the other side; permissive for a directed route.
	LID        ib.LID
	SL         uint8
	PathBits   uint8 // of this side's LID
	GRHPresent uint8
	GRH
	// PKeyIndex is only in the longer header.
	PKeyIndex uint16
}

// GRH is the global part of an address.
type GRH struct {
	GIDIndex     uint8 // of this side's GID
	HopLimit     uint8
	TrafficClass uint8
	GID          ib.GID // of the other side
	FlowLabel    uint32
}

// Offsets in the header.
const (
	offLength   = 16
	offGID      = 36
	offFlow     = 52
	offPKey     = 56
	offReserved = 58
)

// Put writes the header into b, which has the length of one of the two forms
// or more; long picks the form. What the short form has no place for is left
// out.
func (h *Header) Put(b []byte, long bool) {
	_ = b[OldHeaderSize-1]
	n := binary.NativeEndian
	n.PutUint32(b[0:], h.ID)
	n.PutUint32(b[4:], h.Status)
	n.PutUint32(b[8:], h.TimeoutMilliseconds)
	n.PutUint32(b[12:], h.Retries)
	n.PutUint32(b[offLength:], h.Length)
	binary.BigEndian.PutUint32(b[20:], h.QPN)
	binary.BigEndian.PutUint32(b[24:], h.QKey)
	binary.BigEndian.PutUint16(b[28:], uint16(h.LID))
	b[30], b[31], b[32], b[33] = h.SL, h.PathBits, h.GRHPresent, h.GIDIndex
	b[34], b[35] = h.HopLimit, h.TrafficClass
	copy(b[offGID:offFlow], h.GID[:])
	binary.BigEndian.PutUint32(b[offFlow:], h.FlowLabel)
	if long {
		n.PutUint16(b[offPKey:], h.PKeyIndex)
		clear(b[offReserved:HeaderSize])
	}
}

// ReadHeader reads a header of the form that long picks.
func ReadHeader(b []byte, long bool) (Header, error) {
	if want := SizeOf(long); len(b) < want {
		return Header{}, fmt.Errorf("umad header: %d bytes, want %d", len(b), want)
	}
	n := binary.NativeEndian
	h := Header{
		ID: n.Uint32(b[0:]), Status: n.Uint32(b[4:]), TimeoutMilliseconds: n.Uint32(b[8:]), Retries: n.Uint32(b[12:]),
		Length: n.Uint32(b[offLength:]), QPN: binary.BigEndian.Uint32(b[20:]), QKey: binary.BigEndian.Uint32(b[24:]),
		LID: ib.LID(binary.BigEndian.Uint16(b[28:])), SL: b[30], PathBits: b[31], GRHPresent: b[32],
		GRH: GRH{
			GIDIndex: b[33], HopLimit: b[34], TrafficClass: b[35], GID: ib.GID(b[offGID:offFlow]),
			FlowLabel: binary.BigEndian.Uint32(b[offFlow:]),
		},
	}
	if long {
		h.PKeyIndex = n.Uint16(b[offPKey:])
	}
	return h, nil
}

// SizeOf is the length of the long header or the short one.
func SizeOf(long bool) int {
	if long {
		return HeaderSize
	}
	return OldHeaderSize
}
