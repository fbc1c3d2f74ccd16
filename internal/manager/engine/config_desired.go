package engine

import (
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Desired is the input of desired.Compute, as far as a configuration has it: without the
// policy and what a manager learns while it runs.
func (c *Config) Desired(f *observed.Fabric) desired.Input {
	return desired.Input{
		Fabric: f, Known: c.Known, Cables: c.Cables,
		Profile: c.Profile, GIDPrefix: c.GIDPrefix, LMC: c.LMC, Routing: c.Routing, RoutingFile: c.RoutingFile, Workers: c.Workers,
		MKey: c.MKey, OwnKeys: c.Keys != nil, ProtectBits: c.ProtectBits(), Reregister: c.Reregister,
		Newcomer: !c.Known.Managed,
	}
}

// Reading says what has to be read of a fabric for desired.Predict.
func (c *Config) Reading(p *policy.Policy) sweep.Options {
	return sweep.Options{
		Keys: c.Keys.Shown(), MKey: c.MKey, Cables: c.Cables, Forwarding: true,
		QoS: p.UsesLanes() || c.Routing.UsesLanes(), Aliases: c.Known.KeepsAliases(p),
	}
}

// ProtectBits is the least protection level of ports with an M_Key. Named managers that
// do not share the secret have to read the subnet as standbys: that takes the keys at level 2.
func (c *Config) ProtectBits() uint8 {
	if c.Keys == nil {
		return desired.SharedKeyBits
	}
	bits := c.Profile.MKeyProtectBits()
	if len(c.Trusted) > 0 {
		bits = min(bits, desired.SharedKeyBits)
	}
	return bits
}
