package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// refreshing is the phase in which PortInfo and SwitchInfo are read again after the wait.
type refreshing struct{ base }

// refresh reads PortInfo and SwitchInfo again.
func (e *Engine) refresh() {
	e.master.Wait.Stale = false
	e.step(onWaitOver, refreshing{})
	e.begin(event.PhaseTables)
	for _, n := range e.fabric.Nodes {
		if n.Switch != nil {
			e.reread(&n.Ports[0], smp.AttrSwitchInfo, 0, nil)
		}
		for i := range n.Ports {
			p := &n.Ports[i]
			if !p.Reached || i == 0 && n.Switch == nil {
				continue
			}
			before := seen{p.Info, p.InfoRead}
			e.reread(p, smp.AttrPortInfo, p.PortInfoBlock(), func() { e.judge(p, before) })
		}
	}
}

func (refreshing) state() state { return stateRefreshing }

func (refreshing) advance(e *Engine, now time.Duration) bool {
	e.refreshed(now)
	return true
}

func (refreshing) work(*Engine) (apply.Work, bool) { return apply.Work{Phase: event.PhaseTables}, true }

// refreshed goes on when they were read.
func (e *Engine) refreshed(now time.Duration) {
	if !e.isMaster() {
		e.rest(now, onDeposed)
		return
	}
	e.lead(now)
}
