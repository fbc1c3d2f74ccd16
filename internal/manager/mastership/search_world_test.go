package mastership_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/store"
)

const (
	most = 3 // managers

	// interval is the unit of time of the model: everybody polls once in it. What comes
	// first within one is left open, so nothing finer is needed.
	interval = time.Second
	// polls is how many of them may fail.
	polls = 2
	// roundEvery is the time between two rounds of questions by a master.
	roundEvery = 3 * interval
	// start is when the model begins. A deadline of 0 is none.
	start = 1000 * interval
)

// kind is what a participant is.
type kind uint8

const (
	ours   kind = iota
	openSM      // a listed manager that behaves as OpenSM does
	rogue       // on a host; nobody named it, and it says what it likes
)

// setup is what a search begins with.
type setup struct {
	name  string
	kinds []kind
	// priorities are those at the start, again those that a manager may have when it
	// comes back; nil for the same.
	priorities, again []uint8
	// named has only managers count that are listed or prove themselves.
	named bool
	left  budget
	// meek has a rogue tell only masters that it is there.
	meek bool
	// now has the search look at single states only, not at what becomes of them.
	now bool
	// wrong is a fault that is put in on purpose.
	wrong wrong
}

func (s *setup) String() string {
	who := "every manager counts"
	if s.named {
		who = "named managers"
	}
	return fmt.Sprintf("%s, priorities %v, %s, %v", s.name, s.priorities, who, s.left)
}

// budget is how many times each thing may go wrong.
type budget struct {
	lose, double, delay, kill, start, pause, cut, forge, commit, order uint8
}

