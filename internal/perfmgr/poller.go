package perfmgr

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Config is what a poller is told once.
type Config struct {
	// Seed is where transaction identifiers come from; with a secret one nobody can
	// answer a request that he has not seen.
	Seed   [32]byte
	Limits Limits
	// Dropped is told each time that PortXmitConstraintErrors or PortRcvConstraintErrors of a
	// switch port has risen since it was read before; nil for nobody.
	Dropped func(Dropped)
}

// Limits bound what reading costs.
type Limits struct {
	// Period is the time from the begin of one round to that of the next.
	Period time.Duration
	// Window is the most requests under way at once.
	Window int
	// Rate is the most packets a second.
	Rate int
	// Share is the largest share of time, 0 to 1, that the driver of the poller
	// spends on it, by what Spent tells.
	Share float64
	// Timeout is how long an answer is waited for, Tries how often a request is sent
	// to who answered the one before; to others it is sent once.
	Timeout time.Duration
	Tries   int
	// Hosts reports whether the ports of CAs and routers are read, and not those of switches
	// alone; Details that PortRcvErrorDetails are.
	Hosts, Details bool
}

// DefaultLimits are those of a usual fabric. What is read is what infiniband_exporter
// reads if nothing is said to it.
func DefaultLimits() Limits {
	return Limits{Period: DefaultPeriod, Window: 16, Rate: 4000, Share: 0.05, Timeout: 500 * time.Millisecond, Tries: 3}
}

const (
	// DefaultPeriod is between the begins of two rounds: Prometheus usually comes
	// every 15 s.
	DefaultPeriod = 15 * time.Second
	// allowance is how far Spent may run ahead of Share.
	allowance = time.Millisecond
	// staleAfter is after how many rounds without an answer what was read does not
	// count any more.
	staleAfter = 3
	// refreshAfter is after how long an agent is asked again what it can do.
	refreshAfter = time.Hour
)

// Fault says why nothing is known of a port.
type Fault uint8

// The faults.
const (
	NotAsked  Fault = iota // yet
	NoKey                  // the manager and the port have no partition in common
	Answered               // none
	NoAnswer               // in time
	Refused                // with a status
	Malformed              // or about another port
)

var faultNames = [...]string{"not-asked", "no-key", "answered", "no-answer", "refused", "malformed"}

// String names the fault for programs.
func (f Fault) String() string { return faultNames[f] }

// Counts is what a poller has done.
type Counts struct {
	// Sent counts packets, Retried those of them that were sent again.
	Sent, Retried uint64
	// Answered counts requests that were answered well, Unanswered, Refused and
	// Malformed those that were not; Stray answers to nothing that was asked.
	Answered, Unanswered, Refused, Malformed, Stray uint64
	// Rounds counts those that were ended.
	Rounds uint64
	// LastRound is how long the last one took.
	LastRound time.Duration
}

// Poller reads counters. The zero value is not usable; see New.
type Poller struct {
	limits  Limits
	ids     *rand.ChaCha8
	dropped func(Dropped)

	subnet  observed.Subnet
	some    bool // there is a subnet
	changed bool // it is another than the one that agents are of
	agents  []*agent
	known   map[observed.Place]*agent

	next    int    // the agent that is visited next
	queue   []step // of agents that were visited
	again   []int  // slots to be sent again
	slots   []slot
	round   time.Duration // when it began
	rounded bool          // one began
	sendAt  time.Duration // not before this, but for a burst
	restAt  time.Duration // the same, by Share
	counts  Counts
}

// agent is who answers for the counters of a device: port 0 of a switch, or a CA
// or router port for itself.
type agent struct {
	at       observed.Place
	lid      ib.LID
	key      ib.PKey // 0 where there is none that both have
	sl       ib.SL
	ports    []port
	can      capability
	asked    time.Duration // when it said so
	able     bool          // it said so
	noErrors bool          // it has no PortRcvErrorDetails
	silent   bool          // it did not answer the last request
}

type port struct {
	num ib.PortNum
	values
	at    time.Duration // when it was read last
	fault Fault
	rates rates
	drops drops
}

type step struct {
	agent *agent
	port  int // index in agent.ports
	ask   ask
}

type slot struct {
	step
	busy  bool
	tid   uint32
	tries int
	due   time.Duration // zero while waiting to be sent again
}

