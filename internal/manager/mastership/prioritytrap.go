package mastership

import (
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// priorityTrapInterval is the time after which a standby of higher rank that waits for
// the handover sends trap 144 to the master, and the time between such traps. OpenSM
// reads SMInfo of a manager once, when it first sees it, and after ten traps of a port
// ignores those that come less than 5 s apart.
const priorityTrapInterval = 6 * time.Second

// priorityTrap is the timer of trap 144, the change of a subnet manager's priority, by
// which a master learns of a manager of higher rank.
type priorityTrap struct {
	at     time.Duration // 0 while there is nothing to wait for
	serial uint64
}

// waitsForHandover is the port of the master that has to hand over to this manager;
// nil when there is none.
func (x *Peers) waitsForHandover() *observed.Port {
	if x.election == nil || x.host.Facts().Fabric == nil || x.host.Facts().Fabric.Self == nil {
		return nil
	}
	guid, waits := x.election.WaitsFor()
	if !waits {
		return nil
	}
	i := slices.IndexFunc(x.host.Facts().Ends, func(p *observed.Port) bool { return p.GUID == guid })
	if i < 0 {
		return nil
	}
	return x.host.Facts().Ends[i]
}

// tickPriorityTrap sends the trap to the master when it is due.
func (x *Peers) tickPriorityTrap(now time.Duration) {
	r := &x.priorityTrap
	master := x.waitsForHandover()
	switch {
	case master == nil:
		r.at = 0
	case r.at == 0:
		r.at = now + priorityTrapInterval
	case now >= r.at:
		r.at = now + priorityTrapInterval
		x.sendPriorityTrap(master)
	}
}

func (x *Peers) sendPriorityTrap(master *observed.Port) {
	self := x.host.Facts().Fabric.Self
	if !self.Info.LID.IsUnicast() || !master.Info.LID.IsUnicast() {
		return
	}
	x.priorityTrap.serial++
	if trap, err := watch.PriorityChange(self, x.priorityTrap.serial); err == nil {
		x.host.Answer(trap, master.Info.LID, 1)
	}
}

// priorityTrapDue is when to call tickPriorityTrap.
func (x *Peers) priorityTrapDue() (time.Duration, bool) {
	return x.priorityTrap.at, x.priorityTrap.at != 0
}
