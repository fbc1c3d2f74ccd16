package isolation

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Parties are groups of end ports, of which it is asked how they stand to each other. Ports
// of a group that are alike are looked at once.
type Parties struct {
	sets  *keySets
	kinds [][]*alike // by group
	cells int
	// anywhere is a link to a device that was not read and may be in any partition; nil
	// for none. within are links to such that switches hold to some partitions.
	anywhere *observed.Port
	within   map[ib.PKeyBase]*observed.Port
	raw      bool
	left     int // comparisons

	over, limited baseSet // of the pair of groups in turn

	of  map[*observed.Port]*alike // for Two, as two is
	two map[[2]*alike]Between
}

// alike are end ports of one group that are alike.
type alike struct {
	likeness
	ports []*observed.Port
	at    *observed.Port // where the first of them lacks something, or has a gap
}

// likeness is what makes end ports alike, here: sets by number, and what is wrong.
type likeness struct {
	keys, forged, excess, grant int32
	lack, gap, rawGap           string
	unread, rawIn, rawOut       bool
}

// Bounds of the kinds that are compared: hostile tables can make as many kinds as ports.
// comparisonsShared are for all pairs of groups, each of which may have comparisonsOne in any
// case; comparisonsMost are all.
const (
	comparisonsMost   = 1 << 24
	comparisonsShared = 1 << 21
	comparisonsOne    = 1 << 12
)

// Parties sorts the end ports into n groups: group says for each of EndPorts of the fabric,
// by its place, which it is in, less than 0 for none. raw says that raw packets count. It holds until the next Changed
// or Allow.
func (p *Prover) Parties(n int, group []int, raw bool) *Parties {
	out := &Parties{sets: p.sets, kinds: make([][]*alike, n), cells: max(1, n*(n+1)/2), within: map[ib.PKeyBase]*observed.Port{}, raw: raw, left: comparisonsMost}
	known := make([]map[likeness]*alike, n)
	for i, port := range p.ports {
		g := group[i]
		if g < 0 {
			continue
		}
		like, at := p.likeness(i)
		if known[g] == nil {
			known[g] = map[likeness]*alike{}
		}
		k := known[g][like]
		if k == nil {
			k = &alike{likeness: like, at: at}
			known[g][like] = k
			out.kinds[g] = append(out.kinds[g], k)
		}
		k.ports = append(k.ports, port)
	}
	q := prover{Prover: p}
	for _, s := range p.open {
		switch all, some := q.stranger(s); {
		case all && out.anywhere == nil:
			out.anywhere = s
		case some != 0:
			for _, k := range p.sets.sets[some] {
				out.within[k.Base()] = s
			}
		}
	}
	return out
}

// likeness is that of end port i, with where its lack or its gap is.
func (p *Prover) likeness(i int) (like likeness, at *observed.Port) {
	g := p.guards[i]
	like = likeness{keys: p.tables[i].keys, forged: p.reach[i].keys, grant: p.tables[i].grant, gap: g.gap}
	at = g.at
	like.excess = p.sets.id(p.sets.beyond(p.reach[i].keys, p.reach[i].may))
	if lacks := p.notes[i].lacks; len(lacks) > 0 {
		like.lack, at = lacks[0].what, lacks[0].at
	}
	shut := isShut(p.ports[i])
	like.unread = !shut && !(isKnown(p.ports[i]) && p.ports[i].InfoRead)
	if r := p.raw[i]; r.open() && !shut {
		like.rawIn, like.rawOut, like.rawGap = r.in, r.out, r.why
	}
	return like, at
}

// beyond are the keys of a set that another does not cover.
func (x *keySets) beyond(set, may int32) (out keySet) {
	if set != may {
		for _, k := range x.sets[set] {
			if !x.sets[may].covers(k) {
				out = append(out, k)
			}
		}
	}
	return out
}

// Meeting is two end ports, and a key over which they can talk.
type Meeting struct {
	From, To *observed.Port
	Key      ib.PKey
}

