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

func (reading) work(e *Engine) (apply.Work, bool) {
	return apply.Work{Phase: event.PhaseTables, Keyed: e.givesKeys()}, true
}

// advance takes over the tables when they were read.
func (reading) advance(e *Engine, now time.Duration) bool {
	d := e.sweep.discovery
	if !d.Advance() {
		return true
	}
	e.sweep.discovery = nil
	more := d.Faults()[e.sweep.told:]
	e.tell(more)
	e.faults = append(e.faults, more...)
	if !e.master.Wait.Trial || !e.givesKeys() { // else they are read again, under keys
		_, tables := d.Least()
		e.least += tables + uint64(len(mkey.GuardPorts(e.fabric)))
	}
	switch {
	case !e.isMaster():
		e.stoodBy(now)
	case e.master.Wait.Trial:
		e.tried(now, d)
	default:
		e.cutMoved() // while the ports were read again
		e.lead(now)
	}
	return true
}
