package store

import (
	"errors"
	"fmt"
)

// Errors of stores. Errors wrap them and say more.
var (
	ErrStale       = errors.New("the store has a newer revision")
	ErrFenced      = errors.New("another manager has become the writer of the store")
	ErrHeld        = errors.New("another manager has the right to write to the fabric")
	ErrInvalid     = errors.New("the store does not take this")
	ErrTooLarge    = errors.New("too large for the store")
	ErrNotFound    = errors.New("not in the store")
	ErrCompacted   = errors.New("removed from the history")
	ErrRetention   = errors.New("audit entries have to be kept")
	ErrUnavailable = errors.New("the store cannot be reached")
	ErrFull        = errors.New("the store is full")
	ErrCorrupt     = errors.New("the store is damaged")
	ErrLocked      = errors.New("another process has the store open")
	ErrPermissions = errors.New("others may read or replace the store")
	ErrNewer       = errors.New("the store is of a newer version of ibwarden")
	ErrNotEmpty    = errors.New("the store is not empty")
	ErrIncomplete  = errors.New("a restore into the store did not end: restore again")
	ErrClosed      = errors.New("the store is closed")
	ErrRolledBack  = errors.New("the store was rolled back")
)

// RolledBackError says what a store does not have any more that was seen in it. It is
// ErrRolledBack.
type RolledBackError struct {
	Last      uint64 // the last revision of the store
	Seen      uint64 // the last that was seen
	First     uint64 // the first that is missing, or has another content; above Seen where only audit entries are missing
	Audit     Head   // the end of its audit log
	SeenAudit Head   // the last that was seen
}

// Missing are the revisions that were seen and that the store does not have, or with another
// content; from is above to where there are none.
func (e *RolledBackError) Missing() (from, to uint64) { return e.First, e.Seen }

func (e *RolledBackError) Error() string {
	text := ErrRolledBack.Error()
	missing := fmt.Sprintf("revisions %d to %d, which were seen, are missing", e.First, e.Seen)
	if e.First == e.Seen {
		missing = fmt.Sprintf("revision %d, which was seen, is missing", e.Seen)
	}
	switch {
	case e.First > e.Seen && e.SeenAudit.Sequence > e.Audit.Sequence:
		return fmt.Sprintf("%s: its audit log ends with entry %d, and entries up to %d, which were seen, are missing", text, e.Audit.Sequence, e.SeenAudit.Sequence)
	case e.First > e.Seen:
		return fmt.Sprintf("%s: its audit log has another content than the one that was seen up to entry %d", text, e.SeenAudit.Sequence)
	case e.Last >= e.Seen:
		return fmt.Sprintf("%s: %s: it has another content there", text, missing)
	}
	return fmt.Sprintf("%s: it ends with revision %d, and %s", text, e.Last, missing)
}

// Is reports whether target is ErrRolledBack.
func (e *RolledBackError) Is(target error) bool { return target == ErrRolledBack }

// NewerError says that a store or a backup has a format that this program is too old for.
// It is ErrNewer.
type NewerError struct {
	What  string // the file or the address
	Has   int    // the version of its format
	Knows int    // the newest that this program knows
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s has format %d, and this program knows formats up to %d: use a newer ibwarden", e.What, e.Has, e.Knows)
}

// Is reports whether target is ErrNewer.
func (e *NewerError) Is(target error) bool { return target == ErrNewer }

// CorruptError says what is damaged in a store or a backup. It is ErrCorrupt.
type CorruptError struct {
	What string // the file or the address
	Part string // for example `object "tenant/a"`
	Err  error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is damaged: %s: %v", e.What, e.Part, e.Err)
}

// Is reports whether target is ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }
