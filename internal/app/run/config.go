package run

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/serve"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Config is what a manager is started with. The command line fills it, and nothing else
// is read from there.
type Config struct {
	// Fabric is its name, as --fabric has it. Open opens it, once everything else was read.
	Fabric string
	Open   func() (Port, error)
	// Pause is how long packets of a killed manager may still be under way.
	Pause time.Duration

	Policy Policy
	// Profile is the protection against hosts whose root is not trusted.
	Profile protect.Profile
	Cables  Cables
	Keys    Keys
	// SAKey is the key of trusted queries to subnet administration; nil for that of the master
	// secret, where one is kept.
	SAKey *ib.SMKey
	// State is the file that keeps LIDs, P_Keys, fences and registrations between runs; "" for that
	// in the data directory.
	State string

	Routing  Routing
	LMC      ib.LMC
	Election Election
	Periods  Periods
	// Window is the most SMPs of a sweep under way at once; 0 for what suits the link.
	Window int

	Telemetry telemetry.Flags
	Serves    serve.Flags
	// Once ends the run with the first verdict.
	Once bool
	// Reread reads the configuration again, on SIGHUP, and returns what of it counts from now on; nil
	// where nothing can have changed.
	Reread func() (Policy, Periods, error)
}

// Port is the port on which a manager runs.
type Port struct {
	Link link.Link
	// MKey guards the fabric so far; 0 for none.
	MKey ib.MKey
	Self mkey.ID
}

// Election is how the manager takes part in the election among managers.
type Election struct {
	Priority uint8 // 0 to PriorityMax
	SMKey    ib.SMKey
	// Trusted are the port GUIDs of the other managers that count.
	Trusted []ib.PortGUID
	// TakeOver takes the fabric from a master that is not trusted, AcceptPolicy grants at once,
	// after a takeover, what its tables did not.
	TakeOver, AcceptPolicy bool
	// Timeout is how long a standby waits for a master that does not answer.
	Timeout time.Duration
}

// PriorityMax is the highest priority of a subnet manager: 4 bits.
const PriorityMax = 15

// Periods are the times of monitoring. They can change while the manager runs.
type Periods struct {
	Sweep time.Duration // between light sweeps
	Drift time.Duration // within which every table is read back
	Guard time.Duration // within which a foreign change to isolation is noticed
}

// Check checks the periods.
func (p Periods) Check() error {
	switch {
	case p.Guard < time.Millisecond:
		return fmt.Errorf("--guard-period %v: want at least 1ms", p.Guard)
	case p.Sweep < time.Millisecond || p.Drift < p.Sweep:
		return fmt.Errorf("--sweep-interval %v and --drift-period %v: want at least 1ms, and the period not shorter than the interval", p.Sweep, p.Drift)
	}
	return nil
}

// Check checks what was given, and reads the files of forwarding tables and of the web hook. It makes
// nothing and sends nothing. Errors name the flags.
func (c *Config) Check() error {
	if err := c.Routing.Load(); err != nil {
		return err
	}
	switch {
	case c.LMC > ib.LMCMax:
		return orMisuse(fmt.Errorf("--lmc %d: want 0 to %d", c.LMC, ib.LMCMax))
	case c.Election.Priority > PriorityMax:
		return orMisuse(fmt.Errorf("--priority %d: want 0 to %d", c.Election.Priority, PriorityMax))
	case c.Election.Timeout < mastership.MinMasterTimeout:
		return orMisuse(fmt.Errorf("--master-timeout %v: want at least %v", c.Election.Timeout, mastership.MinMasterTimeout))
	case c.Window < 0 || c.Window > transact.WindowMax:
		return orMisuse(fmt.Errorf("--max-smps %d: want 0 to %d", c.Window, transact.WindowMax))
	}
	if err := c.Periods.Check(); err != nil {
		return orMisuse(err)
	}
	if err := c.Telemetry.Check(); err != nil {
		return orMisuse(err)
	}
	return orMisuse(c.Serves.Check())
}
