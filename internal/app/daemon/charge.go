package daemon

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// inCharge is who is in charge of the subnet, as it is looked at while a manager runs.
type inCharge struct {
	watch         event.MasterWatch
	known         []observed.SubnetManager
	turns         int
	began         time.Time
	looked, asked time.Time
}

const (
	// chargeEvery is the time between two looks at who is in charge, and chargeTurns how
	// many turns of a busy engine pass between two looks at the clock.
	chargeEvery = time.Second
	chargeTurns = 16
)

// lookInCharge looks at who is in charge, about once a second, has the managers asked now
// and then, and tells what there is to tell.
func (r *Runner) lookInCharge() {
	x, e := &r.inCharge, r.Engine()
	if x.turns++; !e.Settled() && x.turns%chargeTurns != 0 {
		return
	}
	now := time.Now()
	if now.Sub(x.looked) < chargeEvery {
		return
	}
	if x.looked = now; x.began.IsZero() {
		x.began, x.asked = now, now
	}
	if e.Settled() && now.Sub(x.asked) >= event.AskMastersEvery {
		x.asked = now
		e.AskManagers()
	}
	x.known = e.Managers()
	for _, told := range x.watch.See(now.Sub(x.began), x.known) {
		r.watcher.Event(told)
	}
}

// InCharge is who was in charge at the last look, and the managers that were known then.
func (r *Runner) InCharge() (event.MasterStatus, []observed.SubnetManager) {
	return r.inCharge.watch.Status(), r.inCharge.known
}
