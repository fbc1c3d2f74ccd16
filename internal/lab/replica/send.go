package replica

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// Service is the transport that a packet belongs to.
type Service uint8

// The services.
const (
	UD Service = iota
	RC
	UC
	RD
	Raw // no transport header, and so no key
)

// Packet is what is asked for.
type Packet struct {
	Service Service
	PKey    ib.PKey // of no account in a raw packet
	SL      ib.SL
	// QKey is what a datagram for QP1 carries; nil for QP1's own. Of UD only:
	// the others go to a queue pair that has what they carry.
	QKey *ib.QKey
}

// payload is the length in bytes of what is sent; QP1 takes whole management
// datagrams.
const payload = 64

// end is an end port with the queue pairs that are made once.
type end struct {
	at     observed.Place
	device *endpoint.Device
	qp1    *endpoint.QP
	buffer [mad.Size + endpoint.GRHSize]byte
	open   bool // a receive request that nothing has come for
}

// expect makes sure that QP1 has room for a message, since one for another destination
// may have arrived.
func (e *end) expect() error {
	e.drain()
	if e.open {
		return nil
	}
	e.open = true
	return e.qp1.PostReceive(endpoint.ReceiveRequest{Buffer: e.buffer[:]})
}

// drain takes the completions of QP1.
func (e *end) drain() {
	var done [8]endpoint.Completion
	for n := e.qp1.Poll(done[:]); n > 0; n = e.qp1.Poll(done[:]) {
		for _, c := range done[:n] {
			e.open = e.open && c.Op != endpoint.OpReceive
		}
	}
}

func (r *Replica) end(at observed.Place) (*end, error) {
	if e := r.ends[at]; e != nil {
		return e, nil
	}
	d, err := r.fabric.Device(at.Node)
	if err != nil {
		return nil, err
	}
	e := &end{at: at, device: d}
	if e.qp1, err = d.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.GSI, Port: at.Port}); err != nil {
		return nil, err
	}
	if err := ready(e.qp1, endpoint.GSI, endpoint.Attr{Port: at.Port}); err != nil {
		return nil, err
	}
	r.ends[at] = e
	return e, nil
}

// keys is the P_Key table that an end port's agent holds.
func (r *Replica) keys(at observed.Place) []ib.PKey { return r.fabric.Agent(at.Node).PKeys(at.Port) }

// Send lets the end port at from send one packet to the base LID of the one at
// to, as its end node sends it, and everything happen that follows. Where the
// end node does not send such a packet, the Journey says so. It fails for
// places that are no end ports.
func (r *Replica) Send(from, to observed.Place, p Packet) error {
	r.begin(from, to)
	sender, err := r.end(from)
	if err != nil {
		return fmt.Errorf("send from port %d of node %v: %w", from.Port, from.Node, err)
	}
	receiver, err := r.end(to)
	if err != nil {
		return fmt.Errorf("send to port %d of node %v: %w", to.Port, to.Node, err)
	}
	index := slices.IndexFunc(r.keys(from), func(k ib.PKey) bool { return k == p.PKey && k.IsValid() })
	if p.Service == Raw {
		index = 0
	}
	dlid := r.fabric.Agent(to.Node).Port(to.Port).LID
	switch {
	case index < 0:
		r.unsent, r.reason = SourceKey, fmt.Sprintf("no entry of the sender's table is %s", p.PKey)
		return nil
	case r.fabric.Agent(from.Node).Port(from.Port).PortState != smp.PortActive:
		r.unsent, r.reason = LinkState, "the sender's port is not Active"
		return nil
	case !dlid.IsUnicast():
		r.unsent, r.reason = NoRoute, fmt.Sprintf("the receiver has no unicast LID but %s", dlid)
		return nil
	}
	a := endpoint.Address{DLID: dlid, SL: p.SL}
	if p.Service == UD {
		err = r.sendDatagram(sender, receiver, a, uint16(index), p.QKey)
	} else {
		err = r.sendConnected(sender, receiver, a, uint16(index), p)
	}
	if err == nil && r.unsent == "" && len(r.seen) == 0 {
		err = errors.New("the end node did not send it")
	}
	return err
}

// sendDatagram sends from QP1 to QP1. With a Q_Key that is not QP1's it comes
// from a queue pair that may send another.
func (r *Replica) sendDatagram(from, to *end, a endpoint.Address, index uint16, qkey *ib.QKey) error {
	if err := to.expect(); err != nil {
		return err
	}
	q, request := from.qp1, endpoint.SendRequest{
		Data: from.buffer[:mad.Size], To: a, RemoteQP: ib.QP1, RemoteQKey: ib.QKeyGSI, PKeyIndex: index,
	}
	if qkey != nil && *qkey != ib.QKeyGSI {
		other, err := from.device.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.UD})
		if err != nil {
			return err
		}
		defer other.Destroy()
		if err := ready(other, endpoint.UD, endpoint.Attr{Port: from.at.Port, PKeyIndex: index, QKey: *qkey}); err != nil {
			return err
		}
		q, request.PKeyIndex, request.RemoteQKey = other, 0, *qkey
	}
	if err := q.PostSend(request); err != nil {
		return err
	}
	err := r.run()
	from.drain()
	return err
}

// Forge puts bytes on the wire at the end port of a CA or router, as a host could whose
// adapter follows no rules, and runs the fabric until nothing is left to happen. To has
// room for the datagrams that arrive at its QP1.
func (r *Replica) Forge(from, to observed.Place, bytes []byte) error {
	r.begin(from, to)
	receiver, err := r.end(to)
	if err != nil {
		return err
	}
	if err := receiver.expect(); err != nil {
		return err
	}
	if err := r.fabric.Inject(from.Node, from.Port, bytes); err != nil {
		return err
	}
	return r.run()
}

// maxEvents bounds what may follow from one packet.
const maxEvents = 1 << 20

// run lets happen what follows from one packet.
func (r *Replica) run() error {
	for range maxEvents {
		if !r.fabric.Step() {
			return nil
		}
	}
	return fmt.Errorf("one packet has led to more than %d events", maxEvents)
}
