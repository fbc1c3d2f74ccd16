package umad

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
)

const (
	// reportTimeout is how long the kernel waits for the answer to what the
	// administration asks: reports to subscribers.
	reportTimeout = 900 * time.Millisecond
	// longRetries is how often the kernel sends the segments of a long answer
	// again, 2 s each, before it gives up.
	longRetries = 4
	// keysTime is how long a P_Key table that was read is taken to hold.
	keysTime = time.Second
	// keysLeast is the least time between two readings of it, however often a
	// key is missed there.
	keysLeast = 10 * time.Millisecond
	// keysUncertain is how long after another key came to a place of the table a packet
	// may still be read that arrived by the old one.
	keysUncertain = 50 * time.Millisecond
	// generalHops is the hop limit of an answer with a route header.
	generalHops = 0xFF
)

// JoinsLong reports that the kernel cuts and joins long messages.
func (l *Link) JoinsLong() {}

// leftToOthers are the methods that other programs at this port register for: they
// subscribe, and receive reports.
var leftToOthers = []mad.Method{mad.MethodSend, mad.MethodTrap, mad.MethodReport, mad.MethodTrapRepress}

// registerAdministration makes an agent for every request of subnet
// administration, those with unknown methods too: they have to be answered.
func (l *Link) registerAdministration() ([]uint32, error) {
	var methods []mad.Method
	for m := mad.Method(1); m < mad.MethodResponse; m++ {
		if !slices.Contains(leftToOthers, m) {
			methods = append(methods, m)
		}
	}
	r := umad.Registration{
		QPN: 1, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion, Methods: umad.MethodSet(methods...), RMPPVersion: mad.RMPPVersion,
	}
	argument := r.Encode()
	if err := l.file.Ioctl(umad.CommandRegister, argument); err != nil {
		return nil, err
	}
	r, err := umad.ReadRegistration(umad.CommandRegister, argument)
	return []uint32{r.ID}, err
}

// registerPerformance makes an agent for the answers to what is asked of the counters
// of devices.
func (l *Link) registerPerformance() ([]uint32, error) {
	r := umad.Registration{QPN: 1, Class: mad.ClassPerfMgt, ClassVersion: pm.ClassVersion}
	argument := r.Encode()
	if err := l.file.Ioctl(umad.CommandRegister, argument); err != nil {
		return nil, err
	}
	r, err := umad.ReadRegistration(umad.CommandRegister, argument)
	return []uint32{r.ID}, err
}

// keyTable is the P_Key table of the link's port: packets name their key by its
// place there.
type keyTable struct {
	keys []ib.PKey
	read time.Duration
	some bool
	// was is the table before it changed last, when it was found changed.
	was     []ib.PKey
	changed time.Duration
}

// table reads the table again when what was read is that old.
func (l *Link) table(age time.Duration) []ib.PKey {
	if now := l.system.Now(); !l.keys.some || now-l.keys.read >= age {
		keys := l.system.PKeys(&l.port)
		if !slices.Equal(keys, l.keys.keys) {
			l.keys.was, l.keys.changed = l.keys.keys, now
		}
		l.keys.keys, l.keys.read, l.keys.some = keys, now, true
	}
	return l.keys.keys
}

// unknownKey is nobody's: it stands for one that went from the table since a
// packet came with it.
const unknownKey ib.PKey = 0x8000

// indexOf is the place of a key's partition; not ok when it has none: no other
// key will do in its stead. Where no key is known, 0, it is the first.
func (l *Link) indexOf(key ib.PKey) (index uint16, ok bool) {
	if !key.IsValid() {
		return 0, key == 0
	}
	for _, age := range []time.Duration{keysTime, keysLeast} {
		if i := slices.IndexFunc(l.table(age), func(k ib.PKey) bool { return k.Base() == key.Base() }); i >= 0 {
			return uint16(i), true
		}
	}
	return 0, false
}

// keyAt is the key at a place. The table is read again when it shows none there: a
// packet that came with a key has one, and must not pass for one of which nothing
// is known. While it cannot be told whether it came by the key that stands there or
// by the one before, it came by nobody's: then it gets no answer, and is asked again.
func (l *Link) keyAt(index uint16) ib.PKey {
	for _, age := range []time.Duration{keysTime, keysLeast} {
		keys := l.table(age)
		if int(index) >= len(keys) || !keys[index].IsValid() {
			continue
		}
		was := ib.PKeyInvalid
		if int(index) < len(l.keys.was) && l.system.Now()-l.keys.changed < keysUncertain {
			was = l.keys.was[index]
		}
		if was.IsValid() && was.Base() != keys[index].Base() {
			return unknownKey
		}
		return keys[index]
	}
	return unknownKey
}

