package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/traps"
)

// repress answers a trap, so that its sender stops. A port that is guarded takes
// no answer without its key, and a program of a host can ask for such answers:
// so only switches get theirs, by a directed route to the agent itself. Other
// guarded ports repeat theirs; false says that this one was heard before. A manager
// that may count has sent its trap itself and needs no key for the answer: OpenSM
// does nothing until it has come.
func (e *Engine) repress(now time.Duration, p *mad.SMP, slid ib.LID, n *smp.Notice) (fresh bool) {
	reply := *p
	reply.Method, reply.MKey = mad.MethodTrapRepress, 0
	if e.config.MKey == 0 && e.keys.Config == nil {
		e.answer(reply, slid, 1)
		return true
	}
	s := e.ownerOf(slid)
	if s != nil && e.master.Named() && traps.IsOfManager(n) {
		if may, _ := e.master.MayCount(s); may {
			e.answer(reply, slid, 1)
			return true
		}
	}
	if s == nil || s.Node.Switch == nil {
		return !e.beside.traps.Again(now, traps.Trap{From: slid, Transaction: p.TransactionID, Notice: *n})
	}
	e.answer(traps.Redirected(reply, s), ib.LIDPermissive, 1)
	return true
}
