package isolation

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Cables tells of a switch port that leads to another switch whether that is
// what a list of cables says. Without a list (nil) nothing is known but what the
// devices say of themselves.
type Cables func(p *observed.Port) bool

// Why a host could change what was proved.
const (
	keyZero    = "M_Key is 0: it takes management writes from anybody"
	keyHidden  = "whether it has an M_Key was not read: the reader does not have the key"
	keyShown   = "M_KeyProtectBits is 0: it shows its M_Key to anybody"
	keyShared  = "another port has the same M_Key: a host that learns it from one controls both"
	keyLease   = "M_KeyLeasePeriod is not 0: the key guards nothing once the manager has been away that long"
	noCables   = "leads to a switch, and there is no list of cables to say which: no key is checked here"
	undeclared = "leads to a switch that is not on the list of cables: no key is checked here"
)

// Changeable lists where a host could change what was proved: ports that accept writes
// from strangers, or may later, and ports between switches, where no key is checked, that
// rest only on what a device says of itself. A proof is about the present tables; this
// list says whether they last.
func Changeable(f *observed.Fabric, cables Cables) []Finding {
	var out []Finding
	found := func(p *observed.Port, reason string) { out = append(out, Finding{placeOf(p), reason}) }
	holders := make(map[ib.MKey]int)
	ends := f.EndPorts()
	for _, p := range ends {
		holders[p.Info.MKey]++
	}
	for _, p := range ends {
		if isShut(p) {
			continue // changing its table changes nothing
		}
		if reason := openTo(p, holders[p.Info.MKey] > 1); reason != "" {
			found(p, reason)
		}
	}
	for _, n := range f.Switches() {
		for i := 1; i < len(n.Ports); i++ {
			switch p := &n.Ports[i]; {
			case p.Peer == nil || p.Peer.Node.Switch == nil || !carriesData(p) || guardAt(p).enforced:
			case cables == nil:
				found(p, noCables)
			case !cables(p):
				found(p, undeclared)
			}
		}
	}
	return out
}

// isShut reports whether the switch port before an end port lets nothing pass.
func isShut(p *observed.Port) bool {
	g := guardOf(p)
	if !g.enforced || g.at == p {
		return false
	}
	shut := true
	entries(g.at, func(int, ib.PKey) { shut = false })
	return shut
}

// openTo says why a stranger's writes may get into a port, or nothing.
func openTo(p *observed.Port, shared bool) string {
	info := &p.Info
	switch {
	case !p.InfoRead: // the proof says so
	case info.MKey == 0 && info.MKeyProtectBits != 0:
		return keyHidden
	case info.MKey == 0:
		return keyZero
	case info.MKeyProtectBits == 0:
		return keyShown
	case shared:
		return keyShared
	case info.MKeyLeasePeriod != 0:
		return keyLease
	}
	return ""
}

// Rest says on what the proof rests: where a host could change what stands. What
// is isolated is then no more than Unguarded.
func (p *Proof) Rest(changeable []Finding) {
	var t tally
	p.Changeable = slices.Grow(p.Changeable, min(len(changeable), MaxListed-min(len(p.Changeable), MaxListed)))
	for _, f := range changeable {
		t.add(f.Reason, f.Name)
		if counted(&p.Counts.Changeable, MaxListed) {
			p.Changeable = append(p.Changeable, f)
		}
	}
	p.Reasons = append(p.Reasons, t.lines("a host could change it, ")...)
	if len(changeable) > 0 && p.Verdict == Isolated {
		p.Verdict = Unguarded
	}
}