// headerTo is the header for what goes to an address; not ok when the port does
// not have the key that it is to go with.
func (p *pump) headerTo(to *mad.Address) (h umad.Header, ok bool) {
	index, ok := p.indexOf(to.PKey)
	h = umad.Header{
		ID: p.admin[0], QPN: uint32(to.QP), QKey: uint32(ib.QKeyGSI), LID: to.LID, SL: uint8(to.SL), PKeyIndex: index,
	}
	if to.GID != (ib.GID{}) {
		h.GRHPresent, h.GID, h.HopLimit = 1, to.GID, generalHops
	}
	return h, ok
}

// addressOf is where a message came from.
func (p *pump) addressOf(h *umad.Header) mad.Address {
	a := mad.Address{LID: h.LID, QP: ib.QPN(h.QPN), SL: ib.SL(h.SL), PKey: p.keyAt(h.PKeyIndex)}
	if h.GRHPresent != 0 {
		a.GID = h.GID
	}
	return a
}

// sendGeneral sends what the administration has. What the kernel refuses is lost.
func (p *pump) sendGeneral() error {
	p.more = false
	if p.general == nil || p.admin == nil {
		return nil
	}
	for n := 0; ; n++ {
		if p.more = n == batchMax; p.more {
			break
		}
		b := p.buf[:bufferSize]
		m := (*[mad.Size]byte)(b[umad.HeaderSize:])
		to, ok := p.general.NextGeneral(p.system.Now(), m)
		if !ok {
			break
		}
		h, ok := p.headerTo(&to)
		if !ok {
			continue // lost, as on a wire
		}
		if !mad.Method(m[mad.OffsetMethod]).IsResponse() {
			h.TimeoutMilliseconds = uint32(reportTimeout / time.Millisecond)
		}
		if mad.Class(m[1]) == mad.ClassPerfMgt {
			h.ID = p.performance[0]
		}
		h.Put(b, true)
		if _, err := p.file.Write(b); err != nil && umad.IsGone(err) {
			return err
		}
	}
	for {
		to, m, ok := p.general.NextLong(p.system.Now())
		if !ok {
			return nil
		}
		if err := p.sendLong(&to, &m); err != nil {
			return err
		}
	}
}

// sendLong leaves a message to the kernel, which cuts it.
func (p *pump) sendLong(to *mad.Address, m *rmpp.Message) error {
	h, ok := p.headerTo(to)
	if !ok {
		return nil
	}
	h.Retries = longRetries
	b := make([]byte, umad.HeaderSize, umad.HeaderSize+rmpp.HeadSize+len(m.Body))
	h.Put(b, true)
	b = append(append(b, m.Head[:]...), m.Body...)
	rmpp.MarkWhole((*[rmpp.HeadSize]byte)(b[umad.HeaderSize:]))
	if _, err := p.file.Write(b); err != nil && umad.IsGone(err) {
		return err
	}
	return nil
}

// takeGeneral hands on what came for the administration, or what the kernel
// says of what it sent.
func (p *pump) takeGeneral(now time.Duration, h *umad.Header, m []byte) {
	switch {
	case p.general == nil:
	case h.Status != 0 && mad.Method(m[mad.OffsetMethod]).IsResponse():
		p.general.LostLong(now, mad.Address{LID: h.LID})
	case h.Status != 0:
		var head [mad.Size]byte
		copy(head[:], m)
		p.general.LostGeneral(now, &head)
	case len(m) >= mad.Size && mad.Class(m[1]) == mad.ClassPerfMgt: // it has no long messages, whatever stands there
		p.general.ReceiveGeneral(now, (*[mad.Size]byte)(m), p.addressOf(h))
	case len(m) < rmpp.HeadSize || mad.Class(m[1]) == mad.ClassPerfMgt:
	case rmpp.IsActive((*[mad.Size]byte)(p.padded(m))):
		whole := rmpp.Message{Body: slices.Clone(m[rmpp.HeadSize:])}
		copy(whole.Head[:], m)
		p.general.ReceiveLong(now, &whole, p.addressOf(h))
	case len(m) >= mad.Size:
		p.general.ReceiveGeneral(now, (*[mad.Size]byte)(m), p.addressOf(h))
	}
}

// padded is the first datagram of a message, filled up with zeros.
func (p *pump) padded(m []byte) []byte {
	if len(m) >= mad.Size {
		return m[:mad.Size]
	}
	return append(slices.Clone(m), make([]byte, mad.Size-len(m))...)
}
