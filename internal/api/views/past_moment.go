package views

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

const (
	// pastCables is how many cables are named, and pastMembers how many memberships.
	pastCables, pastMembers = 20, 100
)

// PastMoments are the moments of which it is kept how the fabric was: columns.
type PastMoments struct {
	At         []int64  `json:"at" doc:"when each period began, in seconds since 1970; the oldest first"`
	Verdict    []int    `json:"verdict" doc:"the worst of each: indices of verdicts"`
	Verdicts   []string `json:"verdicts" doc:"words for verdict"`
	MetricsAt  string   `json:"metrics_at,omitempty" doc:"where this manager serves metrics: what is older is with who reads them"`
	Prometheus string   `json:"prometheus,omitempty" doc:"URL of the Prometheus that reads them, as ibwarden run --prometheus says"`
}

// PastMomentsOf are the columns of periods.
func PastMomentsOf(list []PastPeriod) PastMoments {
	out := PastMoments{At: make([]int64, len(list)), Verdict: make([]int, len(list)), Verdicts: []string{}}
	for i, p := range list {
		word := slices.Index(out.Verdicts, p.Verdict)
		if word < 0 {
			word, out.Verdicts = len(out.Verdicts), append(out.Verdicts, p.Verdict)
		}
		out.At[i], out.Verdict[i] = p.From.Unix(), word
	}
	return out
}

// PastMoment is how the fabric was in a period.
type PastMoment struct {
	At    time.Time `json:"at" doc:"when the period began"`
	Until time.Time `json:"until" doc:"when it ended; where that is before the time that was asked for, nothing is kept of that time, and this is the last before"`
	PastState
	Matrix    *Matrix     `json:"matrix,omitempty" doc:"who could talk with whom, when the verdict was the worst; without reasons; absent where it is not kept"`
	Map       string      `json:"map" doc:"the ETag of the map of now, of whose links percent is"`
	Percent   []int       `json:"percent" doc:"of the data rate of each cable of the map of now: the highest of the period, rounded up to 0, 10, 20, 40, 60, 80 or 100; -1 where it is not kept"`
	Elsewhere int         `json:"elsewhere,omitempty" doc:"cables of then that are not on the map of now"`
	Busiest   []PastCable `json:"busiest" doc:"those that carried most"`
}

// PastCable is what a cable carried.
type PastCable struct {
	A       string `json:"a" doc:"one end: device and port"`
	B       string `json:"b"`
	Percent *int   `json:"percent,omitempty" doc:"absent where it is not kept"`
	With    *int   `json:"with,omitempty" doc:"at the other moment"`
}

// PastMember is a membership that is in force at one of two moments.
type PastMember struct {
	PKey      string `json:"pkey"`
	Partition string `json:"partition,omitempty" doc:"its name now"`
	Port      string `json:"port" doc:"GUID"`
}

// PastDifference is what is another at the later of two moments than at the earlier one.
type PastDifference struct {
	Gained      []PastMember `json:"gained" doc:"memberships: the first of them"`
	Lost        []PastMember `json:"lost" doc:"memberships: the first of them"`
	GainedTotal int          `json:"gained_total"`
	LostTotal   int          `json:"lost_total"`
	File        bool         `json:"file,omitempty" doc:"the policy file is another too"`
	Unknown     string       `json:"unknown,omitempty" doc:"why memberships are not compared"`
	Cables      []PastCable  `json:"cables" doc:"those whose load differs most, percent of the earlier moment and with of the later one"`
}

