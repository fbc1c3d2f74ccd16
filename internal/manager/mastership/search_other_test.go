package mastership_test

import (
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// other is a manager that behaves as OpenSM is known to. It sends no ACKNOWLEDGE; it
// goes to standby as soon as it has sent HANDOVER, whatever becomes of that; it ignores
// managers that do not show its key; as a standby it counts every poll that is not
// answered by a master; as a master it does not write while it knows of another.
type other struct {
	state    smp.SMState
	acts     uint32
	watched  bool
	watch    uint8
	failed   uint8
	next     time.Duration
	answered bool
}

func (w *world) otherInfo(n int) smp.SMInfo {
	x := &w.nodes[n]
	return smp.SMInfo{GUID: guid(n), SMKey: listedKey, ActCount: x.other.acts, Priority: x.prio, SMState: x.other.state}
}

// ranks reports whether the manager in info outranks n, which is not ours.
func (w *world) ranks(info *smp.SMInfo, n int) bool {
	own := w.nodes[n].prio
	return info.Priority > own || info.Priority == own && info.GUID < guid(n)
}

// otherWatches has it poll a manager.
func (w *world) otherWatches(n, whom int) {
	o := &w.nodes[n].other
	o.watched, o.watch, o.failed, o.answered, o.next = true, uint8(whom), 0, true, w.time+interval
}

func (w *world) otherBecomes(n int, s smp.SMState) {
	x := &w.nodes[n]
	x.other.state = s
	x.writes = false
	if s != smp.SMMaster {
		x.round = 0
	}
}

// otherDecides is the end of its round.
func (w *world) otherDecides(n int) {
	x := &w.nodes[n]
	o := &x.other
	master, best := -1, -1
	for i := range x.got {
		info := &x.got[i]
		if info.GUID == 0 || info.SMKey != listedKey || info.SMState == smp.SMNotActive {
			continue
		}
		if info.SMState == smp.SMMaster && (master < 0 || w.ranks(info, n)) {
			master = i
		}
		if w.ranks(info, n) && (best < 0 || info.Priority > x.got[best].Priority) {
			best = i
		}
	}
	switch {
	case o.state == smp.SMDiscovering && master >= 0:
		w.otherBecomes(n, smp.SMStandby)
		w.otherWatches(n, master)
	case o.state == smp.SMDiscovering && best >= 0:
		w.otherBecomes(n, smp.SMStandby)
		w.otherWatches(n, best)
	case o.state == smp.SMDiscovering:
		w.otherBecomes(n, smp.SMMaster)
		x.writes, x.round, o.watched = true, w.time+roundEvery, false
	case o.state == smp.SMMaster && best >= 0 && x.got[best].SMState >= smp.SMStandby:
		o.acts++
		w.send(packet{what: control, control: smp.SMControlHandover, from: uint8(n), to: uint8(best), info: w.otherInfo(n)})
		w.otherBecomes(n, smp.SMStandby)
		w.otherWatches(n, best)
	case o.state == smp.SMMaster && master >= 0:
		x.writes = false
		w.otherWatches(n, master)
	case o.state == smp.SMMaster:
		x.writes, o.watched = true, false
	}
	x.got = [most]smp.SMInfo{}
	if x.again {
		w.askAll(n)
	}
}

// otherTicks polls, or gives the polled manager up.
func (w *world) otherTicks(n int) {
	x := &w.nodes[n]
	o := &x.other
	if o.answered {
		o.failed = 0
	} else {
		o.failed++
	}
	if o.failed > polls {
		o.watched = false
		if o.state == smp.SMStandby {
			w.otherBecomes(n, smp.SMDiscovering)
		}
		x.want = true
		return
	}
	o.acts++
	o.answered, o.next = false, w.time+interval
	w.send(packet{what: poll, from: uint8(n), to: o.watch})
}

func (w *world) otherAnswered(n int, p *packet) {
	o := &w.nodes[n].other
	if p.of != poll || !o.watched || o.watch != p.from || p.info.SMKey != listedKey {
		return
	}
	o.answered = p.info.SMState == smp.SMMaster
	if o.state == smp.SMMaster && !o.answered {
		o.watched = false
		w.nodes[n].want = true // the second master has stepped back
	}
}

func (w *world) otherReceives(n int, p *packet) (smp.SMInfo, mad.Status) {
	x := &w.nodes[n]
	status := mad.StatusOK
	if p.what == control {
		listed := p.info.SMKey == listedKey && p.info.GUID == guid(int(p.from))
		switch {
		case !listed || p.control != smp.SMControlAcknowledge && p.info.SMState != smp.SMMaster:
			status = mad.StatusInvalidField
		case p.control == smp.SMControlHandover && x.other.state == smp.SMStandby:
			w.otherBecomes(n, smp.SMMaster)
			x.other.watched, x.want = false, true
		case p.control == smp.SMControlHandover && x.other.state == smp.SMMaster:
			x.want = true
		case p.control != smp.SMControlAcknowledge:
			status = mad.StatusInvalidField
		}
	}
	x.other.acts++
	return w.otherInfo(n), status
}

// forged is what a rogue may send: a control packet, in its own name or another's.
func (w *world) forge(n, to int, c smp.SMControl, as int) {
	info := smp.SMInfo{GUID: guid(as), Priority: 15, SMState: smp.SMMaster, ActCount: 1 << 20}
	if c == smp.SMControlAcknowledge {
		info.SMState = smp.SMStandby
	}
	p := packet{what: control, control: c, from: uint8(n), to: uint8(to), info: info}
	w.say("%s sends, in the name of %s, %v", name(n), name(as), p)
	w.send(p)
}
