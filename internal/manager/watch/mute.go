package watch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/observed"
)

const (
	// muteFirst is how long after a device did not answer it is asked again.
	muteFirst = 250 * time.Millisecond
	// muteShare is what part of the time that it has owed an answer passes until the next question.
	muteShare = 16
	// muteLast is the longest time between two questions to a device that answers nothing: a
	// light sweep every 10 s, with 8 tries each, sends as many packets.
	muteLast = 1250 * time.Millisecond
	// mutesMost is how many are asked in muteRound at the most.
	mutesMost = 64
	muteRound = 100 * time.Millisecond
)

// Mutes are the devices that owe an answer. Of some nothing is known but the link that leads
// to them; of others something could not be read or written. They are asked at intervals that
// grow with the time that they have owed it. The zero value is empty.
type Mutes struct {
	at    map[observed.Place]*mute
	next  time.Duration // nobody is to be asked sooner
	round time.Duration // when the present round ends
	asked int           // in it
}

type mute struct {
	since, at time.Duration
	owes      Owes
}

// Owes is what a device has not answered.
type Owes uint8

const (
	Nothing    Owes = iota
	Write           // something could not be written to it
	Read            // something of it could not be read
	Everything      // nothing is known but the link that leads to it
)

// Add enters who owes what: the device of a port or, of Everything, the one behind it. Who is
// there already has owed it since he was entered.
func (x *Mutes) Add(now time.Duration, at observed.Place, what Owes) {
	if x.at == nil {
		x.at = make(map[observed.Place]*mute)
	}
	m := x.at[at]
	if m == nil {
		m = &mute{since: now, owes: what}
		x.at[at] = m
		x.again(now, m)
	}
	m.owes = what
}

// Keep forgets those that owe nothing any more.
func (x *Mutes) Keep(owes func(observed.Place) bool) {
	maps.DeleteFunc(x.at, func(at observed.Place, _ *mute) bool { return !owes(at) })
}

// again says when it is asked next.
func (x *Mutes) again(now time.Duration, m *mute) {
	wait := max(muteFirst, (now-m.since)/muteShare)
	if m.owes == Everything {
		wait = min(wait, muteLast)
	}
	m.at = now + wait
	x.next = min(x.next, m.at)
}

// Next is when the next is to be asked, or sooner.
func (x *Mutes) Next() (at time.Duration, some bool) {
	if x.asked >= mutesMost {
		return max(x.next, x.round), len(x.at) > 0
	}
	return x.next, len(x.at) > 0
}

// Due calls ask for those that are to be asked now, in order. Those that are left when there are too
// many are asked soon after.
func (x *Mutes) Due(now time.Duration, ask func(at observed.Place, what Owes)) {
	if at, some := x.Next(); !some || now < at {
		return
	}
	if now >= x.round {
		x.round, x.asked = now+muteRound, 0
	}
	var due []observed.Place
	x.next = now + muteLast
	for at, m := range x.at {
		if m.at <= now {
			due = append(due, at)
		} else {
			x.next = min(x.next, m.at)
		}
	}
	slices.SortFunc(due, func(a, b observed.Place) int {
		return cmp.Or(cmp.Compare(x.at[a].at, x.at[b].at), a.Compare(b)) // who has waited longest goes first
	})
	if most := mutesMost - x.asked; len(due) > most {
		due, x.next = due[:most], now
	}
	x.asked += len(due)
	for _, at := range due {
		m := x.at[at]
		x.again(now, m)
		ask(at, m.owes)
	}
}
