package mad

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/internal/layout"
)

// RMPPHeaderSize is the length of the RMPP header in bytes. It follows the
// common header in classes whose messages may be longer than one datagram.
const RMPPHeaderSize = 12

// RMPPVersion is the version of the RMPP header that this package writes.
const RMPPVersion uint8 = 1

// RMPPType is the kind of an RMPP packet.
type RMPPType uint8

// The kinds of RMPP packet.
const (
	RMPPNone  RMPPType = 0 // not an RMPP packet
	RMPPData  RMPPType = 1 // Data1 SegmentNumber from 1, Data2 PayloadLength in bytes
	RMPPAck   RMPPType = 2 // Data1 highest segment received in order, Data2 NewWindowLast
	RMPPStop  RMPPType = 3
	RMPPAbort RMPPType = 4
)

// RMPPFlags are the flags of an RMPP packet.
type RMPPFlags uint8

// The flags of an RMPP packet. Without RMPPActive a datagram is a message of
// its own, whatever the rest of the header holds.
const (
	RMPPActive RMPPFlags = 1 << 0
	RMPPFirst  RMPPFlags = 1 << 1
	RMPPLast   RMPPFlags = 1 << 2
)

// Has reports whether all flags of want are set.
func (f RMPPFlags) Has(want RMPPFlags) bool { return f&want == want }

// RMPPStatus is the reason of a STOP or ABORT.
type RMPPStatus uint8

// The reasons of a STOP or ABORT.
const (
	RMPPOK                    RMPPStatus = 0
	RMPPResourcesExhausted    RMPPStatus = 1 // the only one of STOP
	RMPPTotalTimeTooLong      RMPPStatus = 118
	RMPPInconsistentLast      RMPPStatus = 119 // with PayloadLength
	RMPPInconsistentFirst     RMPPStatus = 120 // with SegmentNumber
	RMPPBadType               RMPPStatus = 121
	RMPPNewWindowLastTooSmall RMPPStatus = 122
	RMPPSegmentNumberTooBig   RMPPStatus = 123
	RMPPIllegalStatus         RMPPStatus = 124
	RMPPUnsupportedVersion    RMPPStatus = 125
	RMPPTooManyRetries        RMPPStatus = 126
	RMPPUnspecified           RMPPStatus = 127
)

// RMPPRespTimeNone in RMPP.RRespTime gives no response time.
const RMPPRespTimeNone ib.TimeValue = 0x1F

// RMPP is the header of the reliable multi-packet protocol.
type RMPP struct {
	Version   uint8        `ib:"0,8"`
	Type      RMPPType     `ib:"8,8"`
	RRespTime ib.TimeValue `ib:"16,5"`
	Flags     RMPPFlags    `ib:"21,3"`
	Status    RMPPStatus   `ib:"24,8"`
	Data1     uint32       `ib:"32,32"` // meaning by Type
	Data2     uint32       `ib:"64,32"` // meaning by Type
}

var rmppFormat = layout.Of[*RMPP]("RMPP", RMPPHeaderSize)

// UnmarshalBinary reads the first RMPPHeaderSize bytes of data.
func (h *RMPP) UnmarshalBinary(data []byte) error { return rmppFormat.Unmarshal(h, data) }

// AppendBinary appends the RMPPHeaderSize bytes of the header to b. It fails
// for a value that does not fit its bits.
func (h *RMPP) AppendBinary(b []byte) ([]byte, error) { return rmppFormat.Append(b, h) }
