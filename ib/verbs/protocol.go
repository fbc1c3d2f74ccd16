package verbs

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/ibwarden/ibwarden/ib"
)

// The protocol between a program and a simulator: each message is a length, four
// bytes with the most significant first, and so many bytes of JSON, a Request
// one way and an Answer the other. The first request is CallOpen, and no other.
// Answers come in any order and name their request. Programs have no need of it:
// Device speaks it.

// ProtocolVersion is the version of the protocol. A simulator speaks one.
const ProtocolVersion = 2

const (
	// MaxFrame is the length of the longest message in bytes.
	MaxFrame = 1 << 20
	// MaxMessage is the most bytes that one request sends, writes or reads, and
	// that one receive has room for.
	MaxMessage = 1 << 18
)

// Call is what a request asks for.
type Call string

// The calls.
const (
	CallOpen        Call = "open" // Version, Node, Privileged
	CallQueryDevice Call = "query-device"
	CallQueryPort   Call = "query-port" // Port
	CallQueryPKey   Call = "query-pkey" // Port, Index
	CallQueryGID    Call = "query-gid"  // Port, Index
	CallNextEvent   Call = "next-event" // Wait

	CallCreateCQ  Call = "create-cq"  // Count, its depth
	CallDestroyCQ Call = "destroy-cq" // Object
	CallPoll      Call = "poll"       // Object, Count, Wait

	CallCreateQP    Call = "create-qp" // Type, CQ, ReceiveCQ, SendDepth, ReceiveDepth, RD
	CallDestroyQP   Call = "destroy-qp"
	CallModifyQP    Call = "modify-qp" // Object, Mask, Attr
	CallQueryQP     Call = "query-qp"
	CallPostSend    Call = "post-send"    // Object, ID, Send
	CallPostReceive Call = "post-receive" // Object, ID, Count bytes
	CallAttach      Call = "attach"       // Object, Address.DLID and DGID
	CallDetach      Call = "detach"

	CallCreateAH  Call = "create-ah" // Address
	CallDestroyAH Call = "destroy-ah"

	CallRegister    Call = "register"     // Count bytes, VirtualAddress, Access
	CallDeregister  Call = "deregister"   // Object
	CallReadMemory  Call = "read-memory"  // Object, Index, Count
	CallWriteMemory Call = "write-memory" // Object, Index, Data

	CallCreateEE  Call = "create-ee"
	CallDestroyEE Call = "destroy-ee"
	CallModifyEE  Call = "modify-ee"
	CallQueryEE   Call = "query-ee"

	CallJoin  Call = "join"  // Port, Index of the P_Key, Address.DGID, Wait
	CallLeave Call = "leave" // the same
)

// Request is a call on its way to a simulator. Fields that the call does not have
// are ignored; a field of another name is an error.
type Request struct {
	Number uint64 // of the request, any; the answer has it
	Call   Call

	Version    int    `json:",omitempty"`
	Node       string `json:",omitempty"`
	Privileged bool   `json:",omitempty"`

	Object uint32     `json:",omitempty"` // a handle that this connection was given
	Port   ib.PortNum `json:",omitempty"`
	Index  int        `json:",omitempty"`
	Count  int        `json:",omitempty"`
	Wait   int64      `json:",omitempty"` // how long to wait, in nanoseconds; 0 for not at all

	Type         QPType     `json:",omitempty"`
	RD           bool       `json:",omitempty"`
	CQ           uint32     `json:",omitempty"` // handles
	ReceiveCQ    uint32     `json:",omitempty"`
	SendDepth    int        `json:",omitempty"`
	ReceiveDepth int        `json:",omitempty"`
	Mask         QPAttrMask `json:",omitempty"`
	Attr         *QPAttr    `json:",omitempty"`

	ID             uint64       `json:",omitempty"` // of a work request
	Send           *SendRequest `json:",omitempty"`
	Address        *AHAttr      `json:",omitempty"`
	Access         Access       `json:",omitempty"`
	VirtualAddress uint64       `json:",omitempty"`
	Data           []byte       `json:",omitempty"`
}

// SendRequest is a send request on its way to a simulator, with handles instead of
// objects.
type SendRequest struct {
	SendWR
	AH uint32 `json:",omitempty"`
	EE uint32 `json:",omitempty"`
}

// Answer is the result of a request.
type Answer struct {
	Number uint64
	// Code and Text tell an error, see Err; Code is empty for none.
	Code string `json:",omitempty"`
	Text string `json:",omitempty"`

	Object uint32          `json:",omitempty"` // handle of what was made
	QPN    ib.QPN          `json:",omitempty"` // or the number of an EE context
	RKey   uint32          `json:",omitempty"`
	Device *DeviceAttr     `json:",omitempty"`
	Port   *PortAttr       `json:",omitempty"`
	PKey   ib.PKey         `json:",omitempty"`
	GID    *ib.GID         `json:",omitempty"`
	Attr   *QPAttr         `json:",omitempty"`
	WCs    []WC            `json:",omitempty"`
	Event  *Event          `json:",omitempty"`
	Data   []byte          `json:",omitempty"`
	Group  *MulticastGroup `json:",omitempty"`
}

const lengthSize = 4 // bytes

// WriteFrame writes a Request or an Answer, in one call of Write.
func WriteFrame(w io.Writer, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(body) > MaxFrame {
		return fmt.Errorf("a message of %d bytes, want at most %d: %w", len(body), MaxFrame, ErrRequest)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, lengthSize+len(body)), uint32(len(body)))
	_, err = w.Write(append(frame, body...))
	return err
}

// ReadFrame reads a Request or an Answer into message. After an error the stream
// cannot be read on.
func ReadFrame(r io.Reader, message any) error {
	var length [lengthSize]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > MaxFrame {
		return fmt.Errorf("a message of %d bytes, want at most %d: %w", n, MaxFrame, ErrProtocol)
	}
	// What comes is stored as it comes: a length alone takes no memory.
	var body bytes.Buffer
	if m, err := io.CopyN(&body, r, int64(n)); err != nil {
		return fmt.Errorf("a message of %d bytes ends after %d: %w", n, m, err)
	}
	decoder := json.NewDecoder(&body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(message); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if decoder.More() {
		return fmt.Errorf("more than one value in a message: %w", ErrProtocol)
	}
	return nil
}
