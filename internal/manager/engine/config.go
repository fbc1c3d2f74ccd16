package engine

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing/graph"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Config is what an engine is told once.
type Config struct {
	// Limits bound the requests under way.
	Limits transact.Limits
	// Seed is where transaction identifiers come from; with a secret one nobody
	// can answer a request that he has not seen.
	Seed [32]byte
	// GIDPrefix is the subnet prefix; 0 stands for ib.DefaultGIDPrefix.
	GIDPrefix uint64
	// LMC gives every CA and router port 2^LMC LIDs.
	LMC ib.LMC
	// Routing is the routing engine, RoutingFile the forwarding tables for routing.File;
	// Workers take parts of its work and of the judge's.
	Routing     routing.Engine
	RoutingFile *observed.LFTs
	Workers     graph.Workers
	// Profile says how far the manager goes to hold the subnet against hosts.
	Profile protect.Profile
	// Cables is the list of cables to hold to. LearnCables learns one from the
	// first sweep where there is none (event Learned).
	Cables      *cables.List
	LearnCables bool
	// Keys gives every end port an M_Key of its own. When it is nil, MKey guards
	// every port and goes into every request; 0 for none.
	Keys *mkey.KeyingConfig
	MKey ib.MKey
	// Election is the part that the manager takes in the election among managers, Periods how
	// often it looks at the subnet.
	Election Election
	Periods  Periods
	// Hold makes the engine rest once it has read the subnet and is master of
	// it, and write only what Carry says. ReadLanes reads the tables of virtual lanes
	// whether or not the policy uses them.
	Hold, ReadLanes bool
	// KeepRoutes leaves forwarding tables as they are: with Hold they are not even read.
	KeepRoutes bool
	// ReadAliases reads the tables of GUIDs whether or not the policy speaks of aliases.
	ReadAliases bool
	// LeaveMulticast says that nobody will answer hosts that join groups:
	// multicast tables stay as they are, and are not read.
	LeaveMulticast bool
	// Pause is how long the engine waits, from its start, before it writes anything
	// or reads a table: what an earlier manager sent has to have landed. A copy of a
	// write that comes after this engine has read, or written, the same table would
	// undo what stands there, and nobody would know. Nodes and cables are read
	// meanwhile. The wait ends early on a subnet that no manager has touched.
	Pause time.Duration
	// Known is what an earlier run assigned.
	Known desired.Assigned
	// Reregister has every host that is up already register again with subnet
	// administration, once: what it registered before is not known here.
	Reregister bool
	// OnStep sees every change of the engine's state, by the names of the table of package
	// engine, and whether the table has it; nil for nobody. Tests use it.
	OnStep func(from, trigger string, allowed bool)
}

// Election is the part that a manager takes in the election among managers.
type Election struct {
	// Priority and SMKey take part in the election among managers; ShowSMKey sends the
	// key to any requester, as managers do that only compare it.
	Priority  uint8
	SMKey     ib.SMKey
	ShowSMKey bool
	// Trusted are the port GUIDs of the managers that count. With Profile None
	// all do when it is nil; with any other none does but those, and those that
	// SMKeys proves.
	Trusted []ib.PortGUID
	// SMKeys is the SM_Key that the manager at one port shows to the one at
	// another where they share a secret; nil where none is shared. It is not for
	// Profile None.
	SMKeys func(from, to ib.PortGUID) ib.SMKey
	// Vouches proves to managers of the secret which policy is in force; nil: nobody is told.
	Vouches mastership.Vouches
	// Newcomer says that, unless Known says otherwise, this manager has never
	// managed this subnet: it leaves it alone when it finds a master there that does not count (event
	// Unexpected). It is not for Profile None.
	Newcomer bool
	// AcceptPolicy lets the policy give, after a takeover from another manager, what the
	// tables did not hold then, unless that one is known to have had another policy.
	AcceptPolicy bool
	// MasterTimeout is how long a standby takes at the most to give up a master that
	// shares the secret and does not answer; 0 for mastership.DefaultMasterTimeout.
	MasterTimeout time.Duration
	// Lease makes the engine write only as far as SetLease allows: managers share a store.
	Lease bool
}

// Periods are how often a manager looks at its subnet.
type Periods struct {
	// Sweep is the time between light sweeps, Drift the time in whose light sweeps
	// every table is read back once.
	Sweep, Drift time.Duration
	// Guard is the time in which a foreign change of what isolates is seen, GuardRate how many
	// tables a second are read back for that at the most. Guards are watched when Profile is not
	// protect.None, or Guard is set.
	Guard     time.Duration
	GuardRate int
}

// Default times between sweeps.
const (
	DefaultSweepInterval = 10 * time.Second
	DefaultDriftPeriod   = 60 * time.Second
)

// SetDefaults fills in what is not given.
func (c *Config) SetDefaults() {
	if c.GIDPrefix == 0 {
		c.GIDPrefix = ib.DefaultGIDPrefix
	}
	if c.Periods.Sweep == 0 {
		c.Periods.Sweep = DefaultSweepInterval
	}
	if c.Periods.Drift == 0 {
		c.Periods.Drift = DefaultDriftPeriod
	}
	if c.Periods.Guard == 0 && c.Profile != protect.None {
		c.Periods.Guard = DefaultGuardPeriod
	}
	if c.Election.MasterTimeout == 0 {
		c.Election.MasterTimeout = mastership.DefaultMasterTimeout
	}
	if c.Periods.GuardRate == 0 {
		c.Periods.GuardRate = DefaultGuardRate
	}
}

// DefaultGuardPeriod is the time in which a foreign change of a guard is seen,
// DefaultGuardRate how many tables a second are read back for that at the most.
const (
	DefaultGuardPeriod = time.Second
	DefaultGuardRate   = 4096
)

// WatchesGuards reports whether guards are monitored at all.
func (c *Config) WatchesGuards() bool {
	return !c.Hold && (c.Profile != protect.None || c.Periods.Guard > 0)
}

// minSweepGap is the least time between the end of one pass and a sweep of
// the whole subnet, however many traps and changes ask for it.
const minSweepGap = time.Second

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
	if len(c.Election.Trusted) > 0 {
		bits = min(bits, desired.SharedKeyBits)
	}
	return bits
}
