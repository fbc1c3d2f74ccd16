package mastership_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// begin is the end of a manager's sweep: it knows who is there, answers from now on, and
// asks them.
func (w *world) begin(n int) {
	x := &w.nodes[n]
	x.on, x.want, x.round = true, false, 0
	if x.isMaster() && x.kind == ours {
		x.round = w.time + roundEvery
		if w.named { // it has been given the subnet, and does not wait for answers
			w.write(n)
		}
	}
	if x.kind == openSM {
		x.round = w.time + roundEvery
	}
	w.askAll(n)
}

// askAll begins a round, or has another follow the one that is under way.
func (w *world) askAll(n int) {
	x := &w.nodes[n]
	if x.asking != 0 {
		x.again = true
		return
	}
	x.again, x.got = false, [most]smp.SMInfo{}
	var to []int
	for i := range w.kinds {
		if i != n && w.nodes[i].alive && w.reach(n, i) {
			to = append(to, i)
			x.asking |= 1 << i
		}
	}
	for _, i := range to {
		p := packet{what: ask, from: uint8(n), to: uint8(i)}
		if x.kind == ours && w.named {
			p.info = x.engine.InfoFor(guid(i))
		}
		w.send(p)
	}
	if len(to) == 0 {
		w.ended(n)
	}
}

// ended decides, when the last answer of a round is there.
func (w *world) ended(n int) {
	x := &w.nodes[n]
	if x.asking != 0 || !x.alive {
		return
	}
	if x.kind == openSM {
		w.otherDecides(n)
		return
	}
	var others []mastership.Remote
	for i, info := range x.got {
		if info.GUID != 0 {
			others = append(others, mastership.Remote{Info: info, Address: at(i)})
		}
	}
	x.got = [most]smp.SMInfo{}
	others = w.wrong.others(others)
	was := x.isMaster()
	verdict, effects := x.engine.Decide(w.time, others)
	w.follow(n, effects)
	switch {
	case !x.isMaster():
		x.service.told = false
	case w.named || verdict == mastership.Master:
		x.shares = verdict != mastership.Master
		w.write(n)
		// As serve.Service hears of it by event.Asked, and service.Service.Regain looks.
		x.service.again = w.wrong != storeOnce && !x.shares && x.service.state != notMaster && x.service.epoch != w.epoch
	default:
		x.writes, x.service.told, x.round = false, false, 0
	}
	if x.isMaster() && !was {
		x.round = w.time + roundEvery
	}
	if x.again {
		w.askAll(n)
	}
}

// write lets a manager write to the fabric; its service is told.
func (w *world) write(n int) {
	x := &w.nodes[n]
	x.writes, x.service.told = true, true
	if x.round == 0 {
		x.round = w.time + roundEvery
	}
}

// follow does what the engine of a manager asks for.
func (w *world) follow(n int, f mastership.Effects) {
	x := &w.nodes[n]
	for _, m := range f.Send {
		p := packet{what: poll, from: uint8(n), to: uint8(nodeOf(m.GUID)), info: m.Info}
		if m.Method == mad.MethodSet {
			p.what, p.control = control, m.Control
			if m.Control == smp.SMControlHandover && !w.trusts(int(p.to)) {
				w.broken = fmt.Sprintf("%s offers the subnet to %s, which it does not trust", name(n), name(int(p.to)))
			}
		}
		w.send(p)
		if w.wrong == stepsDownEarly && p.control == smp.SMControlHandover {
			taken := smp.SMInfo{GUID: m.GUID, SMKey: pairKey(m.GUID, guid(n)), SMState: smp.SMMaster}
			w.follow(n, x.engine.Answered(m, mad.StatusOK, taken))
		}
	}
	switch {
	case f.Sweep && w.named && f.From == smp.SMMaster && f.To == smp.SMMaster:
		w.askAll(n)
	case f.Sweep:
		x.want = true
	}
	if f.From == smp.SMMaster && f.To != smp.SMMaster {
		x.writes, x.service.told, x.round = w.wrong == writesOn, false, 0
	}
}

// order is what an administrator asks for: a planned handover.
func (w *world) order(n, to int) {
	var others []mastership.Remote
	target := mastership.Remote{}
	for i := range w.kinds {
		if y := &w.nodes[i]; i != n && y.alive && y.on && y.kind == ours && w.reach(n, i) {
			r := mastership.Remote{Info: y.engine.InfoFor(guid(n)), Address: at(i)}
			others = append(others, r)
			if i == to {
				target = r
			}
		}
	}
	effects, err := w.nodes[n].engine.HandOver(w.time, target, others)
	if err == nil {
		w.planned = true
	}
	w.follow(n, effects)
}

// deliver takes a packet out of the mail to where it goes.
func (w *world) deliver(i int) {
	p := w.mail[i]
	w.mail = append(w.mail[:i], w.mail[i+1:]...)
	switch p.what {
	case toCommit:
		w.commit(&p)
	case answer:
		w.answered(&p)
	default:
		w.receive(&p)
	}
}