// Between is how two groups of end ports stand to each other, or the ports of one group to
// others of it.
type Between struct {
	// Pairs of end ports, and of them: those that can talk, those of which that was not
	// read, those that the policy lets talk, and those that can talk and may not.
	Pairs, Talking, Unread, Allowed, Violations int
	// Verdict is the worst of the pairs; Isolated where there is none. Cause is why, At
	// where; of Violated, Witness says that.
	Verdict Verdict
	Cause   string
	At      *observed.Port
	// Over are the partitions over which pairs can talk, Limited those that pairs share
	// as limited members only and so cannot, both ascending.
	Over, Limited []ib.PKeyBase
	// Witness is a pair that can talk and may not, else one that can talk; nil for none.
	Witness *Meeting
	// TooMany reports whether the tables differ too much to compare all: what is not counted
	// is in Unread.
	TooMany bool
}

// Between compares groups a and b.
func (p *Parties) Between(a, b int) Between {
	w := comparison{Parties: p}
	w.Verdict = Isolated
	budget := max(comparisonsOne, comparisonsShared/p.cells)
	for i, x := range p.kinds[a] {
		others := p.kinds[b]
		if a == b {
			others = others[i:]
		}
		for _, y := range others {
			budget, p.left = budget-1, p.left-1
			if budget < 0 || p.left < 0 {
				w.skip(x, y)
				continue
			}
			w.meet(x, y)
		}
	}
	w.Over, w.Limited = w.over.list(), w.limited.list()
	return w.Between
}

// Reach counts the ports of group a by whether they can talk with any of group b, for who
// may not know how many of these there are: those that can, those of which that was not
// read, and those that can and may not.
func (p *Parties) Reach(a, b int) (talking, unread, violating int) {
	for _, x := range p.kinds[a] {
		var all Between
		for _, y := range p.kinds[b] {
			w := comparison{Parties: p}
			if p.left--; p.left < 0 {
				w.skip(x, y)
			} else {
				w.meet(x, y)
			}
			all.Talking, all.Unread, all.Violations = all.Talking+w.Talking, all.Unread+w.Unread, all.Violations+w.Violations
			if all.Violations > 0 {
				break
			}
		}
		n := len(x.ports)
		switch {
		case all.Talking > 0:
			talking += n
		case all.Unread > 0:
			unread += n
		}
		if all.Violations > 0 {
			violating += n
		}
	}
	p.over.list()
	p.limited.list()
	return talking, unread, violating
}

// Two compares two different ports of the groups; the counts are of all that are like them.
func (p *Parties) Two(a, b *observed.Port) Between {
	if p.of == nil {
		p.of, p.two = map[*observed.Port]*alike{}, map[[2]*alike]Between{}
		for _, kinds := range p.kinds {
			for _, k := range kinds {
				for _, port := range k.ports {
					p.of[port] = k
				}
			}
		}
	}
	x, y := p.of[a], p.of[b]
	if x == nil || y == nil {
		return Between{Verdict: Unknown}
	}
	got, known := p.two[[2]*alike{x, y}]
	if !known {
		w := comparison{Parties: p}
		w.Verdict = Isolated
		w.meet(x, y)
		w.Over, w.Limited = p.over.list(), p.limited.list()
		got = w.Between
		p.two[[2]*alike{x, y}] = got
	}
	return got
}

// comparison is the work on one Between.
type comparison struct {
	*Parties
	Between
}

// baseSet is a set of partitions that is emptied by list, for the next use.
type baseSet struct {
	has [1 << 15]bool
	in  []ib.PKeyBase
}

func (b *baseSet) set(k ib.PKeyBase) {
	if !b.has[k] {
		b.has[k] = true
		b.in = append(b.in, k)
	}
}

// list are the partitions, ascending; nil for none.
func (b *baseSet) list() []ib.PKeyBase {
	out := slices.Clone(b.in)
	slices.Sort(out)
	for _, k := range b.in {
		b.has[k] = false
	}
	b.in = b.in[:0]
	return slices.Clip(out)
}

// pairsOf is the number of pairs of ports between two kinds, which may be the same.
func pairsOf(x, y *alike) int {
	if x == y {
		return len(x.ports) * (len(x.ports) - 1) / 2
	}
	return len(x.ports) * len(y.ports)
}