// PastMomentOf is a record for the provider, with the load of the cables of the map of now.
func (m *MapMaker) PastMomentOf(f *MapFacts, r *PastRecord) (*PastMoment, error) {
	whole, err := m.Whole(f)
	if err != nil {
		return nil, err
	}
	out := &PastMoment{At: r.From, Until: r.Until, PastState: r.State, Matrix: r.Matrix, Map: whole.ETag, Busiest: []PastCable{}}
	of := r.byCable()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lay(f)
	out.Percent = make([]int, len(m.links))
	out.Elsewhere = len(of)
	for i, l := range m.links {
		percent, known := of[Cable{l.a, l.b}.Ordered()]
		if out.Percent[i] = notKnown; known {
			out.Percent[i] = percent
			out.Elsewhere--
		}
	}
	for _, c := range most(func(yield func(CableShare) bool) {
		for _, c := range r.Cables {
			if c.Percent > 0 && !yield(c) {
				return
			}
		}
	}) {
		out.Busiest = append(out.Busiest, f.pastCable(c.Cable, &c.Percent, nil))
	}
	return out, nil
}

// byCable is the load of each cable.
func (r *PastRecord) byCable() map[Cable]int {
	if r.of == nil {
		r.of = make(map[Cable]int, len(r.Cables))
		for _, c := range r.Cables {
			r.of[c.Cable] = c.Percent
		}
	}
	return r.of
}

// most are the pastCables with the highest numbers, the highest first.
func most(all iter.Seq[CableShare]) (out []CableShare) {
	compare := func(a, b CableShare) int {
		return cmp.Or(cmp.Compare(b.Percent, a.Percent), a.Cable.A.Compare(b.Cable.A))
	}
	for c := range all {
		if len(out) == pastCables && compare(c, out[len(out)-1]) > 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(out, c, compare)
		out = slices.Insert(out[:min(len(out), max(i, pastCables-1))], i, c)
	}
	return out
}

func (f *MapFacts) pastCable(c Cable, percent, with *int) PastCable {
	name := func(at observed.Place) string {
		if p := f.Snapshot.Fabric.At(at); p != nil {
			return p.String()
		}
		return at.String()
	}
	return PastCable{A: name(c.A), B: name(c.B), Percent: percent, With: with}
}

// CablesBetween are the cables whose load differs most between two records.
func (f *MapFacts) CablesBetween(earlier, later *PastRecord) []PastCable {
	before, after := earlier.byCable(), later.byCable()
	out := []PastCable{}
	for _, c := range most(func(yield func(CableShare) bool) {
		for c, x := range before {
			if y, known := after[c]; known && x != y && !yield(CableShare{c, max(x-y, y-x)}) {
				return
			}
		}
	}) {
		x, y := before[c.Cable], after[c.Cable]
		out = append(out, f.pastCable(c.Cable, &x, &y))
	}
	return out
}

// Members enters the memberships that a run of edits, the oldest first, brought and ended. The state
// names partitions.
func (d *PastDifference) Members(s *resource.State, edits func(yield func(key string, before, after resource.Object))) {
	type change struct{ before, after *resource.Member }
	var order []string
	all := map[string]change{}
	edits(func(key string, before, after resource.Object) {
		if key == new(resource.File).Key() {
			d.File = true
		}
		x, is := before.(*resource.Member)
		y, will := after.(*resource.Member)
		if !is && !will {
			return
		}
		c, again := all[key]
		if !again {
			order = append(order, key)
			c.before = x
		}
		c.after = y
		all[key] = c
	})
	slices.Sort(order)
	d.Gained, d.Lost = []PastMember{}, []PastMember{}
	for _, key := range order {
		c := all[key]
		was, is := c.before != nil && c.before.Agreed(), c.after != nil && c.after.Agreed()
		switch {
		case is && !was:
			d.GainedTotal = enter(s, &d.Gained, d.GainedTotal, c.after.PKey, c.after.Port)
		case was && !is:
			d.LostTotal = enter(s, &d.Lost, d.LostTotal, c.before.PKey, c.before.Port)
		}
	}
}

// enter adds a membership to a list that has room for it, and counts it.
func enter(s *resource.State, to *[]PastMember, count int, k ib.PKeyBase, port ib.PortGUID) int {
	if count < pastMembers {
		m := PastMember{PKey: k.String(), Port: port.String()}
		if p := s.Partition(k); p != nil {
			m.Partition = p.Name
		}
		*to = append(*to, m)
	}
	return count + 1
}
