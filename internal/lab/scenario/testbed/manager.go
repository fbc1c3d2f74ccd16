package testbed

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Engine is a manager of a subnet as a value: packets and time in, packets out.
type Engine interface {
	link.Engine
	Settled() bool
}

// Seat lets a manager, which make makes, run at an end port. It has the port to
// itself: no packets of others are sent from there.
func (s *Testbed) Seat(p observed.Place, make func(*inproc.Link) Engine) error {
	for i, at := range s.stations {
		if at.Place != p {
			continue
		}
		if at.engine != nil || at == s.sender || at.manages {
			return fmt.Errorf("%s: want a port that nobody else sends from", s.Name(p))
		}
		at.place.Detach()
		s.stations = slices.Delete(s.stations, i, i+1)
		break
	}
	link, err := inproc.New(s.Fabric, p.Node, p.Port, false)
	if err != nil {
		return err
	}
	s.seats[p.Node] = true
	s.stations = append(s.stations, &station{Place: p, link: link, engine: make(link), manages: true})
	return link.SetIsSM(true)
}

// Dismiss takes a manager away without a word.
func (s *Testbed) Dismiss(p observed.Place) error {
	for i, at := range s.stations {
		if at.Place == p && at.engine != nil {
			s.stations = slices.Delete(s.stations, i, i+1)
			return at.link.Close()
		}
	}
	return fmt.Errorf("%s: no manager runs there", s.Name(p))
}

// settleLimit is how much time managers may take to settle.
const settleLimit = 10 * time.Minute

// Settle lets time pass until every manager has nothing to do before time
// passes or something arrives.
func (s *Testbed) Settle() error {
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

// restless reports whether some manager runs.
func (s *Testbed) restless() bool {
	for _, at := range s.stations {
		if at.engine != nil {
			return true
		}
	}
	return false
}

// pump moves what managers have to send and what came in for them.
func (s *Testbed) pump() error {
	for _, at := range s.stations {
		for some := at.engine != nil; some; {
			var err error
			if some, err = at.link.Pump(at.engine); err != nil {
				return fmt.Errorf("the manager at %s: %w", s.Name(at.Place), err)
			}
		}
	}
	return nil
}

// due is when the next thing happens, in the fabric or at a manager.
func (s *Testbed) due() (time.Duration, bool) {
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
func (s *Testbed) expire() {
	for _, at := range s.stations {
		if at.engine != nil {
			at.engine.Expire(s.Fabric.Now())
		}
	}
}
