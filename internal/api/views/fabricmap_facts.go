package views

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/racks"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// MapFacts are what a map is made of.
type MapFacts struct {
	Snapshot *snapshot.Snapshot
	Proof    *isolation.Proof // nil where there is none yet
	Cabling  *Cabling         // nil where no subnet manager runs
	Racks    *racks.File      // nil where no file says in which racks devices are
	Old      string           // why the state may be old
	// Parties are those of the matrix of who can talk with whom, and which of them each end
	// port is in; none where there is no proof yet. It is asked for the provider's map.
	Parties  func() (names []string, of map[ib.PortGUID]int)
	revision uint64
	owners   map[ib.PortGUID]string
	sees     map[ib.PortGUID]bool // ports of which the caller sees all
	drained  map[ib.NodeGUID]bool
}

// Gather takes from the state what a map for a caller needs.
func (f *MapFacts) Gather(s *resource.State, c resource.Caller) {
	f.GatherDrained(s)
	f.revision, f.owners, f.sees = s.LastFor(c), map[ib.PortGUID]string{}, map[ib.PortGUID]bool{}
	for _, n := range f.Snapshot.Fabric.Nodes {
		for p := range ends(n) {
			f.owners[p.GUID], f.sees[p.GUID] = s.Owner(p.GUID), Sees(s, c, p.GUID)
		}
	}
}

// GatherDrained takes from the state which switches are drained.
func (f *MapFacts) GatherDrained(s *resource.State) {
	f.drained = map[ib.NodeGUID]bool{}
	for _, x := range s.Drains() {
		f.drained[x.Switch] = true
	}
	for _, x := range s.Policy().Drained {
		if x.At.Switch != 0 {
			f.drained[x.At.Switch] = true
		} else if n, _, err := FindSwitch(f.Snapshot.Fabric, x.At.Name); err == nil {
			f.drained[n.GUID()] = true
		}
	}
}

// ends are the end ports of a node that were reached.
func ends(n *observed.Node) func(func(*observed.Port) bool) {
	return func(yield func(*observed.Port) bool) {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Reached && p.IsEnd() && (i > 0 || n.Switch != nil) && !yield(p) {
				return
			}
		}
	}
}

// list is the list of cables; nil for none.
func (f *MapFacts) list() *MapList {
	if f.Cabling == nil {
		return nil
	}
	return f.Cabling.List
}

// Drained reports whether a switch is drained.
func (f *MapFacts) Drained(g ib.NodeGUID) bool { return f.drained[g] }

// Fence is why a switch port is fenced; empty where it is not.
func (f *MapFacts) Fence(at observed.Place) string {
	if f.Cabling != nil {
		for _, x := range f.Cabling.Fences {
			if x.At == at {
				return x.Reason
			}
		}
	}
	return ""
}

// Of is the state of a node and the verdict on it, in the words of a map: by those of its end
// ports that count, and on a switch by all of its ports.
func (f *MapFacts) Of(n *observed.Node, counts func(*observed.Port) bool) (state, verdict string) {
	return states[f.stateOf(n, f.fences(), counts)], verdicts[f.verdictOn(n, counts)]
}

// fences are the fenced places.
func (f *MapFacts) fences() map[observed.Place]bool {
	out := map[observed.Place]bool{}
	if f.Cabling != nil {
		for _, x := range f.Cabling.Fences {
			out[x.At] = true
		}
	}
	return out
}

// verdictOn is the verdict on a node: the worst of those of its end ports that count.
func (f *MapFacts) verdictOn(n *observed.Node, counts func(*observed.Port) bool) int {
	worst := isolation.Verdict(0)
	for p := range ends(n) {
		if !counts(p) {
			continue
		}
		v := isolation.Unknown
		if f.Proof != nil {
			v = f.Proof.VerdictOn(p.GUID)
		}
		worst = max(worst, v)
	}
	switch worst {
	case isolation.Isolated, isolation.Unguarded:
		return keptApart
	case isolation.ByEndPorts:
		return unenforced
	case isolation.Violated:
		return violated
	}
	return unknown
}

// stateOf is the state of a node, by those of its end ports that count and, on a switch, by
// all of its ports.
func (f *MapFacts) stateOf(n *observed.Node, fenced map[observed.Place]bool, counts func(*observed.Port) bool) int {
	switch {
	case isUnread(n, counts):
		return stateUnread
	case isFenced(n, fenced, counts):
		return stateFenced
	case f.drained[n.GUID()]:
		return stateDrained
	}
	state := stateDown
	for p := range cabled(n, counts) {
		switch {
		case isActive(p):
			return stateActive
		case p.IsUp():
			state = stateInactive
		}
	}
	return state
}

// cabled are the ports of a node that cables may lead to: on a switch all, else the end ports
// that count.
func cabled(n *observed.Node, counts func(*observed.Port) bool) func(func(*observed.Port) bool) {
	return func(yield func(*observed.Port) bool) {
		for i := 1; i < len(n.Ports); i++ {
			if p := &n.Ports[i]; (n.Switch != nil || p.Reached && counts(p)) && !yield(p) {
				return
			}
		}
	}
}

// isUnread reports whether something was not read that every sweep reads of a node.
func isUnread(n *observed.Node, counts func(*observed.Port) bool) bool {
	if n.Switch != nil && (!n.Switch.InfoRead || slices.Contains(n.Switch.LFTRead, false)) {
		return true
	}
	for p := range ends(n) {
		if counts(p) && !(p.InfoRead && p.PKeysKnown()) {
			return true
		}
	}
	for p := range cabled(n, counts) {
		if p.Reached && (!p.InfoRead || p.FacesEnd() && !p.PKeysKnown()) {
			return true
		}
	}
	return false
}

// isFenced reports whether every cable of a node leads to a fenced switch port.
func isFenced(n *observed.Node, fenced map[observed.Place]bool, counts func(*observed.Port) bool) bool {
	cables := 0
	for p := range cabled(n, counts) {
		if p.Peer == nil {
			continue
		}
		if cables++; !fenced[p.Peer.Place()] {
			return false
		}
	}
	return cables > 0
}