// New returns a poller without a subnet.
func New(c Config) *Poller {
	return &Poller{
		limits: c.Limits, ids: rand.NewChaCha8(c.Seed), dropped: c.Dropped, known: make(map[observed.Place]*agent),
		slots: make([]slot, max(c.Limits.Window, 1)),
	}
}

// SetSubnet says whose ports are read from the next round on.
func (p *Poller) SetSubnet(s observed.Subnet) {
	p.subnet, p.some, p.changed = s, true, true
}

// Suspend ends reading and forgets what was read: another manager is master.
func (p *Poller) Suspend() {
	p.subnet, p.some, p.changed = observed.Subnet{}, false, false
	p.agents, p.queue, p.again, p.next = nil, nil, nil, 0
	clear(p.known)
	clear(p.slots)
}

// rebuild lists the agents of the subnet.
func (p *Poller) rebuild() {
	s := &p.subnet
	p.changed = false
	sls := make(map[ib.PKeyBase]ib.SL, len(s.Partitions))
	for _, part := range s.Partitions {
		sls[part.Base] = part.SL
	}
	old := p.known
	p.agents, p.known = nil, make(map[observed.Place]*agent, len(old))
	for _, end := range s.Fabric.EndPorts() {
		lid := end.Info.LID
		if a, ok := s.LIDs[end]; ok {
			lid = a.LID
		}
		if end.Node.Switch == nil && !p.limits.Hosts || s.Expelled[end] || !lid.IsUnicast() || !end.InfoRead || end.Node.Contested {
			continue
		}
		a := &agent{at: end.Place(), lid: lid, key: keyBetween(s.Fabric.Self, end)}
		a.sl = s.Levels.Between(sls[a.key.Base()], s.Fabric.Self, end)
		was := old[a.at]
		if was != nil && was.lid == lid {
			a.can, a.able, a.asked, a.noErrors, a.silent = was.can, was.able, was.asked, was.noErrors, was.silent
		}
		for i := range end.Node.Ports {
			q := &end.Node.Ports[i]
			if end.Node.Switch == nil && q != end || end.Node.Switch != nil && q.Num == 0 {
				continue
			}
			last := was.port(q.Num)
			if last == nil && !q.IsUp() {
				continue // nothing was ever plugged in there
			}
			switch {
			case a.key == 0:
				last = &port{num: q.Num, fault: NoKey}
			case last == nil || last.fault == NoKey:
				last = &port{num: q.Num}
			}
			a.ports = append(a.ports, *last)
		}
		p.agents = append(p.agents, a)
		p.known[a.at] = a
	}
}

// keyBetween is the key by which the manager's port reaches an end port: that of the
// default partition, or else the first in its table that both have; 0 for none. Of a
// table that was not read it is taken that the default partition is there.
func keyBetween(self, end *observed.Port) (key ib.PKey) {
	if self == nil || !self.PKeysKnown() || !end.PKeysKnown() {
		return ib.PKeyDefaultFull
	}
	for _, k := range self.PKeys {
		if !k.IsValid() || key != 0 && k.Base() != ib.PKeyDefaultFull.Base() {
			continue
		}
		if self == end || slices.ContainsFunc(end.PKeys, func(x ib.PKey) bool {
			return x.IsValid() && x.Base() == k.Base() && (x.IsFull() || k.IsFull())
		}) {
			key = k
		}
	}
	return key
}

// port finds a port by its number.
func (a *agent) port(num ib.PortNum) *port {
	if a == nil {
		return nil
	}
	for i := range a.ports {
		if a.ports[i].num == num {
			return &a.ports[i]
		}
	}
	return nil
}

// Spent tells how long handling a packet took: reading rests until that is within
// Limits.Share.
func (p *Poller) Spent(now, d time.Duration) {
	if p.limits.Share > 0 {
		p.restAt = max(p.restAt, now) + time.Duration(float64(d)*(1-p.limits.Share)/p.limits.Share)
	}
}

// Next fills m with the next request.
func (p *Poller) Next(now time.Duration, m *[mad.Size]byte) (to mad.Address, ok bool) {
	if !p.some || p.limits.Period <= 0 || now < p.paceAt() {
		return to, false
	}
	for len(p.again) > 0 {
		s := &p.slots[p.again[0]]
		p.again = p.again[1:]
		if s.busy && s.due == 0 {
			p.counts.Retried++
			return p.send(now, s, m), true
		}
	}
	free := slices.IndexFunc(p.slots, func(s slot) bool { return !s.busy })
	if free < 0 || !p.fill(now) {
		return to, false
	}
	s := &p.slots[free]
	*s = slot{step: p.queue[0], busy: true, tid: p.newTID()}
	p.queue = p.queue[1:]
	return p.send(now, s, m), true
}

