package mastership_test

import (
	"fmt"
	"iter"
	"slices"

	"github.com/ibwarden/ibwarden/ib/smp"
)

// op is a kind of move.
type op uint8

const (
	arrive op = iota + 1 // packet a
	lose                 // packet a
	double               // packet a arrives, and once more later
	delay                // packet a takes longer
	work                 // manager a does what is due
	lead                 // the service of a takes or leaves the store
	change               // the service of a sends a transaction
	pass                 // an interval goes by
	kill                 // manager a
	boot                 // manager a, with priority b
	pause                // manager a
	resume               // manager a
	cut                  // the way between a and b
	join                 // it again
	forge                // rogue a sends to b; c is the control packet and whom it claims to be
	order                // a is told to hand over to b
	calm                 // nothing goes wrong from now on
)

// move is one thing that may happen.
type move struct {
	op      op
	a, b, c uint8
}

// moves are those that may come next. What is to happen within an interval comes before
// the next one: a manager that is late is one that is paused, and a packet that is late
// is one that is delayed.
func (w *world) moves() iter.Seq[move] {
	return func(yield func(move) bool) {
		some, more := false, true
		put := func(m move) {
			some = true
			more = more && yield(m)
		}
		for i := range w.mail {
			if p := &w.mail[i]; w.arrives(p) {
				if p.what == toCommit && !w.calm || p.late {
					more = more && yield(move{op: arrive, a: uint8(i)}) // it may also wait
				} else {
					put(move{op: arrive, a: uint8(i)})
				}
			}
		}
		for n := range w.kinds {
			if w.due(n) {
				put(move{op: work, a: uint8(n)})
			}
			if w.leading(n) {
				put(move{op: lead, a: uint8(n)})
			}
		}
		if !w.calm {
			w.faults(func(m move) { more = more && yield(m) })
		}
		if !some && more {
			yield(move{op: pass})
		}
	}
}

// arrives reports whether a packet can be received now.
func (w *world) arrives(p *packet) bool {
	if p.what == toCommit {
		return true
	}
	x := &w.nodes[p.to]
	return !x.paused && (x.on || p.what == answer)
}

// faults are the moves that cost something.
func (w *world) faults(put func(move)) {
	l := &w.left
	for i := range w.mail {
		p := &w.mail[i]
		if l.lose > 0 {
			put(move{op: lose, a: uint8(i)})
		}
		if p.what == toCommit {
			continue
		}
		if l.double > 0 && p.what != answer && w.arrives(p) {
			put(move{op: double, a: uint8(i)})
		}
		if l.delay > 0 && !p.late {
			put(move{op: delay, a: uint8(i)})
		}
	}
	for n := range w.kinds {
		x, a := &w.nodes[n], uint8(n)
		if x.kind == rogue {
			w.forgeries(n, put)
			continue
		}
		if x.alive && l.kill > 0 {
			put(move{op: kill, a: a})
		}
		if !x.alive && l.start > 0 {
			put(move{op: boot, a: a, b: w.priorities[n]})
			if w.again != nil && w.again[n] != w.priorities[n] {
				put(move{op: boot, a: a, b: w.again[n]})
			}
		}
		if x.alive && !x.paused && l.pause > 0 {
			put(move{op: pause, a: a})
		}
		if x.paused {
			put(move{op: resume, a: a})
		}
		if x.alive && !x.paused && x.service.state == leads && l.commit > 0 {
			put(move{op: change, a: a})
		}
		for b := range w.kinds {
			if y := &w.nodes[b]; l.order > 0 && b != n && x.kind == ours && y.kind == ours && x.isMaster() && !x.paused && y.alive && w.reach(n, b) {
				put(move{op: order, a: a, b: uint8(b)})
			}
		}
		for b := n + 1; b < len(w.kinds); b++ {
			if !w.reach(n, b) {
				put(move{op: join, a: a, b: uint8(b)})
			} else if l.cut > 0 {
				put(move{op: cut, a: a, b: uint8(b)})
			}
		}
	}
	if !w.setup.now {
		put(move{op: calm})
	}
}

// forgeries are what a rogue may send.
func (w *world) forgeries(n int, put func(move)) {
	if w.left.forge == 0 {
		return
	}
	for to := range w.kinds {
		for as := range w.kinds {
			if to == n || as == to || !w.nodes[to].alive {
				continue
			}
			for c := smp.SMControlHandover; c.IsValid(); c++ {
				put(move{op: forge, a: uint8(n), b: uint8(to), c: uint8(c)<<4 | uint8(as)})
			}
		}
	}
}

// do makes a move. If the world tells, told says what it was.
func (w *world) do(m move) {
	a := int(m.a)
	switch m.op {
	case arrive:
		w.say("%v arrives", w.mail[a])
		w.deliver(a)
	case work:
		w.act(a)
	case lead:
		w.lead(a)
	case change:
		w.left.commit--
		s := &w.nodes[a].service
		w.say("the service of %s sends a transaction with epoch %d", name(a), s.epoch)
		w.send(packet{what: toCommit, from: m.a, epoch: s.epoch, after: s.after})
	case order:
		w.left.order--
		w.say("%s is told to hand over to %s", name(a), name(int(m.b)))
		w.order(a, int(m.b))
	case pass:
		w.say("an interval goes by")
		w.pass()
	case calm:
		w.say("from now on nothing goes wrong")
		w.settle()
	default:
		w.whole = w.whole && m.op == boot
		w.fault(m)
	}
}

