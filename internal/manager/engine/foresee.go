package engine

import (
	"errors"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Foresight is what a policy comes to on a fabric, before anything is written.
type Foresight struct {
	Tables *observed.Desired
	// Allowed is what the policy allows, Groups its groups.
	Allowed []observed.Partition
	Groups  []policy.ResolvedGroup
	// Raw is what the policy makes of raw packets.
	Raw isolation.Raw
	// Withheld are partitions that nobody may be given.
	Withheld []ib.PKeyBase
	Warnings []string
	// Multicast are the multicast groups of the policy, by MGID.
	Multicast []group.Group
	// Assigned are LIDs and P_Keys as they will be.
	Assigned Assigned
}

// ReadingFor says what of a fabric has to be read for Foresee.
func ReadingFor(c Config, p *policy.Policy) sweep.Options {
	return sweep.Options{Keys: c.Keys.Shown(), MKey: c.MKey, Cables: c.Cables, Forwarding: true, QoS: p.UsesLanes(), Aliases: keepsAliases(p, c.Known)}
}

// Foresee works out what a manager with this configuration would want a fabric
// to hold under a policy. Nothing is sent; an error means that the policy, or
// the fabric, would be refused.
func Foresee(f *observed.Fabric, c Config, p *policy.Policy) (*Foresight, error) {
	if f.Self == nil {
		return nil, errors.New("the port to work from did not answer")
	}
	c.setDefaults()
	e := &Engine{config: c, policy: p, known: c.Known, fabric: f, observe: func(Event) {}}
	e.cabling.list, e.names.Known = c.Cables, c.Known.Names
	e.holdToList()
	e.meet(nil)
	return e.foresee(p)
}

func (e *Engine) foresee(p *policy.Policy) (*Foresight, error) {
	d, err := e.desire(p)
	if err != nil {
		return nil, err
	}
	groups, err := p.ResolveGroups(e.identities())
	if err != nil {
		return nil, err
	}
	d.assigned.Names = e.names.All()
	return &Foresight{
		Tables: d.tables, Allowed: d.allowed, Groups: groups,
		Multicast: facts.Groups(d.resolution, d.asked.SubnetTimeOut),
		Raw:       e.config.raw(p), Withheld: d.withheld, Warnings: d.warnings, Assigned: d.assigned,
	}, nil
}
