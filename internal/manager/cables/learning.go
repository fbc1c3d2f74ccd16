package cables

import "github.com/ibwarden/ibwarden/internal/observed"

// learnTries is how often the subnet is swept for a list of cables when something is
// contradicted: packets get lost, and what is left out stays out until an administrator
// accepts it.
const learnTries = 3

// Learning is a list of cables that is learned from several sweeps. The zero value
// has seen none.
type Learning struct {
	// Last are the ports that the next sweep follows last.
	Last map[observed.Place]bool

	tries int
	best  *List
	left  []Left
}

// Learned is the result: the best list, what was left out of that, and whether the
// subnet, as the last sweep found it, has more than the list.
type Learned struct {
	List *List
	Left []Left
	More bool
}

// Take learns from a sweep. contradiction says why what is behind a port is not to be
// learned, disputed are the ports that two devices claim. again says that another sweep
// is to be tried; else out is the final result, or err says why there is no list.
func (x *Learning) Take(f *observed.Fabric, contradiction func(*observed.Port) string, disputed func() map[observed.Place]bool) (out Learned, again bool, err error) {
	x.tries++
	list, left, err := Learn(f, contradiction)
	if list.Cables() > x.best.Cables() {
		x.best, x.left = list, left
	}
	if x.tries == 1 {
		x.Last = disputed()
	}
	if (err != nil || len(left) > 0) && x.tries < learnTries {
		return Learned{}, true, nil
	}
	best := x.best
	out = Learned{List: best, Left: x.left}
	if *x = (Learning{}); best == nil {
		return Learned{}, false, err
	}
	out.More = best != list || len(best.Devices()) < len(f.Nodes) || best.Cables() < len(f.Links())
	return out, false, nil
}
