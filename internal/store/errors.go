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
)

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
