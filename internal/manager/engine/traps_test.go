package engine_test

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// A trap is told of where it comes from the port that it names, once; of what is guarded only a
// switch is answered, and by a directed route. Nothing follows from traps of nobody, and who
// sends too many is reported once.
func TestTraps(t *testing.T) {
	for _, key := range []ib.MKey{0, 0x99} {
		s := newSite(t, engine.Config{MKey: key}, tenants(t), fabric.DefaultConfig())
		s.run("the first pass", s.engine.Settled)
		host, sw := s.engine.Fabric().EndPorts()[1], &s.engine.Fabric().Switches()[0].Ports[0]
		if host.Node.Switch != nil || s.engine.Fabric().EndPorts()[2] == sw {
			t.Fatalf("%s is no host", host)
		}
		trap := func(p *smp.Notice, lid ib.LID, serial uint64) mad.SMP {
			t.Helper()
			from := *host
			from.Info.LID = lid
			m, err := watch.PriorityChange(&from, serial)
			if err == nil && p != nil {
				err = p.Encode(&m.Data)
			}
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		send := func(m mad.SMP, slid ib.LID) (told, disbelieved, flooded int, repressed []mad.Class) {
			before := len(s.events)
			s.engine.Receive(s.fabric.Now(), &m, slid)
			for _, e := range s.events[before:] {
				switch e.(type) {
				case event.Trapped:
					told++
				case event.Disbelieved:
					disbelieved++
				case event.Flooded:
					flooded++
				}
			}
			var p mad.SMP
			for _, ok := s.engine.Next(s.fabric.Now(), &p); ok; _, ok = s.engine.Next(s.fabric.Now(), &p) {
				if p.Method == mad.MethodTrapRepress {
					repressed = append(repressed, p.Class)
				}
			}
			return told, disbelieved, flooded, repressed
		}
		routed := trap(nil, host.Info.LID, 20)
		routed.Class = mad.ClassSubnDirected
		vendor := trap(&smp.Notice{IssuerLID: host.Info.LID, TrapNumber: smp.TrapLocalChange}, host.Info.LID, 21)
		lid, free := []mad.Class{mad.ClassSubnLID}, key == 0
		for _, x := range []struct {
			name              string
			m                 mad.SMP
			slid              ib.LID
			told, disbelieved int
			answer            []mad.Class // of a guarded subnet
			free              []mad.Class // of one that is not
		}{
			{"a host", trap(nil, host.Info.LID, 1), host.Info.LID, 1, 0, nil, lid},
			{"a host, the next", trap(nil, host.Info.LID, 2), host.Info.LID, 1, 0, nil, lid},
			{"a switch", trap(nil, sw.Info.LID, 3), sw.Info.LID, 1, 0, []mad.Class{mad.ClassSubnDirected}, lid},
			{"in the name of another", trap(nil, sw.Info.LID, 4), host.Info.LID, 0, 1, nil, nil},
			{"in the name of another again", trap(nil, sw.Info.LID, 5), host.Info.LID, 0, 0, nil, nil},
			{"a LID of nobody", trap(nil, 4000, 6), 4000, 0, 0, nil, nil},
			{"by a directed route", routed, host.Info.LID, 0, 0, nil, nil},
			{"of a vendor", vendor, host.Info.LID, 0, 0, nil, lid},
		} {
			told, disbelieved, flooded, answer := send(x.m, x.slid)
			want := x.answer
			if free {
				want = x.free
			}
			if told != x.told || disbelieved != x.disbelieved || flooded > 0 || len(answer) != len(want) || len(want) > 0 && answer[0] != want[0] {
				t.Errorf("M_Key %v, %s: told %d, disbelieved %d, answered %v; want %d, %d, %v", key, x.name, told, disbelieved, answer, x.told, x.disbelieved, want)
			}
		}
		if told, _, _, _ := send(trap(nil, host.Info.LID, 1), host.Info.LID); (told > 0) != free {
			t.Errorf("M_Key %v: a trap that is repeated is told of %d times: want it where its sender was answered", key, told)
		}
		loud := s.engine.Fabric().EndPorts()[2]
		floods, last := 0, 1
		for i := range uint64(1000) {
			told, _, flooded, _ := send(trap(nil, loud.Info.LID, 100+i), loud.Info.LID)
			floods, last = floods+flooded, told
		}
		if floods != 1 || last != 0 {
			t.Errorf("M_Key %v: a flood of traps is reported %d times, and the last is told of: %d", key, floods, last)
		}
		if told, _, _, _ := send(trap(nil, sw.Info.LID, 9), sw.Info.LID); told != 1 {
			t.Errorf("M_Key %v: the flood of one keeps another from being heard", key)
		}
	}
}
