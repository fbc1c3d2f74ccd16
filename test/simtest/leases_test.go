package simtest

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/mastership"
)

// storeMost is how long a request to the store, or its answer, is under way at the most.
const storeMost = 20 * time.Millisecond

// post is what a clerk and the store tell each other about the right to write.
type post struct {
	keeper *mastership.Keeper
	mail   []func() // answers that have arrived
	beatAt time.Duration
	taking bool
	hangs  []func() func() // requests that the store has not answered, while it answers none
}

// call sends a request, which do carries out in the store; what it returns is the answer.
func (s *succession) call(c *clerk, do func() func()) {
	from := c.seat
	if c.cut {
		if c.hangs != nil {
			c.hangs = append(c.hangs, do)
		}
		return
	}
	s.fabric.At(s.soon(storeMost), func() {
		if c.cut {
			return
		}
		answer := do()
		s.fabric.At(s.soon(storeMost), func() {
			if !c.cut && c.seat == from {
				c.mail = append(c.mail, answer)
			}
		})
	})
}

// soon is a time from now on.
func (s *succession) soon(most time.Duration) time.Duration {
	return s.fabric.Now() + 1 + time.Duration(s.r.Int64N(int64(most)))
}

// written enters the record of who may write, and lets all know who watch it.
func (s *succession) written(r mastership.Record) {
	r.Version, r.TTL = s.record.Version+1, mastership.DefaultTTL
	s.record = r
	for _, c := range s.clerks {
		s.call(c, func() func() { return func() { c.keeper.See(s.fabric.Now(), r) } })
	}
}

// read reads it.
func (s *succession) read(c *clerk) {
	s.call(c, func() func() {
		r := s.record
		return func() { c.keeper.See(s.fabric.Now(), r) }
	})
}

// leaseTurn is what the service of a manager does about its right to write.
func (s *succession) leaseTurn(c *clerk) {
	now, k := s.fabric.Now(), c.keeper
	mail := c.mail
	c.mail = nil
	for _, f := range mail {
		f()
	}
	is := s.isMaster(c) && !c.engine.Manager().Lease().Deaf()
	if !is && k.Term() != 0 {
		term := k.Term()
		k.Lost()
		s.tell(c)
		s.call(c, func() func() {
			if s.record.Term == term {
				s.written(mastership.Record{Term: term, Given: true})
			}
			return func() {}
		})
	}
	if now >= c.beatAt {
		c.beatAt = now + mastership.RenewEvery(mastership.DefaultTTL)
		s.fabric.At(c.beatAt, func() {})
		if s.read(c); k.Term() != 0 {
			s.renew(c)
		}
	}
	if is && k.Term() == 0 && !c.taking && (!c.fenced || c.alone) {
		switch at, known := k.Free(); {
		case known && now >= at:
			s.acquire(c)
		case known:
			s.fabric.At(at, func() {})
		}
	}
	s.tell(c)
}

// tell hands the engine what it may.
func (s *succession) tell(c *clerk) { c.engine.Manager().SetLease(c.keeper.Grant()) }

func (s *succession) renew(c *clerk) {
	sent, term := s.fabric.Now(), c.keeper.Term()
	s.call(c, func() func() {
		if s.record.Term != term {
			return func() {
				if c.keeper.Term() == term {
					c.keeper.Lost()
				}
			}
		}
		s.written(mastership.Record{Term: term})
		return func() { c.keeper.Renewed(sent, term) }
	})
}

// acquire takes the store over, if the record is the one that was seen.
func (s *succession) acquire(c *clerk) {
	sent, now := s.fabric.Now(), c.keeper
	seen, _ := now.Record()
	c.taking = true
	s.fabric.At(sent+2*storeMost, func() { c.taking = false })
	s.call(c, func() func() {
		if s.record.Version != seen.Version {
			return func() {}
		}
		s.epoch++
		epoch := s.epoch
		s.written(mastership.Record{Term: uint64(epoch)})
		return func() {
			c.keeper.Took(sent, uint64(epoch), seen)
			c.epoch, c.leads, c.fenced = epoch, true, false
			if !s.forgets {
				s.give(c, len(s.revisions)-1)
			}
		}
	})
}

// heal has a store answer again that did not: what hung is carried out now.
func (s *succession) heal(c *clerk) {
	hangs := c.hangs
	c.cut, c.hangs = false, nil
	for _, do := range hangs {
		s.call(c, do)
	}
}
