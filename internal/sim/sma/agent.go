package sma

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Agent is the subnet-management agent of one device with all the state that
// it answers for.
type Agent struct {
	options     Options
	node        smp.NodeInfo // but for PortGUID and LocalPortNum
	description smp.NodeDescription
	ports       []port      // by number; ports[0] is used on a switch only
	fabric      *forwarding // of a switch
	defaultKeys []ib.PKey   // every P_Key table that was not written yet
	vendor      map[mad.AttributeID][mad.DataSize]byte
	lastTrap    uint64   // transaction identifier
	testing     bool     // the device still tests itself
	effects     []Effect // of the call that is under way
}

// portKind says which elements of PortInfo a port has.
type portKind uint8

const (
	caPort portKind = iota
	routerPort
	basePort0
	enhancedPort0
	external
)

// isEnd: the port has an address and a key of its own (class E in the book).
func (k portKind) isEnd() bool { return k != external }

// hasLink: the port has a link layer that the manager brings up (class L).
func (k portKind) hasLink() bool { return k != basePort0 }

// isExit: packets queue at the port to leave the device for another subnet or
// link: the limits on their stay are here.
func (k portKind) isExit() bool { return k == external || k == routerPort }

// hasCable: the port's link can go down and train.
func (k portKind) hasCable() bool { return k != basePort0 && k != enhancedPort0 }

// port is the state of one port.
type port struct {
	kind  portKind
	led   bool
	guid  ib.PortGUID
	info  smp.PortInfo // MKey and LocalPortNum as they are, whoever asks
	keys  []ib.PKey    // nil while the table is as at power-up
	guids []uint64     // nil while the SM has assigned none
	// slToVL of a CA or router port; a switch has pairs of ports.
	slToVL *lanes
	// high and low are the arbitration tables, nil while never written.
	high, low []smp.VLArbitrationEntry

	leaseEnd time.Duration // when leased
	leased   bool          // the lease of the M_Key is running out
	faults   faults
	health   health
	events   *events // nil while there was none
	// unlocked reports whether a Get by a manager that knows extended speeds was answered since the
	// link came up.
	unlocked bool
}

func (p *port) init(c PortConfig, kind portKind) {
	*p = port{kind: kind}
	if kind.isEnd() {
		p.guid = c.GUID
		p.info.CapabilityMask = c.CapabilityMask &^ smp.CapIsSM
		p.info.CapabilityMask2 = c.CapabilityMask2
		p.info.DiagCode = c.DiagCode
		p.health = health{code: c.DiagCode, blocks: c.VendorDiag}
		p.info.GUIDCap = c.GUIDCap
		p.info.SubnetTimeOut = c.SubnetTimeOut
		p.info.RespTimeValue = c.RespTimeValue
	}
	p.info.VLCap, p.info.MTUCap = c.VLCap, c.MTUCap
	if kind.hasLink() {
		p.initLink(c)
	}
	if !kind.hasCable() {
		p.info.PortState, p.info.PortPhysicalState = smp.PortActive, smp.PhysLinkUp
	}
	if kind == enhancedPort0 || kind == basePort0 && !c.DiagCode.IsOperative() {
		p.info.PortState = smp.PortInit
	}
}

func (p *port) initLink(c PortConfig) {
	i := &p.info
	i.LinkWidthSupported, i.LinkWidthEnabled = c.LinkWidthSupported, cmp.Or(c.LinkWidthEnabled, c.LinkWidthSupported)
	i.LinkWidthActive = c.LinkWidthSupported & -c.LinkWidthSupported // the lowest
	i.LinkSpeedSupported, i.LinkSpeedEnabled = c.LinkSpeedSupported, cmp.Or(c.LinkSpeedEnabled, c.LinkSpeedSupported)
	i.LinkSpeedActive = c.LinkSpeedSupported & -c.LinkSpeedSupported
	i.LinkSpeedExtSupported, i.LinkSpeedExtEnabled = c.LinkSpeedExtSupported, c.LinkSpeedExtSupported
	i.LinkSpeedExtSupported2, i.LinkSpeedExtEnabled2 = c.LinkSpeedExtSupported2, c.LinkSpeedExtSupported2
	i.PortState, i.PortPhysicalState = smp.PortDown, smp.PhysPolling
	i.LinkDownDefaultState = smp.PhysPolling
	// The smallest payload and one virtual lane suit every neighbour.
	i.NeighborMTU, i.OperationalVLs = ib.MTU256, 1
	i.VLArbitrationHighCap, i.VLArbitrationLowCap = c.VLArbitrationHighCap, c.VLArbitrationLowCap
}

