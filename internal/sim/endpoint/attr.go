package endpoint

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
)

// Service is the transport service of a queue pair.
type Service uint8

// The services. SMI is a port's QP0, GSI its QP1.
const (
	RC Service = iota
	UC
	UD
	RawIPv6
	RawEtherType
	SMI
	GSI
	RD
	serviceCount
	eeContext // not of a queue pair: what carries RD
)

var serviceNames = [serviceCount]string{"RC", "UC", "UD", "raw IPv6", "raw EtherType", "SMI", "GSI", "RD"}

// String names the service.
func (s Service) String() string {
	if s >= serviceCount {
		return "unknown service"
	}
	return serviceNames[s]
}

func (s Service) isManagement() bool { return s == SMI || s == GSI }
func (s Service) isRaw() bool        { return s == RawIPv6 || s == RawEtherType }

// isDatagram: each request has an address of its own and is one packet.
func (s Service) isDatagram() bool { return s == UD || s.isRaw() || s.isManagement() }

// isReliable: packets are acknowledged.
func (s Service) isReliable() bool { return s == RC || s == eeContext }

// transport is the part of the opcode that the service's packets have.
func (s Service) transport() packet.Transport {
	switch s {
	case RC:
		return packet.RC
	case UC:
		return packet.UC
	case RD, eeContext:
		return packet.RD
	}
	return packet.UD
}

// State is the state of a queue pair or EE context.
type State uint8

// The states.
const (
	StateReset State = iota
	StateInit        // receives may be posted
	StateRTR         // ready to receive
	StateRTS         // ready to send
	StateSQD         // no new request is begun
	StateSQE         // a request failed, those behind it were flushed
	StateErr         // everything was flushed
	stateCount
)

var stateNames = [stateCount]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

// String names the state.
func (s State) String() string {
	if s >= stateCount {
		return "unknown state"
	}
	return stateNames[s]
}

// receives: packets are taken.
func (s State) receives() bool { return s >= StateRTR && s <= StateSQE }

// Address is the way to another port.
type Address struct {
	DLID           ib.LID
	SL             ib.SL
	SourcePathBits uint8 // low bits of the SLID, as far as LMC has them

	Global    bool // with a GRH
	DGID      ib.GID
	SGIDIndex uint8
	TClass    uint8
	FlowLabel uint32 // 20 bits
	HopLimit  uint8
}

// Attr are the attributes that Modify sets and Query tells. Those that a service
// does not have stay 0.
type Attr struct {
	Port      ib.PortNum
	PKeyIndex uint16
	QKey      ib.QKey

	// Of RC, UC and EE contexts.
	Path       Address
	PathMTU    ib.MTU
	Remote     uint32 // QP or EE context at the other end, 24 bits
	ReceivePSN uint32 // 24 bits
	SendPSN    uint32 // 24 bits; of UD too

	// Of RC and EE contexts.
	MinRNRTimer   uint8        // 0 to 31, code of the wait that an RNR NAK asks for
	Timeout       ib.TimeValue // until a packet is sent again, 0 for never
	RetryCount    uint8        // 0 to 7
	RNRRetryCount uint8        // 0 to 6; 7 for without end
}

// AttrMask says which fields of Attr are meant.
type AttrMask uint16

// The fields of Attr.
const (
	AttrPort AttrMask = 1 << iota
	AttrPKeyIndex
	AttrQKey
	AttrPath
	AttrPathMTU
	AttrRemote
	AttrReceivePSN
	AttrSendPSN
	AttrMinRNRTimer
	AttrTimeout
	AttrRetryCount
	AttrRNRRetryCount
)

const (
	attrConnection = AttrPath | AttrPathMTU | AttrRemote | AttrReceivePSN
	attrRetries    = AttrTimeout | AttrRetryCount | AttrRNRRetryCount
)

// initial is what a service gets on the way to INIT.
func (s Service) initial() AttrMask {
	switch s {
	case UD:
		return AttrPort | AttrPKeyIndex | AttrQKey
	case RawIPv6, RawEtherType:
		return AttrPort
	case SMI, GSI:
		return 0
	case RD:
		return AttrQKey
	}
	return AttrPort | AttrPKeyIndex
}

// change reports whether Modify leads from one state to another, and which
// attributes it wants and takes on the way.
func (s Service) change(from, to State) (wants, takes AttrMask, ok bool) {
	connected := s == UC || s.isReliable()
	var timer AttrMask
	if s.isReliable() {
		timer = AttrMinRNRTimer
	}
	switch {
	case to == StateReset || to == StateErr:
		return 0, 0, true
	case from == StateReset && to == StateInit:
		wants = s.initial()
	case from == StateInit && to == StateInit:
		takes = s.initial()
	case from == StateInit && to == StateRTR:
		takes = s.initial() &^ AttrPort
		if connected {
			wants = attrConnection | timer
		}
	case from == StateRTR && to == StateRTS:
		takes = s.initial()&AttrQKey | timer
		if s == UD || connected {
			wants = AttrSendPSN
		}
		if s.isReliable() {
			wants |= attrRetries
		}
	case from == StateRTS && to == StateRTS:
		takes = s.initial()&AttrQKey | timer
	case from == StateRTS && to == StateSQD && s != RD:
	case from == StateSQD && (to == StateRTS || to == StateSQD):
		takes = s.initial()&^AttrPort | timer
		if connected {
			takes |= AttrPath
		}
		if s.isReliable() {
			takes |= attrRetries
		}
	case from == StateSQE && to == StateRTS:
		takes = s.initial() & AttrQKey
	default:
		return 0, 0, false
	}
	if s.isManagement() {
		takes |= AttrPKeyIndex | AttrSendPSN
	}
	return wants, takes, true
}
