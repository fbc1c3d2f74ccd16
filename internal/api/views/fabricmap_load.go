package views

import (
	"math"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// CableLoad is what the cables of a map carry: columns in the order of its links.
type CableLoad struct {
	Map     string `json:"map" doc:"the ETag of the map whose links these are"`
	Percent []int  `json:"percent" doc:"of the cable's data rate, of the direction that carries more, rounded up; -1 where that is not known"`
	Errors  []int  `json:"errors" doc:"sum of the error counters of both ends; -1 where none was read"`
}

// notKnown is in place of a number that was not read.
const notKnown = -1

// Load is the load of the cables of the map for the provider, by the counters of ports.
func (m *MapMaker) Load(f *MapFacts, counters []PortCounters) (*CableLoad, error) {
	whole, err := m.Whole(f)
	if err != nil {
		return nil, err
	}
	at := make(map[string][]*PortCounters, len(f.Snapshot.Fabric.Nodes))
	for i := range counters {
		c := &counters[i]
		at[c.Node] = append(at[c.Node], c)
	}
	of := func(p observed.Place) *PortCounters {
		for _, c := range at[p.Node.String()] {
			if c.Port == int(p.Port) {
				return c
			}
		}
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lay(f)
	out := &CableLoad{Map: whole.ETag, Percent: make([]int, len(m.links)), Errors: make([]int, len(m.links))}
	for i, l := range m.links {
		out.Percent[i], out.Errors[i] = notKnown, notKnown
		p := f.Snapshot.Fabric.At(l.a)
		for _, c := range []*PortCounters{of(l.a), of(l.b)} {
			if c == nil {
				continue
			}
			if c.Fault == "" || len(c.Counters) > 0 {
				out.Errors[i] = max(out.Errors[i], 0) + int(min(c.Errors, math.MaxInt32))
			}
			for _, carried := range []*float64{c.Sends, c.Receives} {
				if carried == nil {
					continue
				}
				if percent, known := PercentOf(p, *carried); known {
					out.Percent[i] = max(out.Percent[i], percent)
				}
			}
		}
	}
	return out, nil
}

// dataRate is how much data the cable of a port carries in each direction, in bytes a second; 0
// where that is not known.
func dataRate(p *observed.Port) float64 {
	if p == nil || !p.InfoRead {
		return 0
	}
	const bytesOfMegabit = 1e6 / 8
	return float64(p.Info.LinkWidthActive.Lanes()*p.Info.Speed().Data()) * bytesOfMegabit
}