// Options are the points in which the device differs from others.
func (a *Agent) Options() Options { return a.options }

// NodeInfo describes the device as seen through a port.
func (a *Agent) NodeInfo(through ib.PortNum) smp.NodeInfo {
	n := a.node
	n.LocalPortNum = through
	if e := a.endPort(through); e != nil {
		n.PortGUID = e.guid
	}
	return n
}

// Port is a view of a port's PortInfo, nil when there is no such port. It
// follows the state; it must not be written. LocalPortNum is not set in it.
func (a *Agent) Port(n ib.PortNum) *smp.PortInfo {
	if p := a.port(n); p != nil {
		return &p.info
	}
	return nil
}

// SwitchInfo is a view of the switch's settings, nil on other devices. It must
// not be written.
func (a *Agent) SwitchInfo() *smp.SwitchInfo {
	if a.fabric == nil {
		return nil
	}
	return &a.fabric.info
}

// HasLID reports whether lid is one of the addresses of the end port that
// packets to port n are for: n itself, or port 0 of a switch.
func (a *Agent) HasLID(n ib.PortNum, lid ib.LID) bool {
	e := a.endPort(n)
	return e != nil && e.info.LID != 0 && lid.IsUnicast() && lid>>e.info.LMC == e.info.LID>>e.info.LMC
}

// port is the port of number n, nil when there is none.
func (a *Agent) port(n ib.PortNum) *port {
	if int(n) >= len(a.ports) || n == 0 && a.fabric == nil {
		return nil
	}
	return &a.ports[n]
}

// endNumber is the number of the end port that port n belongs to.
func (a *Agent) endNumber(n ib.PortNum) ib.PortNum {
	if a.fabric != nil {
		return 0
	}
	return n
}

func (a *Agent) endPort(n ib.PortNum) *port {
	if a.port(n) == nil {
		return nil
	}
	return a.port(a.endNumber(n))
}

// Ingress is how a packet came in.
type Ingress struct {
	Port ib.PortNum // 0 for a packet from the switch's own port 0
	SLID ib.LID     // source of the packet, from its local route header
}

// Verdict is the result of processing a packet.
type Verdict uint8

const (
	// Unwanted packets are dropped: nobody here takes such a thing.
	Unwanted Verdict = iota
	// BadMKey packets are dropped: the M_Key was wrong.
	BadMKey
	// Answered packets have been turned into their answer.
	Answered
	// Absorbed packets did what they came for and have no answer.
	Absorbed
	// ForManager packets are unchanged and for the subnet manager behind the
	// port.
	ForManager
)

// Result is what Handle made of a packet.
type Result struct {
	Verdict Verdict
	Effects []Effect // valid until the next call
}

// request is a packet on its way through the agent.
type request struct {
	*mad.SMP
	now  time.Duration
	from Ingress
	end  *port // that guards what is asked for
	set  bool
}

// Handle takes one packet that reached the agent at the end of its way. When it
// is answered, p has become the answer.
func (a *Agent) Handle(now time.Duration, from Ingress, p *mad.SMP) Result {
	a.effects = a.effects[:0]
	verdict := a.handle(request{SMP: p, now: now, from: from, end: a.endPort(from.Port), set: p.Method == mad.MethodSet})
	return Result{verdict, a.effects}
}

func (a *Agent) handle(r request) Verdict {
	if r.end == nil || r.Class != mad.ClassSubnLID && r.Class != mad.ClassSubnDirected {
		return Unwanted
	}
	isSM := r.end.info.CapabilityMask.Has(smp.CapIsSM)
	if r.Method.IsResponse() || r.Method == mad.MethodTrap {
		if isSM {
			return ForManager
		}
		return Unwanted
	}
	version := r.BaseVersion == mad.BaseVersion && r.ClassVersion == mad.ClassVersion
	if version && isSM && a.isManagers(r) {
		return ForManager
	}
	// Before the version and the method: who has no key is not even told that a device is here.
	if !a.checkMKey(r) {
		return BadMKey
	}
	switch {
	case !version:
		r.MakeResponse(mad.StatusBadVersion)
		return Answered
	case r.Method == mad.MethodTrapRepress:
		a.repress(r)
		return Absorbed
	case r.Method != mad.MethodGet && r.Method != mad.MethodSet:
		r.MakeResponse(mad.StatusUnsupportedMethod)
		return Answered
	}
	r.MakeResponse(a.serve(r))
	return Answered
}

