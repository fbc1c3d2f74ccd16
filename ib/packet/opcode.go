package packet

import "fmt"

// OpCode is BTH.OpCode: a transport in bits 7:5, an operation in bits 4:0.
type OpCode uint8

// OpCodeUDSendOnly is the opcode of datagrams, management datagrams included.
const OpCodeUDSendOnly = OpCode(UD)<<5 | OpCode(SendOnly)

// Transport is a transport service.
type Transport uint8

// The transport services of the base specification. The codes above UD (CNP,
// XRC, vendor) have headers of their own and are not known to this package.
const (
	RC Transport = iota // reliable connection
	UC                  // unreliable connection
	RD                  // reliable datagram
	UD                  // unreliable datagram
)

// Operation is what a packet does within its transport.
type Operation uint8

// The operations.
const (
	SendFirst Operation = iota
	SendMiddle
	SendLast
	SendLastImm
	SendOnly
	SendOnlyImm
	WriteFirst
	WriteMiddle
	WriteLast
	WriteLastImm
	WriteOnly
	WriteOnlyImm
	ReadRequest
	ReadResponseFirst
	ReadResponseMiddle
	ReadResponseLast
	ReadResponseOnly
	Acknowledge
	AtomicAcknowledge
	CmpSwap
	FetchAdd
	Resync
	SendLastInvalidate
	SendOnlyInvalidate
)

// MakeOpCode joins a transport and an operation. Not every pair is an opcode;
// IsValid reports whether the opcode is defined.
func MakeOpCode(t Transport, op Operation) OpCode { return OpCode(t)<<5 | OpCode(op)&0x1F }

// Transport is the transport service of o.
func (o OpCode) Transport() Transport { return Transport(o >> 5) }

// Operation is the operation of o.
func (o OpCode) Operation() Operation { return Operation(o & 0x1F) }

// IsValid reports whether this package knows the headers of o.
func (o OpCode) IsValid() bool { return layouts[o].valid }

// Headers is the set of extended headers that follow the BTH.
func (o OpCode) Headers() HeaderSet { return layouts[o].headers }

// HasPayload reports whether packets of this opcode carry a payload (which may
// have no bytes).
func (o OpCode) HasPayload() bool { return layouts[o].payload }

// String names the transport and the operation.
func (o OpCode) String() string {
	if !o.IsValid() {
		return fmt.Sprintf("opcode 0x%02x", uint8(o))
	}
	return transportNames[o.Transport()] + " " + operations[o.Operation()].name
}

// HeaderSet is a set of extended headers. On the wire they are in the order
// of the constants.
type HeaderSet uint8

// The extended headers.
const (
	HasRDETH HeaderSet = 1 << iota
	HasDETH
	HasRETH
	HasAtomicETH
	HasAETH
	HasAtomicAckETH
	HasImmDt
	HasIETH
)

var headerSizes = [8]int{
	RDETHSize, DETHSize, RETHSize, AtomicETHSize, AETHSize, AtomicAckETHSize, ImmDtSize, IETHSize,
}

// Has reports whether all headers of other are in s.
func (s HeaderSet) Has(other HeaderSet) bool { return s&other == other }

// Size is the length of all headers of s in bytes.
func (s HeaderSet) Size() int {
	size := 0
	for i, n := range headerSizes {
		if s.Has(1 << i) {
			size += n
		}
	}
	return size
}

var transportNames = [...]string{RC: "RC", UC: "UC", RD: "RD", UD: "UD"}

// Sets of transports, for the table of operations.
const (
	onRC  = 1 << RC
	onUC  = 1 << UC
	onRD  = 1 << RD
	onUD  = 1 << UD
	onRCD = onRC | onRD
	onAll = onRC | onUC | onRD
)

// operations lists, for each operation, which transports have it and what
// follows the headers that belong to the transport (RDETH, DETH).
var operations = [...]struct {
	name       string
	transports uint8
	headers    HeaderSet
	payload    bool
}{
	SendFirst:          {"SEND first", onAll, 0, true},
	SendMiddle:         {"SEND middle", onAll, 0, true},
	SendLast:           {"SEND last", onAll, 0, true},
	SendLastImm:        {"SEND last with immediate", onAll, HasImmDt, true},
	SendOnly:           {"SEND only", onAll | onUD, 0, true},
	SendOnlyImm:        {"SEND only with immediate", onAll | onUD, HasImmDt, true},
	WriteFirst:         {"RDMA WRITE first", onAll, HasRETH, true},
	WriteMiddle:        {"RDMA WRITE middle", onAll, 0, true},
	WriteLast:          {"RDMA WRITE last", onAll, 0, true},
	WriteLastImm:       {"RDMA WRITE last with immediate", onAll, HasImmDt, true},
	WriteOnly:          {"RDMA WRITE only", onAll, HasRETH, true},
	WriteOnlyImm:       {"RDMA WRITE only with immediate", onAll, HasRETH | HasImmDt, true},
	ReadRequest:        {"RDMA READ request", onRCD, HasRETH, false},
	ReadResponseFirst:  {"RDMA READ response first", onRCD, HasAETH, true},
	ReadResponseMiddle: {"RDMA READ response middle", onRCD, 0, true},
	ReadResponseLast:   {"RDMA READ response last", onRCD, HasAETH, true},
	ReadResponseOnly:   {"RDMA READ response only", onRCD, HasAETH, true},
	Acknowledge:        {"acknowledge", onRCD, HasAETH, false},
	AtomicAcknowledge:  {"atomic acknowledge", onRCD, HasAETH | HasAtomicAckETH, false},
	CmpSwap:            {"CmpSwap", onRCD, HasAtomicETH, false},
	FetchAdd:           {"FetchAdd", onRCD, HasAtomicETH, false},
	Resync:             {"RESYNC", onRD, 0, false},
	SendLastInvalidate: {"SEND last with invalidate", onRC, HasIETH, true},
	SendOnlyInvalidate: {"SEND only with invalidate", onRC, HasIETH, true},
}

// IsResponse reports whether the responder sends packets of this operation.
func (op Operation) IsResponse() bool {
	return op >= ReadResponseFirst && op <= AtomicAcknowledge
}

type layout struct {
	valid   bool
	payload bool
	headers HeaderSet
	size    int // of the headers, in bytes
}

// layouts is operations spread over the 256 opcodes, for one look-up a packet.
var layouts = func() (all [256]layout) {
	for i, row := range operations {
		op := Operation(i)
		for t := RC; t <= UD; t++ {
			if row.transports>>t&1 == 0 {
				continue
			}
			headers := row.headers
			switch {
			case t == UD:
				headers |= HasDETH
			case t == RD && op.IsResponse():
				headers |= HasRDETH
			case t == RD:
				headers |= HasRDETH | HasDETH
			}
			all[MakeOpCode(t, op)] = layout{
				valid: true, payload: row.payload, headers: headers, size: headers.Size(),
			}
		}
	}
	return all
}()
