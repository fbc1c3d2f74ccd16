package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// ownLID is what a manager does by the LID that belongs to whichever manager is master
// (master_sm_lid), where the policy has one.
type ownLID struct {
	// robbed reports whether the port of this manager, which is master, has lost the LID, asked that the
	// other managers were asked since.
	robbed, asked bool
}

// given are the LIDs that this manager has given to ports.
func (e *Engine) given() watch.Given {
	g := watch.Given{LIDs: e.known.LIDs}
	if m := e.policy.MasterLID(); m != ib.LIDReserved && e.isMaster() && e.fabric != nil {
		g.Master, g.MasterLID = e.fabric.Self, m
	}
	return g
}

// moveLID has the LID of the master come to this manager's port, where the subnet was as
// the policy wants it when it was last read. It reports whether there is such a LID.
func (e *Engine) moveLID() bool {
	m := e.wanted().MasterLID()
	if m == ib.LIDReserved {
		return false
	}
	ready, from := e.standby.ready, make(map[*observed.Port]observed.Assigned)
	own := ready.LIDs()
	for p := range own {
		now := e.fabric.At(p.Place())
		if now != nil && now.GUID == p.GUID && now != e.fabric.Self && now.Reached && now.Answers(m) {
			from[now] = own[p]
		}
	}
	apply.Move(e.window, e.fabric, apply.LIDMove{
		LID: m, To: e.fabric.Self, From: from,
		Exit:    func(n *observed.Node) ib.PortNum { return ready.Exit(n.GUID(), m) },
		Stopped: func() bool { return !e.isMaster() },
		Failed:  func(f apply.Failure) { e.emit(event.Failed{Failure: f}) },
		Took:    ready.Enter,
	})
	return true
}

// noteOwnLID sees whether somebody has taken the LID of the master from this manager's
// port, as the next master does with one that does not answer: then nothing is written
// before all managers were asked who is master.
func (e *Engine) noteOwnLID(p *observed.Port, before seen) {
	m := e.policy.MasterLID()
	if m == ib.LIDReserved || p != e.fabric.Self || !e.isMaster() || e.desired == nil || !before.read || before.LID != m || p.Info.LID == m {
		return
	}
	e.rob(p)
}

// robbedSince sees the same after a sweep of the whole subnet; old is what was known before.
func (e *Engine) robbedSince(old *observed.Fabric) bool {
	m := e.policy.MasterLID()
	if m == ib.LIDReserved || old == nil || old.Self == nil || e.fabric.Self == nil || !e.settled || !e.isMaster() || !e.master.Named() {
		return false
	}
	was, is := old.Self, e.fabric.Self
	if was.GUID != is.GUID || !was.InfoRead || !is.InfoRead || was.Info.LID != m || is.Info.LID == m {
		return false
	}
	e.rob(is)
	return true
}

func (e *Engine) rob(p *observed.Port) {
	e.ownLID.robbed, e.ownLID.asked = true, false
	e.emit(event.Warned{Text: p.String() + " has lost the LID of the master: nothing is written before all managers were asked which of them is"})
}

// justify goes on when the managers were asked, and none but this one is master: all is read
// again, and what is not as it should be is put right. It reports whether there is
// something to do.
func (e *Engine) justify(now time.Duration) bool {
	switch {
	case !e.isMaster():
		e.ownLID.robbed = false
		return true
	case !e.master.Named():
		e.ownLID.robbed = false
		e.cancelLooks()
		e.startElection(now)
		return true
	case !e.ownLID.asked:
		e.ownLID.asked = true
		e.cancelLooks()
		e.master.Ask()
		return e.master.Asking() == 0
	case e.master.Asking() > 0 || e.bounds.sharing: // the other master hands over, or ends
		return false
	}
	e.ownLID.robbed = false
	e.agenda.wantSweep("the port of this manager lost the LID of the master, and no other manager is")
	return true
}
