package verbsd

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// calls are what a session does at once. Those that may wait are in wait.go.
var calls = map[verbs.Call]func(*session, *verbs.Request, *verbs.Answer) error{
	verbs.CallQueryDevice: (*session).queryDevice,
	verbs.CallQueryPort:   (*session).queryPort,
	verbs.CallQueryPKey:   (*session).queryPKey,
	verbs.CallQueryGID:    (*session).queryGID,
	verbs.CallCreateCQ:    (*session).createCQ,
	verbs.CallDestroyCQ:   (*session).destroyCQ,
	verbs.CallCreateQP:    (*session).createQP,
	verbs.CallDestroyQP:   (*session).destroyQP,
	verbs.CallModifyQP:    (*session).modifyQP,
	verbs.CallQueryQP:     (*session).queryQP,
	verbs.CallPostSend:    (*session).postSend,
	verbs.CallPostReceive: (*session).postReceive,
	verbs.CallAttach:      (*session).attach,
	verbs.CallDetach:      (*session).detach,
	verbs.CallCreateAH:    (*session).createAH,
	verbs.CallDestroyAH:   (*session).destroyAH,
	verbs.CallRegister:    (*session).register,
	verbs.CallDeregister:  (*session).deregister,
	verbs.CallReadMemory:  (*session).readMemory,
	verbs.CallWriteMemory: (*session).writeMemory,
	verbs.CallCreateEE:    (*session).createEE,
	verbs.CallDestroyEE:   (*session).destroyEE,
	verbs.CallModifyEE:    (*session).modifyEE,
	verbs.CallQueryEE:     (*session).queryEE,
}

// errRemoved is the answer to all calls of a device that is no more.
var errRemoved = fmt.Errorf("the host lost its power since it was opened: %w", verbs.ErrRemoved)

// kinds are the errors of an end node in the terms of the protocol.
var kinds = []struct{ from, to error }{
	{endpoint.ErrPort, verbs.ErrPort}, {endpoint.ErrPKeyIndex, verbs.ErrPKeyIndex}, {endpoint.ErrPKeyEmpty, verbs.ErrPKeyEmpty},
	{endpoint.ErrPermission, verbs.ErrPermission}, {endpoint.ErrService, verbs.ErrService}, {endpoint.ErrState, verbs.ErrState},
	{endpoint.ErrAttribute, verbs.ErrAttribute}, {endpoint.ErrFull, verbs.ErrFull}, {endpoint.ErrRequest, verbs.ErrRequest},
	{endpoint.ErrDestroyed, verbs.ErrDestroyed},
}

// refused is an error of the end node, of a kind that the protocol has.
type refused struct {
	error
	kind error
}

func (r refused) Unwrap() error { return r.kind }

// told is an error of the end node as a program is told it.
func told(err error) error {
	for _, k := range kinds {
		if errors.Is(err, k.from) {
			return refused{err, k.to}
		}
	}
	return err
}

// what finds an object of the session.
func what[T any](name string, all map[uint32]T, handle uint32) (T, error) {
	x, ok := all[handle]
	if !ok {
		return x, fmt.Errorf("%s %d: %w", name, handle, verbs.ErrDestroyed)
	}
	return x, nil
}

// full reports whether there are as many of something as may be.
func full(name string, have, most int) error {
	if have < most {
		return nil
	}
	return fmt.Errorf("this connection has %d %s, the most that it may have: %w", have, name, verbs.ErrFull)
}

func (s *session) queryDevice(_ *verbs.Request, a *verbs.Answer) error {
	d, n := s.host.device.QueryDevice(), s.host.node
	info := s.host.fabric.Agent(n.GUID).NodeInfo(0)
	a.Device = &verbs.DeviceAttr{
		Node: n.ID, NodeGUID: n.GUID, SystemImageGUID: info.SystemImageGUID, Ports: d.Ports,
		MaxQPs: MaxQPs, MaxQueueDepth: MaxQueueDepth, MaxCQs: MaxCQs, MaxCQDepth: MaxCQDepth, MaxAHs: MaxAHs,
		MaxMemory: MaxBytes, MaxPKeys: int(info.PartitionCap),
	}
	if d.Flags&endpoint.BadPKeyCounter != 0 {
		a.Device.Flags |= verbs.DeviceBadPKeyCounter
	}
	if d.Flags&endpoint.BadQKeyCounter != 0 {
		a.Device.Flags |= verbs.DeviceBadQKeyCounter
	}
	return nil
}

func (s *session) queryPort(r *verbs.Request, a *verbs.Answer) error {
	p, err := s.host.device.QueryPort(r.Port)
	if err == nil {
		a.Port = (*verbs.PortAttr)(&p)
	}
	return err
}

func (s *session) queryPKey(r *verbs.Request, a *verbs.Answer) (err error) {
	a.PKey, err = s.host.device.QueryPKey(r.Port, r.Index)
	return err
}

