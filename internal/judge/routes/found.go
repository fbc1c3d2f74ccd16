package routes

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// MaxListed bounds each list of a Result; what is beyond is counted.
const MaxListed = 64

// maxLayer is the highest layer whose use is noted.
const maxLayer = 63

// found is what one part, or all of them, found.
type found struct {
	j *Job
	// Counts are those of a Result.
	Counts
	faults []Fault
	loops  map[string]*Circle
	drops  map[dropKey]ib.LID // the lowest LID
	// unleveled holds the lowest LID to which packets that start at a switch have no level.
	unleveled map[int32]ib.LID
	layersOf  []uint64 // by switch: the layers of packets that start there
	levels    []SLs    // by end port, with Levels.Each
}

// dropKey is what a switch drops by its mapping; of an end port that drops
// them itself at is -1 less its place in ends.
type dropKey struct {
	at      int32
	in, out ib.PortNum
	sl      ib.SL
}

func newFound(j *Job) found {
	return found{
		j: j, loops: map[string]*Circle{}, drops: map[dropKey]ib.LID{}, unleveled: map[int32]ib.LID{},
		layersOf: make([]uint64, len(j.switches)), levels: make([]SLs, len(j.ends)),
	}
}

// addFault enters that packets of n senders that start at switch from do not arrive.
func (p *Part) addFault(from int32, end ending, n uint64) {
	f := &p.found
	f.Unreachable += n
	for i := len(f.faults) - 1; i >= 0 && f.faults[i].LID == p.lid && f.faults[i].To == p.to.port; i-- {
		if x := &f.faults[i]; x.At == p.j.switches[end.at] && x.Why == end.why && x.Exit == end.exit {
			x.Pairs += n
			return
		}
	}
	f.Faults++
	if len(f.faults) < MaxListed {
		f.faults = append(f.faults, Fault{
			From: p.j.anySender(from, p.who, p.to), To: p.to.port, LID: p.lid,
			At: p.j.switches[end.at], Exit: end.exit, Why: end.why, Pairs: n,
		})
	}
}

// addLoop enters a circle of exits for a LID of an end port or a group, which is nil. A
// circle of unicast LIDs is one loop, in which each LID counts once.
func (f *found) addLoop(circle []*observed.Port, lid ib.LID, to *observed.Port) {
	least := 0
	for i := range circle {
		if before(circle[i], circle[least]) {
			least = i
		}
	}
	circle = append(slices.Clone(circle[least:]), circle[:least]...)
	key := make([]byte, 0, 4*len(circle)+2)
	if to == nil {
		key = append(key, byte(lid>>8), byte(lid)) // each group has its own
	}
	for _, p := range circle {
		i := p.Node.Index
		key = append(key, byte(i), byte(i>>8), byte(i>>16), byte(p.Num))
	}
	x := f.loops[string(key)]
	if x == nil {
		x = &Circle{Exits: circle, LID: lid, To: to}
		f.loops[string(key)] = x
	}
	x.LIDs++
}

func before(a, b *observed.Port) bool {
	return cmp.Or(cmp.Compare(a.Node.Index, b.Node.Index), cmp.Compare(a.Num, b.Num)) < 0
}

func (f *found) addDrop(k dropKey, lid ib.LID) {
	if have, known := f.drops[k]; !known || lid < have {
		f.drops[k] = lid
	}
}

func (f *found) addUnleveled(s int32, lid ib.LID) {
	if have, known := f.unleveled[s]; !known || lid < have {
		f.unleveled[s] = lid
	}
}

// merge adds what another part found, which looked at higher LIDs.
func (f *found) merge(o *found) {
	f.Pairs += o.Pairs
	f.Reached += o.Reached
	f.Apart += o.Apart
	f.Unreachable += o.Unreachable
	f.Links += o.Links
	f.Longest = max(f.Longest, o.Longest)
	f.Faults += o.Faults
	f.faults = append(f.faults, o.faults[:min(len(o.faults), MaxListed-len(f.faults))]...)
	for k, x := range o.loops {
		if have := f.loops[k]; have != nil {
			have.LIDs += x.LIDs
		} else {
			f.loops[k] = x
		}
	}
	for k, lid := range o.drops {
		f.addDrop(k, lid)
	}
	for s, lid := range o.unleveled {
		f.addUnleveled(s, lid)
	}
	for s, set := range o.layersOf {
		f.layersOf[s] |= set
	}
	for i, set := range o.levels {
		f.levels[i] |= set
	}
}

// dropAtHosts enters what CA and router ports drop themselves: their own mapping is the
// first.
func (f *found) dropAtHosts() {
	j := f.j
	for i := range j.ends {
		e := &j.ends[i]
		if e.at < 0 || e.isSwitch() {
			continue
		}
		set := f.levels[i]
		if j.in.Levels.Each == nil {
			if j.in.Levels.Layer == nil {
				set = j.in.Levels.of(0)
			}
			for layer := range uint8(maxLayer + 1) {
				if f.layersOf[e.at]>>layer&1 != 0 {
					set |= j.in.Levels.of(layer)
				}
			}
		}
		m, have := j.in.Lanes(e.port), j.vlsOf(e.port)
		t := m.table(0)
		for sl := range ib.SL(16) {
			if set>>sl&1 != 0 && int(t[sl]) >= have {
				f.addDrop(dropKey{at: -1 - int32(i), sl: sl}, 0)
			}
		}
	}
}

// list puts the lists in order.
func (f *found) list(r *Result) {
	j := f.j
	r.Counts = f.Counts
	r.Unreached = f.faults
	for _, key := range slices.Sorted(maps.Keys(f.loops)) {
		r.Loops = append(r.Loops, *f.loops[key])
	}
	slices.SortStableFunc(r.Loops, func(a, b Circle) int { return cmp.Compare(a.LID, b.LID) })
	r.Counts.Loops = len(r.Loops)
	keys := slices.SortedFunc(maps.Keys(f.drops), func(a, b dropKey) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.out, b.out), cmp.Compare(a.in, b.in), cmp.Compare(a.sl, b.sl))
	})
	for _, k := range keys {
		d := Drop{SL: k.sl, In: k.in, LID: f.drops[k]}
		if k.at < 0 {
			d.Out = j.ends[-1-k.at].port
		} else {
			d.Out = &j.switches[k.at].Ports[k.out]
		}
		m := j.in.Lanes(d.Out)
		d.VL, d.VLs = m.table(d.In)[d.SL], j.vlsOf(d.Out)
		r.Drops = append(r.Drops, d)
	}
	for _, s := range slices.Sorted(maps.Keys(f.unleveled)) {
		r.Unleveled = append(r.Unleveled, Unleveled{j.switches[s], f.unleveled[s]})
	}
	r.Counts.Drops, r.Counts.Unleveled = len(r.Drops), len(r.Unleveled)
	r.Loops = r.Loops[:min(len(r.Loops), MaxListed)]
	r.Drops = r.Drops[:min(len(r.Drops), MaxListed)]
	r.Unleveled = r.Unleveled[:min(len(r.Unleveled), MaxListed)]
}
