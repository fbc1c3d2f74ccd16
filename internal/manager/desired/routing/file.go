package routing

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// maxNamed bounds what a note names.
const maxNamed = 4

// fileTables is the routing engine that takes the forwarding tables of a file (Input.File), as
// OpenSM's engine file does. It fails where there are none, where none of them
// is of a switch of the graph, and where an exit is no port of its switch.
//
// What a file says stands, as long as a cable that works, or the port that has the LID, is
// behind the exit. Switches and ports are known by GUID: a LID of the file leads to the port
// that had it there, whichever LID that has now. What the file does not say, or what leads
// nowhere any more, is filled in: a LID that it does not name goes the way that up*/down*
// gives it; for another one each switch without an exit takes the nearest neighbour from
// which packets arrive. So no circle comes about but one that the file has itself, and that
// the judge of routes refuses.
//
// A file says nothing of service levels. Where its routes could deadlock on one virtual lane,
// pairs of switches get layers as far as there is room: each the first in which its paths
// close no circle. The others stay in the first layer, and the judge refuses them.
func fileTables(in *graph.Input) (*graph.Routes, error) {
	if in.File == nil {
		return nil, errors.New("there is no file of forwarding tables")
	}
	t := &tables{Input: in, linear: in.Unrouted(), named: make([]bool, int(in.Top)+1)}
	t.index()
	if err := t.take(); err != nil {
		return nil, err
	}
	if err := t.fill(); err != nil {
		return nil, err
	}
	out := &graph.Routes{Linear: t.linear, Notes: t.notes()}
	out.Lanes = layers(in, t.linear)
	return out, nil
}

// tables is the making of routes.
type tables struct {
	*graph.Input
	linear [][]ib.PortNum
	// end is the end port of a LID, as its place in Graph.Ends, -1 for none.
	end []int32
	// by is the link of each port of each switch, -1 for none.
	by [][]int32
	// named tells of each LID whether the file has a usable exit for it.
	named []bool

	strange []string // switches of the file that the graph does not have
	without int      // switches of the graph that the file does not have
	gone    map[ib.PortGUID]bool
	// unusable counts exits of the file without a cable or port behind them that leads to
	// the LID, and filled those that the file does not say.
	unusable, filled int
}

// index finds the ends of LIDs and the links of ports.
func (t *tables) index() {
	t.end = make([]int32, int(t.Top)+1)
	for l := range t.end {
		t.end[l] = -1
	}
	for i, e := range t.Ends {
		for k := range e.LMC.Count() {
			t.end[int(e.LID)+k] = int32(i)
		}
	}
	t.by = make([][]int32, len(t.Nodes))
	for s, n := range t.Nodes {
		t.by[s] = make([]int32, len(n.Ports))
		for p := range t.by[s] {
			t.by[s][p] = -1
		}
		for l := t.First[s]; l < t.First[s+1]; l++ {
			t.by[s][t.Port[l]] = l
		}
	}
}

// lidsNow gives each LID of the file the one that its port has for it now, LIDReserved for
// none.
func (t *tables) lidsNow() map[ib.LID]ib.LID {
	least := map[ib.PortGUID]ib.LID{}
	for lid, guid := range t.File.Owners {
		if first, known := least[guid]; !known || lid < first {
			least[guid] = lid
		}
	}
	now := map[ib.PortGUID]graph.End{}
	for _, e := range t.Ends {
		guid := t.Nodes[e.At].Ports[e.Port].GUID
		if e.Port != 0 {
			guid = t.Nodes[e.At].Ports[e.Port].Peer.GUID
		}
		if _, twice := now[guid]; !twice {
			now[guid] = e
		}
	}
	t.gone = map[ib.PortGUID]bool{}
	out := make(map[ib.LID]ib.LID, len(t.File.Owners))
	for lid, guid := range t.File.Owners {
		e, there := now[guid]
		switch k := int(lid - least[guid]); {
		case !there:
			t.gone[guid] = true
			out[lid] = ib.LIDReserved
		case k < e.LMC.Count():
			out[lid] = e.LID + ib.LID(k)
		default:
			out[lid] = ib.LIDReserved
		}
	}
	return out
}

// take enters what the file says.
func (t *tables) take() error {
	now := t.lidsNow()
	place := make(map[ib.NodeGUID]uint16, len(t.Nodes))
	for s, n := range t.Nodes {
		place[n.GUID()] = uint16(s)
	}
	t.without = len(t.Nodes)
	for i := range t.File.Switches {
		x := &t.File.Switches[i]
		s, there := place[x.GUID]
		if !there {
			t.strange = append(t.strange, x.GUID.String())
			continue
		}
		t.without--
		for _, e := range x.Entries {
			lid, mapped := now[e.LID]
			if !mapped {
				lid = e.LID
			}
			if err := t.enter(s, x, e, lid); err != nil {
				return err
			}
		}
	}
	if t.without == len(t.Nodes) && len(t.Nodes) > 0 {
		return fmt.Errorf("the file has none of the %d switches of the subnet, and %d others, first %s",
			len(t.Nodes), len(t.strange), t.strange[0])
	}
	return nil
}

// enter enters an exit, if what is behind it works.
func (t *tables) enter(s uint16, x *observed.LFTSwitch, e observed.LFTEntry, lid ib.LID) error {
	node := t.Nodes[s]
	if e.Port == ib.PortNone || lid == ib.LIDReserved {
		return nil
	}
	if int(e.Port) >= len(node.Ports) {
		return fmt.Errorf("the switch of line %d, %s: the exit for LID %#x is port %d, want 0 to %d",
			x.Line, node.Name(), uint16(e.LID), e.Port, len(node.Ports)-1)
	}
	if int(lid) >= len(t.end) || t.end[lid] < 0 {
		return nil
	}
	to := t.Ends[t.end[lid]]
	if home := to.At == s && to.Port == e.Port; !home && (to.At == s || t.by[s][e.Port] < 0) {
		t.unusable++
		return nil
	}
	t.linear[node.Index][lid] = e.Port
	t.named[lid] = true
	return nil
}

// fill enters exits where the file has none.
func (t *tables) fill() error {
	var spare *graph.Routes
	f := newFiller(t)
	for lid, i := range t.end {
		switch {
		case i < 0:
		case t.named[lid]:
			t.filled += f.fill(ib.LID(lid), t.Ends[i])
		default:
			if spare == nil {
				var err error
				if spare, err = graph.UpDown(t.Input); err != nil {
					return err
				}
			}
			for _, n := range t.Nodes {
				t.linear[n.Index][lid] = spare.Linear[n.Index][lid]
			}
			t.filled += len(t.Nodes)
		}
	}
	return nil
}

// notes say in which way the file does not fit.
func (t *tables) notes() (out []string) {
	if n := len(t.strange); n > 0 {
		names := strings.Join(t.strange[:min(n, maxNamed)], ", ")
		if n > maxNamed {
			names += " and others"
		}
		out = append(out, fmt.Sprintf("routing file: %d of its switches are not in the subnet: %s", n, names))
	}
	if t.without > 0 {
		out = append(out, fmt.Sprintf("routing file: it does not have %d of the %d switches of the subnet", t.without, len(t.Nodes)))
	}
	if n := len(t.gone); n > 0 {
		out = append(out, fmt.Sprintf("routing file: %d of its ports are not in the subnet", n))
	}
	if t.unusable > 0 {
		out = append(out, fmt.Sprintf("routing file: %d of its exits do not lead to their LID any more", t.unusable))
	}
	if t.filled > 0 {
		out = append(out, fmt.Sprintf("routing file: %d exits are filled in", t.filled))
	}
	return out
}
