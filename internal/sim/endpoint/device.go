package endpoint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
)

// Limits of a device. Those of a connection are in connection_end.go.
const (
	MaxQPs           = 1 << 16 // queue pairs, QP0 and QP1 not counted
	MaxEEContexts    = 1 << 12 // EE contexts
	MaxQueueDepth    = 1 << 14 // requests in a queue, completions not polled counted
	MaxMessage       = 1 << 30 // bytes
	MaxMemoryRegions = 1 << 16 // regions
	MaxMulticastQPs  = 1 << 12 // attachments, of all groups together
	MaxEvents        = 1 << 12 // events that nobody took

	max24        = 1<<24 - 1
	firstQPN     = 2
	qkeyReserved = ib.QKeyGSI // from here up for privileged callers only
)

// GRHSize is the room in bytes in front of every received datagram.
const GRHSize = packet.GRHSize

// What a verb refuses. Errors wrap these and say more.
var (
	ErrPort       = errors.New("no such port")
	ErrPKeyIndex  = errors.New("P_Key index outside the table")
	ErrPKeyEmpty  = errors.New("P_Key index of an empty entry")
	ErrPermission = errors.New("privileged callers only")
	ErrService    = errors.New("not with this service")
	ErrState      = errors.New("not in this state")
	ErrAttribute  = errors.New("attribute missing, not wanted or out of range")
	ErrFull       = errors.New("no room")
	ErrRequest    = errors.New("request out of range")
	ErrDestroyed  = errors.New("was destroyed")
)

// Caller is who calls a verb that asks for privilege.
type Caller uint8

// The callers.
const (
	Application Caller = iota
	Kernel             // may use management QPs and reserved Q_Keys
)

// Config describes a device.
type Config struct {
	Flags DeviceFlags
	// Ports are the end ports by number: the ports of a CA or router from 1 up,
	// or port 0 of a switch. Numbers without an end port are nil.
	Ports []Port
	// Wake, when set, is told each time that port n may have gained a packet
	// to send, from inside a call of the device or of one of its queue pairs.
	// It must not call the device.
	Wake func(n ib.PortNum)
}

// Device is an end node.
type Device struct {
	flags     DeviceFlags
	ports     []port
	qps       map[ib.QPN]*QP
	contexts  map[uint32]*EEContext
	inOrder   []*EEContext // of creation
	memory    map[uint32]*Memory
	groups    map[group][]*QP
	attached  int // in all groups
	timers    timers
	events    ConnectionQueue[Event]
	wakeUp    func(n ib.PortNum)
	view      packet.View // of the packet that was received last
	outgoing  packet.View // of the packet that was sent last
	violation Violation   // of the packet that was received last

	lastQPN    ib.QPN
	lastEE     uint32
	lastRKey   uint32
	lostEvents uint64
}

// group is a multicast group.
type group struct {
	lid ib.LID
	gid ib.GID
}

// New makes a device without queue pairs.
func New(c Config) (*Device, error) {
	d := &Device{
		flags: c.Flags, wakeUp: c.Wake, ports: make([]port, len(c.Ports)), lastQPN: firstQPN - 1,
		qps: map[ib.QPN]*QP{}, contexts: map[uint32]*EEContext{},
		memory: map[uint32]*Memory{}, groups: map[group][]*QP{},
	}
	found := false
	for i, p := range c.Ports {
		d.ports[i] = port{Port: p, number: ib.PortNum(i)}
		found = found || p != nil
	}
	if !found || len(c.Ports) > int(ib.PortNone) {
		return nil, fmt.Errorf("device: %d ports: want at least one end port and numbers up to %d", len(c.Ports), ib.PortNone-1)
	}
	return d, nil
}

func (d *Device) port(n ib.PortNum) (*port, error) {
	if int(n) >= len(d.ports) || d.ports[n].Port == nil {
		return nil, fmt.Errorf("port %d: %w", n, ErrPort)
	}
	return &d.ports[n], nil
}

// QPConfig says what a queue pair is, for good.
type QPConfig struct {
	Service Service
	Port    ib.PortNum // of SMI and GSI
	Domain  Domain
	// Requests that a queue holds, 1 to MaxQueueDepth; 0 for DefaultDepth.
	SendDepth    int
	ReceiveDepth int
}

// DefaultDepth is how many requests a queue holds when nothing else is said.
const DefaultDepth = 64

