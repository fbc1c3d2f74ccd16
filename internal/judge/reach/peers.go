package reach

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Over is a partition over which a port may talk to another.
type Over struct {
	PKey ib.PKeyBase
	Name string
	// Delivered reports whether packets get through both ways; There and Back say what
	// becomes of them.
	Delivered bool
	There     Disposition
	Back      Disposition
}

// Peer is an end port whose keys match those of another.
type Peer struct {
	Port *observed.Port
	GUID ib.PortGUID
	Name string
	Over []Over
}

// Talks reports whether packets of a partition get through both ways.
func (p *Peer) Talks() bool {
	return slices.ContainsFunc(p.Over, func(o Over) bool { return o.Delivered })
}

// Reach is what an end port can talk with.
type Reach struct {
	// Peers are the end ports whose keys match, by name and GUID.
	Peers []Peer
	// Unknown are end ports of which not every key was read, and all others when that
	// is so of the port itself: they may be peers too.
	Unknown int
	// Others counts the end ports that it cannot talk with.
	Others int
}

// ReachOf lists the end ports of a fabric that a port can talk with.
func ReachOf(f *observed.Fabric, from *observed.Port, v View) Reach {
	r := Reach{Peers: []Peer{}}
	own := v.memberships(from)
	for _, to := range f.EndPorts() {
		if to == from {
			continue
		}
		if over := v.overOf(from, to, own); len(over) > 0 {
			r.Peers = append(r.Peers, Peer{to, to.GUID, to.String(), over})
		} else if !tableKnown(from) || !tableKnown(to) {
			r.Unknown++
		} else {
			r.Others++
		}
	}
	slices.SortFunc(r.Peers, func(a, b Peer) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.GUID, b.GUID)) })
	return r
}

// PeersAfter are those of ReachOf, by GUID, that come after a GUID and that keep wants: most of them at
// most. Of a large fabric that is a fraction of the work.
func PeersAfter(f *observed.Fabric, from *observed.Port, v View, after ib.PortGUID, most int, keep func(ib.PortGUID) bool) []Peer {
	list := []Peer{}
	own := v.memberships(from)
	for _, to := range f.EndPorts() {
		if to == from || to.GUID <= after || !keep(to.GUID) {
			continue
		}
		if over := v.overOf(from, to, own); len(over) > 0 {
			if list = append(list, Peer{to, to.GUID, to.String(), over}); len(list) == most {
				break
			}
		}
	}
	return list
}

// overOf are the partitions whose keys match, by number.
func (v *View) overOf(from, to *observed.Port, own map[ib.PKeyBase]bool) (out []Over) {
	theirs := v.memberships(to)
	for _, b := range slices.Sorted(maps.Keys(theirs)) {
		mine, shared := own[b]
		if !shared || !mine && !theirs[b] {
			continue
		}
		o := Over{PKey: b, Name: v.Names[b]}
		o.There = Ends(from, to, v.packet(b, mine))
		o.Back = Ends(to, from, v.packet(b, theirs[b]))
		o.Delivered = o.There == Delivered && o.Back == Delivered
		out = append(out, o)
	}
	return out
}

// sharedBy are the partitions of which both ports hold a key, by number.
func (v *View) sharedBy(from, to *observed.Port) []Shared {
	out := []Shared{}
	mine, theirs := v.memberships(from), v.memberships(to)
	for _, b := range slices.Sorted(maps.Keys(mine)) {
		if full, shared := theirs[b]; shared {
			out = append(out, Shared{PKey: b, Name: v.Names[b], FromFull: mine[b], ToFull: full})
		}
	}
	return out
}
