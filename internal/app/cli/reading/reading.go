// Package reading is what a command that judges a fabric has read: the fabric, when, what
// could not be read, and what was sent for it.
package reading

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
)

// Reading is what a command judges.
type Reading struct {
	*snapshot.Snapshot
	// SMPs counts what was sent; nil when nothing was.
	SMPs *daemon.SMPs
}

// Time is when the reading began, in UTC, as documents have it.
func (r *Reading) Time() string { return r.ReadAt.UTC().Format(time.RFC3339) }

// Fault is something that could not be read, in documents.
type Fault struct {
	Where string `json:"where"`
	Why   string `json:"why"`
}

// Unread is what could not be read; never nil.
func (r *Reading) Unread() []Fault {
	out := []Fault{}
	for _, f := range r.Faults {
		out = append(out, Fault(f))
	}
	return out
}

// Source is how a command comes to a reading.
type Source struct {
	// Add adds the flags that say what is read.
	Add func(*cobra.Command)
	// Read reads it: only SubnGet is sent.
	Read func(*cobra.Command, sweep.Options) (*Reading, error)
	// Help lists what a fabric may be.
	Help string
}