func (s *session) queryGID(r *verbs.Request, a *verbs.Answer) error {
	p, err := s.host.device.QueryPort(r.Port)
	if err != nil {
		return err
	}
	agent := s.host.fabric.Agent(s.host.node.GUID)
	guid, ok := uint64(0), false
	if r.Index >= 0 && r.Index < p.GIDTableLen {
		guid, ok = agent.GUID(r.Port, r.Index)
	}
	if !ok {
		return fmt.Errorf("port %d: GID index %d: want 0 to %d: %w", r.Port, r.Index, p.GIDTableLen-1, verbs.ErrRequest)
	}
	gid := ib.MakeGID(agent.Port(r.Port).GIDPrefix, ib.PortGUID(guid))
	a.GID = &gid
	return nil
}

func (s *session) createCQ(r *verbs.Request, a *verbs.Answer) error {
	if r.Count < 1 || r.Count > MaxCQDepth {
		return fmt.Errorf("create CQ: room for %d completions, want 1 to %d: %w", r.Count, MaxCQDepth, verbs.ErrAttribute)
	}
	if err := full("completion queues", len(s.cqs), MaxCQs); err != nil {
		return err
	}
	a.Object = s.handle()
	s.cqs[a.Object] = &queue{depth: r.Count}
	return nil
}

func (s *session) destroyCQ(r *verbs.Request, _ *verbs.Answer) error {
	q, err := what("completion queue", s.cqs, r.Object)
	if err != nil {
		return err
	}
	if q.users > 0 {
		return fmt.Errorf("completion queue %d: queue pairs complete there: %w", r.Object, verbs.ErrBusy)
	}
	delete(s.cqs, r.Object)
	return nil
}

// services are the types of queue pairs as an end node names them.
var services = map[verbs.QPType]endpoint.Service{
	verbs.QPTypeRC: endpoint.RC, verbs.QPTypeUC: endpoint.UC, verbs.QPTypeUD: endpoint.UD, verbs.QPTypeRD: endpoint.RD,
	verbs.QPTypeRawIPv6: endpoint.RawIPv6, verbs.QPTypeRawEtherType: endpoint.RawEtherType,
}

func (s *session) createQP(r *verbs.Request, a *verbs.Answer) error {
	send, err := what("completion queue", s.cqs, r.CQ)
	if err != nil {
		return err
	}
	receive, err := what("completion queue", s.cqs, r.ReceiveCQ)
	if err != nil {
		return err
	}
	if err := full("queue pairs", len(s.qps), MaxQPs); err != nil {
		return err
	}
	service, ok := services[r.Type]
	if !ok {
		return fmt.Errorf("create QP: %v: %w", r.Type, verbs.ErrService)
	}
	if max(r.SendDepth, r.ReceiveDepth) > MaxQueueDepth {
		return fmt.Errorf("create QP: queues of %d and %d requests, want at most %d: %w", r.SendDepth, r.ReceiveDepth, MaxQueueDepth, verbs.ErrAttribute)
	}
	c := endpoint.QPConfig{Service: service, Domain: s.domain, SendDepth: r.SendDepth, ReceiveDepth: r.ReceiveDepth}
	var qp *endpoint.QP
	if r.RD {
		qp, err = s.host.device.CreateRDQP(c)
	} else {
		qp, err = s.host.device.CreateQP(s.caller(), c)
	}
	if err != nil {
		return err
	}
	p := &pair{qp: qp, handle: s.handle(), send: send, receive: receive, open: map[uint64]request{}}
	send.users++
	receive.users++
	s.qps[p.handle] = p
	s.inOrder = append(s.inOrder, p)
	a.Object, a.QPN = p.handle, qp.Number()
	return nil
}

func (s *session) destroyQP(r *verbs.Request, _ *verbs.Answer) error {
	p, err := what("queue pair", s.qps, r.Object)
	if err != nil {
		return err
	}
	p.qp.Destroy()
	s.forget(p)
	p.send.users--
	p.receive.users--
	s.attachments -= p.groups
	delete(s.qps, r.Object)
	s.inOrder = slices.DeleteFunc(s.inOrder, func(o *pair) bool { return o == p })
	return nil
}

func (s *session) modifyQP(r *verbs.Request, _ *verbs.Answer) error {
	p, err := what("queue pair", s.qps, r.Object)
	if err != nil {
		return err
	}
	state, _ := p.qp.Query()
	to, mask, attr, err := modification(r, state)
	if err != nil {
		return err
	}
	if err := p.qp.Modify(s.caller(), to, mask, attr); err != nil {
		return err
	}
	if to == endpoint.StateReset {
		s.forget(p)
	}
	return nil
}

func (s *session) queryQP(r *verbs.Request, a *verbs.Answer) error {
	p, err := what("queue pair", s.qps, r.Object)
	if err == nil {
		a.Attr = shown(p.qp.Query())
	}
	return err
}

