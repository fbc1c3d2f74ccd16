// ChangedLinks keep the links that have changed since the subnet was read: why, and when
// each may be followed. One that changes often is followed seldom.

package watch

import (
	"maps"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// ChangedLinks are those that have changed, by the place of one of their ports. The zero value is
// empty.
type ChangedLinks struct {
	at       map[observed.Place]*changedLink
	followed Links
}

// changedLink is a link that has changed.
type changedLink struct {
	reason string
	at     time.Duration // not to be followed sooner
	// visited reports whether it is being followed, around that packets were led around it.
	visited, around bool
	// mute reports whether it has not changed itself, as far as is known: the device behind it
	// did not answer, or answers again.
	mute bool
}

// Add enters that the link of a port has changed, which is to be followed from a time on. It
// reports whether that is news of a link which changes so often that it is left alone for now.
func (x *ChangedLinks) Add(now time.Duration, p *observed.Port, reason string, at time.Duration) (often bool) {
	return x.add(now, p, reason, at, false)
}

// AddMute enters the same of a link that has not changed: the device behind it did not answer,
// or answers again.
func (x *ChangedLinks) AddMute(now time.Duration, p *observed.Port, reason string) (often bool) {
	return x.add(now, p, reason, now, true)
}

func (x *ChangedLinks) add(now time.Duration, p *observed.Port, reason string, at time.Duration, mute bool) (often bool) {
	place := p.Place()
	may := x.followed.Next(now, place, mute)
	m := x.at[place]
	if m != nil && m.at <= max(at, may) {
		return false
	}
	noted := m != nil
	if !noted {
		if x.at == nil {
			x.at = make(map[observed.Place]*changedLink)
		}
		m = &changedLink{}
		x.at[place] = m
	}
	m.reason, m.at, m.mute = reason, max(at, may), mute
	return !noted && may > now
}

// Len is the number of them.
func (x *ChangedLinks) Len() int { return len(x.at) }

// Clear forgets all; how often each was followed stays known.
func (x *ChangedLinks) Clear() { clear(x.at) }

// Due is the first time at which one of them may be followed.
func (x *ChangedLinks) Due() (at time.Duration, some bool) {
	for _, m := range x.at {
		if !some || m.at < at {
			at, some = m.at, true
		}
	}
	return at, some
}

// Follow begins to follow those that may be followed now, in order, and gives the reason of the
// first.
func (x *ChangedLinks) Follow(f *observed.Fabric, now time.Duration) (due []*observed.Port, reason string) {
	due = x.ports(f, func(m *changedLink) bool { return m.at <= now })
	for _, p := range due {
		m := x.at[p.Place()]
		x.followed.Take(now, p.Place(), m.mute)
		m.visited = true
	}
	if len(due) > 0 {
		reason = x.at[due[0].Place()].reason
	}
	return due, reason
}

// Interrupted reports whether those that were being followed are to be followed later.
func (x *ChangedLinks) Interrupted(until time.Duration) {
	for _, m := range x.at {
		m.visited, m.at = false, max(m.at, until)
	}
}

// Followed forgets those that were being followed. It returns those that lead where they led,
// as a new snapshot has it.
func (x *ChangedLinks) Followed(f *observed.Fabric) (again LinksAgain) {
	for _, p := range x.ports(f, func(m *changedLink) bool { return m.visited }) {
		again.Add(f, p, x.at[p.Place()].reason)
	}
	maps.DeleteFunc(x.at, func(_ observed.Place, m *changedLink) bool { return m.visited })
	return again
}

// Forget forgets some.
func (x *ChangedLinks) Forget(ports []*observed.Port) {
	for _, p := range ports {
		delete(x.at, p.Place())
	}
}

// Ports are the ports of all of them that a snapshot has, in order; the others are forgotten.
func (x *ChangedLinks) Ports(f *observed.Fabric) []*observed.Port {
	return x.ports(f, func(*changedLink) bool { return true })
}

func (x *ChangedLinks) ports(f *observed.Fabric, which func(*changedLink) bool) (out []*observed.Port) {
	for _, at := range slices.SortedFunc(maps.Keys(x.at), observed.Place.Compare) {
		if !which(x.at[at]) {
			continue
		}
		if p := f.At(at); p != nil && p.Reached {
			out = append(out, p)
		} else {
			delete(x.at, at)
		}
	}
	return out
}

// OutOfDate reports whether a snapshot has a device behind one of them.
func (x *ChangedLinks) OutOfDate(f *observed.Fabric) bool {
	for at := range x.at {
		if p := f.At(at); p != nil && p.Peer != nil {
			return true
		}
	}
	return false
}

// Fallen reports whether any of them joins two switches in a snapshot and went down, and was
// not told of before.
func (x *ChangedLinks) Fallen(f *observed.Fabric) (some bool) {
	for at, m := range x.at {
		p := f.At(at)
		if p == nil || m.around || p.Node.Switch == nil || p.Num == 0 || p.Peer == nil || p.Peer.Node.Switch == nil || p.IsTrained() {
			continue
		}
		m.around, some = true, true
	}
	return some
}
