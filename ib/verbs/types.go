package verbs

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// nameOf is entry i of names, or what for a number that has none.
func nameOf(i uint8, what string, names []string) string {
	if int(i) >= len(names) {
		return fmt.Sprintf("unknown %s %d", what, i)
	}
	return names[i]
}

// DeviceFlags are what a device can do (device_cap_flags).
type DeviceFlags uint32

// The flags.
const (
	// DeviceBadPKeyCounter: PortAttr.BadPKeyCounter counts (IBV_DEVICE_BAD_PKEY_CNTR).
	DeviceBadPKeyCounter DeviceFlags = 1 << iota
	// DeviceBadQKeyCounter: PortAttr.QKeyViolationCounter counts (IBV_DEVICE_BAD_QKEY_CNTR).
	DeviceBadQKeyCounter
)

// DeviceAttr describes a device. The limits are those of one opened device.
type DeviceAttr struct {
	Node            string // its name in the fabric
	NodeGUID        ib.NodeGUID
	SystemImageGUID uint64
	Ports           int // the number of end ports; they are 1 to Ports, and 0 of a switch
	Flags           DeviceFlags
	MaxQPs          int
	MaxQueueDepth   int // requests in a queue of a queue pair
	MaxCQs          int
	MaxCQDepth      int // completions in a completion queue
	MaxAHs          int
	MaxMemory       int // bytes of all buffers, posted requests and regions together
	MaxPKeys        int // entries of a port's P_Key table
}

// PortAttr describes a port.
type PortAttr struct {
	State     smp.PortState
	MaxMTU    ib.MTU
	ActiveMTU ib.MTU
	LID       ib.LID
	LMC       ib.LMC
	SMLID     ib.LID
	SMSL      ib.SL
	// PKeyTableLen is the number of entries of the P_Key table, at least 1
	// (pkey_tbl_len).
	PKeyTableLen int
	GIDTableLen  int
	// BadPKeyCounter is how many packets were dropped for their P_Key
	// (bad_pkey_cntr), up to 0xFFFF; 0 on a device without DeviceBadPKeyCounter.
	BadPKeyCounter uint32
	// QKeyViolationCounter is how many were dropped for their Q_Key
	// (qkey_viol_cntr), up to 0xFFFF; 0 on a device without DeviceBadQKeyCounter.
	QKeyViolationCounter uint32
}

// QPType is the transport service of a queue pair.
type QPType uint8

// The services.
const (
	QPTypeRC QPType = iota
	QPTypeUC
	QPTypeUD
	QPTypeRawIPv6
	QPTypeRawEtherType
	// QPTypeRD is refused by CreateQP: no device and no stack has it. CreateRDQP
	// makes one beneath the verbs.
	QPTypeRD
)

// String names the service.
func (t QPType) String() string {
	return nameOf(uint8(t), "QP type", []string{"RC", "UC", "UD", "RAW_IPV6", "RAW_ETHERTYPE", "RD"})
}

// QPState is the state of a queue pair.
type QPState uint8

// The states.
const (
	StateReset QPState = iota
	StateInit          // receives may be posted
	StateRTR           // ready to receive
	StateRTS           // ready to send
	StateSQD           // no new request is begun
	StateSQE           // a request failed, those behind it were flushed
	StateErr           // everything was flushed
)

