package apply

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Failure is a write that did not hold.
type Failure struct {
	Port      *observed.Port
	Attribute mad.AttributeID
	Err       error
}

// Error names port, attribute and cause.
func (f Failure) Error() string {
	return fmt.Sprintf("%s: %s: %v", f.Port, smp.AttributeName(f.Attribute), f.Err)
}

// Unwrap returns the cause.
func (f Failure) Unwrap() error { return f.Err }

var (
	errWithheld  = errors.New("not written: a partition that it adds could not be taken from another port")
	errKeeps     = errors.New("not written: the port still has a partition that it should have lost")
	errAliasHeld = errors.New("not written: an alias GUID that it gives could not be taken from another port")
	errStale     = errors.New("not written: another multicast table could not be narrowed, and both together may lead in a circle")
	errUnsafe    = errors.New("link left inactive: its partition keys or enforcement could not be written and read back")
)

// Run is a plan being carried out.
type Run struct {
	window *transact.Window
	plan   *plan.Plan
	width  int

	stage int // index of the next stage
	ops   []plan.Op

	// links are those to ask about before any becomes Active, while checking; strange are the
	// ends of those that are not as they were found.
	checked, checking bool
	links             []cable
	strange           map[*observed.Port]error

	strict  bool
	blocked map[ib.PKeyBase]bool
	held    map[ib.PortGUID]bool // alias GUIDs that could not be taken away
	tainted map[*observed.Port]bool
	keeps   map[*observed.Port]bool // a partition could not be taken from them
	// stale reports whether a multicast table may still have ports that it should
	// have lost.
	stale    bool
	failures []Failure
	forgets  map[*observed.Port]observed.Element
	// unsettled are ports of which a write of PortInfo did not hold, or not as a
	// whole: what they have now is read before PortInfo is written again.
	unsettled map[*observed.Port]bool
	writes    int
	flying    map[plan.Op]bool // sent, and not known to have taken hold
	idle      []*sending       // to be used again
	asked     smp.PortInfo     // of lostElements
	giving    map[plan.Op]bool // M_Keys that were sent, and not shown yet
}

// Start prepares to carry out p; width is how many of its operations may be in
// the window at once, which bounds the memory that a large plan takes.
func Start(w *transact.Window, p *plan.Plan, width int) *Run {
	return &Run{
		window: w, plan: p, width: width,
		blocked: make(map[ib.PKeyBase]bool), tainted: make(map[*observed.Port]bool), keeps: make(map[*observed.Port]bool),
		strange: make(map[*observed.Port]error),
		held:    make(map[ib.PortGUID]bool),
		forgets: make(map[*observed.Port]observed.Element), unsettled: make(map[*observed.Port]bool),
		flying: make(map[plan.Op]bool), giving: make(map[plan.Op]bool),
	}
}

// Withhold keeps the plan from giving these partitions to anybody.
func (r *Run) Withhold(bases []ib.PKeyBase) {
	for _, b := range bases {
		r.blocked[b] = true
	}
}

// Advance is called when the window is idle: it starts the next stage, or
// reports true when the last has ended.
func (r *Run) Advance() (done bool) {
	for r.stage < len(r.plan.Stages) {
		r.ops = spread(r.plan.Stages[r.stage].Ops, max(r.width, 1))
		if !r.checked && r.ops[0].Kind == plan.Activate {
			r.checked, r.checking, r.links = true, true, r.cables(r.ops)
			for range r.width {
				r.check()
			}
			if !r.window.Idle() {
				return false
			}
		}
		r.checking = false
		r.stage++
		for range r.width {
			r.next()
		}
		if !r.window.Idle() {
			return false
		}
	}
	r.plan.Share()
	return true
}

// Stop ends the run when what is outstanding has been answered: nothing more is
// written.
func (r *Run) Stop() { r.stage, r.ops, r.links = len(r.plan.Stages), nil, nil }

