package transact

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// ErrNoAnswer says that a request was sent as often as allowed and that no
// answer came in time.
var ErrNoAnswer = errors.New("no answer")

// StatusError is an answer whose status is not zero.
type StatusError struct{ Status mad.Status }

// Error names the status.
func (e StatusError) Error() string { return "answered with status " + e.Status.String() }

// Request is one subnet-management Get or Set.
type Request struct {
	// Path is the directed route to the node; LID is used instead when it is
	// not zero.
	Path mad.Path
	LID  ib.LID

	// MKey goes with the request, unless it is for SMInfo, which a process
	// behind the port answers.
	MKey      ib.MKey
	Method    mad.Method
	Attribute mad.AttributeID
	Modifier  uint32
	Data      [mad.DataSize]byte

	// Respond is how long the agent says that it may take to answer
	// (PortInfo.RespTimeValue), or what is assumed of it. The last try waits at
	// least as long, up to RespondMax, and the round trip besides.
	Respond time.Duration

	// Once is for writes that must not arrive late: a copy that the fabric
	// delays could undo what is written after it. Such a request is not sent
	// again before its time-out has passed, and the window remembers for
	// Limits.Lifetime which copies of it were not answered.
	Once bool
	// Alone keeps a request back while a copy of an earlier one that was Once,
	// for the same attribute and modifier at the same place, may be under way.
	Alone bool
	// Probe is for a question to a device that did not answer before: it is sent once,
	// and that it is lost again says nothing about the other requests.
	Probe bool
}

// Reply is how a request ended. SMP is the answer, valid only until the
// callback returns; it is nil when there was none.
type Reply struct {
	SMP *mad.SMP
	Err error // nil, a StatusError, ErrReadOnly, or ErrNoAnswer with the number of tries
}

// Limits bounds a window.
type Limits struct {
	// Window is the largest number of requests outstanding at once.
	Window int
	// Tries is how often a request is sent before it counts as unanswered.
	Tries int
	// FirstTimeout is the wait before anything was measured.
	FirstTimeout time.Duration
	// MinTimeout and MaxTimeout bound the wait for one try.
	MinTimeout, MaxTimeout time.Duration
	// Lifetime is how long a packet may be under way, and wait in its agent, at
	// the most. 0 for none that matters.
	Lifetime time.Duration
}

// DefaultLimits suit a real fabric: answers in tens of microseconds, agents
// that are sometimes busy for tens of milliseconds.
func DefaultLimits() Limits {
	return Limits{
		Window:       128,
		Tries:        8,
		FirstTimeout: 200 * time.Millisecond,
		MinTimeout:   50 * time.Millisecond,
		MaxTimeout:   time.Second,
		Lifetime:     time.Second,
	}
}

// WindowMax is the most requests outstanding at once, whatever Limits.Window says.
const WindowMax = 4096

// RespondMax bounds Request.Respond: a device may claim hours.
const RespondMax = 4096 * time.Nanosecond << 20 // 4.3 s

const (
	firstWindow  = 16 // requests; what a new window starts from
	smallestOpen = 4  // requests; loss never narrows the window below this
	// windowCut is how much of the window is left after a loss.
	windowCut = 0.75
	// extraCopies is how often a request is sent at once in addition, when
	// answers are being lost and nothing else waits to be sent: at the end of a
	// phase one lost packet would make everything wait for a time-out.
	extraCopies = 1
	// lossy is the share of overdue answers from which on that is done.
	lossy = 0.01
	// lossMemory is how many answers the measured share looks back on.
	lossMemory = 64
	// patience is how many tries wait for the plain time-out before it doubles.
	patience = 3
)

// Counts is what a window has done so far.
type Counts struct {
	Sent      uint64 // packets, retries included
	Retried   uint64 // packets
	Extra     uint64 // packets, copies sent before a time-out
	Answered  uint64 // requests
	Failed    uint64 // requests that nobody answered
	Unmatched uint64 // answers that matched no request
}

// Plus is what two windows have done together.
func (c Counts) Plus(d Counts) Counts {
	return Counts{
		Sent: c.Sent + d.Sent, Retried: c.Retried + d.Retried, Extra: c.Extra + d.Extra,
		Answered: c.Answered + d.Answered, Failed: c.Failed + d.Failed, Unmatched: c.Unmatched + d.Unmatched,
	}
}

type slot struct {
	request Request
	done    func(Reply)
	index   uint16
	tid     uint32
	tries   int
	sentAt  time.Duration
	due     time.Duration // zero while waiting to be sent again
	active  bool
	answers int // that came, of any kind
}

