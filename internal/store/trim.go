package store

import (
	"fmt"
	"time"
)

// Check says what is wrong with a trim: an error that wraps ErrInvalid or ErrTooLarge.
func (t *Trim) Check() error { return t.Audit.check() }

// Keeps looks whether a trim keeps what has to be kept, by the clock of the store and by
// the newest entry: whichever is earlier. Else the error wraps ErrRetention.
func (t *Trim) Keeps(now, newest time.Time) error {
	if newest.Before(now) {
		now = newest
	}
	if keep := now.Add(-KeepAudit); t.Before.After(keep) {
		return fmt.Errorf("%w for %d days: entries from %s on cannot be removed", ErrRetention, KeepAudit/(24*time.Hour), keep.UTC().Format(time.RFC3339))
	}
	return nil
}

// Cut finds what a trim removes. It is given the entries from the oldest on.
type Cut struct {
	Trim       Trim
	Last       uint64     // the last revision, which stays
	Checkpoint Checkpoint // the last entry that goes; zero while none does
	Revision   uint64     // the last revision that goes
}

// Takes reports whether an entry is removed. If not, none after it is.
func (c *Cut) Takes(e *Entry) bool {
	commits := e.Digest != Hash{}
	if !e.Time.Before(c.Trim.Before) || commits && e.Revision >= c.Last {
		return false
	}
	c.Checkpoint = Checkpoint{Sequence: e.Sequence, Hash: e.Hash}
	if commits {
		c.Revision = e.Revision
	}
	return true
}

// Allowed looks whether a commit may be written to a store in a state: the error wraps
// ErrFenced, ErrStale, ErrNotFound or ErrCompacted.
func (c *Commit) Allowed(state *State) error {
	if c.Epoch != state.Epoch || c.Epoch == 0 {
		return Fenced(c.Epoch, state)
	}
	if c.Guarded() && c.After != state.Revision {
		return fmt.Errorf("%w: %d, and the commit is for %d", ErrStale, state.Revision, c.After)
	}
	last := state.Revision
	if c.Revision != nil {
		last++
	}
	for _, o := range c.Outcomes {
		if o.Revision == 0 || o.Revision > last {
			return fmt.Errorf("%w: revision %d, for which the commit has an outcome", ErrNotFound, o.Revision)
		}
		if o.Revision < state.Oldest {
			return fmt.Errorf("%w: revision %d, for which the commit has an outcome", ErrCompacted, o.Revision)
		}
	}
	return nil
}

// Fenced is the error for an epoch that is not the newest.
func Fenced(epoch Epoch, state *State) error {
	if state.Epoch == 0 {
		return fmt.Errorf("%w: nobody has acquired it yet", ErrFenced)
	}
	return fmt.Errorf("%w: %s, with epoch %d, and this is epoch %d", ErrFenced, state.Owner, state.Epoch, epoch)
}