// String names the state.
func (s QPState) String() string {
	return nameOf(uint8(s), "QP state", []string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"})
}

// AHAttr is the way to another port.
type AHAttr struct {
	Port        ib.PortNum // of an address handle: the local port; of a queue pair it is the QP's
	DLID        ib.LID
	SL          ib.SL
	SrcPathBits uint8 // low bits of the SLID, as far as LMC has them

	Global       bool // with a global route header
	DGID         ib.GID
	SGIDIndex    uint8
	TrafficClass uint8
	FlowLabel    uint32 // 20 bits
	HopLimit     uint8
}

// QPAttr are the attributes that Modify sets and Query returns. Those that a service
// does not have stay 0.
type QPAttr struct {
	State     QPState
	Port      ib.PortNum
	PKeyIndex uint16
	QKey      ib.QKey

	// Of RC, UC and EE contexts.
	AV      AHAttr // the way to the other end
	PathMTU ib.MTU
	DestQPN ib.QPN // or EE context at the other end
	RQPSN   uint32 // 24 bits, of the first packet that arrives
	SQPSN   uint32 // 24 bits, of the first packet that leaves; of UD too

	// Of RC and EE contexts.
	MinRNRTimer uint8        // 0 to 31, code of the wait that an RNR NAK asks for
	Timeout     ib.TimeValue // until a packet is sent again, 0 for never
	RetryCount  uint8        // 0 to 7
	RNRRetry    uint8        // 0 to 6; 7 for without end
}

// QPAttrMask says which fields of QPAttr are set.
type QPAttrMask uint32

// The fields of QPAttr.
const (
	AttrState QPAttrMask = 1 << iota
	AttrPort
	AttrPKeyIndex
	AttrQKey
	AttrAV
	AttrPathMTU
	AttrDestQPN
	AttrRQPSN
	AttrSQPSN
	AttrMinRNRTimer
	AttrTimeout
	AttrRetryCount
	AttrRNRRetry
)

// Access is what a peer may do with a memory region.
type Access uint8

// The kinds of access.
const (
	AccessRemoteWrite Access = 1 << iota
	AccessRemoteRead
)

// SendOp is what a send request does.
type SendOp uint8

// The operations.
const (
	OpSend SendOp = iota
	OpWrite
	OpRead
)

// WCOpcode is what a completed request did.
type WCOpcode uint8

// The operations of completions.
const (
	WCSend WCOpcode = iota
	WCRDMAWrite
	WCRDMARead
	WCRecv
	WCRecvRDMAWithImm
)

// String names the operation as the verbs do.
func (o WCOpcode) String() string {
	return nameOf(uint8(o), "opcode", []string{
		"IBV_WC_SEND", "IBV_WC_RDMA_WRITE", "IBV_WC_RDMA_READ", "IBV_WC_RECV", "IBV_WC_RECV_RDMA_WITH_IMM",
	})
}

// WCStatus is how a request ended.
type WCStatus uint8

// The ways to end.
const (
	WCSuccess WCStatus = iota
	WCLocLenErr
	WCWRFlushErr
	WCBadRespErr
	WCRemInvReqErr
	WCRemAccessErr
	WCRemOpErr
	WCRemInvRDReqErr
	WCRetryExcErr
	WCRNRRetryExcErr
)

// String names the status as the verbs do.
func (s WCStatus) String() string {
	return nameOf(uint8(s), "status", []string{
		"IBV_WC_SUCCESS", "IBV_WC_LOC_LEN_ERR", "IBV_WC_WR_FLUSH_ERR", "IBV_WC_BAD_RESP_ERR", "IBV_WC_REM_INV_REQ_ERR",
		"IBV_WC_REM_ACCESS_ERR", "IBV_WC_REM_OP_ERR", "IBV_WC_REM_INV_RD_REQ_ERR", "IBV_WC_RETRY_EXC_ERR", "IBV_WC_RNR_RETRY_EXC_ERR",
	})
}

// WC is a completion: the end of a request.
type WC struct {
	ID     uint64 // of the request (wr_id)
	Status WCStatus
	Opcode WCOpcode
	QPN    ib.QPN // of the local queue pair
	// Data is what came: of a receive or READ that succeeded.
	Data []byte `json:",omitempty"`

	// Of a receive that succeeded.
	GRH       []byte `json:",omitempty"` // 40 bytes, nil for none
	HasImm    bool   `json:",omitempty"`
	Imm       uint32 `json:",omitempty"`
	Solicited bool   `json:",omitempty"`
	SrcQP     ib.QPN
	SLID      ib.LID
	SL        ib.SL
	PKey      ib.PKey // of the packet
	PKeyIndex uint16  // of the entry that it matched
	EtherType uint16  `json:",omitempty"` // of raw EtherType
}

// EventType is what an asynchronous event is about.
type EventType uint8

// The types of event.
const (
	// EventPKeyChange: the subnet manager changed the P_Key table of the port. A program
	// that caches entries has to read them again.
	EventPKeyChange EventType = iota + 1
	EventPortActive
	EventPortErr
	EventLIDChange
	EventGIDChange
	EventSMChange
	// EventClientReregister: the subnet manager asks that subscriptions and
	// memberships be renewed.
	EventClientReregister
	// EventQPReqErr and EventQPAccessErr: the queue pair is in error over a
	// request, or over memory, that it refused.
	EventQPReqErr
	EventQPAccessErr
	// EventDeviceFatal: the host lost its power. Nothing works any more; Dial and
	// Open give a new device when it is back.
	EventDeviceFatal
)

// String names the type as the verbs do.
func (t EventType) String() string {
	return nameOf(uint8(t), "event", []string{
		"unknown event 0", "IBV_EVENT_PKEY_CHANGE", "IBV_EVENT_PORT_ACTIVE", "IBV_EVENT_PORT_ERR", "IBV_EVENT_LID_CHANGE",
		"IBV_EVENT_GID_CHANGE", "IBV_EVENT_SM_CHANGE", "IBV_EVENT_CLIENT_REREGISTER", "IBV_EVENT_QP_REQ_ERR",
		"IBV_EVENT_QP_ACCESS_ERR", "IBV_EVENT_DEVICE_FATAL",
	})
}

// Event is something that happened to a device.
type Event struct {
	Type EventType
	Port ib.PortNum // of the events of a port
	QPN  ib.QPN     // of the events of a queue pair
}