// Window is the set of outstanding requests. The zero value is not usable;
// see NewWindow.
type Window struct {
	limits  Limits
	slots   []slot
	free    []uint16
	again   []uint16 // slots to be sent again, in order
	spare   []uint32 // requests, by transaction, that may be sent in addition
	waiting queue
	ids     *rand.ChaCha8
	byTID   map[uint32]uint16 // slots by the transactions under way
	flying  int
	// readOnly is what ReadOnly set, bounds what WriteBetween did; parked are the writes
	// that wait for it, in order.
	readOnly bool
	bounds   bounds
	parked   []pending

	loss     float64 // share of answers that were overdue, lately
	open     float64 // the window in requests, between smallestOpen and limits.Window
	cutUntil time.Duration
	srtt     time.Duration
	rttvar   time.Duration
	measured bool
	nextDue  time.Duration // no slot is due earlier; may lie too early
	counts   Counts
	late     map[target]time.Duration // until when copies of writes may be under way
	held     []held                   // requests that wait for that, in order
	// OnSend, when set, sees every packet that leaves, retries included.
	OnSend func(method mad.Method, attribute mad.AttributeID)
	// OnEnd, when set, sees how every request ended: err as in Reply.
	OnEnd func(method mad.Method, attribute mad.AttributeID, err error)
}

type pending struct {
	request Request
	done    func(Reply)
}

// target is what a request is for.
type target struct {
	path      string
	lid       ib.LID
	attribute mad.AttributeID
	modifier  uint32
}

type held struct {
	pending
	until time.Duration
}

func (r *Request) target() target {
	path := make([]byte, len(r.Path))
	for i, n := range r.Path {
		path[i] = byte(n)
	}
	return target{string(path), r.LID, r.Attribute, r.Modifier}
}

// NewWindow returns an empty window with the given limits.
func NewWindow(limits Limits) *Window {
	w := &Window{limits: limits, open: min(firstWindow, float64(limits.Window)), late: make(map[target]time.Duration)}
	w.slots = make([]slot, min(limits.Window, WindowMax))
	w.byTID = make(map[uint32]uint16, len(w.slots))
	w.Seed([32]byte{})
	w.free = make([]uint16, 0, len(w.slots))
	for i := len(w.slots) - 1; i >= 0; i-- {
		w.free = append(w.free, uint16(i))
	}
	return w
}

// Seed makes the transaction identifiers to come such that nobody can tell the
// next one who does not know the seed: who sends answers without having seen
// the request has to guess all 32 bits. (The upper half of the identifier is the
// kernel's, or libumad2sim's.) Without it the seed is zero.
func (w *Window) Seed(seed [32]byte) { w.ids = rand.NewChaCha8(seed) }

// newTID is an identifier that no request under way has; never 0.
func (w *Window) newTID() uint32 {
	for {
		tid := uint32(w.ids.Uint64())
		if _, taken := w.byTID[tid]; tid != 0 && !taken {
			return tid
		}
	}
}

// Do asks for a request; done is called once, when it has ended.
func (w *Window) Do(r Request, done func(Reply)) {
	w.waiting.push(pending{r, done})
}

// Idle reports whether every request has ended.
func (w *Window) Idle() bool {
	return w.flying == 0 && w.waiting.len() == 0 && len(w.held) == 0 && len(w.parked) == 0
}

// Settled reports whether a copy of a write that was Once, and has ended, may
// still be under way, and when none can be any more.
func (w *Window) Settled(now time.Duration) (at time.Duration, waits bool) {
	for t, until := range w.late {
		if until <= now {
			delete(w.late, t)
			continue
		}
		at, waits = max(at, until), true
	}
	return at, waits
}

// Counts returns what the window has done so far.
func (w *Window) Counts() Counts { return w.counts }

// Timeout is the wait that the next first try is given.
func (w *Window) Timeout() time.Duration {
	if !w.measured {
		return w.limits.FirstTimeout
	}
	return min(max(w.srtt+4*w.rttvar, w.limits.MinTimeout), w.limits.MaxTimeout)
}

// Next fills p with the next packet to send at time now and reports whether
// there is one. Call it until it says no.
func (w *Window) Next(now time.Duration, p *mad.SMP) bool {
	w.unpark(now)
	if w.sendAgain(now, p) {
		return true
	}
	w.release(now)
	for w.waiting.len() > 0 && (w.hold(now) || w.park(now)) {
	}
	if w.waiting.len() == 0 {
		return w.copy(now, p)
	}
	if w.flying >= int(w.open) || len(w.free) == 0 {
		return false
	}
	next := w.waiting.pop()
	if w.withholds(&next.request) {
		next.done(Reply{Err: ErrReadOnly})
		return w.Next(now, p)
	}
	i := w.free[len(w.free)-1]
	w.free = w.free[:len(w.free)-1]
	w.slots[i] = slot{request: next.request, done: next.done, active: true, index: i, tid: w.newTID()}
	w.byTID[w.slots[i].tid] = i
	w.flying++
	w.emit(now, i, p)
	return true
}

