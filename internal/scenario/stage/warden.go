package stage

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/isolation"
	"github.com/ibwarden/ibwarden/internal/managed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/protect"
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

// WardenOptions say how a manager runs.
type WardenOptions struct {
	Profile  protect.Profile
	Priority uint8  // in elections
	Trusted  []Port // other managers that count
	// MKey guards every port when the profile guards none; 0 for none.
	MKey ib.MKey
}

// SeatWarden lets the project's own manager run at an end port, with a policy.
func (s *Stage) SeatWarden(at Port, p *policy.Policy, o WardenOptions) (*Warden, error) {
	w := &Warden{}
	c := sm.Config{Profile: o.Profile, Routing: routing.UpDown, Priority: o.Priority, MKey: o.MKey}
	for _, t := range o.Trusted {
		c.Trusted = append(c.Trusted, s.Fabric.Agent(t.Node).NodeInfo(t.Num).PortGUID)
	}
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
