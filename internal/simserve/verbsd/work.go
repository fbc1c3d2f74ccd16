package verbsd

import (
	"bytes"
	"fmt"

	"github.com/ibwarden/ibwarden/ib/verbs"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

func (s *session) createAH(r *verbs.Request, a *verbs.Answer) error {
	if r.Address == nil {
		return fmt.Errorf("create AH without an address: %w", verbs.ErrAttribute)
	}
	if err := full("address handles", len(s.handles), MaxAHs); err != nil {
		return err
	}
	port, err := s.host.device.QueryPort(r.Address.Port)
	to := r.Address
	switch {
	case err != nil:
		return err
	case to.DLID == 0 || to.SL > 15 || to.FlowLabel >= 1<<20:
		return fmt.Errorf("create AH: LID %v, SL %d, flow label %#x: want a LID, 0 to 15, 20 bits: %w", to.DLID, to.SL, to.FlowLabel, verbs.ErrAttribute)
	case to.Global && int(to.SGIDIndex) >= port.GIDTableLen:
		return fmt.Errorf("create AH: GID index %d: want 0 to %d: %w", to.SGIDIndex, port.GIDTableLen-1, verbs.ErrAttribute)
	}
	a.Object = s.handle()
	s.handles[a.Object] = handle{to.Port, address(to)}
	return nil
}

func (s *session) destroyAH(r *verbs.Request, _ *verbs.Answer) error {
	_, err := what("address handle", s.handles, r.Object)
	delete(s.handles, r.Object)
	return err
}

// size checks the bytes of one request.
func size(n int) error {
	if n < 0 || n > verbs.MaxMessage {
		return fmt.Errorf("%d bytes: want 0 to %d: %w", n, verbs.MaxMessage, verbs.ErrRequest)
	}
	return nil
}

func (s *session) postSend(r *verbs.Request, _ *verbs.Answer) error {
	p, err := what("queue pair", s.qps, r.Object)
	if err != nil {
		return err
	}
	w := r.Send
	if w == nil {
		return fmt.Errorf("post send without a request: %w", verbs.ErrRequest)
	}
	raw := len(w.Data)
	if w.Op == verbs.OpRead {
		raw = w.Length
	}
	if err := size(raw); err != nil {
		return fmt.Errorf("post send: %w", err)
	}
	out := endpoint.SendRequest{
		Data: w.Data, HasImm: w.HasImm, Imm: w.Imm, Solicited: w.Solicited,
		RemoteAddress: w.RemoteAddress, RKey: w.RKey, RemoteQP: w.RemoteQPN, RemoteQKey: w.RemoteQKey, EtherType: w.EtherType,
	}
	switch w.Op {
	case verbs.OpSend:
		out.Op = endpoint.OpSend
	case verbs.OpWrite:
		out.Op = endpoint.OpWrite
	case verbs.OpRead:
		out.Op, out.Data = endpoint.OpRead, make([]byte, raw)
	default:
		return fmt.Errorf("post operation %d: %w", w.Op, verbs.ErrService)
	}
	if err := s.aim(p, w, &out); err != nil {
		return fmt.Errorf("post send: %w", err)
	}
	return s.post(p, request{id: w.ID, bytes: raw}, func(id uint64) error {
		out.ID = id
		return p.qp.PostSend(out)
	})
}

// aim fills in where a request goes to.
func (s *session) aim(p *pair, w *verbs.SendRequest, out *endpoint.SendRequest) error {
	switch p.qp.Service() {
	case endpoint.RC, endpoint.UC:
	case endpoint.RD:
		e, err := what("EE context", s.ees, w.EE)
		if err != nil {
			return err
		}
		out.EEContext = e.Number()
	default:
		h, err := what("address handle", s.handles, w.AH)
		if err != nil {
			return err
		}
		if _, attr := p.qp.Query(); h.port != attr.Port {
			return fmt.Errorf("address handle %d is for port %d, the queue pair has port %d: %w", w.AH, h.port, attr.Port, verbs.ErrRequest)
		}
		out.To = h.to
	}
	return nil
}

// post posts a request, and remembers it until it completes.
func (s *session) post(p *pair, r request, post func(id uint64) error) error {
	r.bytes += requestBytes
	if err := s.room(r.bytes); err != nil {
		return err
	}
	p.lastID++
	p.open[p.lastID] = r
	err := post(p.lastID)
	if err != nil {
		delete(p.open, p.lastID)
		s.bytes -= r.bytes
	}
	return err
}

func (s *session) postReceive(r *verbs.Request, _ *verbs.Answer) error {
	p, err := what("queue pair", s.qps, r.Object)
	if err != nil {
		return err
	}
	if err := size(r.Count); err != nil {
		return fmt.Errorf("post receive: %w", err)
	}
	in := request{id: r.ID, bytes: r.Count, grh: p.qp.Service() == endpoint.UD}
	if in.grh {
		in.bytes += endpoint.GRHSize
	}
	return s.post(p, in, func(id uint64) error {
		return p.qp.PostReceive(endpoint.ReceiveRequest{ID: id, Buffer: make([]byte, in.bytes)})
	})
}

func (s *session) attach(r *verbs.Request, _ *verbs.Answer) error {
	p, err := what("queue pair", s.qps, r.Object)
	switch {
	case err != nil:
		return err
	case r.Address == nil:
		return fmt.Errorf("attach without a group: %w", verbs.ErrRequest)
	}
	if err := full("attachments", s.attachments, MaxAttachments); err != nil {
		return err
	}
	before := p.qp.Groups()
	if err := p.qp.AttachMulticast(r.Address.DLID, r.Address.DGID); err != nil {
		return err
	}
	s.attached(p, before)
	return nil
}

func (s *session) detach(r *verbs.Request, _ *verbs.Answer) error {
	p, err := what("queue pair", s.qps, r.Object)
	switch {
	case err != nil:
		return err
	case r.Address == nil:
		return fmt.Errorf("detach without a group: %w", verbs.ErrRequest)
	}
	before := p.qp.Groups()
	p.qp.DetachMulticast(r.Address.DLID, r.Address.DGID)
	if s.attached(p, before); p.qp.Groups() == before {
		return fmt.Errorf("detach: the queue pair is not attached to LID %v, GID %v: %w", r.Address.DLID, r.Address.DGID, verbs.ErrRequest)
	}
	return nil
}

// attached counts the groups of a queue pair, which had others before.
func (s *session) attached(p *pair, before int) {
	p.groups = p.qp.Groups()
	s.attachments += p.groups - before
}

func (s *session) register(r *verbs.Request, a *verbs.Answer) error {
	if r.Count < 1 || r.Access&^(verbs.AccessRemoteRead|verbs.AccessRemoteWrite) != 0 {
		return fmt.Errorf("register %d bytes with access %#x: want 1 or more, remote read and write: %w", r.Count, r.Access, verbs.ErrAttribute)
	}
	if err := full("memory regions", len(s.regions), MaxRegions); err != nil {
		return err
	}
	if err := s.room(r.Count); err != nil {
		return err
	}
	raw := make([]byte, r.Count)
	m, err := s.host.device.RegisterMemoryIn(s.domain, raw, r.VirtualAddress, endpoint.Access(r.Access))
	if err != nil {
		s.bytes -= r.Count
		return err
	}
	a.Object, a.RKey = s.handle(), m.RKey()
	s.regions[a.Object] = &region{m, raw}
	return nil
}

func (s *session) deregister(r *verbs.Request, _ *verbs.Answer) error {
	m, err := what("memory region", s.regions, r.Object)
	if err == nil {
		m.memory.Deregister()
		s.bytes -= len(m.bytes)
		delete(s.regions, r.Object)
	}
	return err
}

// window is a part of a memory region.
func (s *session) window(r *verbs.Request, n int) ([]byte, error) {
	m, err := what("memory region", s.regions, r.Object)
	if err != nil {
		return nil, err
	}
	if err := size(n); err != nil {
		return nil, err
	}
	if r.Index < 0 || r.Index > len(m.bytes) || n > len(m.bytes)-r.Index {
		return nil, fmt.Errorf("%d bytes from %d on: the region has %d: %w", n, r.Index, len(m.bytes), verbs.ErrRequest)
	}
	return m.bytes[r.Index : r.Index+n], nil
}

func (s *session) readMemory(r *verbs.Request, a *verbs.Answer) error {
	w, err := s.window(r, r.Count)
	a.Data = bytes.Clone(w) // peers may write there before the answer leaves
	return err
}

func (s *session) writeMemory(r *verbs.Request, _ *verbs.Answer) error {
	w, err := s.window(r, len(r.Data))
	copy(w, r.Data)
	return err
}