// isManagers reports whether a request is for the subnet manager behind the port, which has
// no M_Key and must be shown none: about SMInfo, or an answer to a trap that it has sent.
func (a *Agent) isManagers(r request) bool {
	switch r.Method {
	case mad.MethodGet, mad.MethodSet:
		return r.AttributeID == smp.AttrSMInfo
	case mad.MethodTrapRepress:
		return r.AttributeID == smp.AttrNotice && !a.sent(r)
	}
	return false
}

// services answer the attributes that agents have.
var services = described(map[mad.AttributeID]func(*Agent, request) mad.Status{
	smp.AttrNotice:                   (*Agent).serveNotice,
	smp.AttrNodeDescription:          (*Agent).serveNodeDescription,
	smp.AttrNodeInfo:                 (*Agent).serveNodeInfo,
	smp.AttrSwitchInfo:               (*Agent).serveSwitchInfo,
	smp.AttrGUIDInfo:                 (*Agent).serveGUIDInfo,
	smp.AttrPortInfo:                 (*Agent).servePortInfo,
	smp.AttrPKeyTable:                (*Agent).servePKeyTable,
	smp.AttrSLToVLMappingTable:       (*Agent).serveSLToVL,
	smp.AttrVLArbitrationTable:       (*Agent).serveVLArbitration,
	smp.AttrLinearForwardingTable:    (*Agent).serveLinear,
	smp.AttrRandomForwardingTable:    (*Agent).serveRandom,
	smp.AttrMulticastForwardingTable: (*Agent).serveMulticast,
	smp.AttrVendorDiag:               (*Agent).serveVendorDiag,
	smp.AttrLEDInfo:                  (*Agent).serveLEDInfo,
})

// service answers one attribute.
type service struct {
	serve func(*Agent, request) mad.Status
	// ofSwitch reports whether only switches have the attribute.
	ofSwitch bool
}

// servicesMax is above all attribute numbers that are served by a table; those of
// vendors are far higher.
const servicesMax = 0x40

// described adds to functions what package smp says of their attributes. It panics
// where smp does not know one. Whether an attribute can be set is left to its function:
// for some it depends on what the device can do.
func described(by map[mad.AttributeID]func(*Agent, request) mad.Status) (out [servicesMax]service) {
	for id, serve := range by {
		d, ok := smp.Describe(id)
		if !ok {
			panic(fmt.Sprintf("agents answer attribute 0x%04x, which package smp does not describe", uint16(id)))
		}
		out[id] = service{serve, d.Of == smp.OfSwitch}
	}
	return out
}

// serve answers a Get or Set in the packet's data; a Set is answered with what
// resulted from it.
func (a *Agent) serve(r request) mad.Status {
	var s *service
	if r.AttributeID < servicesMax {
		s = &services[r.AttributeID]
	}
	if s == nil || s.serve == nil || s.ofSwitch && a.fabric == nil {
		return a.serveVendor(r)
	}
	return s.serve(a, r)
}

// bad is the status of a request with a value or a place that does not exist.
func (a *Agent) bad() mad.Status {
	if a.options.BadInput == BadInputIgnored {
		return mad.StatusOK
	}
	return mad.StatusInvalidField
}

// pastTheEnd answers a request for a block that the table does not have.
func (a *Agent) pastTheEnd(r request) mad.Status {
	status := a.bad()
	if status == mad.StatusOK {
		r.Data = [mad.DataSize]byte{}
	}
	return status
}

// done is the status of an answer whose attribute was encoded. The agent holds
// no value that does not fit its bits; should there be one all the same, the
// answer says that something is wrong with it.
func done(err error) mad.Status {
	if err != nil {
		return mad.StatusInvalidField
	}
	return mad.StatusOK
}
