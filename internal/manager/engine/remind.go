package engine

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/traps"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// remindInterval is how long a standby that ranks higher waits for the handover until
// it tells the master so, and how long until it does so again. OpenSM asks a manager
// once, when it first sees it, and takes no notice of a port whose traps come less
// than 5 s apart once there were ten of them.
const remindInterval = 6 * time.Second

// reminder is how a master learns that it is outranked: trap 144 with the change of a
// subnet manager's priority.
type reminder struct {
	at     time.Duration // 0 while there is nothing to wait for
	serial uint64
}

// waitsForHandover is the port of the master that has to hand over to this manager;
// nil when there is none.
func (e *Engine) waitsForHandover() *observed.Port {
	if e.managers == nil || e.fabric == nil || e.fabric.Self == nil {
		return nil
	}
	guid, waits := e.managers.WaitsFor()
	if !waits {
		return nil
	}
	i := slices.IndexFunc(e.ends, func(p *observed.Port) bool { return p.GUID == guid })
	if i < 0 {
		return nil
	}
	return e.ends[i]
}

// remind tells the master when it is time.
func (e *Engine) remind(now time.Duration) {
	r := &e.reminder
	master := e.waitsForHandover()
	switch {
	case master == nil:
		r.at = 0
	case r.at == 0:
		r.at = now + remindInterval
	case now >= r.at:
		r.at = now + remindInterval
		e.tellRank(master)
	}
}

func (e *Engine) tellRank(master *observed.Port) {
	self := e.fabric.Self
	if !self.Info.LID.IsUnicast() || !master.Info.LID.IsUnicast() {
		return
	}
	e.reminder.serial++
	if trap, err := traps.PriorityChange(self, e.reminder.serial); err == nil {
		e.answer(trap, master.Info.LID)
	}
}

// remindDue is when remind wants to be called.
func (e *Engine) remindDue() (time.Duration, bool) { return e.reminder.at, e.reminder.at != 0 }
