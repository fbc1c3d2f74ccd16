package umad

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrGone says that the device went away and did not return in time.
var ErrGone = errors.New("the device was removed")

// Times of waiting for a device.
const (
	// ReturnWait is how long a link waits for its device to return.
	ReturnWait = 5 * time.Minute
	// firstRetry is the wait between two looks at first; it doubles up to
	// lastRetry.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// comeBack waits until the port is there again, and opens it.
func (p *pump) comeBack(ctx context.Context, done func() bool) error {
	l := p.Link
	if l.issm != nil {
		l.issm.Close()
		l.issm = nil
	}
	l.hearers, l.admin, l.performance = nil, nil, nil
	l.close()
	l.options.Notice(fmt.Sprintf("%s was removed; waiting for port GUID %s to return", &l.port, l.place.GUID))
	wait := firstRetry
	for gone := l.system.Now(); ; {
		// In small steps, so that the end of a context is noticed soon.
		for until := l.system.Now() + wait; l.system.Now() < until; {
			if err := ctx.Err(); err != nil {
				return err
			}
			if done() {
				return nil
			}
			l.system.Sleep(min(longestNap, until-l.system.Now()))
		}
		wait = min(2*wait, lastRetry)
		err := l.open()
		if err == nil && l.wantsSM {
			if err = l.announce(); err != nil {
				l.close()
			}
		}
		if err == nil {
			break
		}
		if l.system.Now()-gone >= ReturnWait {
			return fmt.Errorf("%w and did not return in %v: %w", ErrGone, ReturnWait, err)
		}
	}
	l.options.Notice(fmt.Sprintf("%s is back", &l.port))
	p.loseAll()
	return nil
}

// loseAll hands the engine back what was under way.
func (p *pump) loseAll() {
	numbers := make([]uint32, 0, len(p.flights))
	for n := range p.flights {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		p.timedOut(p.system.Now(), n)
	}
}
