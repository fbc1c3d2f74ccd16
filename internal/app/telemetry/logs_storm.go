package telemetry

import (
	"cmp"
	"log/slog"
	"slices"
	"time"
)

const (
	// repeatPeriod is how long the same event is counted after it was said, and
	// those of a kind.
	repeatPeriod = 10 * time.Second
	// standingPeriod is how long what every pass finds again is counted after it was
	// said: a policy that names nobody, for one.
	standingPeriod = time.Hour
	// kindMax is how many events of one kind are said in that time, reporterMax how
	// many of what one port reports.
	kindMax     = 20
	reporterMax = 5
	// tickGap is the least time between two looks for what is over.
	tickGap = time.Second
)

// storm counts what comes again and again.
type storm struct {
	now    func() time.Time
	looked time.Time
	same   map[string]*tally // by what was said
	groups map[string]*tally // by kind, and who reported
}

// tally is about one event, or those of one kind.
type tally struct {
	since       time.Time
	said, extra int
	summary
}

// summary is what came again.
type summary struct {
	kind, what string
	level      slog.Level
	same       bool
	period     time.Duration
	limit      int
	count      int
}

func newStorm(now func() time.Time) *storm {
	return &storm{now: now, same: make(map[string]*tally), groups: make(map[string]*tally)}
}

// admits reports whether something is to be said, and counts it where not.
func (s *storm) admits(d EventDescription) bool {
	if d.Each {
		return true
	}
	what := d.Kind + "\x00" + d.Text
	if t := s.same[what]; t != nil {
		t.extra++
		return false
	}
	name, limit := d.Kind, kindMax
	if d.Reporter != "" {
		name, limit = d.Kind+" reported by "+d.Reporter, reporterMax
	}
	g := s.groups[name]
	if g == nil {
		g = &tally{since: s.now(), summary: summary{kind: d.Kind, what: name, level: d.Level, limit: limit, period: repeatPeriod}}
		s.groups[name] = g
	}
	if g.said == limit {
		g.extra++
		return false
	}
	g.said++
	period := repeatPeriod
	if d.Stands {
		period = standingPeriod
	}
	s.same[what] = &tally{since: s.now(), summary: summary{kind: d.Kind, what: d.Text, level: d.Level, same: true, period: period}}
	return true
}

// due reports whether it is time to look for what is over.
func (s *storm) due() bool {
	if len(s.same)+len(s.groups) == 0 {
		return false
	}
	now := s.now()
	if now.Sub(s.looked) < tickGap {
		return false
	}
	s.looked = now
	return true
}

// over forgets what began long enough ago, or everything, and tells what of it came
// again.
func (s *storm) over(all bool) (out []summary) {
	now := s.now()
	for _, of := range []map[string]*tally{s.same, s.groups} {
		for k, t := range of {
			if !all && now.Sub(t.since) < t.period {
				continue
			}
			delete(of, k)
			if t.extra > 0 {
				t.summary.count = t.extra
				out = append(out, t.summary)
			}
		}
	}
	slices.SortFunc(out, func(a, b summary) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.what, b.what)) })
	return out
}
