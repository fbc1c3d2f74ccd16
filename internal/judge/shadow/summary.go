package shadow

import (
	"cmp"
	"slices"
	"time"
)

// Summary is what records say of a stretch of time.
type Summary struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Rounds counts readings, Incomplete those that were not complete, Reads the requests of
	// all of them, Fastest the most of one round in a second.
	Rounds     int     `json:"rounds"`
	Incomplete int     `json:"incomplete"`
	Reads      int     `json:"reads"`
	Fastest    float64 `json:"fastest_reads_per_second"`
	// First and Last are the times of the first and the last round; zero without any.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Truncated reports whether a round had more than is kept (Round.More).
	Truncated bool `json:"truncated"`
	// Spans are those that reach into this time, by kind and by when they began.
	Spans []Span `json:"spans"`
	// Gaps are the times without a round.
	Gaps []Gap `json:"gaps"`
	// Writes is what ibwarden would have written at the end; null where that is not known.
	Writes *Writes `json:"writes"`
	// Damaged counts the lines of the records that could not be read.
	Damaged int `json:"damaged"`
}

// kinds are in the order of a summary.
var kinds = []Kind{Exposure, Forgeable, Unguarded, EmptySwitch, MovedHost, AbsentName, Unread}

// Summarize makes a summary of records, which are in the order of time.
func Summarize(records []Record, since, until time.Time) *Summary {
	s := &Summary{Since: since, Until: until, Spans: []Span{}, Gaps: []Gap{}}
	for i := range records {
		switch r := &records[i]; {
		case r.At.After(until):
		case r.Writes != nil:
			s.Writes = r.Writes
		case r.Gap != nil && r.Gap.Until.After(since):
			s.Gaps = append(s.Gaps, *r.Gap)
		case r.Round != nil && !r.At.Before(since):
			s.round(r.At, r.Round)
		}
	}
	for _, x := range latest(records) {
		if !x.Began.After(until) && (x.Ended.IsZero() || x.Ended.After(since)) {
			s.Spans = append(s.Spans, *x)
		}
	}
	slices.SortStableFunc(s.Spans, func(a, b Span) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), a.Began.Compare(b.Began))
	})
	return s
}

func (s *Summary) round(at time.Time, r *Round) {
	if s.Rounds++; s.Rounds == 1 {
		s.First = at
	}
	s.Last, s.Reads, s.Truncated = at, s.Reads+r.Reads, s.Truncated || r.More
	if !r.Complete {
		s.Incomplete++
	}
	if r.Took > 0 {
		s.Fastest = max(s.Fastest, float64(r.Reads)/r.Took.Seconds())
	}
}

// Open counts the spans of a kind, and those of them that have not ended.
func (s *Summary) Open(k Kind) (all, open int) {
	for i := range s.Spans {
		if x := &s.Spans[i]; x.Kind == k {
			if all++; x.Ended.IsZero() {
				open++
			}
		}
	}
	return all, open
}

// latest are the spans of records as they are at last, in the order in which they began to be
// kept.
func latest(records []Record) (out []*Span) {
	at := map[string]int{}
	for i := range records {
		s := records[i].Span
		if s == nil {
			continue
		}
		k := s.Key() + s.Began.Format(time.RFC3339Nano)
		if n, known := at[k]; known {
			out[n] = s
			continue
		}
		at[k] = len(out)
		out = append(out, s)
	}
	return out
}