// receive hands a request to a manager, and sends the answer.
func (w *world) receive(p *packet) {
	n := int(p.to)
	x := &w.nodes[n]
	r := packet{what: answer, of: p.what, control: p.control, from: p.to, to: p.from}
	reply := func() {
		if !p.orphan {
			w.send(r)
		}
	}
	switch x.kind {
	case rogue:
		r.info = smp.SMInfo{GUID: guid(n), Priority: 15, SMState: smp.SMMaster, ActCount: uint32(w.time / interval)}
		if w.meek {
			r.info.SMState = smp.SMNotActive
			if w.nodes[p.from].isMaster() {
				r.info.SMState = smp.SMStandby
			}
		}
		reply()
		return
	case openSM:
		r.info, r.status = w.otherReceives(n, p)
		reply()
		return
	}
	if p.control == smp.SMControlAcknowledge && w.wrong == endUnseen {
		reply()
		return
	}
	method := mad.MethodGet
	if p.what == control {
		method = mad.MethodSet
	}
	info, status, effects := x.engine.Receive(w.time, at(int(p.from)), method, uint32(p.control), p.info)
	r.info, r.status = info, status
	reply()
	w.follow(n, effects)
}

// answered hands an answer to whoever asked.
func (w *world) answered(p *packet) {
	n, from := int(p.to), int(p.from)
	x := &w.nodes[n]
	if p.of == ask {
		if x.asking>>from&1 == 0 {
			return
		}
		x.asking &^= 1 << from
		if x.kind != ours || x.engine.Counts(mastership.Remote{Info: p.info, Address: at(from)}) || !w.named {
			x.got[from] = p.info
		}
		w.ended(n)
		return
	}
	switch x.kind {
	case openSM:
		w.otherAnswered(n, p)
	case ours:
		if p.of == control && w.wrong == endUnseen {
			return
		}
		m := mastership.Message{To: at(from), GUID: guid(from), Method: mad.MethodGet}
		if p.of == control {
			m.Method, m.Control = mad.MethodSet, p.control
		}
		w.follow(n, x.engine.Answered(m, p.status, p.info))
	}
}

// due reports whether a manager has something to do that waits for no packet.
func (w *world) due(n int) bool {
	x := &w.nodes[n]
	if !x.alive || x.paused || x.kind == rogue {
		return false
	}
	if x.want && x.isMaster() && slices.ContainsFunc(w.mail, func(p packet) bool { return int(p.from) == n && !p.late && w.arrives(&p) }) {
		return false // reading the subnet takes longer than what it has just sent
	}
	if x.want || x.round != 0 && w.time >= x.round {
		return true
	}
	if x.kind == openSM {
		return x.other.watched && w.time >= x.other.next
	}
	t, ok := x.engine.Due()
	return ok && w.time >= t
}

// act does it.
func (w *world) act(n int) {
	x := &w.nodes[n]
	switch {
	case x.want:
		w.say("%s has read the subnet, and asks who is there", name(n))
		w.begin(n)
	case x.round != 0 && w.time >= x.round:
		w.say("%s asks again who is there", name(n))
		x.round = w.time + roundEvery
		w.askAll(n)
	case x.kind == openSM:
		w.say("%s looks at its clock", name(n))
		w.otherTicks(n)
	default:
		w.say("%s looks at its clock", name(n))
		w.follow(n, x.engine.Tick(w.time))
	}
}

// leading reports whether a service has to take over the store, or to leave it. It does
// what service.Service.Lead and Regain do.
func (w *world) leading(n int) bool {
	x := &w.nodes[n]
	if x.kind != ours || !x.alive || x.paused {
		return false
	}
	return x.service.told != (x.service.state != notMaster) || x.service.again
}

func (w *world) lead(n int) {
	s := &w.nodes[n].service
	if !s.told {
		w.say("the service of %s leaves the store", name(n))
		*s = service{}
		return
	}
	w.epoch = w.wrong.acquire(w.epoch)
	w.writer = n
	s.epoch, s.after, s.state, s.again = w.epoch, w.last, leads, false
	w.say("the service of %s takes the store with epoch %d", name(n), s.epoch)
}

// commit is the store's side of a transaction: the code of the stores decides.
func (w *world) commit(p *packet) {
	c := store.Commit{Epoch: p.epoch, After: p.after, Revision: []byte("r"), Audit: []store.Entry{storetest.About(p.after + 1)}}
	err := w.wrong.allowed(&c, &store.State{Epoch: w.epoch, Revision: w.last})
	s := &w.nodes[p.from].service
	own := s.epoch == p.epoch && w.nodes[p.from].alive
	switch {
	case errors.Is(err, store.ErrFenced):
		if own && s.state == leads {
			s.state = fenced
		}
		return
	case errors.Is(err, store.ErrStale):
		return
	case err != nil:
		panic(err)
	}
	if w.writer != int(p.from) || w.epoch != p.epoch {
		w.broken = fmt.Sprintf("the store takes a transaction of %s with epoch %d, and %s has acquired it since", name(int(p.from)), p.epoch, name(w.writer))
	}
	w.last++
	if own {
		s.after = w.last
	}
}

// relative is a deadline as it is compared: 0 for none, 1 for due.
func (w *world) relative(t time.Duration) byte {
	switch {
	case t == 0:
		return 0
	case t <= w.time:
		return 1
	}
	return byte(1 + (t-w.time)/interval)
}
