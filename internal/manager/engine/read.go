package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
)

// reading is the phase in which the tables of a subnet that was swept are read.
type reading struct{ surveying }

// readRest reads the tables, with the present keys, and reads again what was read of the
// guards before there were any.
func (e *Engine) readRest() {
	e.step(onTablesUnread, reading{})
	e.begin(event.PhaseTables)
	for _, p := range mkey.GuardPorts(e.fabric) {
		e.reread(p, smp.AttrPortInfo, p.PortInfoBlock(), nil)
	}
}

func (reading) state() state { return stateReading }

func (r reading) advance(e *Engine, now time.Duration) bool {
	if e.sweep.discovery.Advance() {
		r.rested(e, now)
	}
	return true
}

func (reading) work(e *Engine) (apply.Work, bool) {
	return apply.Work{Phase: event.PhaseTables, Keyed: e.givesKeys()}, true
}

// rested takes over the tables.
func (reading) rested(e *Engine, now time.Duration) {
	d := e.sweep.discovery
	e.sweep.discovery = nil
	more := d.Faults()[e.sweep.told:]
	e.tell(more)
	e.faults = append(e.faults, more...)
	if !e.isMaster() {
		e.stoodBy(now)
		return
	}
	if e.master.Wait.Trial {
		e.tried(now)
		return
	}
	e.cutMoved() // while the ports were read again
	e.lead(now)
}
