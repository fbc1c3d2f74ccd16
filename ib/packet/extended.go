package packet

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
)

// Lengths of the extended headers and of the raw header in bytes.
const (
	RDETHSize        = 4
	DETHSize         = 8
	RETHSize         = 16
	AtomicETHSize    = 28
	AETHSize         = 4
	AtomicAckETHSize = 8
	ImmDtSize        = 4
	IETHSize         = 4
	RWHSize          = 4
)

// RDETH is the reliable-datagram header of every RD packet.
type RDETH [RDETHSize]byte

// EEContext is the number of the end-to-end context, 24 bits.
func (h *RDETH) EEContext() uint32 { return uint24(h[1:]) }

// SetEEContext sets the end-to-end context (24 bits).
func (h *RDETH) SetEEContext(v uint32) { putUint24(h[1:], v) }

// DETH is the datagram header of UD packets and of RD requests.
type DETH [DETHSize]byte

// QKey is the queue key.
func (h *DETH) QKey() ib.QKey { return ib.QKey(binary.BigEndian.Uint32(h[0:])) }

// SetQKey sets the queue key.
func (h *DETH) SetQKey(v ib.QKey) { binary.BigEndian.PutUint32(h[0:], uint32(v)) }

// SrcQP is the source queue pair.
func (h *DETH) SrcQP() ib.QPN { return ib.QPN(uint24(h[5:])) }

// SetSrcQP sets the source queue pair (24 bits).
func (h *DETH) SetSrcQP(v ib.QPN) { putUint24(h[5:], uint32(v)) }

// RETH is the header of RDMA requests.
type RETH [RETHSize]byte

// VA is the virtual address at the responder.
func (h *RETH) VA() uint64 { return binary.BigEndian.Uint64(h[0:]) }

// SetVA sets the virtual address.
func (h *RETH) SetVA(v uint64) { binary.BigEndian.PutUint64(h[0:], v) }

// RKey is the key of the memory region at the responder.
func (h *RETH) RKey() uint32 { return binary.BigEndian.Uint32(h[8:]) }

// SetRKey sets the key of the memory region.
func (h *RETH) SetRKey(v uint32) { binary.BigEndian.PutUint32(h[8:], v) }

// DMALen is the length of the whole transfer in bytes.
func (h *RETH) DMALen() uint32 { return binary.BigEndian.Uint32(h[12:]) }

// SetDMALen sets the length of the whole transfer.
func (h *RETH) SetDMALen(v uint32) { binary.BigEndian.PutUint32(h[12:], v) }

// AtomicETH is the header of atomic requests.
type AtomicETH [AtomicETHSize]byte

// VA is the virtual address at the responder.
func (h *AtomicETH) VA() uint64 { return binary.BigEndian.Uint64(h[0:]) }

// SetVA sets the virtual address.
func (h *AtomicETH) SetVA(v uint64) { binary.BigEndian.PutUint64(h[0:], v) }

// RKey is the key of the memory region at the responder.
func (h *AtomicETH) RKey() uint32 { return binary.BigEndian.Uint32(h[8:]) }

// SetRKey sets the key of the memory region.
func (h *AtomicETH) SetRKey(v uint32) { binary.BigEndian.PutUint32(h[8:], v) }

// SwapAddDt is the value to swap in (CmpSwap) or to add (FetchAdd).
func (h *AtomicETH) SwapAddDt() uint64 { return binary.BigEndian.Uint64(h[12:]) }

// SetSwapAddDt sets the value to swap in or to add.
func (h *AtomicETH) SetSwapAddDt(v uint64) { binary.BigEndian.PutUint64(h[12:], v) }

// CmpDt is the value to compare with (CmpSwap).
func (h *AtomicETH) CmpDt() uint64 { return binary.BigEndian.Uint64(h[20:]) }

// SetCmpDt sets the value to compare with.
func (h *AtomicETH) SetCmpDt(v uint64) { binary.BigEndian.PutUint64(h[20:], v) }

// Syndrome says whether an AETH acknowledges, and if not, why.
type Syndrome uint8

// SyndromeKind is the kind of acknowledgement.
type SyndromeKind uint8

// The kinds of acknowledgement; 2 is reserved.
const (
	SyndromeACK    SyndromeKind = 0 // value: credit code, 0x1F for none
	SyndromeRNRNAK SyndromeKind = 1 // value: timer code
	SyndromeNAK    SyndromeKind = 3 // value: one of the NAK codes
)

// Values of a syndrome of kind SyndromeNAK.
const (
	NAKSequence         uint8 = 0
	NAKInvalidRequest   uint8 = 1
	NAKRemoteAccess     uint8 = 2
	NAKRemoteOperation  uint8 = 3
	NAKInvalidRDRequest uint8 = 4
)

// Kind is the kind of acknowledgement.
func (s Syndrome) Kind() SyndromeKind { return SyndromeKind(s >> 5 & 3) }

// Value is the credit, timer or NAK code, 5 bits.
func (s Syndrome) Value() uint8 { return uint8(s & 0x1F) }

// MakeSyndrome joins a kind and a value of 5 bits.
func MakeSyndrome(kind SyndromeKind, value uint8) Syndrome {
	return Syndrome(kind&3)<<5 | Syndrome(value&0x1F)
}

// AETH is the header of acknowledgements and of RDMA READ responses.
type AETH [AETHSize]byte

// Syndrome is the outcome.
func (h *AETH) Syndrome() Syndrome { return Syndrome(h[0]) }

// SetSyndrome sets the outcome.
func (h *AETH) SetSyndrome(v Syndrome) { h[0] = byte(v) }

// MSN is the message sequence number, 24 bits.
func (h *AETH) MSN() uint32 { return uint24(h[1:]) }

// SetMSN sets the message sequence number (24 bits).
func (h *AETH) SetMSN(v uint32) { putUint24(h[1:], v) }

// AtomicAckETH is the header of atomic acknowledgements, after the AETH.
type AtomicAckETH [AtomicAckETHSize]byte

// OrigRemDt is the value that was in memory before the operation.
func (h *AtomicAckETH) OrigRemDt() uint64 { return binary.BigEndian.Uint64(h[0:]) }

// SetOrigRemDt sets the value that was in memory.
func (h *AtomicAckETH) SetOrigRemDt(v uint64) { binary.BigEndian.PutUint64(h[0:], v) }

// ImmDt is the header of immediate data.
type ImmDt [ImmDtSize]byte

// Value is the immediate data.
func (h *ImmDt) Value() uint32 { return binary.BigEndian.Uint32(h[0:]) }

// SetValue sets the immediate data.
func (h *ImmDt) SetValue(v uint32) { binary.BigEndian.PutUint32(h[0:], v) }

// IETH is the header of a SEND that invalidates a memory region.
type IETH [IETHSize]byte

// RKey is the key to invalidate.
func (h *IETH) RKey() uint32 { return binary.BigEndian.Uint32(h[0:]) }

// SetRKey sets the key to invalidate.
func (h *IETH) SetRKey(v uint32) { binary.BigEndian.PutUint32(h[0:], v) }

// RWH is the header of raw packets with an EtherType.
type RWH [RWHSize]byte

// EtherType is the protocol of the payload.
func (h *RWH) EtherType() uint16 { return binary.BigEndian.Uint16(h[2:]) }

// SetEtherType sets the protocol of the payload.
func (h *RWH) SetEtherType(v uint16) { binary.BigEndian.PutUint16(h[2:], v) }
