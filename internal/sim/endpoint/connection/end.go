package connection

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
)

// Limits of an end.
const (
	MaxInFlight      = 128     // packets that are not acknowledged
	MaxReadsInFlight = 16      // RDMA READs that are not answered
	MaxAnswers       = 32      // answers that wait to be sent
	MaxRead          = 1 << 30 // octets that a peer may ask for at once

	ackEvery = 32 // packets after which an acknowledgement is asked for
	max24    = 1<<24 - 1
)

// RNRRetryAlways is the RNRRetryCount that never ends.
const RNRRetryAlways = 7

// Settings are what both ends agreed on.
type Settings struct {
	Transport     packet.Transport // RC, UC or RD
	MTU           int              // octets of payload in all packets of a message but the last
	ReceivePSN    uint32           // 24 bits, of the first packet that arrives
	SendPSN       uint32           // 24 bits, of the first packet that leaves
	MinRNRTimer   uint8            // 0 to 31, the wait that the peer is asked for
	Timeout       ib.TimeValue     // 0 for none
	RetryCount    uint8
	RNRRetryCount uint8
}

// Operation is what a request does.
type Operation uint8

// The operations.
const (
	OpSend Operation = iota
	OpWrite
	OpRead
)

// Request is a message to be sent, or memory to be read.
type Request struct {
	Owner     Owner
	ID        uint64
	Op        Operation
	Data      []byte // the message, or where a READ puts what it reads
	HasImm    bool
	Imm       uint32
	Solicited bool

	// Of RDMA.
	RemoteAddress uint64
	RKey          uint32

	// Of RD, for the sender of the packets.
	RemoteQP   ib.QPN
	RemoteQKey ib.QKey
}

// Room is a buffer for one message.
type Room struct {
	ID     uint64
	Buffer []byte
}

// Arrival is the outcome of a buffer.
type Arrival struct {
	Packet  *packet.View // the last of the message; valid during the call
	Size    int          // octets in the buffer
	Write   bool         // of an RDMA WRITE with immediate data: nothing is in the buffer
	TooLong bool         // the message did not fit
}

// Owner is the queue pair that posts requests and gets messages.
type Owner interface {
	// Sent ends a request.
	Sent(r *Request, s Status)
	// Rooms is the number of buffers that wait for messages.
	Rooms() int
	// TakeRoom takes the oldest; there is one.
	TakeRoom() Room
	// ReturnRoom puts back what was taken last.
	ReturnRoom(Room)
	// Received ends a buffer.
	Received(Room, Arrival)
}

// Memory finds what a peer asks for. It reports false for what the peer may not
// touch.
type Memory interface {
	Window(rkey uint32, va uint64, size uint32, write bool) ([]byte, bool)
}

// Status is how a request ended.
type Status uint8

// The ways to end.
const (
	Success Status = iota
	LocalLengthError
	Flushed
	BadResponse
	RemoteInvalidRequest
	RemoteAccessError
	RemoteOperationError
	RemoteInvalidRDRequest
	RetryExceeded
	RNRRetryExceeded
	statusCount
)

var statusNames = [statusCount]string{
	"success", "local length error", "flushed", "bad response", "remote invalid request", "remote access error",
	"remote operation error", "remote invalid RD request", "retry exceeded", "RNR retry exceeded",
}

// String names the status.
func (s Status) String() string {
	if s >= statusCount {
		return "unknown status"
	}
	return statusNames[s]
}

// Outcome is the outcome of a packet.
type Outcome uint8

// The outcomes.
const (
	Taken     Outcome = iota
	NoRoom            // no buffer for the message
	Length            // does not fit its buffer, its memory or its place in the message
	Sequence          // not the PSN that is next
	Duplicate         // seen before
	OpCode            // makes no sense at this point
	Access            // memory that the peer may not touch
	Full              // MaxAnswers
	Refused           // the queue pair that it names does not want it
)

// End is one end of a connection.
type End struct {
	Settings
	memory Memory
	sender
	receiver
	failure Failure
}

// Failure is what a call has broken.
type Failure struct {
	Broken bool  // the end: nothing goes on
	Owner  Owner // in RD, of a request that failed: it goes on without it
}

// Open begins a connection. Settings that only the sender goes by may change
// later.
func (e *End) Open(m Memory, s Settings) {
	*e = End{Settings: s, memory: m}
	e.expect = s.ReceivePSN
	e.Start()
}

// Start gives the sender its first PSN and its retries.
func (e *End) Start() {
	e.nextPSN = e.SendPSN
	e.restart()
}

func (e *End) restart() { e.retries, e.rnrRetries = e.RetryCount, e.RNRRetryCount }

// Failure tells what the calls since the last Failure broke.
func (e *End) Failure() Failure {
	f := e.failure
	e.failure = Failure{}
	return f
}

// Deadline is when Expire has something to do, if ever.
func (e *End) Deadline() (at time.Duration, ok bool) { return e.deadline, e.armed }

// Flush ends all requests, and gives back the room of a message that is half
// there. Answers stay.
func (e *End) Flush() {
	e.abandon()
	for e.requests.Len() > 0 {
		e.finish(Flushed)
	}
	e.armed, e.notReady = false, false
}

// Leave does the same for one of the owners that share an end.
func (e *End) Leave(o Owner) {
	if e.open && e.target == o {
		e.abandon()
	}
	var cut *Request // of what was begun for o
	if e.outstanding() {
		if w := e.requests.At(0); w.Owner == o && !w.resync {
			cut = &Request{Owner: o, RemoteQP: w.RemoteQP}
		}
	}
	e.requests.Keep(func(w *work) bool {
		if w.Owner != o || w.resync {
			return true
		}
		o.Sent(&w.Request, Flushed)
		return false
	})
	if cut != nil {
		e.resync(*cut)
	}
}

// DropAnswers forgets the answers that wait to be sent.
func (e *End) DropAnswers() { e.answers = Queue[answer]{} }

// distance is how far PSN a is ahead of b.
func distance(a, b uint32) int { return int(int32((a-b)<<8) >> 8) }

// packetsOf is how many packets a message makes.
func packetsOf(size, mtu int) int { return max(1, (size+mtu-1)/mtu) }
