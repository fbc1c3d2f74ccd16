package replica

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// modifier is a queue pair or an EE context.
type modifier interface {
	Modify(endpoint.Caller, endpoint.State, endpoint.AttrMask, endpoint.Attr) error
}

// context gives an EE context the Modify of a queue pair.
type context struct{ *endpoint.EEContext }

func (c context) Modify(_ endpoint.Caller, to endpoint.State, mask endpoint.AttrMask, a endpoint.Attr) error {
	return c.EEContext.Modify(to, mask, a)
}

// ready takes a queue pair or EE context to where it can send.
func ready(m modifier, s endpoint.Service, a endpoint.Attr) error {
	first, second, third := endpoint.AttrPort|endpoint.AttrPKeyIndex, endpoint.AttrMask(0), endpoint.AttrSendPSN
	switch s {
	case endpoint.UD:
		first |= endpoint.AttrQKey
	case endpoint.RC, endpoint.UC, endpoint.RD:
		second = endpoint.AttrPath | endpoint.AttrPathMTU | endpoint.AttrRemote | endpoint.AttrReceivePSN
		if s != endpoint.UC {
			second |= endpoint.AttrMinRNRTimer
			third |= endpoint.AttrTimeout | endpoint.AttrRetryCount | endpoint.AttrRNRRetryCount
		}
	case endpoint.GSI:
		first, third = 0, 0
	default:
		first, third = endpoint.AttrPort, 0
	}
	return steps(m, first, second, third, a)
}

func steps(m modifier, first, second, third endpoint.AttrMask, a endpoint.Attr) error {
	for _, step := range []struct {
		to   endpoint.State
		mask endpoint.AttrMask
	}{{endpoint.StateInit, first}, {endpoint.StateRTR, second}, {endpoint.StateRTS, third}} {
		if err := m.Modify(endpoint.Kernel, step.to, step.mask, a); err != nil {
			return err
		}
	}
	return nil
}

// The transports in the terms of the end node.
var services = map[Service]endpoint.Service{
	UD: endpoint.UD, RC: endpoint.RC, UC: endpoint.UC, RD: endpoint.RD, Raw: endpoint.RawEtherType,
}

// nobody is the number of a queue pair that no device here has.
const nobody = 0xFFFFF0

// wire is one end of a connection.
type wire struct {
	qp *endpoint.QP
	ee *endpoint.EEContext
}

func (w wire) destroy() {
	if w.qp != nil {
		w.qp.Destroy()
	}
	if w.ee != nil {
		w.ee.Destroy()
	}
}

// number is what the other end calls this one.
func (w wire) number() uint32 {
	switch {
	case w.ee != nil:
		return w.ee.Number()
	case w.qp != nil:
		return uint32(w.qp.Number())
	}
	return nobody
}

// open makes one end of a connection, not yet connected.
func open(e *end, s Service) (w wire, err error) {
	if s != RD {
		w.qp, err = e.device.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: services[s], Port: e.at.Port})
		return w, err
	}
	if w.qp, err = e.device.CreateRDQP(endpoint.QPConfig{}); err != nil {
		return w, err
	}
	w.ee, err = e.device.CreateEEContext()
	return w, err
}

// connect binds an end to an entry of its port's table and to the other end.
func (w wire) connect(s Service, e *end, index uint16, to endpoint.Address, remote uint32, qkey ib.QKey) error {
	a := endpoint.Attr{
		Port: e.at.Port, PKeyIndex: index, QKey: qkey, Remote: remote, PathMTU: ib.MTU256, Path: to,
	}
	if s != RD {
		return ready(w.qp, services[s], a)
	}
	if err := steps(w.qp, endpoint.AttrQKey, 0, 0, a); err != nil {
		return err
	}
	return ready(context{w.ee}, endpoint.RD, a)
}

// sendConnected sends by a connection made for this packet, or a raw packet.
func (r *Replica) sendConnected(from, to *end, a endpoint.Address, index uint16, p Packet) error {
	sender, err := open(from, p.Service)
	defer sender.destroy()
	if err != nil {
		return err
	}
	bound := slices.IndexFunc(r.keys(to.at), p.PKey.Matches)
	if bound < 0 {
		bound = slices.IndexFunc(r.keys(to.at), ib.PKey.IsValid)
	}
	if p.Service == Raw {
		bound = 0
	}
	r.unbound = bound < 0
	var receiver wire
	if !r.unbound {
		if receiver, err = open(to, p.Service); err != nil {
			return err
		}
		defer receiver.destroy()
	}
	qkey := ib.QKey(payload) // any will do, as long as both ends have it
	if p.QKey != nil {
		qkey = *p.QKey
	}
	if err := sender.connect(p.Service, from, index, a, receiver.number(), qkey); err != nil {
		return err
	}
	request := endpoint.SendRequest{Data: make([]byte, payload)}
	if !r.unbound {
		back := endpoint.Address{DLID: r.fabric.Agent(from.at.Node).Port(from.at.Port).LID, SL: p.SL}
		if !back.DLID.IsUnicast() {
			back.DLID = a.DLID // what goes back gets nowhere, or home
		}
		if err := receiver.connect(p.Service, to, uint16(bound), back, sender.number(), qkey); err != nil {
			return err
		}
		if err := receiver.qp.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, payload+endpoint.GRHSize)}); err != nil {
			return err
		}
		request.RemoteQP = receiver.qp.Number()
	} else {
		request.RemoteQP = nobody
	}
	switch p.Service {
	case RD:
		request.EEContext, request.RemoteQKey = sender.ee.Number(), qkey
	case Raw:
		request.To = a
	}
	if err := sender.qp.PostSend(request); err != nil {
		return err
	}
	return r.run()
}
