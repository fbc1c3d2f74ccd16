// Package watch keeps the state of monitoring between passes: which tables to read back
// next, which ports repeatedly benefit from foreign changes, and which devices send
// more traps than are examined.
//
// It also tells which links and devices came and went between two snapshots, and keeps
// those links that have changed until they are followed.
//
// Everything is a plain value: observations and time go in, actions come out.
//
// Explain and Report format traps with names; Heard remembers those without a TrapRepress,
// to recognise their repetitions.
package watch

import (
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// StandbyReads is how long after it was master a standby reads the subnet, so that it can take over
// again: the next master has done by then what it does first.
const StandbyReads = time.Second

const (
	// guardShare is what share of the rate is for the guards; the rest is for
	// the tables of end ports, of which those behind a guard isolate nobody.
	guardShare = 0.75
	// tick is how often the next few are asked for.
	tick = 10 * time.Millisecond
)

// Guards says which tables that isolate are to be read back next.
type Guards struct {
	// Period is the time in which a foreign change of a guard is to be seen, Rate
	// how many tables a second are read back for that at the most.
	Period time.Duration
	Rate   int

	// near are the tables and settings of switch ports before end ports and
	// strangers, far those of end ports.
	near, far Round
	at        time.Duration // when the next are due
	reported  time.Duration // the period that was told last
}

// Round is a list that is read again and again.
type Round struct {
	list []observed.Block
	next int
	due  float64 // of them, to be asked for now
	out  int     // asked for and not answered
	lap  *lap    // once through the list, under way; nil between two
	// read is when the last lap began in which all were answered; some: there was one.
	read time.Duration
	some bool
}

// lap is one reading of a whole list.
type lap struct {
	began       time.Duration
	asked, open int
	missed      bool // one was not answered, or the list has changed
}

// List makes the lists again: checks are all blocks that can change. slower tells
// that the period has become another, and is longer than was asked for.
func (g *Guards) List(f *observed.Fabric, checks []observed.Block) (slower bool) {
	g.near.list, g.far.list = g.near.list[:0], g.far.list[:0]
	for _, n := range f.Switches() {
		g.near.list = append(g.near.list, observed.Block{Port: &n.Ports[0], Attribute: smp.AttrSwitchInfo})
	}
	for _, b := range checks {
		switch p := b.Port; {
		case b.Attribute != smp.AttrPKeyTable && b.Attribute != smp.AttrPortInfo:
		case p.IsEnd():
			g.far.list = append(g.far.list, b)
		case p.FacesEnd() || p.FacesStranger():
			g.near.list = append(g.near.list, b)
		}
	}
	g.near.next, g.far.next = min(g.near.next, len(g.near.list)), min(g.far.next, len(g.far.list))
	g.near.broken()
	g.far.broken()
	period := g.InForce()
	slower = period != g.reported && period > g.Period
	g.reported = period
	return slower
}

// InForce is the time in which a foreign change of a guard is seen: Period, or
// longer where more tables would have to be read a second than Rate.
func (g *Guards) InForce() time.Duration {
	return max(g.Period, time.Duration(float64(len(g.near.list))/(guardShare*float64(g.Rate))*float64(time.Second)))
}

// Near is how many tables and settings of switch ports are watched, Len how many
// there are with those of end ports.
func (g *Guards) Near() int { return len(g.near.list) }

// Len is how many tables and settings are watched.
func (g *Guards) Len() int { return len(g.near.list) + len(g.far.list) }

// At is when the next are due.
func (g *Guards) At() time.Duration { return g.at }

// Read is a time after which every table that is watched was read back; false where there is none.
func (g *Guards) Read() (since time.Duration, some bool) {
	since, some = g.near.read, g.near.some || len(g.near.list) == 0
	if len(g.far.list) > 0 {
		since, some = min(since, g.far.read), some && g.far.some
	}
	return since, some && g.Len() > 0
}

// Forget is called when nothing that was asked for will be answered any more.
func (g *Guards) Forget() {
	for _, r := range []*Round{&g.near, &g.far} {
		r.out = 0
		r.broken()
	}
}

// broken ends a lap that does not count.
func (r *Round) broken() {
	if r.lap != nil {
		r.lap.missed, r.lap = true, nil
	}
}

// Next calls ask for the blocks that are due at a time; done is to be called when
// the answer has come, or none will. Devices that do not answer slow down nobody
// else's turn, but no more than a round is outstanding.
func (g *Guards) Next(now time.Duration, ask func(b observed.Block, done func(answered bool))) {
	if now < g.at {
		return
	}
	passed := now - g.at + tick
	if g.at == 0 || passed > 4*tick {
		passed = tick // it was not watched meanwhile
	}
	g.at = now + tick
	near := float64(len(g.near.list)) / g.InForce().Seconds()
	far := min(float64(len(g.far.list))/g.Period.Seconds(), float64(g.Rate)-near)
	g.near.ask(now, near*passed.Seconds(), ask)
	g.far.ask(now, far*passed.Seconds(), ask)
}

// ask asks for so many more of a list.
func (r *Round) ask(now time.Duration, more float64, ask func(observed.Block, func(bool))) {
	r.due = min(r.due+more, float64(len(r.list)))
	for r.due >= 1 && len(r.list) > 0 && r.out < len(r.list) {
		r.due--
		b := r.list[r.next%len(r.list)]
		r.next = (r.next + 1) % len(r.list)
		r.out++
		if r.lap == nil {
			r.lap = &lap{began: now}
		}
		l := r.lap
		l.asked++
		l.open++
		if l.asked == len(r.list) {
			r.lap = nil
		}
		ask(b, func(answered bool) {
			r.out--
			l.open--
			l.missed = l.missed || !answered
			if l.asked == len(r.list) && l.open == 0 && !l.missed {
				r.read, r.some = l.began, true
			}
		})
	}
}