// sendAgain fills p with a request whose answer is overdue.
func (w *Window) sendAgain(now time.Duration, p *mad.SMP) bool {
	for k := 0; k < len(w.again); {
		i := w.again[k]
		s := &w.slots[i]
		if s.active && s.due == 0 && w.mustPark(now, &s.request) {
			k++
			continue
		}
		w.again = slices.Delete(w.again, k, k+1)
		if !s.active || s.due != 0 {
			continue // answered late, after it was given up for this try
		}
		if w.withholds(&s.request) {
			w.end(s, Reply{Err: ErrReadOnly})
			continue
		}
		w.counts.Retried++
		w.emit(now, i, p)
		return true
	}
	return false
}

// hold takes the next request out of the queue if a copy of an earlier write
// may still come in its way.
func (w *Window) hold(now time.Duration) bool {
	next := &w.waiting.items[w.waiting.head]
	if !next.request.Alone || len(w.late) == 0 {
		return false
	}
	until := w.late[next.request.target()]
	if until <= now {
		return false
	}
	w.held = append(w.held, held{w.waiting.pop(), until})
	return true
}

// release puts the requests back whose time has come.
func (w *Window) release(now time.Duration) {
	w.held = slices.DeleteFunc(w.held, func(h held) bool {
		if h.until <= now {
			w.waiting.push(h.pending)
		}
		return h.until <= now
	})
}

func (w *Window) emit(now time.Duration, i uint16, p *mad.SMP) {
	s := &w.slots[i]
	s.tries++
	s.sentAt = now
	wait := w.Timeout() << max(s.tries-patience, 0)
	wait = min(wait, max(w.limits.MaxTimeout, w.limits.FirstTimeout))
	if s.tries >= w.triesOf(s) {
		wait = max(wait, min(s.request.Respond, RespondMax)+w.Timeout())
	}
	s.due = now + wait
	if w.nextDue == 0 || s.due < w.nextDue {
		w.nextDue = s.due
	}
	if w.loss >= lossy && !s.request.Once && !s.request.Probe {
		w.allowCopies(s.tid)
	}
	w.send(s, p)
}

// allowCopies lets a request be sent in addition. Requests that have ended
// meanwhile are passed over, and weeded out when the list gets long.
func (w *Window) allowCopies(tid uint32) {
	if len(w.spare) > (extraCopies+1)*len(w.slots) {
		w.spare = slices.DeleteFunc(w.spare, func(t uint32) bool { return w.slot(t) == nil })
	}
	for range extraCopies {
		w.spare = append(w.spare, tid)
	}
}

// copy fills p with another copy of a request that is out, while answers are
// being lost and nothing else waits.
func (w *Window) copy(now time.Duration, p *mad.SMP) bool {
	for len(w.spare) > 0 {
		tid := w.spare[0]
		w.spare = w.spare[1:]
		if s := w.slot(tid); s != nil && s.due != 0 && !w.withholds(&s.request) && !w.mustPark(now, &s.request) {
			w.counts.Extra++
			w.send(s, p)
			return true
		}
	}
	return false
}

func (w *Window) send(s *slot, p *mad.SMP) {
	w.counts.Sent++
	if w.OnSend != nil {
		w.OnSend(s.request.Method, s.request.Attribute)
	}
	s.request.fill(p)
	p.TransactionID = uint64(s.tid)
}

// class is LID routed or directed route.
func (r *Request) class() mad.Class {
	if r.LID != 0 {
		return mad.ClassSubnLID
	}
	return mad.ClassSubnDirected
}

func (r *Request) fill(p *mad.SMP) {
	*p = mad.SMP{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion,
		Class: r.class(), Method: r.Method,
		AttributeID: r.Attribute, AttributeModifier: r.Modifier,
		MKey: r.MKey, Data: r.Data,
	}
	if r.Attribute == smp.AttrSMInfo {
		p.MKey = 0 // it goes to whatever process calls itself a manager
	}
	if r.LID != 0 {
		return
	}
	p.DrSLID, p.DrDLID = ib.LIDPermissive, ib.LIDPermissive
	p.HopCount = uint8(len(r.Path))
	for i, n := range r.Path {
		p.InitialPath[i+1] = byte(n)
	}
}

// went reports whether a packet has gone the way of the request.
func (r *Request) went(p *mad.SMP) bool {
	if r.LID != 0 {
		return true
	}
	if int(p.HopCount) != len(r.Path) {
		return false
	}
	for i, n := range r.Path {
		if p.InitialPath[i+1] != byte(n) {
			return false
		}
	}
	return true
}

// LIDOf returns the destination of the request behind a packet that Next gave
// out: its LID, or the permissive LID for a directed route.
func (w *Window) LIDOf(p *mad.SMP) ib.LID {
	if s := w.find(p); s != nil && s.request.LID != 0 {
		return s.request.LID
	}
	return ib.LIDPermissive
}

