package rmpp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
)

// Places in a datagram of subnet administration, in bytes.
const (
	// HeadSize is the length of the headers that every segment repeats: the
	// common header, the RMPP header, and those of the class.
	HeadSize = 56
	// SegmentSize is how much of the message a segment carries.
	SegmentSize = mad.Size - HeadSize
	offRMPP     = mad.HeaderSize
	// classHead is the part of the head that PayloadLength counts with the
	// segment: what follows the RMPP header.
	classHead = HeadSize - mad.HeaderSize - mad.RMPPHeaderSize
	// payloadMax is the PayloadLength of a full segment.
	payloadMax = classHead + SegmentSize
)

// Message is a message of subnet administration as it was before it was cut
// and will be after it is joined.
type Message struct {
	// Head is what every segment begins with; its RMPP header is the
	// endpoint's.
	Head [HeadSize]byte
	// Body is what follows the heads, joined.
	Body []byte
}

// segments is the number of segments that a body of n bytes takes.
func segments(n int) int { return max(1, (n+SegmentSize-1)/SegmentSize) }

// Limits bound what an endpoint does.
type Limits struct {
	// Window is how many segments a receiver allows beyond those that it has
	// in order, at least 1. A sender takes the window that it is given.
	Window int
	// ResponseTime is the wait for an acknowledgement; Tries the number of
	// waits without progress, the first included.
	ResponseTime time.Duration
	Tries        int
	// Once says that peers may take first segments alone, and acknowledge none: a first
	// segment is not sent again, and a transfer of which nothing was acknowledged within
	// ResponseTime ends without a word.
	Once bool
	// TotalTime bounds one transfer.
	TotalTime time.Duration
	// RememberTime is how long an ended reception is remembered.
	RememberTime time.Duration
	// Senders and Receivers bound the transfers under way, PerPeer those with
	// one peer in each direction, Remembered the ended receptions.
	Senders, Receivers, PerPeer, Remembered int
	// SendMax bounds one message that is sent and SendTotal all of them,
	// ReceiveMax one that is received and ReceiveTotal all that are being
	// joined; in bytes.
	SendMax, SendTotal, ReceiveMax, ReceiveTotal int
	// SenderSends and SenderReceives bound the transfers with one sender, as
	// however many peers it poses; SenderSendTotal, in bytes, what is sent to
	// it when that is more than one message, SenderReceiveTotal what is joined
	// of it. They count for an Endpoint that can tell senders (NewBy). Half of
	// all room is for senders with nothing else under way, and messages to them
	// of SenderLittle bytes at most.
	SenderSends, SenderReceives, SenderSendTotal, SenderReceiveTotal, SenderLittle int
}

// DefaultLimits are those of Linux where it has some: 2 s for an
// acknowledgement, 40 s for a whole message, 10 s of memory.
func DefaultLimits() Limits {
	return Limits{
		Window: 32, ResponseTime: 2 * time.Second, Tries: 5,
		TotalTime: 40 * time.Second, RememberTime: 10 * time.Second,
		Senders: 4096, Receivers: 4096, PerPeer: 8, Remembered: 4096,
		SendMax: 32 << 20, SendTotal: 64 << 20, ReceiveMax: 16 << 10, ReceiveTotal: 128 << 20,
		SenderSends: 8, SenderReceives: 2, SenderSendTotal: 4 << 20, SenderReceiveTotal: 32 << 10, SenderLittle: 256 << 10,
	}
}

// Errors of Send.
var (
	ErrTooLong   = errors.New("rmpp: message too long")
	ErrTooMany   = errors.New("rmpp: too many transfers under way")
	ErrDuplicate = errors.New("rmpp: a transfer of this transaction is under way")
)

// Abort is how a transfer ended before its time.
type Abort struct {
	Status mad.RMPPStatus
	// Remote reports whether the other side ended it.
	Remote bool
}

// Error names the status and the side.
func (a *Abort) Error() string {
	side := "this side"
	if a.Remote {
		side = "the other side"
	}
	return fmt.Sprintf("rmpp: ended by %s with status %d", side, uint8(a.Status))
}

// putRMPP writes an RMPP header without a response time, in place.
func putRMPP(m *[mad.Size]byte, kind mad.RMPPType, flags mad.RMPPFlags, status mad.RMPPStatus, data1, data2 uint32) {
	b := m[offRMPP:]
	b[0], b[1] = mad.RMPPVersion, byte(kind)
	b[2], b[3] = byte(mad.RMPPRespTimeNone)<<3|byte(flags), byte(status)
	binary.BigEndian.PutUint32(b[4:], data1)
	binary.BigEndian.PutUint32(b[8:], data2)
}

// reply makes an ACK, STOP or ABORT that answers packets with this head.
func reply(m *[mad.Size]byte, head *[HeadSize]byte, kind mad.RMPPType, status mad.RMPPStatus, data1, data2 uint32) {
	*m = [mad.Size]byte{}
	copy(m[:], head[:])
	m[mad.OffsetMethod] ^= byte(mad.MethodResponse)
	putRMPP(m, kind, mad.RMPPActive, status, data1, data2)
}

// IsActive reports whether a datagram of a class with an RMPP header is an RMPP
// packet, and not a message of its own.
func IsActive(m *[mad.Size]byte) bool {
	return mad.RMPPFlags(m[offRMPP+2]).Has(mad.RMPPActive)
}

// First is the first segment of a message, for peers of which nothing more is known.
func First(m *Message) *[mad.Size]byte {
	var out [mad.Size]byte
	l := Limits{}
	newSender(0, m, &l).segment(0, &out, &l)
	return &out
}

// MarkWhole gives the head of a message the RMPP header that Linux wants of one
// that it is to cut.
func MarkWhole(head *[HeadSize]byte) {
	b := head[offRMPP:]
	b[0], b[1] = mad.RMPPVersion, byte(mad.RMPPData)
	b[2], b[3] = byte(mad.RMPPRespTimeNone)<<3|byte(mad.RMPPActive), 0
	clear(b[4:mad.RMPPHeaderSize])
}
