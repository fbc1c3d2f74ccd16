package views

import (
	"errors"
	"math"
	"time"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// PastSource keeps how the fabric was.
type PastSource interface {
	// Moments are the periods that are kept, the oldest first.
	Moments() []PastPeriod
	// At is the period that a time is in, or the last one before it where nothing is kept of that time;
	// ErrOlder where all that is kept is later.
	At(t time.Time) (*PastRecord, error)
}

// ErrOlder is that nothing of a time is kept any more, or yet.
var ErrOlder = errors.New("nothing is kept of then")

// PastPeriod is a period of which is kept how the fabric was.
type PastPeriod struct {
	From, Until time.Time
	Verdict     string
}

// PastState is how the fabric was in a period, when the verdict was worst.
type PastState struct {
	Revision   uint64 `json:"revision" doc:"the policy in force"`
	Verdict    string `json:"verdict" doc:"the worst of the period, as in /proof"`
	Holds      bool   `json:"holds" doc:"tenants are kept apart"`
	Pairs      int    `json:"pairs" doc:"pairs of partitions that it rests on"`
	Partitions int    `json:"partitions"`
	EndPorts   int    `json:"end_ports"`
	Violations int    `json:"violations" doc:"ports that could talk and may not"`
	Alarms     int    `json:"alarms" doc:"the most at once in the period, without those of an audit"`
}

// PastRecord is what is kept of a period.
type PastRecord struct {
	PastPeriod
	State  PastState
	Matrix *Matrix       // sparse, without reasons; nil where none was kept
	Cables []CableShare  // those of which the load is known: the highest of the period, rounded up to a step
	of     map[Cable]int // the same; nil until it is asked for
}

// CableShare is what a cable carries.
type CableShare struct {
	Cable   Cable // its lower end first
	Percent int   // of its data rate, of the direction that carries more, rounded up
}

// Ordered is the cable with its lower end first.
func (c Cable) Ordered() Cable {
	if c.A.Compare(c.B) > 0 {
		c.A, c.B = c.B, c.A
	}
	return c
}

// PercentOf is the share of the data rate of a port's cable that a number of bytes a second is, 0 to 100,
// rounded up; false where the data rate is not known.
func PercentOf(p *observed.Port, carried float64) (percent int, known bool) {
	most := dataRate(p)
	if most <= 0 {
		return 0, false
	}
	return min(100, int(math.Ceil(100*carried/most))), true
}

// Kept is a matrix as it is kept: without words, and without cells of which none can talk, as none may.
func (m Matrix) Kept() Matrix {
	out := Matrix{ReadAt: m.ReadAt, Verdict: m.Verdict, Parties: make([]MatrixParty, len(m.Parties)), Cells: []MatrixCell{}, Sparse: true}
	for i, p := range m.Parties {
		out.Parties[i] = MatrixParty{Name: p.Name, Kind: p.Kind, Owner: p.Owner, Ports: p.Ports, Partitions: []string{}}
	}
	for _, c := range m.Cells {
		if c.A == c.B || c.Talk != "none" || c.Verdict != "kept-apart" {
			out.Cells = append(out.Cells, MatrixCell{A: c.A, B: c.B, Talk: c.Talk, Pairs: c.Pairs, Talking: c.Talking, Unread: c.Unread, Violations: c.Violations, Verdict: c.Verdict})
		}
	}
	return out
}
