package compare

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/lab/replica"
	"github.com/ibwarden/ibwarden/internal/observed"
)

var services = map[reach.Service]replica.Service{
	reach.UD: replica.UD, reach.RC: replica.RC, reach.UC: replica.UC, reach.RD: replica.RD, reach.Raw: replica.Raw,
}

// Send sends a packet from one end port to another through a replica of their fabric, and
// returns its journey.
func Send(r *replica.Replica, from, to *observed.Port, p reach.Packet) (replica.Journey, error) {
	err := r.Send(from.Place(), to.Place(), replica.Packet{Service: services[p.Service], PKey: p.PKey, SL: p.SL, QKey: p.QKey})
	if err != nil {
		return replica.Journey{}, fmt.Errorf("packet from %s to %s: %w", from, to, err)
	}
	return r.Journey(), nil
}

// MaxDifferences bounds what Compare tells.
const MaxDifferences = 16

// Compare tells how the packet's journey differs from the computed trace; nil
// when it does not. What a trace calls unknown differs from everything. The hops
// of a packet that was never sent are not compared: it has none. One that cannot
// be addressed, since its receiver has no LID, may be stopped before that shows.
func Compare(t *reach.Trace, j *replica.Journey) []string {
	var out []string
	differ := func(format string, args ...any) {
		if len(out) < MaxDifferences {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	nowhere := !j.Sent && j.End == replica.NoRoute && t.Disposition != reach.Delivered && t.Disposition != reach.Unknown
	if t.Disposition.String() != string(j.End) && !nowhere {
		differ("disposition: computed %s (%s), the packet's %s (%s)", t.Disposition, t.Reason, j.End, j.Reason)
	}
	if !j.Sent {
		return out
	}
	for i := range max(len(t.Hops), len(j.Hops)) {
		switch {
		case i >= len(t.Hops):
			h := &j.Hops[i]
			differ("hop %d: the packet came to node %s by port %d, computed none", i+1, h.Node, h.In)
			continue
		case i >= len(j.Hops):
			h := &t.Hops[i]
			differ("hop %d: computed %s by port %d, the packet did not come there", i+1, h.Name, h.In)
			continue
		}
		c, p := &t.Hops[i], &j.Hops[i]
		if c.Node != p.Node || c.In != p.In {
			differ("hop %d: computed node %s (%s) by port %d, the packet came to node %s by port %d", i+1, c.Node, c.Name, c.In, p.Node, p.In)
			return out // nothing after this can be the same
		}
		if c.Out != p.Out {
			differ("hop %d, %s: computed out by port %d, the packet's %d", i+1, c.Name, c.Out, p.Out)
		}
		if lane(c.VL) != lane(p.VL) {
			differ("hop %d, %s: computed VL %s, the packet's %s", i+1, c.Name, lane(c.VL), lane(p.VL))
		}
	}
	return out
}

// Report is a packet with its trace, for people and programs.
type Report struct {
	Sent        bool   `json:"sent"`
	Disposition string `json:"disposition"`
	Reason      string `json:"reason"`
	Hops        []Hop  `json:"hops"`
	// Agrees reports whether nothing differs.
	Agrees      bool     `json:"agrees"`
	Differences []string `json:"differences"`
	// Gaps is what could not be made as it was read, at most MaxGaps.
	Gaps []Gap `json:"gaps"`
}

// Hop is a node on the packet's way.
type Hop struct {
	Node ib.NodeGUID `json:"node"`
	In   ib.PortNum  `json:"in"`
	Out  ib.PortNum  `json:"out"`
	VL   *ib.VL      `json:"vl"`
}

// Gap is something that the fabric of the packet lacks.
type Gap struct {
	Node ib.NodeGUID `json:"node"`
	Port ib.PortNum  `json:"port"`
	Why  string      `json:"why"`
}

// MaxGaps bounds the gaps in a Report.
const MaxGaps = 64

// Try makes a replica of a fabric, sends the packet of a trace through it, and
// compares.
func Try(f *observed.Fabric, from, to *observed.Port, p reach.Packet, t *reach.Trace) (*Report, error) {
	r, err := replica.Build(f)
	if err != nil {
		return nil, err
	}
	j, err := Send(r, from, to, p)
	if err != nil {
		return nil, err
	}
	out := &Report{Sent: j.Sent, Disposition: string(j.End), Reason: j.Reason, Hops: []Hop{}, Differences: []string{}, Gaps: []Gap{}}
	for _, h := range j.Hops {
		out.Hops = append(out.Hops, Hop(h))
	}
	out.Differences = append(out.Differences, Compare(t, &j)...)
	out.Agrees = len(out.Differences) == 0
	for i, g := range r.Gaps() {
		if i == MaxGaps {
			break
		}
		out.Gaps = append(out.Gaps, Gap{g.At.Node, g.At.Port, g.Why})
	}
	return out, nil
}

func lane(vl *ib.VL) string {
	if vl == nil {
		return "none"
	}
	return fmt.Sprint(*vl)
}
