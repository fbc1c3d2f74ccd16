package daemon

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/perfmgr"
)

// ReadCounters has the performance counters of the fabric read, round robin, while
// the manager has nothing else to do. It is called before Run.
func (r *Runner) ReadCounters(limits perfmgr.Limits) {
	r.managed.ReadCounters(perfmgr.Config{Seed: Secret(), Limits: limits})
}

// Counters reads the performance counters; nil where nobody asked for them.
func (r *Runner) Counters() *perfmgr.Poller { return r.managed.Counters() }

// Now is the link's time that the manager was told last.
func (r *Runner) Now() time.Duration { return r.managed.Now() }