func (w *comparison) skip(x, y *alike) {
	n := pairsOf(x, y)
	w.Pairs, w.Unread, w.TooMany = w.Pairs+n, w.Unread+n, w.TooMany || n > 0
	if n > 0 {
		w.worse(Unknown, "the tables differ too much to compare them all", nil)
	}
}

// worse makes a verdict that of the groups, if it is worse than what was found before.
func (w *comparison) worse(v Verdict, cause string, at *observed.Port) {
	if v > w.Verdict {
		w.Verdict, w.Cause, w.At = v, cause, at
	}
}

func (w *comparison) meet(x, y *alike) {
	n := pairsOf(x, y)
	if n == 0 {
		return
	}
	w.Pairs += n
	sets := w.sets.sets
	allowed := matches(sets[x.grant], sets[y.grant])
	unread := lacking{x.at, x.lack}
	if x.lack == "" {
		unread = lacking{y.at, y.lack}
	}
	talks := w.share(x, y)
	violated := talks && !allowed
	switch {
	case talks:
		w.Talking += n
		w.witness(x, y, violated)
	case x.unread || y.unread:
		w.Unread += n
	}
	switch {
	case allowed:
		w.Allowed += n
	case violated:
		w.Violations += n
		w.worse(Violated, "", nil)
	}
	if unread.what != "" {
		w.worse(Unknown, unread.what, unread.at)
	}
	if !allowed {
		w.weak(x, y)
	}
}

// share notes the partitions that two kinds share, and reports whether one of them lets the
// two talk.
func (w *comparison) share(x, y *alike) (talks bool) {
	a, b := w.sets.sets[x.keys], w.sets.sets[y.keys]
	for len(a) > 0 && len(b) > 0 {
		switch p, q := a[0], b[0]; {
		case p.Base() < q.Base():
			a = a[1:]
		case p.Base() > q.Base():
			b = b[1:]
		default:
			if p.IsFull() || q.IsFull() {
				w.over.set(p.Base())
				talks = true
			} else {
				w.limited.set(p.Base())
			}
			a, b = a[1:], b[1:]
		}
	}
	return talks
}

// witness keeps a pair that can talk: one that may not, if there is any.
func (w *comparison) witness(x, y *alike, violated bool) {
	if w.Witness != nil && (!violated || w.Violations > 0) {
		return
	}
	m := &Meeting{From: x.ports[0], To: y.ports[0]}
	if x == y {
		m.To = x.ports[1]
	}
	a, b := w.sets.sets[x.keys], w.sets.sets[y.keys]
	for _, k := range a {
		if i, shared := slices.BinarySearchFunc(b, k.Base(), func(e ib.PKey, base ib.PKeyBase) int { return cmp.Compare(e.Base(), base) }); shared && (k.IsFull() || b[i].IsFull()) {
			m.Key = k
			break
		}
	}
	w.Witness = m
}

// weak looks for what lets a verdict on two kinds that the policy keeps apart rest on hosts,
// or on what was not read of others.
func (w *comparison) weak(x, y *alike) {
	sets := w.sets.sets
	if s := w.anywhere; s != nil {
		w.worse(Unknown, stranger, s)
	} else if len(w.within) > 0 {
		for _, set := range []int32{x.grant, y.grant} {
			for _, k := range sets[set] {
				if s := w.within[k.Base()]; s != nil {
					w.worse(Unknown, stranger, s)
				}
			}
		}
	}
	if w.Verdict >= ByEndPorts {
		return
	}
	for _, k := range []*alike{x, y} {
		if k.gap != "" {
			w.worse(ByEndPorts, "no partition enforcement: "+k.gap, k.at)
		}
	}
	if x.excess != 0 && matches(sets[x.excess], sets[y.forged]) {
		w.worse(ByEndPorts, tooWide, x.at)
	}
	if y.excess != 0 && matches(sets[y.excess], sets[x.forged]) {
		w.worse(ByEndPorts, tooWide, y.at)
	}
	if w.raw && (x.rawIn && y.rawOut || y.rawIn && x.rawOut) {
		w.worse(ByEndPorts, "raw packets pass: "+strings.Join(slices.Compact([]string{x.rawGap, y.rawGap}), ", "), x.at)
	}
}

// tooWide is said of the table of a switch port.
const tooWide = "the table that holds the host lets it use more than the policy gives, if it forges its own"