// Pending reports whether the run has something to do and has not begun.
func (r *Run) Pending() bool { return r.stage == 0 && len(r.plan.Stages) > 0 }

// MayAbort reports whether the run can be aborted: not while anything but P_Key
// tables and PortInfo is being written. Of a table of alias GUIDs, or of multicast
// forwarding, that is not read nobody would know what to take away first.
func (r *Run) MayAbort() bool {
	for op := range r.flying {
		if op.Attribute != smp.AttrPKeyTable && op.Attribute != smp.AttrPortInfo {
			return false
		}
	}
	return true
}

// Abort ends the run at once, with requests outstanding that the caller forgets:
// what was sent and not read back counts as not read.
func (r *Run) Abort() {
	r.Stop()
	for op := range r.flying {
		op.Port.MarkUnread(op.Attribute, op.Modifier)
	}
	clear(r.flying)
}

// Strict makes the run stop at the first write that does not hold. What is
// outstanding then is still awaited and reported.
func (r *Run) Strict() { r.strict = true }

// Stage names the stage under way.
func (r *Run) Stage() string {
	if r.checking && r.stage < len(r.plan.Stages) {
		return r.plan.Stages[r.stage].Name // of which it is asked where its links lead
	}
	if r.stage == 0 {
		return ""
	}
	return r.plan.Stages[r.stage-1].Name
}

// Failures lists the writes that did not hold.
func (r *Run) Failures() []Failure { return r.failures }

// Forgets lists the elements that devices accepted and did not keep.
func (r *Run) Forgets() map[*observed.Port]observed.Element { return r.forgets }

// Writes is the number of operations sent.
func (r *Run) Writes() int { return r.writes }

// next sends the next operation of the stage, passing over those that a
// failure forbids.
func (r *Run) next() {
	for len(r.ops) > 0 {
		op := r.ops[0]
		r.ops = r.ops[1:]
		if r.send(op) {
			return
		}
	}
}

func (r *Run) send(op plan.Op) bool {
	if op.Kind == plan.Activate && (r.tainted[op.Port] || op.Port.Peer != nil && r.tainted[op.Port.Peer]) {
		r.fail(op, nil, errUnsafe)
		return false
	}
	if op.Kind == plan.Multicast && r.stale {
		r.fail(op, nil, errStale)
		return false
	}
	if err := r.strange[op.Port]; err != nil && op.Kind == plan.Activate {
		r.fail(op, nil, err)
		return false
	}
	if op.Kind == plan.Activate && r.unsettled[op.Port] {
		r.lookAgain(op)
		return true
	}
	x := r.sending()
	w := &x.w
	var err error
	x.op = op
	*w, err = r.plan.Fill(op)
	switch {
	case err != nil:
	case w.WidensOf(r.blocked):
		err = errWithheld
	case w.GivesOf(r.held):
		err = errAliasHeld
	case op.Port.Agent().Offered != 0:
		err = errWhichKey
	case len(w.Adds) > 0 && r.keeps[op.Port]:
		err = errKeeps
	}
	if err != nil {
		r.fail(op, w, err)
		r.sent(x)
		return false
	}
	r.writes++
	if op.Kind == plan.MKeys {
		r.giveKey(op, *w)
		r.sent(x)
		return true
	}
	r.flying[op] = true
	set := r.request(op, mad.MethodSet, w.Data)
	// A late copy could undo what is written next. Every write of PortInfo
	// carries the bits of the guard as they stand.
	unguarded := op.Attribute == smp.AttrPortInfo && (op.Port.FacesEnd() && !op.Port.Enforces() || r.plan.Guards(op.Port))
	set.Once = w.ReadBack || unguarded || w.Asks // a host registers again each time that a copy arrives
	set.Alone = w.ReadBack
	r.window.Do(set, x.written)
	return true
}