func (s *session) createEE(_ *verbs.Request, a *verbs.Answer) error {
	if err := full("EE contexts", len(s.ees), MaxEEs); err != nil {
		return err
	}
	e, err := s.host.device.CreateEEContextIn(s.domain)
	if err != nil {
		return err
	}
	a.Object, a.QPN = s.handle(), ib.QPN(e.Number())
	s.ees[a.Object] = e
	return nil
}

func (s *session) destroyEE(r *verbs.Request, _ *verbs.Answer) error {
	e, err := what("EE context", s.ees, r.Object)
	if err == nil {
		e.Destroy()
		delete(s.ees, r.Object)
	}
	return err
}

func (s *session) modifyEE(r *verbs.Request, _ *verbs.Answer) error {
	e, err := what("EE context", s.ees, r.Object)
	if err != nil {
		return err
	}
	state, _ := e.Query()
	to, mask, attr, err := modification(r, state)
	if err != nil {
		return err
	}
	return e.Modify(to, mask, attr)
}

func (s *session) queryEE(r *verbs.Request, a *verbs.Answer) error {
	e, err := what("EE context", s.ees, r.Object)
	if err == nil {
		a.Attr = shown(e.Query())
	}
	return err
}

// masks are the attributes of both, in the order of their bits.
var masks = []struct {
	from verbs.QPAttrMask
	to   endpoint.AttrMask
}{
	{verbs.AttrPort, endpoint.AttrPort}, {verbs.AttrPKeyIndex, endpoint.AttrPKeyIndex}, {verbs.AttrQKey, endpoint.AttrQKey},
	{verbs.AttrAV, endpoint.AttrPath}, {verbs.AttrPathMTU, endpoint.AttrPathMTU}, {verbs.AttrDestQPN, endpoint.AttrRemote},
	{verbs.AttrRQPSN, endpoint.AttrReceivePSN}, {verbs.AttrSQPSN, endpoint.AttrSendPSN},
	{verbs.AttrMinRNRTimer, endpoint.AttrMinRNRTimer}, {verbs.AttrTimeout, endpoint.AttrTimeout},
	{verbs.AttrRetryCount, endpoint.AttrRetryCount}, {verbs.AttrRNRRetry, endpoint.AttrRNRRetryCount},
}

// modification is what a request to modify asks of an end node.
func modification(r *verbs.Request, now endpoint.State) (to endpoint.State, mask endpoint.AttrMask, attr endpoint.Attr, err error) {
	a := r.Attr
	if a == nil {
		return 0, 0, attr, fmt.Errorf("modify without attributes: %w", verbs.ErrAttribute)
	}
	rest := r.Mask &^ verbs.AttrState
	for _, m := range masks {
		if rest&m.from != 0 {
			mask |= m.to
		}
		rest &^= m.from
	}
	if rest != 0 {
		return 0, 0, attr, fmt.Errorf("modify: mask %#x has bits without an attribute: %w", r.Mask, verbs.ErrAttribute)
	}
	if to = now; r.Mask&verbs.AttrState != 0 {
		to = endpoint.State(a.State)
	}
	if to > endpoint.StateErr {
		return 0, 0, attr, fmt.Errorf("modify to %v: %w", a.State, verbs.ErrState)
	}
	return to, mask, endpoint.Attr{
		Port: a.Port, PKeyIndex: a.PKeyIndex, QKey: a.QKey, Path: address(&a.AV), PathMTU: a.PathMTU,
		Remote: uint32(a.DestQPN), ReceivePSN: a.RQPSN, SendPSN: a.SQPSN, MinRNRTimer: a.MinRNRTimer,
		Timeout: a.Timeout, RetryCount: a.RetryCount, RNRRetryCount: a.RNRRetry,
	}, nil
}

// shown is what a query tells.
func shown(state endpoint.State, a endpoint.Attr) *verbs.QPAttr {
	p := &a.Path
	return &verbs.QPAttr{
		State: verbs.QPState(state), Port: a.Port, PKeyIndex: a.PKeyIndex, QKey: a.QKey,
		AV: verbs.AHAttr{
			Port: a.Port, DLID: p.DLID, SL: p.SL, SrcPathBits: p.SourcePathBits, Global: p.Global, DGID: p.DGID,
			SGIDIndex: p.SGIDIndex, TrafficClass: p.TClass, FlowLabel: p.FlowLabel, HopLimit: p.HopLimit,
		},
		PathMTU: a.PathMTU, DestQPN: ib.QPN(a.Remote), RQPSN: a.ReceivePSN, SQPSN: a.SendPSN,
		MinRNRTimer: a.MinRNRTimer, Timeout: a.Timeout, RetryCount: a.RetryCount, RNRRetry: a.RNRRetryCount,
	}
}

func address(a *verbs.AHAttr) endpoint.Address {
	return endpoint.Address{
		DLID: a.DLID, SL: a.SL, SourcePathBits: a.SrcPathBits, Global: a.Global, DGID: a.DGID, SGIDIndex: a.SGIDIndex,
		TClass: a.TrafficClass, FlowLabel: a.FlowLabel, HopLimit: a.HopLimit,
	}
}
