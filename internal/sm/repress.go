package sm

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/subnet"
)

const (
	// trapMemory is how long a trap that was not repressed is known when it comes
	// again: a port sends one in a second or so, and may have a few of them.
	trapMemory = time.Minute
	// trapsKnown bounds the traps that are known.
	trapsKnown = 4096
)

// trapSeen is a trap as it comes again and again.
type trapSeen struct {
	from   ib.LID
	tid    uint64
	notice smp.Notice
}

// repress answers a trap, so that its sender stops. A port that is guarded takes
// no answer without its key, and a program of a host can ask for such answers:
// so only switches get theirs, by a directed route to the agent itself. Other
// guarded ports repeat theirs; false tells that this one was heard before.
func (e *Engine) repress(now time.Duration, p *mad.SMP, slid ib.LID, n *smp.Notice) (fresh bool) {
	reply := *p
	reply.Method, reply.MKey = mad.MethodTrapRepress, 0
	if e.config.MKey == 0 && e.keys.config == nil {
		e.answer(reply, slid)
		return true
	}
	if s := e.switchOf(slid); s != nil {
		reply.Class, reply.MKey = mad.ClassSubnDirected, s.Key
		reply.DrSLID, reply.DrDLID = ib.LIDPermissive, ib.LIDPermissive
		reply.HopPointer, reply.HopCount = 0, uint8(len(s.Path))
		for i, num := range s.Path {
			reply.InitialPath[i+1] = byte(num)
		}
		e.answer(reply, ib.LIDPermissive)
		return true
	}
	seen := trapSeen{slid, p.TransactionID, *n}
	until, known := e.traps[seen]
	if !known && len(e.traps) >= trapsKnown {
		for t, until := range e.traps {
			if until < now {
				delete(e.traps, t)
			}
		}
		if len(e.traps) >= trapsKnown {
			return true
		}
	}
	if e.traps == nil {
		e.traps = make(map[trapSeen]time.Duration)
	}
	e.traps[seen] = now + trapMemory
	return !known || until < now
}

// switchOf is the management port of the switch with this LID, nil if there is none.
func (e *Engine) switchOf(lid ib.LID) *subnet.Port {
	if e.fabric == nil || !lid.IsUnicast() {
		return nil
	}
	for _, n := range e.fabric.Nodes {
		if p := n.Port(0); p != nil && p.InfoRead && p.Info.LID == lid {
			return p
		}
	}
	return nil
}
