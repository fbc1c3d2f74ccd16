package mad

// The offsets of the fields of a datagram, in bytes from its start, for code that
// passes datagrams on and looks at a field or two without decoding all of it.
const (
	OffsetClass             = 1 // MgmtClass
	OffsetClassVersion      = 2
	OffsetMethod            = 3 // R in bit 7, Method below
	OffsetStatus            = 4 // 16 bits; of a directed-route SMP bit 15 is D, the direction
	OffsetTransactionID     = 8
	OffsetAttributeID       = 16
	OffsetAttributeModifier = 20

	// Of a directed-route SMP.
	OffsetHopPointer  = 6
	OffsetHopCount    = 7
	OffsetDrSLID      = 32
	OffsetDrDLID      = 34
	OffsetInitialPath = 128
	OffsetReturnPath  = 192

	// Of every SMP.
	OffsetMKey = 24

	// Of a class with an RMPP header.
	OffsetRMPPType  = 25
	OffsetRMPPFlags = 26
)

// DirectionBit is D in the byte at OffsetStatus of a directed-route SMP: set on
// the way back.
const DirectionBit = 0x80
