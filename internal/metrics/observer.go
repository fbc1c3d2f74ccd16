package metrics

import (
	"maps"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
)

// buckets are the upper bounds of histograms of times, in seconds.
var buckets = []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60}

// Causes of a change that is to be proved.
const (
	causePolicy = "policy"
	causeDrift  = "drift"
	causeLink   = "link"
)

var causes = []string{causePolicy, causeDrift, causeLink}

// Times is a histogram.
type Times struct {
	Count   uint64
	Sum     float64
	Buckets [15]uint64 // one for each of buckets, not cumulative
}

func (h *Times) observe(d time.Duration) {
	s := d.Seconds()
	h.Count++
	h.Sum += s
	if i, _ := slices.BinarySearch(buckets, s); i < len(buckets) {
		h.Buckets[i]++
	}
}

// cumulative is what client_golang takes.
func (h *Times) cumulative() map[float64]uint64 {
	out, n := make(map[float64]uint64, len(buckets)), uint64(0)
	for i, b := range buckets {
		n += h.Buckets[i]
		out[b] = n
	}
	return out
}

// Counted is what an Observer counted.
type Counted struct {
	Events                       map[string]uint64 // by id
	Drift                        map[string]uint64 // by attribute
	Violations                   map[string]uint64 // by kind of key
	Times                        map[string]Times  // by cause
	Completed, Refused, Deferred uint64
	Writes, Rogues               uint64
}

// Observer counts the events of one manager. Only the goroutine that drives the manager
// uses it.
type Observer struct {
	counted Counted
	last    *event.Result
	lastAt  time.Time
	// since is when the oldest change of each cause was told that is not proved yet.
	since map[string]time.Time
	// rises go on with the violation counters of ports when these are set back.
	rises map[rising]*rise
}

// NewObserver returns an observer that has counted nothing.
func NewObserver() *Observer {
	return &Observer{
		counted: Counted{
			Events: make(map[string]uint64), Drift: make(map[string]uint64), Violations: make(map[string]uint64), Times: make(map[string]Times),
		},
		since: make(map[string]time.Time),
		rises: make(map[rising]*rise),
	}
}

// Event counts an event, whose id is that of the log.
func (o *Observer) Event(now time.Time, id string, e event.Event) {
	c := &o.counted
	c.Events[id]++
	switch e := e.(type) {
	case event.PolicyGiven:
		o.begin(causePolicy, now)
	case event.Drifted:
		c.Drift[smp.AttributeName(e.Op.Attribute)]++
		o.begin(causeDrift, now)
	case watch.LinksDown, watch.LinksUp:
		o.begin(causeLink, now)
	case event.Stopped:
		o.stopped(e)
	case event.RogueManager:
		c.Rogues++
	case event.Trapped:
		switch e.Number {
		case smp.TrapBadMKey:
			c.Violations["m_key"]++
		case smp.TrapBadPKey, smp.TrapSwitchBadPKey:
			c.Violations["p_key"]++
		case smp.TrapBadQKey:
			c.Violations["q_key"]++
		}
	case event.Refused:
		c.Refused++
		delete(o.since, causePolicy) // the old one stays
	case event.Deferred:
		c.Deferred++
		clear(o.since) // another manager proves, or nobody
	case event.Completed:
		o.completed(now, e.Result)
	}
}

// Count counts an event of the log that is not the manager's.
func (o *Observer) Count(id string) { o.counted.Events[id]++ }

// begin notes a change, if none of its cause waits for a proof already.
func (o *Observer) begin(cause string, now time.Time) {
	if _, waits := o.since[cause]; !waits {
		o.since[cause] = now
	}
}

func (o *Observer) completed(now time.Time, r *event.Result) {
	o.last, o.lastAt = r, now
	o.counted.Completed++
	o.counted.Writes += uint64(r.Writes)
	for _, cause := range causes {
		since, waits := o.since[cause]
		if !waits || cause == causePolicy && r.Outdated {
			continue
		}
		h := o.counted.Times[cause]
		h.observe(now.Sub(since))
		o.counted.Times[cause] = h
		delete(o.since, cause)
	}
}

// HasVerdict reports whether a pass was completed.
func (o *Observer) HasVerdict() bool { return o.last != nil }

// Copy enters what was counted into a state.
func (o *Observer) Copy(s *State) {
	s.Counted = o.counted
	s.Counted.Events, s.Counted.Drift = maps.Clone(o.counted.Events), maps.Clone(o.counted.Drift)
	s.Counted.Violations, s.Counted.Times = maps.Clone(o.counted.Violations), maps.Clone(o.counted.Times)
	if o.last != nil {
		s.Last = lastOf(o.last, o.lastAt)
	}
}