// paceAt is when the next packet may leave.
func (p *Poller) paceAt() time.Duration {
	at := p.restAt - allowance
	if p.limits.Rate > 0 {
		at = max(at, p.sendAt-time.Duration(p.limits.Window)*time.Second/time.Duration(p.limits.Rate))
	}
	return at
}

// fill has a step in the queue, if one is due.
func (p *Poller) fill(now time.Duration) bool {
	for len(p.queue) == 0 {
		if p.next >= len(p.agents) && !p.begin(now) {
			return false
		}
		a := p.agents[p.next]
		p.next++
		p.visit(now, a)
	}
	return true
}

// begin begins a round, if it is time and the last one has ended.
func (p *Poller) begin(now time.Duration) bool {
	if p.underWay() || p.rounded && now < p.round+p.limits.Period && !(p.changed && len(p.agents) == 0) {
		return false
	}
	if p.changed {
		p.rebuild()
	}
	p.round, p.rounded, p.next = now, true, 0
	return len(p.agents) > 0
}

func (p *Poller) underWay() bool {
	return slices.ContainsFunc(p.slots, func(s slot) bool { return s.busy })
}

// asks reports whether there is anything to ask the agent, and a way to.
func (a *agent) asks() bool { return len(a.ports) > 0 && a.key != 0 }

// visit queues what is to be read of an agent.
func (p *Poller) visit(now time.Duration, a *agent) {
	switch {
	case !a.asks():
	case !a.able || now-a.asked >= refreshAfter:
		p.queue = append(p.queue, step{a, 0, askClassPortInfo})
	default:
		p.visitPorts(a)
	}
}

func (p *Poller) visitPorts(a *agent) {
	asks := a.can.asks()
	var all set
	for _, k := range asks {
		all |= a.can.of(k)
	}
	for i := range a.ports {
		a.ports[i].known &= all
		for _, k := range asks {
			if k != askRcvErrors || p.limits.Details && !a.noErrors {
				p.queue = append(p.queue, step{a, i, k})
			}
		}
	}
}

func (p *Poller) newTID() uint32 {
	for {
		tid := uint32(p.ids.Uint64())
		if tid != 0 && p.find(tid) == nil {
			return tid
		}
	}
}

func (p *Poller) find(tid uint32) *slot {
	for i := range p.slots {
		if p.slots[i].busy && p.slots[i].tid == tid {
			return &p.slots[i]
		}
	}
	return nil
}

const offPortSelect = 1

func (p *Poller) send(now time.Duration, s *slot, m *[mad.Size]byte) mad.Address {
	s.tries++
	s.due = now + p.limits.Timeout
	if p.limits.Rate > 0 {
		p.sendAt = max(p.sendAt, now) + time.Second/time.Duration(p.limits.Rate)
	}
	p.counts.Sent++
	head := mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassPerfMgt, ClassVersion: pm.ClassVersion, Method: mad.MethodGet,
		TransactionID: uint64(s.tid), AttributeID: askAttributes[s.ask],
	}
	clear(m[:])
	_, _ = head.AppendBinary(m[:0]) // its values fit
	if s.ask != askClassPortInfo {
		m[pm.DataOffset+offPortSelect] = byte(s.agent.ports[s.port].num)
	}
	return mad.Address{LID: s.agent.lid, QP: ib.QP1, SL: s.agent.sl, PKey: s.agent.key}
}

// Receive takes an answer of class performance management.
func (p *Poller) Receive(now time.Duration, m *[mad.Size]byte, from mad.Address) {
	var answer pm.MAD
	if answer.UnmarshalBinary(m[:]) != nil || answer.Method != mad.MethodGetResp || answer.ClassVersion != pm.ClassVersion {
		p.counts.Stray++
		return
	}
	s := p.find(uint32(answer.TransactionID))
	if s == nil || s.agent.lid != from.LID || askAttributes[s.ask] != answer.AttributeID {
		p.counts.Stray++
		return
	}
	if answer.Status&mad.StatusBusy != 0 {
		return // the time-out sends it again
	}
	fault := p.absorb(now, s, &answer)
	if s.ask != askClassPortInfo { // who says no more than what he can do says nothing
		s.agent.silent = false
	}
	switch fault {
	case Answered:
		p.counts.Answered++
	case Refused:
		p.counts.Refused++
	case Malformed:
		p.counts.Malformed++
	}
	p.end(now, s)
}

