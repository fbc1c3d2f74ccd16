package isolation

import "github.com/ibwarden/ibwarden/ib"

// relation is who can talk to whom, by classes of end ports that hold the same
// keys and are given the same. What goes beyond the policy is found by looking
// at excess keys only: two ports that hold no more of a partition than they
// are given can talk over it only as allowed.
type relation struct {
	classes []class
	holders map[ib.PKeyBase][]holder
}

// class is a number of end ports that are alike.
type class struct {
	holding
	ports []int32
	parts []int // that the ports are given
}

// holding is what makes end ports alike.
type holding struct {
	keys  int32 // the set that the port can use
	may   int32 // the set up to which that is no excess
	grant int32 // the set that the policy gives
}

type holder struct {
	class  int
	key    ib.PKey
	excess bool
}

// newRelation sorts end ports, given by their holdings, into classes.
func newRelation(pol *policy, ports []holding) *relation {
	r := &relation{holders: make(map[ib.PKeyBase][]holder)}
	known := make(map[holding]int)
	for i, h := range ports {
		c, ok := known[h]
		if !ok {
			c = len(r.classes)
			known[h] = c
			r.classes = append(r.classes, class{holding: h, parts: pol.partsOf(h.grant)})
		}
		r.classes[c].ports = append(r.classes[c].ports, int32(i))
	}
	sets := pol.sets.sets
	for c := range r.classes {
		h := &r.classes[c]
		for _, k := range sets[h.keys] {
			r.holders[k.Base()] = append(r.holders[k.Base()], holder{c, k, !sets[h.may].covers(k)})
		}
	}
	return r
}

// excess calls yield for every two classes whose ports can talk over key,
// which is too much for the first, and may not talk at all; each two classes
// once for each partition, in the order of classes and keys. The two are the
// same when the ports of one class can talk among themselves.
func (r *relation) excess(pol *policy, yield func(from, to *class, key ib.PKey)) {
	sets := pol.sets.sets
	for i := range r.classes {
		from := &r.classes[i]
		for _, key := range sets[from.keys] {
			if sets[from.may].covers(key) {
				continue
			}
			pol.ask(from.grant)
			for _, h := range r.holders[key.Base()] {
				to := &r.classes[h.class]
				switch {
				case !key.Matches(h.key), pol.may(to.grant):
				case h.class == i && len(to.ports) < 2:
				case h.class < i && h.excess: // seen from the other side
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
