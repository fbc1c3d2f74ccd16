package isolation

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
)

// relation is who can talk to whom, by classes of end ports that hold the same
// keys and are given the same. What goes beyond the policy is found by looking
// isShared excess keys only: two ports that hold no more of a partition than they
// are given can talk over it only as allowed.
type relation struct {
	policy  *policy
	known   map[holding]*class
	excited int      // classes with an excess key
	of      []*class // by end port
	// shared is told of every class; nil for nobody.
	shared *sharedSearch
}

// class is a number of end ports that are alike.
type class struct {
	holding
	ports  []int32 // ascending
	parts  []int   // that the ports are given
	excess bool    // some key is too much
	place  int     // among the classes, while excess looks at them

	// For the search for shared ports: the place among the classes, the last search
	// that came by, why it is one or not, and that it has no ports any more.
	among, seen int
	reason      reason
	gone        bool
}

// holding is what makes end ports alike.
type holding struct {
	keys  int32 // the set that the port can use
	may   int32 // the set up to which that is no excess
	grant int32 // the set that the policy gives
}

type holder struct {
	class  *class
	key    ib.PKey
	excess bool
}

func newRelation(pol *policy) *relation {
	return &relation{policy: pol, known: make(map[holding]*class), of: make([]*class, len(pol.ports))}
}

// add enters the end port with this number.
func (r *relation) add(port int32, h holding) {
	c := r.known[h]
	if c == nil {
		c = &class{holding: h, parts: r.policy.partsOf(h.grant)}
		may := r.policy.sets.sets[h.may]
		c.excess = slices.ContainsFunc(r.policy.sets.sets[h.keys], func(k ib.PKey) bool { return !may.covers(k) })
		if c.excess {
			r.excited++
		}
		r.known[h] = c
	}
	i, _ := slices.BinarySearch(c.ports, port)
	c.ports = slices.Insert(c.ports, i, port)
	r.of[port] = c
	switch n := len(c.ports); {
	case r.shared == nil || n > 2:
	case n == 1:
		r.shared.enter(c)
	default:
		r.shared.grown(c)
	}
}

// remove takes out an end port that was added with this holding.
func (r *relation) remove(port int32, h holding) {
	c := r.known[h]
	i, _ := slices.BinarySearch(c.ports, port)
	r.of[port] = nil
	if c.ports = slices.Delete(c.ports, i, i+1); len(c.ports) > 0 {
		if len(c.ports) == 1 && r.shared != nil {
			r.shared.shrunk()
		}
		return
	}
	if r.shared != nil {
		r.shared.leave(c)
	}
	delete(r.known, h)
	if c.excess {
		r.excited--
	}
}

// sorted gives the classes in the order of their first ports, and who holds
// keys of each partition.
func (r *relation) sorted() ([]*class, map[ib.PKeyBase][]holder) {
	classes := make([]*class, 0, len(r.known))
	for _, c := range r.known {
		classes = append(classes, c)
	}
	slices.SortFunc(classes, func(a, b *class) int { return cmp.Compare(a.ports[0], b.ports[0]) })
	sets := r.policy.sets.sets
	holders := make(map[ib.PKeyBase][]holder)
	for i, c := range classes {
		c.place = i
		for _, k := range sets[c.keys] {
			holders[k.Base()] = append(holders[k.Base()], holder{c, k, !sets[c.may].covers(k)})
		}
	}
	return classes, holders
}

// tooMuch calls yield for every two classes whose ports can talk over key,
// which is too much for the first, and may not talk at all; each two classes
// once for each partition, in the order of classes and keys. The two are the
// same when the ports of one class can talk among themselves.
func (r *relation) tooMuch(yield func(from, to *class, key ib.PKey)) {
	if r.excited == 0 {
		return
	}
	pol, sets := r.policy, r.policy.sets.sets
	classes, holders := r.sorted()
	for _, from := range classes {
		if !from.excess {
			continue
		}
		for _, key := range sets[from.keys] {
			if sets[from.may].covers(key) {
				continue
			}
			pol.ask(from.grant)
			for _, h := range holders[key.Base()] {
				to := h.class
				switch {
				case !key.Matches(h.key), pol.may(to.grant):
				case to == from && len(to.ports) < 2:
				case to.place < from.place && h.excess: // seen from the other side
				default:
					yield(from, to, key)
				}
			}
		}
	}
}

// pairs is the number of pairs of ports between two classes.
func pairs(from, to *class) int {
	if from == to {
		return len(from.ports) * (len(from.ports) - 1) / 2
	}
	return len(from.ports) * len(to.ports)
}

// eachPair calls yield for every pair of ports between two classes until it
// returns false.
func eachPair(from, to *class, yield func(a, b int32) bool) {
	for i, a := range from.ports {
		others := to.ports
		if from == to {
			others = to.ports[i+1:]
		}
		for _, b := range others {
			if !yield(a, b) {
				return
			}
		}
	}
}