// sending is a write under way. One that has ended is used for another: as many are needed as go out at
// once, and each would take memory for itself, for its content and for what is to follow.
type sending struct {
	op                plan.Op
	w                 plan.Write
	written, readBack func(transact.Reply)
}

func (r *Run) sending() *sending {
	if n := len(r.idle); n > 0 {
		x := r.idle[n-1]
		r.idle = r.idle[:n-1]
		return x
	}
	x := new(sending)
	x.written = func(reply transact.Reply) { r.written(x, reply) }
	x.readBack = func(reply transact.Reply) {
		r.answered(x.op, &x.w, reply)
		r.sent(x)
		r.next()
	}
	return x
}

// sent says that a write has ended.
func (r *Run) sent(x *sending) {
	x.w = plan.Write{}
	r.idle = append(r.idle, x)
}

// lookAgain reads PortInfo before it carries out op: a write of it takes along all
// that the attribute holds, and would undo what an earlier one has changed.
func (r *Run) lookAgain(op plan.Op) {
	delete(r.unsettled, op.Port)
	r.window.Do(r.request(op, mad.MethodGet, [mad.DataSize]byte{}), func(reply transact.Reply) {
		err := reply.Err
		if err == nil {
			err = op.Port.Absorb(op.Attribute, op.Modifier, reply.SMP.Data[:])
		}
		if err != nil {
			r.fail(op, nil, fmt.Errorf("reading it again: %w", err))
		}
		if err != nil || !r.send(op) {
			r.next()
		}
	})
}

func (r *Run) request(op plan.Op, m mad.Method, data [mad.DataSize]byte) transact.Request {
	return transact.Request{
		Path: op.Port.Path, Respond: op.Port.RespTime(), MKey: op.Port.MKey(), Method: m,
		Attribute: op.Attribute, Modifier: op.Port.Modifier(op.Attribute, op.Modifier), Data: data,
	}
}

func (r *Run) written(x *sending, reply transact.Reply) {
	switch {
	case reply.Err != nil:
		// Whether the write took hold is not known until it is read again.
		x.op.Port.MarkUnread(x.op.Attribute, x.op.Modifier)
		delete(r.flying, x.op)
		r.fail(x.op, &x.w, reply.Err)
	case x.w.ReadBack:
		r.window.Do(r.request(x.op, mad.MethodGet, [mad.DataSize]byte{}), x.readBack)
		return
	default:
		r.answered(x.op, &x.w, reply)
	}
	r.sent(x)
	r.next()
}

// answered enters what the device showed and compares it with what was asked.
func (r *Run) answered(op plan.Op, w *plan.Write, reply transact.Reply) {
	delete(r.flying, op)
	err := reply.Err
	if err != nil {
		op.Port.MarkUnread(op.Attribute, op.Modifier)
		err = fmt.Errorf("reading back: %w", err)
	} else if err = op.Port.Absorb(op.Attribute, op.Modifier, reply.SMP.Data[:]); err == nil {
		err = r.compare(op, w, reply.SMP.Data[:])
	}
	if err != nil {
		r.fail(op, w, err)
	}
}

// essential are the elements without which a port cannot be used.
const essential = observed.ElementLID | observed.ElementLMC | observed.ElementMasterSMLID | observed.ElementMKey

func (r *Run) compare(op plan.Op, w *plan.Write, data []byte) error {
	switch op.Attribute {
	case smp.AttrPortInfo:
		return r.comparePortInfo(op, w)
	case smp.AttrSwitchInfo:
		var asked smp.SwitchInfo
		if err := asked.UnmarshalBinary(w.Data[:]); err != nil {
			return err
		}
		got := &op.Port.Node.Switch.Info
		r.compareSwitchInfo(op.Port, got, &asked)
		if got.LinearFDBTop != asked.LinearFDBTop || got.DefaultPort != asked.DefaultPort {
			return fmt.Errorf("kept LinearFDBTop %d and DefaultPort %d, want %d and %d",
				got.LinearFDBTop, got.DefaultPort, asked.LinearFDBTop, asked.DefaultPort)
		}
	case smp.AttrGUIDInfo:
		if !sameGUIDs(op, data, w.Data[:]) {
			return fmt.Errorf("block %d reads back differently from what was written", op.Modifier)
		}
	default:
		if string(data) != string(w.Data[:]) {
			return fmt.Errorf("block 0x%08x reads back differently from what was written", op.Modifier)
		}
	}
	return nil
}