// say is for people.
func (w *world) say(format string, args ...any) {
	if w.tells {
		w.told = fmt.Sprintf(format, args...)
	}
}

// fault makes a move by which something goes wrong.
func (w *world) fault(m move) {
	a, b := int(m.a), int(m.b)
	switch m.op {
	case lose:
		w.left.lose--
		p := w.mail[a]
		w.say("%v is lost", p)
		w.mail = append(w.mail[:a], w.mail[a+1:]...)
		w.unanswered(p)
	case double:
		w.left.double--
		p := w.mail[a]
		w.say("%v arrives, and will once more", p)
		w.mail[a].late = true
		w.mail = append(w.mail, p)
		w.deliver(len(w.mail) - 1)
	case delay:
		w.left.delay--
		w.say("%v is late", w.mail[a])
		w.mail[a].late = true
	case kill:
		w.left.kill--
		w.say("%s is killed", name(a))
		w.kill(a)
	case boot:
		w.left.start--
		w.say("%s starts with priority %d", name(a), b)
		w.boot(a, m.b)
	case pause:
		w.left.pause--
		w.say("%s is paused", name(a))
		w.nodes[a].paused = true
	case resume:
		w.say("%s goes on", name(a))
		w.nodes[a].paused = false
	case cut:
		w.left.cut--
		w.say("%s and %s are cut off from each other", name(a), name(b))
		w.cuts[a] |= 1 << b
		w.cuts[b] |= 1 << a
		w.drop(func(p *packet) bool { return p.what != toCommit && !w.reach(int(p.from), int(p.to)) })
	case join:
		w.say("%s and %s reach each other again", name(a), name(b))
		w.cuts[a] &^= 1 << b
		w.cuts[b] &^= 1 << a
	case forge:
		w.left.forge--
		w.forge(a, b, smp.SMControl(m.c>>4), int(m.c&15))
	default:
		panic("no such move")
	}
}

// kill ends a manager. What it has sent is still under way; nobody takes the answers.
func (w *world) kill(a int) {
	w.nodes[a] = node{kind: w.kinds[a]}
	w.drop(func(p *packet) bool {
		return p.what != toCommit && (int(p.to) == a || int(p.from) == a && (p.what == ask || p.what == poll))
	})
	for i := range w.mail {
		if p := &w.mail[i]; int(p.from) == a {
			p.orphan = true
		}
	}
}

// pass lets an interval go by. Polls and answers that wait for somebody who sleeps are
// not kept: a second one changes nothing. Who asked gives up, and so does who asked with a
// packet that is late.
func (w *world) pass() {
	w.drop(func(p *packet) bool {
		return p.what == ask && (p.late || w.nodes[p.to].paused) || p.what == poll && w.nodes[p.to].paused ||
			p.what == answer && p.of == ask && p.late
	})
	w.time += interval
}

// settle ends all that is wrong.
func (w *world) settle() {
	w.calm, w.left, w.cuts = true, budget{}, [most]uint8{}
	for i := range w.mail {
		w.mail[i].late = false
	}
	for n := range w.kinds {
		w.nodes[n].paused = false
	}
}

func (p packet) String() string {
	sort := func(x what) string {
		switch x {
		case ask:
			return "the question"
		case poll:
			return "the poll"
		}
		return [...]string{1: "HANDOVER", "ACKNOWLEDGE", "DISABLE", "STANDBY", "DISCOVER"}[p.control]
	}
	switch p.what {
	case toCommit:
		return fmt.Sprintf("the transaction of %s with epoch %d", name(int(p.from)), p.epoch)
	case answer:
		verdict := p.info.SMState.String()
		if p.status != 0 {
			verdict = "refused"
		}
		return fmt.Sprintf("the answer of %s to %s of %s (%s)", name(int(p.from)), sort(p.of), name(int(p.to)), verdict)
	}
	return fmt.Sprintf("%s of %s to %s", sort(p.what), name(int(p.from)), name(int(p.to)))
}

// String is who is what.
func (w *world) String() string {
	var b []byte
	for n := range w.kinds {
		x := &w.nodes[n]
		if x.kind == rogue {
			continue
		}
		b = fmt.Appendf(b, "%s ", name(n))
		switch {
		case !x.alive:
			b = append(b, "dead"...)
		default:
			b = fmt.Appendf(b, "%v", x.state())
			if x.paused {
				b = append(b, ", paused"...)
			}
			if x.writes {
				b = append(b, ", writes"...)
			}
			if x.service.state != notMaster {
				b = fmt.Appendf(b, ", epoch %d", x.service.epoch)
			}
			if x.service.state == fenced {
				b = append(b, " refused"...)
			}
		}
		b = append(b, "; "...)
	}
	return fmt.Sprintf("%sstore epoch %d", b, w.epoch)
}

// tidy puts the mail in an order of its own, so that two worlds which differ in nothing
// else are one.
func (w *world) tidy() {
	slices.SortStableFunc(w.mail, func(p, q packet) int { return slices.Compare(p.sortKey(), q.sortKey()) })
}
