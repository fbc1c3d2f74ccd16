package shadow

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

const (
	// ExposuresMax bounds the pairs of ports that are open at once.
	ExposuresMax = 10_000
	// SpansPerDay bounds the records of spans of a day (UTC), but for those that end: who changes his
	// tables all the time is not to push out what was kept before. Beyond, nothing new begins.
	SpansPerDay = 20_000
	// UnreadMax bounds the places that are named as not read, of one round.
	UnreadMax = 256
	// PartitionsShown bounds the partitions that are named of a port.
	PartitionsShown = 4
	// late is how many times the usual time between rounds is a gap.
	late = 3
)

// Input is a reading of the fabric, and what it is held against.
type Input struct {
	// At is when the reading began, Took how long it took, Every the time between the
	// beginnings of two.
	At          time.Time
	Took, Every time.Duration
	Reads       int
	Fabric      *observed.Fabric
	// Allowed are the partitions of the policy, Absent its names that are nobody's.
	Allowed []observed.Partition
	Absent  []string
	// Unread are the places that were not read, and why; Missing reports whether any of them
	// should have been.
	Unread  []Place
	Missing bool
}

// Place is a place by its name, and what is to be said of it.
type Place struct{ Where, Why string }

// Ledger is what is known of a fabric.
type Ledger struct {
	open  map[string]*Span // by Key
	round time.Time        // the last one
	took  time.Duration    // by it
	why   string           // there has been none since
	// seen is where hosts were cabled, moved where they were before, for those that cannot
	// work yet.
	seen, moved map[ib.PortGUID]observed.Place
	writes      *Writes
	// spent are the records of spans of this day.
	spent int
}

// NewLedger goes on where the records of an earlier ledger end.
func NewLedger(records []Record) *Ledger {
	l := &Ledger{open: map[string]*Span{}, seen: map[ib.PortGUID]observed.Place{}, moved: map[ib.PortGUID]observed.Place{}, why: "ibwarden was not running"}
	for _, s := range latest(records) {
		if !s.Ended.IsZero() {
			continue
		}
		if l.open[s.Key()] = s; s.Kind == MovedHost {
			l.seen[s.A.GUID], l.moved[s.A.GUID] = s.A.place(), s.B.place()
		}
	}
	for i := range records { // that of a round may be lost, and others of it there
		if l.round = records[i].At; records[i].Writes != nil {
			l.writes = records[i].Writes
		}
	}
	return l
}

// Failed notes that a reading failed.
func (l *Ledger) Failed(why string) { l.why = cmp.Or(l.why, why) }

// Open are the records of all that is open now, from which another ledger can go on.
func (l *Ledger) Open() (out []Record) {
	for _, k := range l.keys() {
		s := *l.open[k]
		out = append(out, Record{At: l.round, Span: &s})
	}
	if l.writes != nil {
		out = append(out, Record{At: l.round, Writes: l.writes})
	}
	return out
}

func (l *Ledger) keys() []string { return slices.Sorted(maps.Keys(l.open)) }

// Round takes a reading, and gives what is to be kept of it. Whether it was complete says
// Record.Round, the last of them.
func (l *Ledger) Round(in Input) (out []Record) {
	j := judge(l, in)
	if in.At.UTC().Format(time.DateOnly) != l.round.UTC().Format(time.DateOnly) {
		l.spent = 0
	}
	usual := max(in.Every, l.took)
	if l.why == "" && usual > 0 && in.At.Sub(l.round) > late*usual {
		l.why = "no reading was begun"
	}
	if !l.round.IsZero() && l.why != "" {
		out = append(out, Record{At: in.At, Gap: &Gap{l.round, in.At, l.why}})
	}
	span := func(s Span) {
		if l.spent++; l.spent <= SpansPerDay || !s.Ended.IsZero() {
			out = append(out, Record{At: in.At, Span: &s})
		}
	}
	found := map[string]bool{}
	for i := range j.facts {
		f := &j.facts[i]
		k := f.Key()
		if found[k] {
			continue
		}
		found[k] = true
		s := l.open[k]
		if s == nil {
			if l.spent >= SpansPerDay {
				j.more = true
				continue
			}
			s = &Span{Began: in.At, After: l.round}
			l.open[k] = s
		}
		fresh := s.Kind == "" || !s.Unseen.IsZero() || s.A.place() != f.A.place() || s.B.place() != f.B.place()
		s.Fact, s.Unseen, s.Last = *f, time.Time{}, time.Time{}
		if fresh {
			span(*s)
		}
	}
	for _, k := range l.keys() {
		s := l.open[k]
		if found[k] {
			continue
		}
		if s.Unseen.IsZero() {
			s.Last = l.round
		}
		switch {
		case j.ends(s):
			s.Ended, s.Unseen = in.At, time.Time{}
			delete(l.open, k)
			span(*s)
		case j.follow(&s.A), j.follow(&s.B), s.Unseen.IsZero():
			if s.Unseen.IsZero() {
				s.Unseen = in.At
			}
			span(*s)
		}
	}
	l.round, l.took, l.why = in.At, in.Took, ""
	return append(out, Record{At: in.At, Round: &Round{j.complete, in.Reads, in.Took, j.more}})
}

// WouldWrite takes what ibwarden would write, and gives a record where that has changed.
func (l *Ledger) WouldWrite(w Writes) []Record {
	if l.writes != nil && reflect.DeepEqual(*l.writes, w) {
		return nil
	}
	l.writes = &w
	return []Record{{At: l.round, Writes: &w}}
}

// pairs are those whose exposure is open.
func (l *Ledger) pairs() (out [][2]ib.PortGUID) {
	for _, k := range l.keys() {
		if s := l.open[k]; s.Kind == Exposure || s.Kind == Forgeable {
			out = append(out, [2]ib.PortGUID{s.A.GUID, s.B.GUID})
		}
	}
	return out
}
