package reach

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// keepsOwn reports whether p, a CA or router port, keeps packets for lid to
// itself, since it is one of its own.
func keepsOwn(p *observed.Port, lid ib.LID) bool {
	own := p.Info.LID
	return p.Node.Switch == nil && p.InfoRead && p.Info.PortState == smp.PortActive && own.IsUnicast() &&
		lid >= own && int(lid) < int(own)+1<<p.Info.LMC
}

// namesakes calls yield for each two end ports of which the first keeps packets
// for the second to itself: both have the second's LID.
func namesakes(ports []*observed.Port, yield func(from, to *observed.Port)) {
	byLID := make(map[ib.LID][]*observed.Port, len(ports))
	for _, p := range ports {
		if p.InfoRead && p.Info.LID.IsUnicast() {
			byLID[p.Info.LID] = append(byLID[p.Info.LID], p)
		}
	}
	for _, from := range ports {
		if !keepsOwn(from, from.Info.LID) {
			continue
		}
		for i := range 1 << from.Info.LMC {
			for _, to := range byLID[from.Info.LID+ib.LID(i)] {
				if to != from {
					yield(from, to)
				}
			}
		}
	}
}

// recount moves the packets that ports keep to themselves from where they would
// end if they left to WrongDestination.
func (t *tally) recount(ports []*observed.Port) {
	namesakes(ports, func(from, to *observed.Port) {
		for _, k := range keysOf(from) {
			w := walker{packet: Packet{PKey: k, AnyVL: true}, from: from, to: to, leaves: true}
			w.trace.Hops = []Hop{}
			w.run()
			t.counts[w.trace.Disposition]--
			t.counts[WrongDestination]++
		}
	})
}
