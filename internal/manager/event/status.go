package event

import "github.com/ibwarden/ibwarden/ib/smp"

// Sweeps counts the sweeps that were started.
type Sweeps struct {
	Full  uint64 // of the whole subnet
	Links uint64 // of what is behind links that changed
	Light uint64 // for changes, with a share of all tables
}

// Status is what a manager knows of itself and of other subnet managers.
type Status struct {
	// State is its own, SMDiscovering before the first election.
	State smp.SMState
	// Others counts the other managers that take part in the election and answered,
	// Rogues the ports with a manager that is not trusted.
	Others, Rogues int
	Sweeps         Sweeps
	// Guards tells of event.Guarding, until the policy was read again.
	Guards bool
	// Halted tells of event.Halted, until event.Resumed.
	Halted bool
}
