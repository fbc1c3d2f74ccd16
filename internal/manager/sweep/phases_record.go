// PhaseRecord records what the sweeps of a subnet manager consist of: their phases, and
// for each phase the time that it took and the packets that it cost.
//
//	Begin, End    a phase begins, a sweep ends; each with a Moment
//	Sweeps        the last SweepsMax sweeps, the newest first
//	Take          the phases since the last call
//	Totals        the sum of each phase since the start
//
// A sweep is everything from the first phase after a rest to the next rest: usually
// discovery, the computation of tables, their writing, and the proof. Light sweeps, which ask
// for changes only, have no phases.
//
// It has no clock: the caller tells both times, the fabric's and that of the clock. On a
// simulated fabric the first is the same in every run.

package sweep

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Limits of a record.
const (
	// SweepsMax is how many sweeps are kept; the oldest is forgotten first.
	SweepsMax = 64
	// PhasesMax is how many phases of a sweep are kept apart, and how many wait for Take.
	// What more there are count with the last one of a sweep.
	PhasesMax = 64
	// PhaseReasonMax is the most bytes of a reason that are kept.
	PhaseReasonMax = 256
)

// Moment is a point in the life of a manager.
type Moment struct {
	// Clock is the time of the clock, and Fabric that of the link to the fabric.
	Clock  time.Time
	Fabric time.Duration
	// Counts is what the request windows have done by then, Least what that takes at the least.
	Counts transact.Counts
	Least  uint64
}

// Phase is one phase, or the sum of several.
type Phase struct {
	Name string `json:"name"`
	// Seconds is the time by the clock, FabricSeconds by the fabric, which is the same
	// unless the fabric is simulated.
	Seconds       float64 `json:"seconds"`
	FabricSeconds float64 `json:"fabric_seconds"`
	// Sent counts packets, Repeated those of them that had been sent before. Answered
	// counts requests, Lost those that nobody answered in the end.
	Sent     uint64 `json:"sent"`
	Answered uint64 `json:"answered"`
	Repeated uint64 `json:"repeated"`
	Lost     uint64 `json:"lost"`
	// Least is how many packets would have done, computed from what was found and what was wanted.
	Least uint64 `json:"least"`
}

// add adds another phase's times and packets.
func (p *Phase) add(o Phase) {
	p.Seconds += o.Seconds
	p.FabricSeconds += o.FabricSeconds
	p.Sent += o.Sent
	p.Answered += o.Answered
	p.Repeated += o.Repeated
	p.Lost += o.Lost
	p.Least += o.Least
}

// SumPhases adds up phases; the sum has no name.
func SumPhases(list []Phase) (sum Phase) {
	for _, p := range list {
		sum.add(p)
	}
	return sum
}

// phaseBetween is a phase from one moment to another. Times that go back take none.
func phaseBetween(name string, from, to Moment) Phase {
	a, b := from.Counts, to.Counts
	return Phase{
		Name:    name,
		Seconds: max(0, to.Clock.Sub(from.Clock)).Seconds(), FabricSeconds: max(0, to.Fabric-from.Fabric).Seconds(),
		Sent: increase(b.Sent, a.Sent), Answered: increase(b.Answered, a.Answered),
		Repeated: increase(b.Retried+b.Extra, a.Retried+a.Extra), Lost: increase(b.Failed, a.Failed),
		Least: increase(to.Least, from.Least),
	}
}

func increase(b, a uint64) uint64 { return b - min(a, b) }

// SweepPhases is a sweep with its phases.
type SweepPhases struct {
	// Number counts sweeps from 1 on.
	Number uint64
	// Reason is why it began, in words; "" where that was not told.
	Reason string
	Began  time.Time
	// Done reports whether it is over.
	Done   bool
	Phases []Phase
}

// PhaseRecord is the record of one manager. The zero value is empty.
type PhaseRecord struct {
	sweeps []SweepPhases // the oldest first; the last one may be under way
	taken  []Phase       // since Take
	totals map[string]Phase
	number uint64
	reason string
	phase  string // under way; "" for none
	from   Moment // when it began
	told   bool   // Take has told of it
}

// Because says why the next sweep begins; the first reason counts.
func (r *PhaseRecord) Because(reason string) {
	if r.reason == "" && r.phase == "" {
		r.reason = strings.ToValidUTF8(reason[:min(len(reason), PhaseReasonMax)], "")
	}
}

// Begin ends the phase under way and begins another, in a new sweep if none is under way.
func (r *PhaseRecord) Begin(phase string, at Moment) {
	r.close(at)
	if n := len(r.sweeps); n == 0 || r.sweeps[n-1].Done {
		r.number++
		if n == SweepsMax {
			r.sweeps = slices.Delete(r.sweeps, 0, 1)
		}
		r.sweeps = append(r.sweeps, SweepPhases{Number: r.number, Reason: r.reason, Began: at.Clock})
		r.reason = ""
	}
	r.phase, r.from, r.told = phase, at, false
}

// End ends the sweep under way, if there is one.
func (r *PhaseRecord) End(at Moment) {
	r.close(at)
	if n := len(r.sweeps); n > 0 {
		r.sweeps[n-1].Done = true
	}
}

// close ends the phase under way.
func (r *PhaseRecord) close(at Moment) {
	if r.phase == "" {
		return
	}
	p := phaseBetween(r.phase, r.from, at)
	r.phase = ""
	s := &r.sweeps[len(r.sweeps)-1]
	s.Phases = keepPhase(s.Phases, p)
	if !r.told {
		r.taken = keepPhase(r.taken, p)
	}
	if r.totals == nil {
		r.totals = make(map[string]Phase)
	}
	sum := r.totals[p.Name]
	sum.Name = p.Name
	sum.add(p)
	r.totals[p.Name] = sum
}

// keepPhase adds a phase to a list that does not grow for ever.
func keepPhase(list []Phase, p Phase) []Phase {
	if len(list) < PhasesMax {
		return append(list, p)
	}
	list[PhasesMax-1].add(p)
	return list
}

// Phase names the phase under way, and tells when it began; "" for none.
func (r *PhaseRecord) Phase() (name string, from Moment) { return r.phase, r.from }

// Sweeps returns the last sweeps, the newest first: that under way as far as it has come.
func (r *PhaseRecord) Sweeps(at Moment) []SweepPhases {
	out := slices.Clone(r.sweeps)
	for i := range out {
		out[i].Phases = slices.Clone(out[i].Phases)
	}
	if r.phase != "" {
		s := &out[len(out)-1]
		s.Phases = keepPhase(s.Phases, phaseBetween(r.phase, r.from, at))
	}
	slices.Reverse(out)
	return out
}

// Take returns the phases since the last call, that under way as far as it has come: its
// rest is not told.
func (r *PhaseRecord) Take(at Moment) []Phase {
	out := r.taken
	if r.phase != "" && !r.told {
		out = keepPhase(out, phaseBetween(r.phase, r.from, at))
	}
	r.taken, r.told = nil, true
	return out
}

// Totals returns the sum of each phase that has ended, by name.
func (r *PhaseRecord) Totals() []Phase {
	out := make([]Phase, 0, len(r.totals))
	for _, p := range r.totals {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b Phase) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
