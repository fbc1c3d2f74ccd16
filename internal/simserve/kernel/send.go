package kernel

import (
	"container/heap"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// offOUI is where a vendor's class has its OUI, in bytes from the start.
const offOUI = 37

// bmResponse in the modifier of baseboard management marks an answer.
const bmResponse = 1

// isResponse reports whether a datagram answers something.
func isResponse(m []byte) bool {
	method := mad.Method(m[mad.OffsetMethod])
	return method.IsResponse() || method == mad.MethodTrapRepress ||
		mad.Class(m[mad.OffsetClass]) == classBM && m[mad.OffsetAttributeModifier+3]&bmResponse != 0
}

func transaction(m []byte) uint64 { return binary.BigEndian.Uint64(m[mad.OffsetTransactionID:]) }

func rmppActive(m []byte) bool { return mad.RMPPFlags(m[mad.OffsetRMPPFlags]).Has(mad.RMPPActive) }

type sendKey struct {
	transaction uint64
	class       mad.Class
}

// send is a datagram or message that was written and is not done with.
type send struct {
	serial   uint64
	agent    *agent
	header   umad.Header // as it was written
	packet   Packet      // of a long message only the heads
	key      sendKey
	response bool
	long     bool          // a message under way by RMPP
	wait     time.Duration // for an answer, once it has left; 0: none is expected
	retries  uint32        // left
	due      time.Duration
	timer    int // place among the timers, -1 for none
	queued   bool
	over     bool
}

// Write takes a header and a datagram or, from an agent that leaves RMPP to
// the kernel, a message of any length. It returns the bytes taken: all.
func (f *File) Write(now time.Duration, bytes []byte) (int, umad.Errno) {
	size := umad.SizeOf(f.long)
	if len(bytes) < size+umad.LeastMAD {
		return 0, umad.EINVAL
	}
	h, err := umad.ReadHeader(bytes, f.long)
	if err != nil || h.ID >= umad.MaxAgents {
		return 0, umad.EINVAL
	}
	a := f.agents[h.ID]
	if a == nil {
		return 0, umad.EIO
	}
	if f.count+len(f.unread) >= MaxMessages {
		return 0, umad.ENOMEM
	}
	body := bytes[size:]
	class := mad.Class(body[mad.OffsetClass])
	active := a.kernelRMPP() && hasRMPP(class) && rmppActive(body)
	switch {
	case h.GRHPresent != 0 && int(h.GIDIndex) >= f.layer.config.GIDs,
		len(body) < headSize(class),
		len(body) > mad.Size && !active,
		active && class != mad.ClassSubnAdm,
		!hasRMPP(class) && a.asked.RMPPVersion != 0:
		return 0, umad.EINVAL
	}
	s := newSend(a, &h, body)
	local, ok := false, true
	if class == mad.ClassSubnDirected {
		local, ok = f.layer.route(&s.packet.MAD)
	}
	if !ok {
		return 0, umad.EINVAL
	}
	userRMPP := !a.kernelRMPP() && hasRMPP(class) && rmppActive(body)
	if !userRMPP && f.isDuplicate(s) {
		return 0, umad.EINVAL
	}
	if local && f.layer.config.Agent != nil {
		switch done, errno := a.sendLocal(s); {
		case errno != umad.OK:
			return 0, errno
		case done:
			return len(bytes), umad.OK
		}
	}
	if active {
		if errno := a.sendLong(now, s, body); errno != umad.OK {
			return 0, errno
		}
	}
	f.serial++
	f.count++
	s.serial = f.serial
	f.sends[s.key] = append(f.sends[s.key], s)
	if !s.long {
		f.layer.enqueue(s)
	}
	return len(bytes), umad.OK
}

func newSend(a *agent, h *umad.Header, body []byte) *send {
	s := &send{
		agent: a, header: *h, timer: -1, response: isResponse(body),
		wait: time.Duration(h.TimeoutMilliseconds) * time.Millisecond, retries: h.Retries,
	}
	copy(s.packet.MAD[:], body)
	if !s.response {
		binary.BigEndian.PutUint32(s.packet.MAD[mad.OffsetTransactionID:], a.id)
	}
	s.key = sendKey{transaction(s.packet.MAD[:]), mad.Class(body[mad.OffsetClass])}
	s.packet.QP = uint8(a.asked.QPN)
	s.packet.Address = Address{
		QPN: h.QPN, LID: h.LID, SL: h.SL, PathBits: h.PathBits & a.file.layer.pathMask, PKeyIndex: h.PKeyIndex, HasGRH: h.GRHPresent != 0,
	}
	if s.packet.HasGRH {
		s.packet.GRH = h.GRH
	}
	return s
}

// route reports whether a directed route can begin at this port, and whether it ends here too.
func (l *Layer) route(m *[mad.Size]byte) (local, ok bool) {
	count, pointer := m[mad.OffsetHopCount], m[mad.OffsetHopPointer]
	isSwitch := l.config.Port == 0
	permissive := func(offset int) bool { return ib.LID(binary.BigEndian.Uint16(m[offset:])) == ib.LIDPermissive }
	switch {
	case m[mad.OffsetStatus]&mad.DirectionBit != 0: // was checked by the requester
		return false, true
	case !permissive(mad.OffsetDrSLID): // by LID at first
		return pointer == count+1, true
	case count > mad.MaxHops:
		return false, false
	case pointer == 0 && count != 0:
		return false, isSwitch || ib.PortNum(m[mad.OffsetInitialPath+1]) == l.config.Port
	case pointer < count:
		return false, isSwitch
	case pointer == count:
		local = permissive(mad.OffsetDrDLID)
		return local, local || isSwitch
	}
	return true, pointer == count+1
}

// sendLocal gives the port's own agent a request for this port. The kernel does so itself, so that the time-out and
// the agent's queue pair do not matter: the answer is there at once, and what is refused was not sent. What is for a
// manager at this port goes on as others do: its answer has a request to go with.
func (a *agent) sendLocal(s *send) (done bool, errno umad.Errno) {
	p := &s.packet
	was := p.MAD[mad.OffsetHopPointer]
	p.MAD[mad.OffsetHopPointer] = p.MAD[mad.OffsetHopCount] + 1
	switch a.file.layer.config.Agent(&p.MAD) {
	case sma.Answered:
		a.file.deliver(message{umad.Header{ID: a.slot, LID: ib.LIDPermissive}, append([]byte(nil), p.MAD[:]...), 0})
	case sma.BadMKey:
		return true, umad.EINVAL
	case sma.Absorbed:
	default:
		p.MAD[mad.OffsetHopPointer] = was
		return false, umad.OK
	}
	return true, umad.OK
}

// isDuplicate reports whether the same was written already and is not done
// with: a request of the same transaction, a response of it to the same side.
func (f *File) isDuplicate(s *send) bool {
	for _, o := range f.sends[s.key] {
		if s.response == o.response && (!s.response || sameDestination(&s.packet.Address, &o.packet.Address)) {
			return true
		}
	}
	return false
}

func sameDestination(a, b *Address) bool {
	switch {
	case a.HasGRH != b.HasGRH:
		return false
	case a.HasGRH:
		return a.GRH.GID == b.GRH.GID
	}
	return a.LID == b.LID
}

// sendLong begins to send a message by RMPP.
func (a *agent) sendLong(now time.Duration, s *send, body []byte) umad.Errno {
	m := &rmpp.Message{Head: [rmpp.HeadSize]byte(s.packet.MAD[:]), Body: append([]byte(nil), body[rmpp.HeadSize:]...)}
	err := a.endpoint().Send(now, s.packet.peer(), m)
	switch {
	case errors.Is(err, rmpp.ErrDuplicate):
		return umad.EINVAL
	case err != nil:
		return umad.ENOMEM
	}
	s.long = true
	clear(s.packet.MAD[rmpp.HeadSize:])
	return umad.OK
}

func (l *Layer) enqueue(s *send) {
	s.queued = true
	l.out = append(l.out, s)
}

// left is called when a datagram has left.
func (l *Layer) left(now time.Duration, s *send) {
	if s.wait == 0 {
		l.end(s)
		return
	}
	s.due = now + s.wait
	heap.Push(&l.timers, s)
}

// end is done with a send.
func (l *Layer) end(s *send) {
	if s.over {
		return
	}
	s.over = true
	if s.timer >= 0 {
		heap.Remove(&l.timers, s.timer)
	}
	if s.queued {
		l.stale++
		l.tidy()
	}
	f := s.agent.file
	rest := f.sends[s.key]
	for i, o := range rest {
		if o == s {
			rest = append(rest[:i:i], rest[i+1:]...)
			break
		}
	}
	f.count--
	if len(rest) == 0 {
		delete(f.sends, s.key)
	} else {
		f.sends[s.key] = rest
	}
}

// tidy throws away what will not leave any more, once it is most of the queue.
func (l *Layer) tidy() {
	if l.stale > len(l.out)/2 {
		l.out = slices.DeleteFunc(l.out, func(s *send) bool { return s.over })
		l.stale = 0
	}
}

// timeOut gives a send back to its program.
func (l *Layer) timeOut(s *send) {
	l.end(s)
	h := s.header
	h.ID, h.Status = s.agent.slot, uint32(umad.ETIMEDOUT)
	s.agent.file.deliver(message{h, append([]byte(nil), s.packet.MAD[:mad.HeaderSize]...), 0})
}

// Expire reports whether time has passed: what was not answered is sent again or
// given back.
func (l *Layer) Expire(now time.Duration) {
	for len(l.timers) > 0 && l.timers[0].due <= now {
		s := heap.Pop(&l.timers).(*send)
		if s.retries > 0 && !s.long { // a whole message is not sent again
			s.retries--
			l.enqueue(s)
			continue
		}
		l.timeOut(s)
	}
	for _, a := range l.joining {
		a.long.Expire(now)
		a.endings(now)
	}
}

// timers are the sends that wait for an answer, soonest first.
type timers []*send

func (t timers) Len() int { return len(t) }

func (t timers) Less(i, j int) bool {
	if t[i].due != t[j].due {
		return t[i].due < t[j].due
	}
	return t[i].serial < t[j].serial
}

func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].timer, t[j].timer = i, j
}

func (t *timers) Push(x any) {
	s := x.(*send)
	s.timer = len(*t)
	*t = append(*t, s)
}

func (t *timers) Pop() any {
	last := len(*t) - 1
	s := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	s.timer = -1
	return s
}