// sameGUIDs compares two blocks of a table of GUIDs. Entry 0 of the table
// cannot be written.
func sameGUIDs(op plan.Op, got, asked []byte) bool {
	skip := 0
	if op.Modifier == 0 {
		skip = guidSize
	}
	return string(got[skip:]) == string(asked[skip:])
}

// guidSize is the length of a GUID in bytes.
const guidSize = 8

// compareSwitchInfo notes what of SwitchInfo a switch answers to have and does
// not keep.
func (r *Run) compareSwitchInfo(p *observed.Port, got, asked *smp.SwitchInfo) {
	lost := observed.Element(0)
	if got.DefaultMulticastPrimaryPort != asked.DefaultMulticastPrimaryPort ||
		got.DefaultMulticastNotPrimaryPort != asked.DefaultMulticastNotPrimaryPort {
		lost |= observed.ElementDefaultMulticastPorts
	}
	if got.MulticastFDBTop != asked.MulticastFDBTop {
		lost |= observed.ElementMulticastFDBTop
	}
	if got.LifeTimeValue != asked.LifeTimeValue {
		lost |= observed.ElementLifeTimeValue
	}
	if lost != 0 {
		p.Forgets |= lost
		r.forgets[p] |= lost
	}
}

// lostElements are those that a port did not keep of what a write asked.
func (r *Run) lostElements(op plan.Op, w *plan.Write) (observed.Element, error) {
	asked := &r.asked // one of its own would be allocated for each answer
	err := asked.UnmarshalBinary(w.Data[:])
	if asked.LinkSpeedExtEnabled == smp.LinkSpeedExtDisable {
		asked.LinkSpeedExtEnabled = 0 // as it reads then
	}
	return w.Elements.Differ(&op.Port.Info, asked), err
}

func (r *Run) comparePortInfo(op plan.Op, w *plan.Write) error {
	lost, err := r.lostElements(op, w)
	if err != nil {
		return err
	}
	kept := &op.Port.Info
	if lost&essential != 0 {
		return fmt.Errorf("device did not keep %s", strings.Join((lost&essential).Names(), ", "))
	}
	if lost != 0 {
		op.Port.Forgets |= lost
		r.forgets[op.Port] |= lost
	}
	if w.State != 0 && kept.PortState < w.State {
		return fmt.Errorf("PortState is %s, want %s", kept.PortState, w.State)
	}
	return nil
}

func (r *Run) fail(op plan.Op, w *plan.Write, err error) {
	r.failures = append(r.failures, Failure{op.Port, op.Attribute, err})
	if r.strict {
		r.Stop()
	}
	r.stale = r.stale || op.Kind == plan.CloseMulticast || op.Kind == plan.NarrowMulticast
	if w == nil {
		return
	}
	if op.Attribute == smp.AttrPortInfo {
		r.unsettled[op.Port] = true
	}
	for _, b := range w.Removes {
		if !heldOff(op.Port, b) {
			r.blocked[b] = true
			// Some devices keep the default partition for good, and are to have others all the same.
			r.keeps[op.Port] = r.keeps[op.Port] || b != ib.PKeyBaseDefault
		}
	}
	for _, g := range w.Takes {
		r.held[g] = true
	}
	if w.ReadBack && op.Attribute != smp.AttrGUIDInfo { // which isolates nobody
		r.tainted[op.Port] = true
	}
}