// CreateQP makes a queue pair in RESET. SMI and GSI, QP0 and QP1 of a port,
// are for privileged callers; RD does not exist in verbs.
func (d *Device) CreateQP(caller Caller, c QPConfig) (*QP, error) {
	switch {
	case c.Service == RD:
		return nil, fmt.Errorf("create QP: no device has %v: %w", c.Service, ErrService)
	case c.Service >= serviceCount:
		return nil, fmt.Errorf("create QP: service %d: %w", c.Service, ErrService)
	case c.Service.isManagement() && caller != Kernel:
		return nil, fmt.Errorf("create QP of %v: %w", c.Service, ErrPermission)
	}
	return d.createQP(c)
}

// CreateRDQP makes a queue pair of the reliable datagram service, which verbs
// refuse: it exists at packet level only.
func (d *Device) CreateRDQP(c QPConfig) (*QP, error) {
	c.Service = RD
	return d.createQP(c)
}

func (d *Device) createQP(c QPConfig) (*QP, error) {
	for _, depth := range []*int{&c.SendDepth, &c.ReceiveDepth} {
		if *depth == 0 {
			*depth = DefaultDepth
		}
		if *depth < 1 || *depth > MaxQueueDepth {
			return nil, fmt.Errorf("create QP: queue of %d requests, want 1 to %d: %w", *depth, MaxQueueDepth, ErrAttribute)
		}
	}
	q := &QP{sendDepth: c.SendDepth, receiveDepth: c.ReceiveDepth}
	q.context = context{d: d, service: c.Service, domain: c.Domain, qp: q}
	if c.Service.isManagement() {
		if err := d.installManagement(q, c.Port); err != nil {
			return nil, fmt.Errorf("create QP of %v: %w", c.Service, err)
		}
		return q, nil
	}
	if len(d.qps) >= MaxQPs {
		return nil, fmt.Errorf("create QP: the device has %d: %w", MaxQPs, ErrFull)
	}
	for {
		d.lastQPN++
		if d.lastQPN >= ib.QPMulticast {
			d.lastQPN = firstQPN
		}
		if d.qps[d.lastQPN] == nil {
			break
		}
	}
	q.number = uint32(d.lastQPN)
	d.qps[d.lastQPN] = q
	return q, nil
}

// installManagement makes q the QP0 or QP1 of a port.
func (d *Device) installManagement(q *QP, n ib.PortNum) error {
	p, err := d.port(n)
	if err != nil {
		return err
	}
	place := &p.smi
	if q.service == GSI {
		place, q.number = &p.gsi, uint32(ib.QP1)
	}
	if *place != nil {
		return fmt.Errorf("port %d has its QP%d: %w", n, q.number, ErrFull)
	}
	*place = q
	q.resetAttr(n)
	return nil
}

// Destroy ends the queue pair. What was queued is gone.
func (q *QP) Destroy() {
	if q.destroyed {
		return
	}
	q.reset()
	q.destroyed = true
	d := q.d
	if q.service.isManagement() {
		p := &d.ports[q.attr.Port]
		if q.service == SMI {
			p.smi = nil
		} else {
			p.gsi = nil
		}
		return
	}
	delete(d.qps, ib.QPN(q.number))
	for _, g := range slices.Clone(q.groups) {
		q.detach(g)
	}
}

// AttachMulticast lets a UD queue pair receive what is sent to a group.
func (q *QP) AttachMulticast(lid ib.LID, gid ib.GID) error {
	g := group{lid, gid}
	switch {
	case q.destroyed:
		return q.errorf(ErrDestroyed, "attach")
	case q.service != UD:
		return q.errorf(ErrService, "attach to a multicast group")
	case !lid.IsMulticast() || !gid.IsMulticast():
		return q.errorf(ErrRequest, "attach to LID %v, GID %v: want a multicast group", lid, gid)
	case slices.Contains(q.groups, g):
		return nil
	case q.d.attached >= MaxMulticastQPs:
		return q.errorf(ErrFull, "attach: the device has %d attachments", MaxMulticastQPs)
	}
	q.groups = append(q.groups, g)
	q.d.groups[g] = append(q.d.groups[g], q)
	q.d.attached++
	return nil
}

// Groups is how many multicast groups the queue pair is attached to.
func (q *QP) Groups() int { return len(q.groups) }

// DetachMulticast ends AttachMulticast.
func (q *QP) DetachMulticast(lid ib.LID, gid ib.GID) { q.detach(group{lid, gid}) }

func (q *QP) detach(g group) {
	i := slices.Index(q.groups, g)
	if i < 0 {
		return
	}
	q.groups = slices.Delete(q.groups, i, i+1)
	rest := slices.DeleteFunc(q.d.groups[g], func(other *QP) bool { return other == q })
	q.d.groups[g] = rest
	if len(rest) == 0 {
		delete(q.d.groups, g)
	}
	q.d.attached--
}
