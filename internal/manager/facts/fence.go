// Fences: the set of fenced switch ports, which keep what is behind them out of
// the subnet, with the reason of each, and changes by the list of cables and by the
// room in P_Key tables.
//
// A fenced port has an empty P_Key table and enforces it in both directions, its link
// does not become Active, and what is behind it is a member of nothing. Fences are
// plain values; changes go through a FenceEdit, which reports what changed.

package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Fence is a fenced switch port.
type Fence struct {
	At observed.Place
	// Name is the port for people, Reason why it is fenced, or no more.
	Name, Reason string
}

// FenceSet is the fenced switch ports with the reason of each, in words. It is not
// changed: a FenceEdit makes another.
type FenceSet map[observed.Place]string

// CableReason begins the reason of every fence that stands for the list of
// cables, RoomReason that of every one for a P_Key table that is too small.
const (
	CableReason = "not on the cable list"
	RoomReason  = "its P_Key table does not hold what the policy gives it"
)

// Has reports whether p is a fenced switch port, or faces one.
func (s FenceSet) Has(p *observed.Port) bool {
	if len(s) == 0 {
		return false
	}
	if p.IsEnd() {
		if p = p.Peer; p == nil {
			return false
		}
	}
	_, fenced := s[p.Place()]
	return fenced
}

// Expels reports whether who is behind a switch port is a member of nothing: it is
// fenced for any reason but that a table is too small. As soon as that fits, its
// port is a member again.
func (s FenceSet) Expels(at observed.Place) bool {
	reason, fenced := s[at]
	return fenced && !strings.HasPrefix(reason, RoomReason)
}

// IsShutting reports whether a fenced port that faces nobody known checks keys
// already: what it lets pass the fence takes away before anybody is given
// anything. p may be nil.
func (s FenceSet) IsShutting(p *observed.Port) bool {
	return p != nil && p.FacesStranger() && !p.IsEnd() && s.Has(p) && p.Enforces()
}

// IsShut reports whether such a port lets nothing pass. p may be nil.
func (s FenceSet) IsShut(p *observed.Port) bool {
	return s.IsShutting(p) && p.PKeysKnown() && !slices.ContainsFunc(p.PKeys, ib.PKey.IsValid)
}

// Open counts the fenced ports of a fabric that face strangers and do not check
// keys.
func (s FenceSet) Open(f *observed.Fabric) (n int) {
	for at := range s {
		if p := f.At(at); p != nil && p.FacesStranger() && !s.IsShutting(p) {
			n++
		}
	}
	return n
}

// Places are the fenced ports in order.
func (s FenceSet) Places() []observed.Place {
	return slices.SortedFunc(maps.Keys(s), observed.Place.Compare)
}

// List is the fences in order, with the names that their ports have in a fabric.
func (s FenceSet) List(f *observed.Fabric) (out []Fence) {
	for _, at := range s.Places() {
		out = append(out, fenceAt(f, at, s[at]))
	}
	return out
}

func fenceAt(f *observed.Fabric, at observed.Place, reason string) Fence {
	name := at.String()
	if p := f.At(at); p != nil {
		name = p.String()
	}
	return Fence{at, name, reason}
}

// CanFence reports whether who is behind a port may be fenced: not the rest of the
// subnet, and not the manager itself. p is nil for a port that was not found.
func CanFence(p *observed.Port, self *observed.Port) bool {
	return p == nil || !p.IsEnd() && (p.Peer == nil || p.Peer.Node.Switch == nil && p.Peer != self)
}

// FenceChange is a fence that came, or went.
type FenceChange struct {
	Fence
	Lifted bool
}

// FenceEdit changes the fences of a fabric.
type FenceEdit struct {
	Fabric *observed.Fabric
	// Cables is the list of cables; nil where devices are believed.
	Cables *cables.List
	// Set is the fences as they stand, Changes what came and went, in order.
	Set     FenceSet
	Changes []FenceChange
}

// Put fences a switch port.
func (x *FenceEdit) Put(at observed.Place, reason string) {
	next := maps.Clone(x.Set)
	if next == nil {
		next = make(FenceSet)
	}
	next[at], x.Set = reason, next
	x.Changes = append(x.Changes, FenceChange{Fence: fenceAt(x.Fabric, at, reason)})
}

// Lift takes a fence away; reason says why. Where the list of cables asks for one
// too, which the other stood for, that comes instead.
func (x *FenceEdit) Lift(at observed.Place, reason string) {
	next := maps.Clone(x.Set)
	delete(next, at)
	x.Set = next
	x.Changes = append(x.Changes, FenceChange{Fence: fenceAt(x.Fabric, at, reason), Lifted: true})
	if p := x.Fabric.At(at); p != nil && x.Cables != nil {
		x.fenceUndeclared(p)
	}
}

// HoldToList fences the ports behind which the sweep found what the list of cables
// has not, and lifts the fences of those where that is over.
func (x *FenceEdit) HoldToList() {
	for _, n := range x.Fabric.Switches() {
		for i := 1; i < len(n.Ports); i++ {
			x.fenceUndeclared(&n.Ports[i])
		}
	}
	for _, at := range x.Set.Places() {
		p := x.Fabric.At(at)
		switch {
		case !strings.HasPrefix(x.Set[at], CableReason):
		case x.Cables == nil:
			x.Lift(at, "there is no list of cables any more")
		case p == nil || Undeclared(p) || p.Peer == nil && p.IsUp():
		case p.Peer != nil:
			x.Lift(at, "what is behind it is on the cable list")
		default:
			x.Lift(at, "nothing is behind it any more")
		}
	}
}

// HoldToRoom fences the ports whose tables are too small, each with what it lacks,
// unless they are fenced already, and lifts the fences of those that fit now.
func (x *FenceEdit) HoldToRoom(short []Fence) {
	lacks := make(map[observed.Place]bool, len(short))
	for _, s := range short {
		if lacks[s.At] = true; x.Set[s.At] == "" {
			x.Put(s.At, RoomReason+": "+s.Reason)
		}
	}
	for _, at := range x.Set.Places() {
		if strings.HasPrefix(x.Set[at], RoomReason) && !lacks[at] && x.Fabric.At(at) != nil {
			x.Lift(at, "it fits now")
		}
	}
}

// fenceUndeclared fences a port behind which something stands that the list of cables
// has not there, unless it is fenced already.
func (x *FenceEdit) fenceUndeclared(p *observed.Port) {
	if !Undeclared(p) || x.Set[p.Place()] != "" {
		return
	}
	port := x.Cables.Spelling(p.Place())
	if p.Silent { // a host with an M_Key of another place, for one
		port += "=DEVICE"
	}
	x.Put(p.Place(), fmt.Sprintf("%v: accept with: ibwarden topology accept %s", p.Stranger.Why, port))
}

// AllUndeclared are the ports of a fabric of which that is so.
func AllUndeclared(f *observed.Fabric) (out []*observed.Port) {
	for _, n := range f.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; Undeclared(p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// Undeclared reports whether the sweep found something behind p that the list of
// cables has not there.
func Undeclared(p *observed.Port) bool {
	return p.Peer == nil && p.Stranger != nil && p.Stranger.Undeclared
}
