// connection*.go: implements one end of a connected transport: RC, UC, or an EE
// context that carries RD. It segments and reassembles messages, numbers packets,
// acknowledges, retries and gives up. It knows
// no keys, addresses or queue pair states: package endpoint decides which
// packets arrive here, and adds the headers of those that leave.
//
//	Open                         an end with its settings
//	Post                         a request of an Owner
//	HasAnswer, HasRequest, Next  packets to send
//	Requested, Answered          received packets: requests, responses
//	Deadline, Expire             retransmission
//	Failure                      the error of the last call, to be read after each
//
// A request is sent as one packet or several, each with a PSN, and so is the response
// to an RDMA READ. On a reliable end a request is kept until the peer has acknowledged
// all of it (RD: one at a time); on UC it ends with its last packet. When the response
// to the oldest request does not arrive within Timeout, or the peer reports a missing
// PSN, the end goes back to that PSN and sends everything again, RetryCount times until
// there is progress. A peer without room for a message answers RNR NAK; that is
// retried RNRRetryCount times.
//
// The receiving side accepts packets in order of PSN. A reliable one answers a gap
// once, repeats its response to duplicates, and refuses invalid packets;
// UC waits for the beginning of the next message. No packet, whatever its bytes,
// writes anywhere but to memory and buffers that it may write to.

package endpoint

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
	MaxRead          = 1 << 30 // bytes that a peer may ask for at once

	ackEvery        = 32 // packets after which an acknowledgement is asked for
	connectionMax24 = 1<<24 - 1
)

// RNRRetryAlways is the RNRRetryCount that never ends.
const RNRRetryAlways = 7

// ConnectionSettings are what both ends agreed on.
type ConnectionSettings struct {
	Transport     packet.Transport // RC, UC or RD
	MTU           int              // bytes of payload in all packets of a message but the last
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

// ConnectionRequest is a message to be sent, or memory to be read.
type ConnectionRequest struct {
	Owner     ConnectionOwner
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

// ConnectionRoom is a buffer for one message.
type ConnectionRoom struct {
	ID     uint64
	Buffer []byte
}

// ConnectionArrival is the outcome of a buffer.
type ConnectionArrival struct {
	Packet  *packet.View // the last of the message; valid during the call
	Size    int          // bytes in the buffer
	Write   bool         // of an RDMA WRITE with immediate data: nothing is in the buffer
	TooLong bool         // the message did not fit
}

// ConnectionOwner is the queue pair that posts requests and gets messages.
type ConnectionOwner interface {
	// Sent ends a request.
	Sent(r *ConnectionRequest, s Status)
	// Rooms is the number of buffers that wait for messages.
	Rooms() int
	// TakeRoom takes the oldest; there is one.
	TakeRoom() ConnectionRoom
	// ReturnRoom puts back what was taken last.
	ReturnRoom(ConnectionRoom)
	// Received ends a buffer.
	Received(ConnectionRoom, ConnectionArrival)
}

// ConnectionMemory finds what a peer asks for. It reports false for what the peer may not
// touch.
type ConnectionMemory interface {
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

// ConnectionOutcome is the outcome of a packet.
type ConnectionOutcome uint8

// The outcomes.
const (
	ConnectionTaken  ConnectionOutcome = iota
	NoRoom                             // no buffer for the message
	Length                             // does not fit its buffer, its memory or its place in the message
	Sequence                           // not the PSN that is next
	Duplicate                          // seen before
	OpCode                             // makes no sense at this point
	ConnectionAccess                   // memory that the peer may not touch
	Full                               // MaxAnswers
	Refused                            // the queue pair that it names does not want it
)

// ConnectionEnd is one end of a connection.
type ConnectionEnd struct {
	ConnectionSettings
	memory ConnectionMemory
	sender
	receiver
	failure ConnectionFailure
}

// ConnectionFailure is what a call has broken.
type ConnectionFailure struct {
	Broken bool            // the end: nothing goes on
	Owner  ConnectionOwner // in RD, of a request that failed: it goes on without it
}

// Open begins a connection. Settings that only the sender goes by may change
// later.
func (e *ConnectionEnd) Open(m ConnectionMemory, s ConnectionSettings) {
	*e = ConnectionEnd{ConnectionSettings: s, memory: m}
	e.expect = s.ReceivePSN
	e.Start()
}

// Start gives the sender its first PSN and its retries.
func (e *ConnectionEnd) Start() {
	e.nextPSN = e.SendPSN
	e.restart()
}

func (e *ConnectionEnd) restart() { e.retries, e.rnrRetries = e.RetryCount, e.RNRRetryCount }

// Failure tells what the calls since the last Failure broke.
func (e *ConnectionEnd) Failure() ConnectionFailure {
	f := e.failure
	e.failure = ConnectionFailure{}
	return f
}

// Deadline is when Expire has something to do, if ever.
func (e *ConnectionEnd) Deadline() (at time.Duration, ok bool) { return e.deadline, e.armed }

// Flush ends all requests, and gives back the room of a message that is half
// there. Answers stay.
func (e *ConnectionEnd) Flush() {
	e.abandon()
	for e.requests.Len() > 0 {
		e.finish(Flushed)
	}
	e.armed, e.notReady = false, false
}

// Leave does the same for one of the owners that share an end.
func (e *ConnectionEnd) Leave(o ConnectionOwner) {
	if e.open && e.target == o {
		e.abandon()
	}
	var cut *ConnectionRequest // of what was begun for o
	if e.outstanding() {
		if w := e.requests.At(0); w.Owner == o && !w.resync {
			cut = &ConnectionRequest{Owner: o, RemoteQP: w.RemoteQP}
		}
	}
	e.requests.Keep(func(w *work) bool {
		if w.Owner != o || w.resync {
			return true
		}
		o.Sent(&w.ConnectionRequest, Flushed)
		return false
	})
	if cut != nil {
		e.resync(*cut)
	}
}

// DropAnswers forgets the answers that wait to be sent.
func (e *ConnectionEnd) DropAnswers() { e.answers = ConnectionQueue[answer]{} }

// distance is how far PSN a is ahead of b.
func distance(a, b uint32) int { return int(int32((a-b)<<8) >> 8) }

// packetsOf is how many packets a message makes.
func packetsOf(size, mtu int) int { return max(1, (size+mtu-1)/mtu) }