// LastWait is how long the window waits for the answer to a packet that Next gave
// out, counted from when it was, if it is the last try; else 0.
func (w *Window) LastWait(p *mad.SMP) time.Duration {
	if s := w.find(p); s != nil && s.tries >= w.triesOf(s) {
		return s.due - s.sentAt
	}
	return 0
}

func (w *Window) find(p *mad.SMP) *slot { return w.slot(uint32(p.TransactionID)) }

func (w *Window) slot(tid uint32) *slot {
	if i, ok := w.byTID[tid]; ok {
		return &w.slots[i]
	}
	return nil
}

// Receive takes an answer that arrived at time now. It reports whether the
// answer belonged to a request of this window; one that did not is counted
// and otherwise ignored.
func (w *Window) Receive(now time.Duration, p *mad.SMP) bool {
	s := w.find(p)
	if s == nil || p.Class != s.request.class() || !s.request.went(p) ||
		p.AttributeID != s.request.Attribute || p.AttributeModifier != s.request.Modifier {
		w.counts.Unmatched++
		return false
	}
	s.answers++
	if p.Status&mad.StatusBusy != 0 {
		return true // the agent asks for patience: the time-out sends it again
	}
	if s.tries == 1 { // a retried request may be answered twice: no measure
		w.measure(now - s.sentAt)
		w.loss -= w.loss / lossMemory
		w.open = min(w.open+1, float64(w.limits.Window))
	}
	w.counts.Answered++
	var err error
	if p.Status != mad.StatusOK {
		err = StatusError{p.Status}
	}
	w.end(s, Reply{SMP: p, Err: err})
	return true
}

// Lost says that the transport knows p not to have been answered: it is sent
// again, or ends, without waiting for its time-out.
func (w *Window) Lost(now time.Duration, p *mad.SMP) {
	if s := w.find(p); s != nil {
		w.overdue(now, s)
	}
}

func (w *Window) end(s *slot, r Reply) {
	done := s.done
	if w.OnEnd != nil {
		w.OnEnd(s.request.Method, s.request.Attribute, r.Err)
	}
	w.drop(s)
	done(r)
}

// drop frees the slot of a request that has ended.
func (w *Window) drop(s *slot) {
	delete(w.byTID, s.tid)
	s.active, s.done = false, nil
	if s.request.Once && s.answers < s.tries && w.limits.Lifetime > 0 {
		w.late[s.request.target()] = s.sentAt + w.limits.Lifetime
	}
	w.flying--
	w.free = append(w.free, s.index)
}

func (w *Window) measure(rtt time.Duration) {
	if !w.measured {
		w.measured, w.srtt, w.rttvar = true, rtt, rtt/2
		return
	}
	diff := w.srtt - rtt
	if diff < 0 {
		diff = -diff
	}
	w.rttvar += (diff - w.rttvar) / 4
	w.srtt += (rtt - w.srtt) / 8
}

// Deadline is the earliest time at which Expire may have something to do.
func (w *Window) Deadline() (time.Duration, bool) {
	due, ok := w.nextDue, w.flying > 0 && w.nextDue != 0 // 0: all wait to be sent again
	for i := range w.held {
		if until := w.held[i].until; !ok || until < due {
			due, ok = until, true
		}
	}
	return due, ok
}

// Expire takes every request whose answer is overdue at time now: it will be
// sent again, or ends with ErrNoAnswer after its last try.
func (w *Window) Expire(now time.Duration) {
	if w.flying == 0 || now < w.nextDue {
		return
	}
	w.nextDue = 0
	for i := range w.slots {
		s := &w.slots[i]
		if s.active && s.due != 0 && s.due <= now {
			w.overdue(now, s)
		}
	}
	for i := range w.slots {
		s := &w.slots[i]
		if s.active && s.due != 0 && (w.nextDue == 0 || s.due < w.nextDue) {
			w.nextDue = s.due
		}
	}
}

// triesOf is how often a request is sent.
func (w *Window) triesOf(s *slot) int {
	if s.request.Probe {
		return 1
	}
	return w.limits.Tries
}

func (w *Window) overdue(now time.Duration, s *slot) {
	if !s.request.Probe {
		w.loss += (1 - w.loss) / lossMemory
	}
	if now >= w.cutUntil && !s.request.Probe { // one cut for all that a single burst of loss took
		w.open = max(w.open*windowCut, min(smallestOpen, float64(w.limits.Window)))
		w.cutUntil = now + max(w.srtt, 1)
	}
	if s.tries >= w.triesOf(s) {
		w.counts.Failed++
		w.end(s, Reply{Err: fmt.Errorf("%w after %d tries", ErrNoAnswer, s.tries)})
		return
	}
	s.due = 0
	w.again = append(w.again, s.index)
}
