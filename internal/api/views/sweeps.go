// This file shows the last sweeps of a subnet manager to callers of the API and to
// commands: which phases each had, how long they took and what packets they cost.

package views

import (
	"context"
	"fmt"
	"math"
	"time"
)

// SweepsSource is a subnet manager that keeps its last sweeps.
type SweepsSource interface {
	// Sweeps are the last ones, the newest first: that under way as far as it has come.
	Sweeps(ctx context.Context) ([]Sweep, error)
}

// Cost is what a phase, or a sweep, took.
type Cost struct {
	Seconds       float64 `json:"seconds" doc:"by the clock"`
	FabricSeconds float64 `json:"fabric_seconds" doc:"by the fabric, which is another time where the fabric is simulated"`
	Sent          uint64  `json:"sent" doc:"packets sent, repeated ones included"`
	Least         uint64  `json:"least" doc:"packets that would have done, computed from what was found and what was wanted"`
	Answered      uint64  `json:"answered" doc:"requests answered"`
	Repeated      uint64  `json:"repeated" doc:"packets sent again, or in addition, because answers did not arrive"`
	Lost          uint64  `json:"lost" doc:"requests that nobody answered in the end"`
}

// Phase is a phase of a sweep.
type Phase struct {
	Name string `json:"name"`
	Cost
}

// Sweep is a sweep of the subnet, with what followed from it.
type Sweep struct {
	Number uint64    `json:"number" doc:"from 1, since the manager started"`
	Reason string    `json:"reason,omitempty" doc:"why it began; none where that is not known, and of the first"`
	Began  time.Time `json:"began"`
	Done   bool      `json:"done"`
	Cost
	Phases []Phase `json:"phases"`
}

// SweepKey orders sweeps, the newest first.
func SweepKey(s Sweep) string { return fmt.Sprintf("%020d", math.MaxUint64-s.Number) }
