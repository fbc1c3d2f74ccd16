package ib

import (
	"fmt"
	"strconv"
)

// PKey is a partition key as in tables and packets: bit 15 is the
// membership (1 full, 0 limited), bits 14:0 the partition. A base of zero
// (0x0000 and 0x8000) is no key.
type PKey uint16

// PKeyBase is the 15-bit number of a partition, 0x0001 to 0x7FFF; 0 is invalid.
type PKeyBase uint16

// Partition keys with a meaning of their own.
const (
	// PKeyInvalid marks an empty table entry.
	PKeyInvalid PKey = 0x0000
	// PKeyDefaultFull is full membership of the default partition.
	PKeyDefaultFull PKey = 0xFFFF
	// PKeyDefaultLimited is limited membership of the default partition.
	PKeyDefaultLimited PKey = 0x7FFF
	// PKeyBaseDefault is the default partition.
	PKeyBaseDefault PKeyBase = 0x7FFF
	// PKeyBaseMax is the highest partition number.
	PKeyBaseMax PKeyBase = 0x7FFF

	pkeyFull PKey = 0x8000
)

// Base is the partition that k belongs to.
func (k PKey) Base() PKeyBase { return PKeyBase(k &^ pkeyFull) }

// IsFull reports whether k gives full membership.
func (k PKey) IsFull() bool { return k&pkeyFull != 0 }

// IsValid reports whether k is a key at all: its base is not zero.
func (k PKey) IsValid() bool { return k.Base() != 0 }

// Matches reports whether a packet with key k is accepted against the table
// entry e: equal bases, not zero, and at least one of the two a full member
// (p_key-architecture-chapter, P_Key Validation; the relation is symmetric).
func (k PKey) Matches(e PKey) bool {
	return k.Base() == e.Base() && k.IsValid() && (k|e)&pkeyFull != 0
}

// String prints 0x and four hexadecimal digits.
func (k PKey) String() string { return fmt.Sprintf("0x%04x", uint16(k)) }

// MarshalText prints the key as String does.
func (k PKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText prints.
func (k *PKey) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 0, 16)
	if err != nil {
		return fmt.Errorf("P_Key %q: want 0x0000 to 0xffff", text)
	}
	*k = PKey(v)
	return nil
}

// IsValid reports whether b is the number of a partition.
func (b PKeyBase) IsValid() bool { return b >= 1 && b <= PKeyBaseMax }

// Full is the key of a full member of b.
func (b PKeyBase) Full() PKey { return PKey(b) | pkeyFull }

// Limited is the key of a limited member of b.
func (b PKeyBase) Limited() PKey { return PKey(b) &^ pkeyFull }

// String prints 0x and four hexadecimal digits.
func (b PKeyBase) String() string { return fmt.Sprintf("0x%04x", uint16(b)) }

// MarshalText prints the base as String does.
func (b PKeyBase) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText reads what MarshalText prints.
func (b *PKeyBase) UnmarshalText(text []byte) error {
	v, err := ParsePKeyBase(string(text))
	if err == nil {
		*b = v
	}
	return err
}

// ParsePKeyBase reads a partition number, 1 to 0x7FFF, decimal or with 0x.
func ParsePKeyBase(s string) (PKeyBase, error) {
	v, err := strconv.ParseUint(s, 0, 64)
	if err != nil || !PKeyBase(v).IsValid() || v > uint64(PKeyBaseMax) {
		return 0, fmt.Errorf("partition number %q: want 0x0001 to 0x7fff", s)
	}
	return PKeyBase(v), nil
}

// QKey is the 32-bit queue key of datagrams.
type QKey uint32

// QKeyGSI is the well-known queue key of QP1.
const QKeyGSI QKey = 0x8001_0000

// IsPrivileged reports whether bit 31 is set: such a key can be sent only by
// a QP whose context holds it (q_key-rdma-guide, Q_Key values).
func (k QKey) IsPrivileged() bool { return k&0x8000_0000 != 0 }

// String prints 0x and eight hexadecimal digits.
func (k QKey) String() string { return fmt.Sprintf("0x%08x", uint32(k)) }

// MKey is the 64-bit management key that guards a port's attributes; 0 means
// that nothing is guarded.
type MKey uint64

// String prints 0x and sixteen hexadecimal digits.
func (k MKey) String() string { return fmt.Sprintf("0x%016x", uint64(k)) }

// SMKey is the 64-bit key with which subnet managers know each other.
type SMKey uint64

// QPN is a queue pair number, 24 bits.
type QPN uint32

// Queue pairs with a meaning of their own.
const (
	// QP0 carries subnet-management packets.
	QP0 QPN = 0
	// QP1 carries general management packets.
	QP1 QPN = 1
	// QPMulticast is the destination of multicast datagrams.
	QPMulticast QPN = 0xFF_FFFF
)
