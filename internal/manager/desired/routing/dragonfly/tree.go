package dragonfly

// tree is the shortest ways to one switch.
type tree struct {
	// far is the distance of a switch, unset where there is no way: cables between groups
	// times farGroup, and hops, which are fewer than there can be switches.
	far []uint32
	// regular reports whether a way has the form that needs no check, direct that it begins
	// between groups; by switch.
	regular, direct []bool
}

const (
	unset    = ^uint32(0)
	farGroup = 1 << 16
)

// finder finds trees.
type finder struct {
	*engine
	// reached are the switches that have a way, the nearest first.
	reached []uint16
	// near and next are the switches to look at, by hops, of this and of the next number
	// of cables between groups.
	near, next [][]uint16
}

func newFinder(e *engine) *finder { return &finder{engine: e} }

func (f *finder) find(d uint16) tree {
	t := tree{far: make([]uint32, len(f.Nodes)), regular: make([]bool, len(f.Nodes)), direct: make([]bool, len(f.Nodes))}
	for s := range t.far {
		t.far[s] = unset
	}
	f.reached = f.reached[:0]
	f.near = push(f.near, 0, d)
	for base := uint32(0); len(f.near) > 0; base += farGroup {
		for hops := 0; hops < len(f.near); hops++ {
			for i := 0; i < len(f.near[hops]); i++ {
				v := f.near[hops][i]
				if t.far[v] != unset {
					continue
				}
				t.far[v] = base + uint32(hops)
				f.reached = append(f.reached, v)
				for c := f.First[v]; c < f.First[v+1]; c++ {
					switch u := f.To[c]; {
					case t.far[u] != unset:
					case f.class[c] == classLocal:
						f.near = push(f.near, hops+1, u)
					default:
						f.next = push(f.next, hops+1, u)
					}
				}
			}
		}
		f.near, f.next = f.next, f.near[:0]
	}
	return t
}

// push appends a switch to those of so many hops.
func push(by [][]uint16, hops int, s uint16) [][]uint16 {
	for len(by) <= hops {
		if cap(by) > len(by) {
			by = by[:len(by)+1]
			by[len(by)-1] = by[len(by)-1][:0]
			continue
		}
		by = append(by, nil)
	}
	by[hops] = append(by[hops], s)
	return by
}

// shortest reports whether a channel begins a shortest way.
func (e *engine) shortest(t *tree, c int32) bool {
	step := uint32(1)
	if e.class[c] == classGlobal {
		step += farGroup
	}
	to := t.far[e.To[c]]
	return to != unset && to+step == t.far[e.From[c]]
}

// plain reports whether the way to d that begins with c needs no check: inside a group,
// between groups and inside again, with one hop each at most, or none. In dragonfly+ the
// first leads from a leaf to a spine and the last from a spine to a leaf, and both can
// follow each other. A way from a spine to another group begins by the first leaf, and one
// that comes to a spine leads by the last leaf, so that no packet waits for both.
func (e *engine) plain(t *tree, c int32, d uint16) bool {
	v, w := e.From[c], e.To[c]
	left, global := t.far[w], e.class[c] == classGlobal
	if !e.plus {
		switch {
		case w == d:
			return true
		case global:
			return left == 1
		}
		return t.direct[w] && !t.direct[v]
	}
	switch {
	case !global && e.spine[v] == e.spine[w]:
		return false
	case w == d:
		return true
	case global:
		return e.spine[w] && (left == 1 || left == 2 && t.regular[w])
	case e.spine[w]:
		return t.direct[w] || left == 1 && !e.spine[d]
	case e.group[v] == e.group[d]:
		return left == 1 && w == e.last[e.group[v]]
	}
	return !t.direct[v] && w == e.first[e.group[v]] && t.regular[w] && left >= farGroup
}

// exits appends the channels that v may take for d, and enters in t of what form they are,
// when that is known of the switches that are nearer. A way that needs a check has one.
func (e *engine) exits(out []int32, t *tree, v, d uint16) []int32 {
	begin := len(out)
	for c := e.First[v]; c < e.First[v+1]; c++ {
		if e.shortest(t, c) {
			out = append(out, c)
		}
	}
	all := out[begin:]
	for _, class := range [2]uint8{classGlobal, classLocal} {
		n := 0
		for i, c := range all {
			if e.class[c] == class && e.plain(t, c, d) {
				all[n], all[i] = all[i], all[n]
				n++
			}
		}
		if n > 0 {
			t.regular[v], t.direct[v] = true, class == classGlobal
			return out[:begin+n]
		}
	}
	if len(all) > 1 {
		all[0] = all[(int(v)+int(d))%len(all)]
	}
	return out[:begin+1]
}
