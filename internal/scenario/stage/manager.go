package stage

import (
	"errors"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
)

// Engine is a subnet manager as a value: packets and time in, packets out.
type Engine interface {
	Next(now time.Duration, p *mad.SMP) (ib.LID, bool)
	Receive(now time.Duration, p *mad.SMP, slid ib.LID)
	Deadline() (time.Duration, bool)
	Expire(now time.Duration)
	Settled() bool
}

// Seat lets a manager run at an end port. It has the port to itself: no packets
// of others are sent from there.
func (s *Stage) Seat(p Port, e Engine) error {
	at, err := s.station(p)
	if err != nil {
		return err
	}
	if at.engine != nil || at == s.sender || at.manages {
		return fmt.Errorf("%s: want a port that nobody else sends from", s.Name(p))
	}
	at.engine, at.manages = e, true
	at.place.SetIsSM(true)
	return nil
}

// Dismiss takes a manager away without a word.
func (s *Stage) Dismiss(p Port) error {
	for _, at := range s.stations {
		if at.Port == p && at.engine != nil {
			at.engine = nil
			return s.Resign(p)
		}
	}
	return fmt.Errorf("%s: no manager runs there", s.Name(p))
}

// settleLimit is how much time managers may take to settle.
const settleLimit = 10 * time.Minute

// Settle lets time pass until every manager has nothing to do before time
// passes or something arrives.
func (s *Stage) Settle() error {
	settled := func() bool {
		for _, at := range s.stations {
			if at.engine != nil && !at.engine.Settled() {
				return false
			}
		}
		return true
	}
	if err := s.Until(s.Fabric.Now()+settleLimit, settled); err != nil {
		return err
	}
	if !settled() {
		return fmt.Errorf("a manager does not settle within %v", settleLimit)
	}
	return nil
}

var errNeverRests = errors.New("a manager runs, and never rests: want settle or advance")

// restless tells that some manager runs.
func (s *Stage) restless() bool {
	for _, at := range s.stations {
		if at.engine != nil {
			return true
		}
	}
	return false
}

// speak sends what managers have to send.
func (s *Stage) speak() {
	var p mad.SMP
	for _, at := range s.stations {
		for at.engine != nil {
			dlid, ok := at.engine.Next(s.Fabric.Now(), &p)
			if !ok {
				break
			}
			at.post(&p, dlid)
		}
	}
}

// due is when the next thing happens, in the fabric or at a manager.
func (s *Stage) due() (time.Duration, bool) {
	next, some := s.Fabric.NextEvent()
	for _, at := range s.stations {
		if at.engine == nil {
			continue
		}
		if t, ok := at.engine.Deadline(); ok && (!some || t < next) {
			next, some = t, true
		}
	}
	return next, some
}

// expire tells managers the time.
func (s *Stage) expire() {
	for _, at := range s.stations {
		if at.engine != nil {
			at.engine.Expire(s.Fabric.Now())
		}
	}
}
