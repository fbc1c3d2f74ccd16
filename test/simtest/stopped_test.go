package simtest

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/metrics"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// CT-01: violation counters that have stopped are told and set back, those that still count are left
// alone, nobody is blamed for a foreign change, and what Prometheus is told rises on.
func TestCT01StoppedCounters(t *testing.T) {
	list := topology.Demo()
	w := bringUp(t, setup{list: list, policy: settingsPolicy(t, list, ""), manager: keyed()})
	w.calm()
	observer := metrics.NewObserver()
	scraped := func(at place) (v metrics.Violations) {
		s := &metrics.State{}
		metrics.CopyFabric(s, w.engine.Fabric(), nil)
		observer.Rise(s)
		for _, d := range s.Devices {
			for _, p := range d.Ports {
				if p.Place == (observed.Place{Node: at.node, Port: at.num}) {
					v = p.Violations
				}
			}
		}
		return v
	}
	host, guard := w.host("red-1"), w.switchPort("red-1")
	for round := range uint64(3) {
		w.forget()
		w.info(host).MKeyViolations, w.info(host).PKeyViolations, w.info(host).QKeyViolations = 7, 0xFFFF, 0xFFFF
		w.info(guard).PKeyViolations = 0xFFFF
		w.calm()
		told := map[string][]observed.Violations{}
		for _, x := range w.events {
			observer.Event(time.Unix(0, 0), "", x.Event)
			switch e := x.Event.(type) {
			case event.Stopped:
				told[e.Port.String()] = append(told[e.Port.String()], e.Counters...)
			case event.Drifted:
				t.Errorf("a stopped counter is told as a foreign change: %s", e)
			}
		}
		if len(told) != 2 || len(told["red-1 HCA-1"]) != 2 || len(told[w.engine.Fabric().Node(guard.node).Name()+":2"]) != 1 {
			t.Errorf("told of %v", told)
		}
		i, g := w.info(host), w.info(guard)
		if i.MKeyViolations != 7 || i.PKeyViolations != 0 || i.QKeyViolations != 0 || g.PKeyViolations != 0 {
			t.Errorf("counters are then %d, %d, %d and %d", i.MKeyViolations, i.PKeyViolations, i.QKeyViolations, g.PKeyViolations)
		}
		i.PKeyViolations = 3
		w.calm()
		if v := scraped(host); v.PKey != (round+1)*0xFFFF+3 || v.QKey != (round+1)*0xFFFF || v.MKey != 7 {
			t.Errorf("round %d: Prometheus is told %+v", round, v)
		}
	}
	before := w.dump()
	w.calm()
	if w.dump() != before {
		t.Error("a calm manager changes something")
	}
}
