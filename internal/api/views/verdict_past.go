package views

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/internal/judge/isolation"
)

// Bounds of Past.
const (
	// pastMost is how many changes of the verdict are kept; older ones are forgotten.
	pastMost = 1000
	// pastReasons is how many reasons of each are kept.
	pastReasons = 5
)

// Change is a time with one verdict, which was another before.
type Change struct {
	Number     uint64    `json:"number" doc:"from 1, since the service started"`
	At         time.Time `json:"at" doc:"when it was found first"`
	Until      time.Time `json:"until" doc:"when it was found last"`
	Verdict    string    `json:"verdict" doc:"of the fabric, as in /proof"`
	Holds      bool      `json:"holds" doc:"tenants are kept apart"`
	Revision   uint64    `json:"revision" doc:"the policy in force when it was found first; 0 for that of the start"`
	Violations int       `json:"violations" doc:"ports that could talk and may not, when it was found first"`
	Reasons    []string  `json:"reasons" doc:"why it did not hold then: the first few"`
}

// ChangeKey orders changes, the newest first.
func ChangeKey(c Change) string { return fmt.Sprintf("%020d", math.MaxUint64-c.Number) }

// Past keeps how the verdict on a fabric changed, in memory. Its methods may be called from
// any goroutine; the zero value is ready.
type Past struct {
	mu    sync.Mutex
	list  []Change // the oldest first
	count uint64
}

// Add takes a proof that was made at a time, under the policy of a revision.
func (p *Past) Add(proof *isolation.Proof, at time.Time, revision uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.list); n > 0 && p.list[n-1].Verdict == proof.Verdict.String() {
		p.list[n-1].Until = at
		return
	}
	p.count++
	if len(p.list) == pastMost {
		p.list = slices.Delete(p.list, 0, 1)
	}
	p.list = append(p.list, Change{
		Number: p.count, At: at, Until: at, Verdict: proof.Verdict.String(), Holds: proof.Verdict.Holds(), Revision: revision,
		Violations: proof.Counts.Violations, Reasons: append([]string{}, proof.Reasons[:min(len(proof.Reasons), pastReasons)]...),
	})
}

// List is what is kept, the newest first.
func (p *Past) List() []Change {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := slices.Clone(p.list)
	slices.Reverse(out)
	return out
}