func (b budget) String() string {
	var out []string
	for _, x := range []struct {
		n    uint8
		what string
	}{
		{b.lose, "lost"}, {b.double, "doubled"}, {b.delay, "late"}, {b.kill, "killed"}, {b.start, "started"}, {b.pause, "paused"},
		{b.cut, "cut"}, {b.forge, "forged"}, {b.commit, "committed"}, {b.order, "ordered"},
	} {
		if x.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	if out == nil {
		return "nothing goes wrong"
	}
	return strings.Join(out, ", ")
}

func (b budget) and(o budget) budget {
	return budget{
		b.lose + o.lose, b.double + o.double, b.delay + o.delay, b.kill + o.kill, b.start + o.start, b.pause + o.pause,
		b.cut + o.cut, b.forge + o.forge, b.commit + o.commit, b.order + o.order,
	}
}

// node is a manager with the machine that it is on.
type node struct {
	kind   kind
	prio   uint8
	alive  bool
	paused bool
	on     bool // it has read the subnet, and answers
	// want says that it has to read the subnet and ask the others, asking whom it waits
	// for, again that another round comes after this one, got what the others answered.
	want, again bool
	asking      uint8
	got         [most]smp.SMInfo
	// round is when a master asks again.
	round time.Duration
	// writes says that it may write to the fabric, shares that it knows of another master.
	writes, shares bool
	engine         mastership.Election
	other          other
	service        service
}

// service is the part of a manager that writes the store.
type service struct {
	told  bool // the manager is master
	again bool // it has to take the store over once more
	state lost
	epoch store.Epoch
	after uint64 // the last revision that it knows
}

// lost is why a service writes nothing.
type lost uint8

const (
	notMaster lost = iota
	leads
	fenced
)

// what a packet is.
type what uint8

const (
	ask      what = iota + 1 // a question of a round
	poll                     // a Get by the engine
	control                  // a Set
	answer                   // to one of them, named in packet.to
	toCommit                 // a transaction on its way to the store
)

// packet is under way.
type packet struct {
	what, of what // of: what is answered
	from, to uint8
	control  smp.SMControl
	status   mad.Status
	info     smp.SMInfo
	late     bool // it takes longer than others
	orphan   bool // who sent it is not there any more
	epoch    store.Epoch
	after    uint64
}

// world is all there is at one moment.
type world struct {
	*setup
	time  time.Duration
	calm  bool // nothing goes wrong any more
	nodes [most]node
	cuts  [most]uint8 // bit n of cuts[m]: m and n cannot reach each other
	mail  []packet
	// The store: its newest epoch and revision, and who has acquired it last.
	epoch  store.Epoch
	last   uint64
	writer int
	left   budget
	// whole says that nothing has gone wrong since the managers agreed.
	whole bool
	// planned says that an administrator had a master hand over: ranks do not tell any
	// more who is to be master.
	planned bool
	// broken is the property that the last move broke.
	broken string
	// tells has moves said in words, in told.
	tells bool
	told  string
}

func guid(n int) ib.PortGUID { return ib.PortGUID(n + 1) }

func name(n int) string { return string(rune('A' + n)) }

func at(n int) mastership.Address {
	return mastership.Address{LID: ib.LID(n + 1), Port: guid(n)}
}

func nodeOf(g ib.PortGUID) int { return int(g) - 1 }

const listedKey = ib.SMKey(1)

// pairKey is the key that one of ours shows another.
func pairKey(from, to ib.PortGUID) ib.SMKey { return ib.SMKey(100 + 10*from + to) }

func (s *setup) ofKind(k kind) (out []ib.PortGUID) {
	for i, have := range s.kinds {
		if have == k {
			out = append(out, guid(i))
		}
	}
	return out
}

// boot starts a manager.
func (w *world) boot(n int, prio uint8) {
	x := &w.nodes[n]
	*x = node{kind: w.kinds[n], prio: prio, alive: true, want: true}
	if x.kind == rogue {
		x.want, x.on = false, true
		return
	}
	if x.kind == openSM {
		x.other = other{state: smp.SMDiscovering}
		return
	}
	c := mastership.ElectionConfig{GUID: guid(n), Priority: prio, PollInterval: interval, Polls: polls, Named: w.named}
	c.Trusted = w.ofKind(openSM)
	if len(c.Trusted) > 0 {
		c.SMKey, c.ShowKey = listedKey, true
	}
	if w.named {
		c.Key = pairKey
	} else if len(c.Trusted) > 0 || len(w.ofKind(rogue)) > 0 {
		c.Trusted = append(c.Trusted, w.ofKind(ours)...)
	}
	w.wrong.config(&c)
	e, err := mastership.NewElection(c)
	if err != nil {
		panic(err)
	}
	x.engine = *e
}

// state is what a manager is.
func (x *node) state() smp.SMState {
	if x.kind == ours {
		return x.engine.State()
	}
	return x.other.state
}

// isMaster reports whether a manager lives and is master.
func (x *node) isMaster() bool { return x.alive && x.kind != rogue && x.state() == smp.SMMaster }

// trusts is the judge's own opinion of who is to be trusted.
func (w *world) trusts(n int) bool { return w.kinds[n] != rogue }

// outranks is the judge's own opinion of rank.
func (w *world) outranks(a, b int) bool {
	if w.nodes[a].prio != w.nodes[b].prio {
		return w.nodes[a].prio > w.nodes[b].prio
	}
	return a < b
}

// reach reports whether packets go from one manager to another.
func (w *world) reach(a, b int) bool { return w.cuts[a]>>b&1 == 0 }

// copy is another world that is the same.
func (w *world) copy() *world {
	v := *w
	v.mail = slices.Clone(w.mail)
	v.broken = ""
	return &v
}

// send puts a packet under way, if it can arrive. A copy of one that waits for somebody
// who sleeps takes its place.
func (w *world) send(p packet) {
	if p.what != toCommit && (!w.nodes[p.to].alive || !w.reach(int(p.from), int(p.to))) {
		w.unanswered(p)
		return
	}
	if p.what == control && w.nodes[p.to].paused {
		w.mail = slices.DeleteFunc(w.mail, func(q packet) bool {
			return q.what == control && q.from == p.from && q.to == p.to && q.control == p.control
		})
	}
	w.mail = append(w.mail, p)
}

// unanswered takes a packet away: whoever waits for it waits no more.
func (w *world) unanswered(p packet) {
	asker := int(p.from)
	if p.what == answer {
		asker = int(p.to)
		p.what, p.to = p.of, p.from
	}
	if p.what == ask {
		w.nodes[asker].asking &^= 1 << p.to
		w.ended(asker)
	}
}

// drop takes the packets away for which gone holds.
func (w *world) drop(gone func(p *packet) bool) {
	var lost []packet
	w.mail = slices.DeleteFunc(w.mail, func(p packet) bool {
		if gone(&p) {
			lost = append(lost, p)
			return true
		}
		return false
	})
	for _, p := range lost {
		w.unanswered(p)
	}
}
