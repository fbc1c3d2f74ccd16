package mastership_test

import "fmt"

// agreementMost is how many intervals may pass, when nothing goes wrong any more, until
// all agree: a manager that is gone is given up, and a master asks who is there.
const agreementMost = 8

// settler looks at what becomes of a fabric in which nothing goes wrong any more. Its
// states and moves are a graph, finite since time counts from now. By Tarjan's algorithm
// it finds the parts of it from which one can come back: in each of them the managers
// have to agree in every state, and they may not leave it for one where they do not.
// Otherwise there is a run that never ends in agreement.
type settler struct {
	nodes   map[key]*settled
	stack   []*settled
	path    []move // from where the look began
	count   int32
	longest int // intervals until agreement that lasts
	broken  string
	trace   []string
	scratch []byte
	first   *world
}

// settled is a calm state.
type settled struct {
	index, low int32
	part       int32 // of the graph; 0 while that is not known
	waits      bool  // on the stack
	good       bool
	lasts      bool // from here on they agree for ever
	after      int  // intervals until that, at most
	round      bool // a way leads back here
	next       []edge
}

type edge struct {
	to   *settled
	time int
}

// look reports whether all is well with a state and all that follows it.
func (s *settler) look(w *world) bool {
	k := w.key(&s.scratch)
	n := s.nodes[k]
	if n == nil {
		s.first, s.path = w, s.path[:0]
		n = s.visit(w, k)
	}
	if s.broken != "" {
		return false
	}
	s.longest = max(s.longest, n.after)
	if n.after > agreementMost {
		s.broken = fmt.Sprintf("agreement may take %d intervals", n.after)
		return false
	}
	return true
}

func (s *settler) visit(w *world, k key) *settled {
	s.count++
	n := &settled{index: s.count, low: s.count, waits: true, good: w.agree()}
	s.nodes[k] = n
	s.stack = append(s.stack, n)
	if why := w.check(); why != "" {
		s.fail(why)
		return n
	}
	for m := range w.moves() {
		v := w.copy()
		v.do(m)
		v.note()
		k := v.key(&s.scratch)
		to := s.nodes[k]
		if to == nil {
			s.path = append(s.path, m)
			to = s.visit(v, k)
			s.path = s.path[:len(s.path)-1]
			if s.broken != "" {
				return n
			}
			n.low = min(n.low, to.low)
		} else if to.waits {
			n.low = min(n.low, to.index)
		}
		n.round = n.round || to == n
		e := edge{to: to}
		if m.op == pass {
			e.time = 1
		}
		n.next = append(n.next, e)
	}
	if n.low == n.index {
		s.close(n, w)
	}
	return n
}

// close judges a part of the graph that is known in full; w is its first state.
func (s *settler) close(n *settled, w *world) {
	i := len(s.stack) - 1
	for s.stack[i] != n {
		i--
	}
	part := s.stack[i:]
	s.stack = s.stack[:i]
	lasts, after := true, 0
	for _, x := range part {
		x.waits, x.part = false, n.index
		lasts = lasts && x.good
	}
	for _, x := range part {
		for _, e := range x.next {
			if e.to.part != n.index {
				lasts = lasts && e.to.lasts
				after = max(after, e.time+e.to.after)
			}
		}
	}
	for _, x := range part {
		if x.lasts = lasts; !lasts {
			x.after = after
		}
	}
	if !lasts && (len(part) > 1 || n.round) {
		s.loop(w, n)
		return
	}
	for _, x := range part {
		x.next = nil
	}
}

func (s *settler) fail(why string) {
	if s.broken == "" {
		s.broken = why
		lines, _ := retell(s.first, s.path)
		s.trace = lines[1:]
	}
}

// loop shows a run that comes back to where it was and holds a state without agreement.
func (s *settler) loop(w *world, part *settled) {
	type way struct {
		w     *world
		moves []move
	}
	todo, been := []way{{w, nil}}, map[key]bool{}
	home := w.key(&s.scratch)
	why, bad := "", way{}
	find := func(done func(*world, key) bool) (out way) {
		for len(todo) > 0 {
			x := todo[0]
			todo = todo[1:]
			for m := range x.w.moves() {
				v := x.w.copy()
				v.do(m)
				v.note()
				k := v.key(&s.scratch)
				moves := append(append([]move{}, x.moves...), m)
				if done(v, k) {
					return way{v, moves}
				}
				if to := s.nodes[k]; to != nil && to.part == part.part && !been[k] {
					been[k] = true
					todo = append(todo, way{v, moves})
				}
			}
		}
		return way{}
	}
	if why = w.differ(); why != "" {
		bad = way{w, nil}
	} else if bad = find(func(v *world, _ key) bool { why = v.differ(); return why != "" }); bad.w == nil {
		bad, why = way{w, nil}, "the agreement may end"
	}
	clear(been)
	todo = []way{bad}
	back := find(func(_ *world, k key) bool { return k == home })
	into, at := retell(s.first, s.path)
	round, _ := retell(at, back.moves)
	s.broken = "it may never end that " + why
	s.trace = append(append(into[1:], "  again and again:"), round[1:]...)
}