// absorb enters an answer.
func (p *Poller) absorb(now time.Duration, s *slot, answer *pm.MAD) Fault {
	a := s.agent
	if s.ask == askClassPortInfo {
		var info mad.ClassPortInfo
		if answer.Status != mad.StatusOK || info.UnmarshalBinary(answer.Data[:]) != nil {
			info = mad.ClassPortInfo{} // PortCounters is there in any case
		}
		a.can, a.able, a.asked, a.noErrors = capabilityOf(&info), true, now, false
		p.visitPorts(a)
		if answer.Status != mad.StatusOK {
			return Refused
		}
		return Answered
	}
	q := &a.ports[s.port]
	fault := Answered
	switch {
	case answer.Status != mad.StatusOK && s.ask == askRcvErrors:
		a.noErrors = true
		q.known &^= a.can.of(s.ask)
		return Refused
	case answer.Status != mad.StatusOK:
		fault, a.able = Refused, false // it is asked again what it can do
	case !q.take(s.ask, answer.Data[:], q.num, a.can):
		fault = Malformed
	}
	if fault != Answered {
		q.known &^= a.can.of(s.ask)
	} else {
		if q.at = now; a.can.of(s.ask).has(PortXmitData) {
			q.rates.take(now, &q.values)
		}
		p.tellDropped(a, q, a.can.of(s.ask))
	}
	q.fault = fault
	return fault
}

// Lost takes back a request that the link knows nobody answered.
func (p *Poller) Lost(now time.Duration, m *[mad.Size]byte) {
	if s := p.find(uint32(binary.BigEndian.Uint64(m[offTransactionID:]))); s != nil && s.due != 0 {
		p.overdue(now, s)
	}
}

const offTransactionID = 8

// Expire reports whether time has passed.
func (p *Poller) Expire(now time.Duration) {
	for i := range p.slots {
		if s := &p.slots[i]; s.busy && s.due != 0 && s.due <= now { // not ended by another of its agent
			p.overdue(now, s)
		}
	}
}

// overdue sends a request again, or gives its agent up for this round.
func (p *Poller) overdue(now time.Duration, s *slot) {
	a := s.agent
	if s.tries < p.limits.Tries && !a.silent {
		s.due = 0
		p.again = append(p.again, slices.IndexFunc(p.slots, func(t slot) bool { return t.busy && t.tid == s.tid }))
		return
	}
	p.counts.Unanswered++
	a.silent, a.able = true, false
	for i := range a.ports {
		a.ports[i].known, a.ports[i].fault = 0, NoAnswer
	}
	p.queue = slices.DeleteFunc(p.queue, func(t step) bool { return t.agent == a })
	for i := range p.slots {
		if t := &p.slots[i]; t.busy && t.agent == a {
			p.end(now, t)
		}
	}
}

// end frees a slot, and ends the round with the last one.
func (p *Poller) end(now time.Duration, s *slot) {
	s.busy, s.agent = false, nil
	for p.next < len(p.agents) && !p.agents[p.next].asks() {
		p.next++
	}
	if p.next >= len(p.agents) && len(p.queue) == 0 && !p.underWay() {
		p.counts.Rounds++
		p.counts.LastRound = now - p.round
	}
}

// Deadline is when the poller has something to do; false for never. may says that
// Next will be asked.
func (p *Poller) Deadline(may bool) (at time.Duration, some bool) {
	free := false
	for i := range p.slots {
		switch s := &p.slots[i]; {
		case !s.busy:
			free = true
		case s.due != 0 && (!some || s.due < at):
			at, some = s.due, true
		}
	}
	if !may || !p.some || p.limits.Period <= 0 {
		return at, some
	}
	var send time.Duration
	switch {
	case len(p.again) > 0, free && (len(p.queue) > 0 || p.next < len(p.agents)):
		send = p.paceAt()
	case p.underWay():
		return at, some
	case p.rounded && !(p.changed && len(p.agents) == 0):
		send = max(p.round+p.limits.Period, p.paceAt())
	default:
		send = p.paceAt()
	}
	if send = max(send, 0); !some || send < at {
		at, some = send, true
	}
	return at, some
}

// Counts is what the poller has done.
func (p *Poller) Counts() Counts { return p.counts }
