package mastership_test

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// search is the states that were found, and how.
type search struct {
	from   *setup
	room   int // states at which it ends, calm ones included; 0 for no limit
	seen   map[key]bool
	steps  []step
	deep   int  // moves to the farthest state
	whole  bool // nothing was left out
	calms  settler
	broken string
	trace  []string
	took   time.Duration
}

// step is how a state was come to.
type step struct {
	from int32
	move move
}

func begin(from *setup) *world {
	w := &world{setup: from, time: start, left: from.left, writer: -1}
	for n := range from.kinds {
		w.boot(n, from.priorities[n])
	}
	w.tidy()
	return w
}

// run searches breadth first, so that what it finds has the fewest moves.
func run(from *setup, room int) *search {
	began := time.Now()
	s := &search{from: from, room: room, seen: map[key]bool{}, whole: true}
	s.calms.nodes = map[key]*settled{}
	var scratch []byte
	type waiting struct {
		w  *world
		at int32
	}
	first := begin(from)
	s.seen[first.key(&scratch)] = true
	s.steps = []step{{from: -1}}
	layer := []waiting{{first, 0}}
	for ; len(layer) > 0 && s.broken == ""; s.deep++ {
		var next []waiting
		for _, x := range layer {
			for m := range x.w.moves() {
				v := x.w.copy()
				v.do(m)
				v.note()
				if m.op == calm {
					if !s.calms.look(v) {
						s.broken = s.calms.broken
						s.trace = append(s.tell(x.at, m), s.calms.trace...)
					}
				} else if k := v.key(&scratch); !s.seen[k] {
					s.seen[k] = true
					s.steps = append(s.steps, step{x.at, m})
					if why := v.check(); why != "" {
						s.broken = why
						s.trace = s.tell(x.at, m)
					}
					next = append(next, waiting{v, int32(len(s.steps) - 1)})
				}
				if s.broken != "" {
					s.took = time.Since(began)
					return s
				}
			}
			if room > 0 && len(s.steps)+len(s.calms.nodes) >= room {
				s.whole = false
				s.took = time.Since(began)
				return s
			}
		}
		layer = next
	}
	s.took = time.Since(began)
	return s
}

// note takes down that the managers agree.
func (w *world) note() {
	if !w.whole && len(w.mail) == 0 && w.best() >= 0 && w.agree() {
		w.whole = true
	}
}

// tell is the way to a state and one move on, in words.
func (s *search) tell(at int32, last move) []string {
	moves := []move{last}
	for ; at > 0; at = s.steps[at].from {
		moves = append(moves, s.steps[at].move)
	}
	slices.Reverse(moves)
	lines, _ := retell(begin(s.from), moves)
	return lines
}

// retell makes moves and says what they do.
func retell(w *world, moves []move) (lines []string, end *world) {
	var scratch []byte
	before := w.String()
	w = w.copy()
	w.tells = true
	lines = append(lines, "    "+before)
	for _, m := range moves {
		w = w.copy()
		at := (w.time - start) / interval
		w.do(m)
		line := fmt.Sprintf("%4d  %s", at, w.told)
		w.note()
		w.key(&scratch) // puts the mail in order
		if after := w.String(); after != before {
			line += "\n          " + after
			before = after
		}
		lines = append(lines, line)
	}
	return lines, w
}

func (s *search) String() string {
	how := "all states to the end"
	if !s.whole {
		how = "all states to that depth"
	}
	out := fmt.Sprintf("%v: %d states, %d of them calm; %d moves deep, %s; agreement after at most %d intervals; %v",
		s.from, len(s.steps)+len(s.calms.nodes), len(s.calms.nodes), s.deep, how, s.calms.longest, s.took.Round(10*time.Millisecond))
	if s.broken != "" {
		out += fmt.Sprintf("\n%s, after %d moves:\n%s", s.broken, len(s.trace)-1, strings.Join(s.trace, "\n"))
	}
	return out
}
