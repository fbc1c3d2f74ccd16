package opensm

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// way is what becomes of the way from a switch to an end port.
type way uint8

const (
	unlooked way = iota
	underWay
	stays
	changes
	fresh // packets did not arrive before
)

// ways compares the ways of all switches to one end port, before and after.
type ways struct {
	f        *observed.Fabric
	d        *observed.Desired
	end      *observed.Port
	from, to ib.LID
	// of and arrived are by Node.Index; the second is stays or fresh.
	of, arrived []way
}

// routes compares forwarding tables and the ways that they make.
func (t *Takeover) routes(f *observed.Fabric, d *observed.Desired, ends []*observed.Port) {
	hosts := make([]int, len(f.Nodes)) // at each switch, by Node.Index
	for _, q := range ends {
		if sw := attached(q); sw != nil && q.Node.Switch == nil {
			hosts[sw.Index]++
		}
	}
	turned := make([]bool, len(f.Nodes)) // switches from which some host is reached another way
	w := ways{f: f, d: d, of: make([]way, len(f.Nodes)), arrived: make([]way, len(f.Nodes))}
	switches := f.Switches()
	for _, q := range ends {
		w.begin(q)
		if w.to == 0 {
			continue
		}
		for _, sw := range switches {
			t.entry(w.exits(sw))
			if own := attached(q); q.Node.Switch != nil || own == nil || hosts[sw.Index] == 0 {
				continue
			}
			n := hosts[sw.Index]
			if attached(q) == sw {
				n-- // not from the host to itself
			}
			switch w.look(sw) {
			case stays:
				t.Paths.Stay += n
			case fresh:
				t.Paths.New += n
			default:
				t.Paths.Changes += n
				turned[sw.Index] = turned[sw.Index] || n > 0
			}
		}
	}
	for _, sw := range switches {
		if turned[sw.Index] {
			t.Notice.Paths += hosts[sw.Index]
		}
	}
}

// attached is the switch at the other end of an end port's cable; nil for none.
func attached(q *observed.Port) *observed.Node {
	if q.Peer == nil || q.Peer.Node.Switch == nil {
		return nil
	}
	return q.Peer.Node
}

// entry counts one entry.
func (t *Takeover) entry(was, will ib.PortNum) {
	switch {
	case will == ib.PortNone:
	case was == will:
		t.Routes.Stay++
	case was == ib.PortNone:
		t.Routes.New++
	default:
		t.Routes.Changes++
	}
}

// begin is for another end port.
func (w *ways) begin(q *observed.Port) {
	w.end, w.from, w.to = q, 0, 0
	clear(w.of)
	clear(w.arrived)
	if q.InfoRead {
		w.from = q.Info.LID
	}
	want := w.d.Port(q)
	if w.to = want.Info.LID; want.Elements&observed.ElementLID == 0 {
		w.to = w.from
	}
}

// exits are the ports by which a switch sends packets to the end port, before and after;
// ib.PortNone for none, and for what was not read.
func (w *ways) exits(sw *observed.Node) (was, will ib.PortNum) {
	was, will = ib.PortNone, ib.PortNone
	if w.from != 0 {
		if out, known := sw.Switch.Exit(w.from, 0); known {
			was = out
		}
	}
	want := &w.d.Nodes[sw.Index]
	switch {
	case want.LFT != nil && int(w.to) < len(want.LFT):
		will = want.LFT[w.to]
	case want.LFT != nil:
	case want.RFT != nil:
		will = want.DefaultPort
		for _, e := range want.RFT {
			if e.Covers(w.to) {
				will = e.Port
				break
			}
		}
	case w.to == w.from:
		will = was // left alone
	}
	return was, will
}

// look finds what becomes of the way from a switch: what becomes of the last steps of it is
// found once.
func (w *ways) look(sw *observed.Node) way {
	if is := w.of[sw.Index]; is != unlooked {
		return is
	}
	is := changes
	was, will := w.exits(sw)
	switch next := w.behind(sw, was); {
	case !w.arrives(sw):
		is = fresh
	case was != will || w.from != w.to:
	case next == nil:
		is = stays
	default:
		is = w.look(next) // it ends: packets have arrived
	}
	w.of[sw.Index] = is
	return is
}

// arrives reports whether packets from a switch have reached the end port.
func (w *ways) arrives(sw *observed.Node) bool {
	switch w.arrived[sw.Index] {
	case stays:
		return true
	case unlooked:
	default:
		return false
	}
	w.arrived[sw.Index] = underWay // who comes here again goes in a circle
	was, _ := w.exits(sw)
	next := w.behind(sw, was)
	if w.ends(sw, was) || next != nil && w.arrives(next) {
		w.arrived[sw.Index] = stays
		return true
	}
	w.arrived[sw.Index] = fresh
	return false
}

// ends reports whether packets are at the end port when they leave by a port.
func (w *ways) ends(sw *observed.Node, out ib.PortNum) bool {
	if int(out) >= len(sw.Ports) {
		return false
	}
	p := &sw.Ports[out]
	return p == w.end || p.Peer == w.end && p.Peer != nil
}

// behind is the switch behind a port; nil for none, and where packets are at the end port.
func (w *ways) behind(sw *observed.Node, out ib.PortNum) *observed.Node {
	if int(out) >= len(sw.Ports) || out == 0 || w.ends(sw, out) {
		return nil
	}
	if peer := sw.Ports[out].Peer; peer != nil && peer.Node.Switch != nil {
		return peer.Node
	}
	return nil
}
