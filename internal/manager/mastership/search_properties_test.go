package mastership_test

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib/smp"
)

// best is who is to be master: of all that live and are trusted, the one that outranks
// the others; -1 if there is none.
func (w *world) best() int {
	best := -1
	for n := range w.kinds {
		if w.planned && w.nodes[n].isMaster() {
			return n
		}
		if w.nodes[n].alive && w.trusts(n) && (best < 0 || w.outranks(n, best)) {
			best = n
		}
	}
	return best
}

// agree reports whether the fabric has one master, the best, that writes, and whose
// service has the store.
func (w *world) agree() bool { n, _ := w.disagreement(); return n < 0 }

// differ says what keeps them from that; "" if nothing does.
func (w *world) differ() string {
	n, why := w.disagreement()
	if n < 0 {
		return ""
	}
	return name(n) + " " + why
}

// disagreement is the first manager about whom something is not as it ought to be; -1 for
// none.
func (w *world) disagreement() (n int, why string) {
	best := w.best()
	if best < 0 {
		return -1, ""
	}
	for i := range w.mail {
		if p := &w.mail[i]; p.late || p.orphan {
			return int(p.from), "has sent a packet that is late"
		}
	}
	for n := range w.kinds {
		x := &w.nodes[n]
		switch {
		case x.paused || w.cuts[n] != 0:
			return n, "is paused or cut off"
		case !x.alive || !w.trusts(n):
		case n != best && x.state() != smp.SMStandby:
			return n, "does not stand by"
		case n == best && x.state() != smp.SMMaster:
			return n, "is not master"
		case n != best && x.writes:
			return n, "writes"
		case n == best && (!x.writes || x.shares):
			return n, "does not write, or not all that it has to"
		}
	}
	x := &w.nodes[best]
	switch s := &x.service; {
	case x.kind != ours:
	case s.state != leads || s.epoch != w.epoch || w.writer != best:
		return best, "is master, and its service has not the store"
	case s.after != w.last:
		return best, "is master, and its service does not know the last revision"
	}
	return -1, ""
}

// check says what is wrong in a state; "" if nothing is.
func (w *world) check() string {
	if w.broken != "" {
		return w.broken
	}
	writers, masters, writing := 0, 0, 0
	for n := range w.kinds {
		x := &w.nodes[n]
		if x.alive && x.kind == ours && x.service.state == leads && x.service.epoch == w.epoch {
			writers++
		}
		if x.isMaster() {
			masters++
		}
		if x.alive && x.writes && !x.shares {
			writing++
		}
		if x.alive && x.writes && !x.isMaster() {
			return name(n) + " writes, and is not master"
		}
		if x.alive && x.kind == ours && x.state() == smp.SMNotActive {
			return name(n) + " is not active, and nobody that it trusts has sent it DISABLE"
		}
	}
	switch {
	case writers > 1:
		return fmt.Sprintf("%d services have the store with epoch %d", writers, w.epoch)
	case w.whole && masters == 0 && w.best() >= 0 && len(w.ofKind(openSM)) == 0:
		return "nobody is master, and nothing has gone wrong"
	case w.whole && writing > 1:
		return fmt.Sprintf("%d managers write as if they were alone, and nothing has gone wrong", writing)
	}
	return ""
}
