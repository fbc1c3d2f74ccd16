package stage

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/internal/isolation"
	"github.com/ibwarden/ibwarden/internal/managed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/routing"
	"github.com/ibwarden/ibwarden/internal/saserver"
	"github.com/ibwarden/ibwarden/internal/sm"
	"github.com/ibwarden/ibwarden/internal/transport/inproc"
)

// Warden is the project's own manager with the administration of its subnet,
// and the verdict of its last pass.
type Warden struct {
	*managed.Engine
	Verdict isolation.Verdict
}

// SeatWarden lets the project's own manager run at an end port, with a policy and
// a priority in elections.
func (s *Stage) SeatWarden(at Port, p *policy.Policy, priority uint8) (*Warden, error) {
	w := &Warden{}
	c := sm.Config{Routing: routing.UpDown, Priority: priority}
	// What nobody knows is drawn from the seed: a story repeats itself.
	binary.BigEndian.PutUint64(c.Seed[:], s.config.Fabric.Seed)
	binary.BigEndian.PutUint64(c.Seed[8:], uint64(at.Node))
	return w, s.Seat(at, func(l *inproc.Link) Engine {
		c.Limits = l.Limits()
		w.Engine = managed.New(c, saserver.Config{}, p, func(e sm.Event) {
			if done, ok := e.(sm.Completed); ok && done.Result.Proof != nil {
				w.Verdict = done.Result.Proof.Verdict
			}
		})
		return w
	})
}
