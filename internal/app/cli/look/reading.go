// reading*.go: is what a command that judges a fabric has read: the fabric, when, what
// could not be read, and what was sent for it.

package look

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

// ReadingFault is something that could not be read, in documents.
type ReadingFault struct {
	Where string `json:"where"`
	Why   string `json:"why"`
}

// Unread is what could not be read; never nil.
func (r *Reading) Unread() []ReadingFault {
	out := []ReadingFault{}
	for _, f := range r.Faults {
		out = append(out, ReadingFault(f))
	}
	return out
}

// ReadingSource is how a command comes to a reading.
type ReadingSource struct {
	// Add adds the flags that say what is read.
	Add func(*cobra.Command)
	// Read reads it: only SubnGet is sent.
	Read func(*cobra.Command, sweep.Options) (*Reading, error)
	// Help lists what a fabric may be.
	Help string
}
