package stage

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/isolation"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/routing"
	"github.com/ibwarden/ibwarden/internal/sm"
	"github.com/ibwarden/ibwarden/internal/transact"
)

// Time-outs of a manager that knows its fabric: answers come in microseconds.
const (
	wardenFirst = 50 * time.Microsecond
	wardenLeast = 20 * time.Microsecond
)

// Warden is the project's own manager, with the verdict of its last pass.
type Warden struct {
	*sm.Engine
	Verdict isolation.Verdict
}

// NewWarden makes a manager with a policy and a priority in elections.
func NewWarden(p *policy.Policy, priority uint8) *Warden {
	limits := transact.DefaultLimits()
	limits.FirstTimeout, limits.MinTimeout = wardenFirst, wardenLeast
	w := &Warden{}
	c := sm.Config{Limits: limits, Routing: routing.UpDown, Priority: priority}
	w.Engine = sm.New(c, p, func(e sm.Event) {
		if done, ok := e.(sm.Completed); ok && done.Result.Proof != nil {
			w.Verdict = done.Result.Proof.Verdict
		}
	})
	return w
}
