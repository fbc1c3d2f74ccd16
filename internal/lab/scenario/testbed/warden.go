package testbed

import (
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/master"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// Warden is the project's own manager with the administration of its subnet,
// and the verdict of its last pass.
type Warden struct {
	*master.Engine
	Verdict isolation.Verdict
}

// WardenOptions say how a manager runs.
type WardenOptions struct {
	Profile  protect.Profile
	Priority uint8            // in elections
	Trusted  []observed.Place // other managers that count
	// MKey guards every port when the profile guards none; 0 for none.
	MKey ib.MKey
	// SMKey is told other managers, SAKey opens all of subnet administration.
	SMKey, SAKey ib.SMKey
	// Groups is the most multicast groups of all hosts; 0 for the usual number.
	Groups int
	// LMC gives every port 2^LMC LIDs.
	LMC ib.LMC
}

// SeatWarden lets the project's own manager run at an end port, with a policy.
func (s *Testbed) SeatWarden(at observed.Place, p *policy.Policy, o WardenOptions) (*Warden, error) {
	w := &Warden{}
	c := engine.Config{Routing: routing.UpDown, Election: engine.Election{Priority: o.Priority, SMKey: o.SMKey, ShowSMKey: o.SMKey != 0}, LMC: o.LMC}
	for _, t := range o.Trusted {
		c.Election.Trusted = append(c.Election.Trusted, s.Fabric.Agent(t.Node).NodeInfo(t.Port).PortGUID)
	}
	// What nobody knows is drawn from the seed: a story repeats itself.
	binary.BigEndian.PutUint64(c.Seed[:], s.config.Fabric.Seed)
	binary.BigEndian.PutUint64(c.Seed[8:], uint64(at.Node))
	guard := master.Guard{Profile: o.Profile, MKey: o.MKey, SAKey: o.SAKey, Learn: o.Profile != protect.None}
	if o.Profile != protect.None {
		// All wardens of a story are of one house: they share a secret.
		var secret [mkey.SecretSize]byte
		binary.BigEndian.PutUint64(secret[:], s.config.Fabric.Seed)
		guard.Keys = master.KeysOf(mkey.NewRing(secret), new(mkey.Book), false)
	}
	var a server.Config
	guard.Configure(&c, &a)
	if o.Groups > 0 {
		a.Limits = server.LimitsOf(o.Profile)
		a.Limits.Groups.Groups = o.Groups
	}
	return w, s.Seat(at, func(l *inproc.Link) Engine {
		c.Limits = l.Limits()
		w.Engine = master.New(c, a, p, func(e event.Event) {
			if done, ok := e.(event.Completed); ok && done.Result.Proof != nil {
				w.Verdict = done.Result.Proof.Verdict
			}
		})
		return w
	})
}
