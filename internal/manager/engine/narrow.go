package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// narrowing is how a new policy goes before what is under way. A sweep or an
// election may take as long as some device likes; what a policy takes away does
// not wait for it. It is written to the devices of the last snapshot, each asked
// who it is just before, and only what takes away: whatever has changed since,
// nobody is given anything.
type narrowing struct {
	// heeded is the policy for which something was interrupted, cut the one
	// whose narrowing was written.
	heeded, cut *policy.Policy
	plan        *plan.Plan
	narrowUntil time.Duration
	// byDevice are the operations that wait for an answer, by the way to it.
	byDevice map[string][]plan.Op
}

// narrowMost is how long the narrowing may take: who has not answered by then
// is left to the pass that follows.
const narrowMost = time.Second

// revisitRest is how long a link that has moved is left alone when following it
// was interrupted, so that the policy that did so is not held up by it again.
const revisitRest = 100 * time.Millisecond

// giveWay interrupts what is under way for a policy that has come.
func (e *Engine) giveWay(now time.Duration) {
	if e.newPolicy == nil || e.newPolicy == e.heeded || !e.settled || !e.isMaster() || e.config.Hold {
		return
	}
	switch e.state {
	case stateSweeping:
		if e.revisiting {
			e.revisiting = false // the links that moved are followed later
			for at, m := range e.moved {
				m.visited, m.at = false, max(m.at, now+revisitRest)
				e.moved[at] = m
			}
		} else {
			e.wantSweep("a new policy came while the subnet was read")
			e.sweepFrom = now
		}
		e.discovery = nil
	case stateReading:
		e.wantSweep("a new policy came while the subnet was read")
		e.sweepFrom, e.discovery = now, nil
	case stateElecting:
		e.wantElection("a new policy came meanwhile")
	case stateChecking:
		e.cursor, e.nextCheck = e.checkFrom, now
	case stateApplying:
		if e.multicast.alone || !e.run.MayAbort() {
			return
		}
		e.run.Abort()
		e.run, e.repairing = nil, false // what was to be written is in standing.amiss
	default:
		return
	}
	e.heeded = e.newPolicy
	e.window.Forget()
	e.state = stateWatching
}

// narrowsFirst reports whether what a new policy takes away is to be written
// before anything else is done.
func (e *Engine) narrowsFirst(now time.Duration) bool {
	return e.newPolicy != e.cut && e.settled && e.state == stateWatching && e.isMaster() && !e.config.Hold &&
		(e.resweep != "" || e.reelect != "" || e.looksAtSwitch(now))
}

// narrow starts to write what a new policy takes away. It reports whether that is
// anything; a policy that does not fit is refused when all of it is worked out.
func (e *Engine) narrow(now time.Duration) bool {
	e.cut = e.newPolicy
	if e.plan = e.narrowing.of(e); e.plan == nil || e.plan.Len() == 0 {
		return false
	}
	e.hush()
	e.begin(event.PhaseNarrow)
	e.state, e.narrowUntil = stateNarrowing, now+narrowMost
	e.byDevice = make(map[string][]plan.Op)
	for _, s := range e.plan.Stages {
		for _, op := range s.Ops {
			way := op.Port.Path.String()
			if e.byDevice[way] = append(e.byDevice[way], op); len(e.byDevice[way]) == 1 {
				e.askWho(op.Port, way)
			}
		}
	}
	return true
}

// of works out the narrowing on the last snapshot that has tables.
func (*narrowing) of(e *Engine) *plan.Plan {
	if last := e.before; last.fabric != nil {
		now := snapshot{e.fabric, e.ends, e.resolver, e.unseen}
		e.fabric, e.ends, e.resolver, e.unseen = last.fabric, last.ends, last.resolver, last.unseen
		defer func() { e.fabric, e.ends, e.resolver, e.unseen = now.fabric, now.ends, now.resolver, now.unseen }()
	}
	of, err := e.resolve(e.newPolicy)
	if err != nil {
		return nil
	}
	want, err := e.desire(of)
	if err != nil {
		return nil
	}
	return plan.Narrowing(e.fabric, want.Tables)
}

var errElsewhere = errors.New("not written: another device answers there than the snapshot says")

// askWho asks a device who it is, and then writes what there is to write to it.
func (e *Engine) askWho(p *observed.Port, way string) {
	e.window.Do(transact.Request{
		Path: p.Path, Respond: p.RespTime(), MKey: p.MKey(), Method: mad.MethodGet, Attribute: smp.AttrNodeInfo,
	}, func(r transact.Reply) {
		var info smp.NodeInfo
		err := r.Err
		if err == nil {
			err = info.UnmarshalBinary(r.SMP.Data[:])
		}
		if n := &p.Node.Info; err == nil && (info.NodeGUID != n.NodeGUID || p.Node.Switch == nil && (info.LocalPortNum != p.Num || info.PortGUID != p.GUID)) {
			err = errElsewhere
		}
		for _, op := range e.byDevice[way] {
			if err != nil {
				e.emit(event.Failed{Failure: apply.Failure{Port: op.Port, Attribute: op.Attribute, Err: err}})
			} else {
				e.takeAway(op)
			}
		}
		delete(e.byDevice, way)
	})
}

// takeAway carries out one operation and enters what the device shows then.
func (e *Engine) takeAway(op plan.Op) {
	w, err := e.plan.Fill(op)
	if err != nil {
		return // what cannot be encoded is reported by the pass that follows
	}
	r := transact.Request{
		Path: op.Port.Path, Respond: op.Port.RespTime(), MKey: op.Port.MKey(), Method: mad.MethodSet,
		Attribute: op.Attribute, Modifier: op.Modifier, Data: w.Data, Once: true, Alone: true,
	}
	op.Port.Doubt(op.Attribute, op.Modifier) // until it shows
	e.window.Do(r, func(reply transact.Reply) {
		if reply.Err != nil {
			e.emit(event.Failed{Failure: apply.Failure{Port: op.Port, Attribute: op.Attribute, Err: reply.Err}})
			return
		}
		r.Method, r.Data, r.Once, r.Alone = mad.MethodGet, [mad.DataSize]byte{}, false, false
		e.window.Do(r, func(reply transact.Reply) {
			err := reply.Err
			if err == nil {
				err = op.Port.Absorb(op.Attribute, op.Modifier, reply.SMP.Data[:])
			}
			if err != nil {
				e.emit(event.Failed{Failure: apply.Failure{Port: op.Port, Attribute: op.Attribute, Err: fmt.Errorf("reading back: %w", err)}})
			}
		})
	})
}

// narrowed ends what narrow began.
func (e *Engine) narrowed() {
	e.plan, e.byDevice = nil, nil
	e.state = stateWatching
}

// narrowedEnough ends it for those that have not answered.
func (e *Engine) narrowedEnough(now time.Duration) {
	if e.state == stateNarrowing && now >= e.narrowUntil {
		e.window.Forget()
		e.narrowed()
	}
}
