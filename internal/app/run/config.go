package run

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
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

	Routing Routing
	LMC     ib.LMC
	// Election is the part in the election among managers, but for ShowSMKey, Lease and Newcomer, which
	// follow. TakeOver takes the fabric from a master that is not trusted.
	Election engine.Election
	TakeOver bool
	Periods  engine.Periods
	// Window is the most SMPs of a sweep under way at once; 0 for what suits the link.
	Window int

	Telemetry telemetry.Flags
	Serves    Flags
	// Once ends the run with the first verdict.
	Once bool
	// Reread reads the configuration again, on SIGHUP, and returns what of it counts from now on; nil
	// where nothing can have changed.
	Reread func() (Policy, engine.Periods, error)
}

// Port is the port on which a manager runs.
type Port struct {
	Link link.Link
	// MKey guards the fabric so far; 0 for none.
	MKey ib.MKey
	Self mkey.ID
}

// PriorityMax is the highest priority of a subnet manager: 4 bits.
const PriorityMax = 15

// CheckPeriods checks the periods, which can change while the manager runs.
func CheckPeriods(p engine.Periods) error {
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
		return terminal.OrMisuse(fmt.Errorf("--lmc %d: want 0 to %d", c.LMC, ib.LMCMax))
	case c.Election.Priority > PriorityMax:
		return terminal.OrMisuse(fmt.Errorf("--priority %d: want 0 to %d", c.Election.Priority, PriorityMax))
	case c.Election.MasterTimeout < mastership.MinMasterTimeout:
		return terminal.OrMisuse(fmt.Errorf("--master-timeout %v: want at least %v", c.Election.MasterTimeout, mastership.MinMasterTimeout))
	case c.Window < 0 || c.Window > transact.WindowMax:
		return terminal.OrMisuse(fmt.Errorf("--max-smps %d: want 0 to %d", c.Window, transact.WindowMax))
	}
	if err := CheckPeriods(c.Periods); err != nil {
		return terminal.OrMisuse(err)
	}
	if err := c.Telemetry.Check(); err != nil {
		return terminal.OrMisuse(err)
	}
	return terminal.OrMisuse(c.Serves.Check())
}
