package store

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of what a store takes, the same for every kind of store.
const (
	MaxKey      = 512                 // bytes of a key of an object
	MaxObject   = 1 << 20             // bytes of an object
	MaxRevision = 32 << 20            // bytes of a revision
	MaxOutcome  = 8 << 20             // bytes of an outcome
	MaxOutcomes = 16                  // outcomes in one commit
	MaxChanges  = 100_000             // objects put and deleted in one commit
	MaxCommit   = 64 << 20            // bytes of a commit
	MaxEntries  = 16                  // audit entries in one commit
	MaxField    = 1024                // bytes of a field of an audit entry
	MaxLine     = 6*6*MaxField + 1024 // bytes of an audit entry as a line, each byte of a field escaped
)

// KeepAudit is how long audit entries are kept at least.
const KeepAudit = 400 * 24 * time.Hour

// Check says what is wrong with a commit: an error that wraps ErrInvalid or ErrTooLarge.
func (c *Commit) Check() error {
	size := len(c.Revision)
	if c.Revision != nil && size == 0 {
		return fmt.Errorf("%w: a revision of no bytes", ErrInvalid)
	}
	if size > MaxRevision {
		return tooLarge("a revision", size, MaxRevision, "bytes")
	}
	if n := len(c.Puts) + len(c.Deletes); n > MaxChanges {
		return tooLarge("a commit", n, MaxChanges, "objects")
	}
	n, err := c.checkObjects()
	if err != nil {
		return err
	}
	size += n
	if len(c.Outcomes) > MaxOutcomes {
		return tooLarge("a commit", len(c.Outcomes), MaxOutcomes, "outcomes")
	}
	for i, o := range c.Outcomes {
		if len(o.Data) > MaxOutcome {
			return tooLarge("an outcome", len(o.Data), MaxOutcome, "bytes")
		}
		for _, other := range c.Outcomes[:i] {
			if other.Revision == o.Revision {
				return fmt.Errorf("%w: two outcomes of revision %d", ErrInvalid, o.Revision)
			}
		}
		size += len(o.Data)
	}
	if size > MaxCommit {
		return tooLarge("a commit", size, MaxCommit, "bytes")
	}
	return c.checkAudit()
}

// Size is about how many bytes a commit writes.
func (c *Commit) Size() int {
	size := len(c.Revision)
	for _, o := range c.Puts {
		size += len(o.Key) + len(o.Value)
	}
	for _, k := range c.Deletes {
		size += len(k)
	}
	for _, o := range c.Outcomes {
		size += len(o.Data)
	}
	return size
}

// checkObjects returns the bytes of the objects.
func (c *Commit) checkObjects() (size int, err error) {
	seen := make(map[string]bool, len(c.Puts)+len(c.Deletes))
	key := func(k string) error {
		if err := CheckKey(k); err != nil {
			return err
		}
		if seen[k] {
			return fmt.Errorf("%w: object %q twice in a commit", ErrInvalid, k)
		}
		seen[k] = true
		size += len(k)
		return nil
	}
	for _, o := range c.Puts {
		if err := key(o.Key); err != nil {
			return 0, err
		}
		if len(o.Value) > MaxObject {
			return 0, tooLarge(fmt.Sprintf("object %q", o.Key), len(o.Value), MaxObject, "bytes")
		}
		size += len(o.Value)
	}
	for _, k := range c.Deletes {
		if err := key(k); err != nil {
			return 0, err
		}
	}
	return size, nil
}

func (c *Commit) checkAudit() error {
	if len(c.Audit) > MaxEntries {
		return tooLarge("a commit", len(c.Audit), MaxEntries, "audit entries")
	}
	named := c.Revision == nil
	for _, e := range c.Audit {
		if err := e.check(); err != nil {
			return err
		}
		named = named || e.Revision == c.After+1
	}
	if !named {
		return fmt.Errorf("%w: revision %d has no audit entry in its commit", ErrInvalid, c.After+1)
	}
	return nil
}

// Empty reports whether a commit writes nothing: it asks whether its epoch may.
func (c *Commit) Empty() bool {
	return c.Revision == nil && len(c.Puts)+len(c.Deletes)+len(c.Outcomes)+len(c.Audit) == 0
}

// Guarded reports whether a commit is compared with the last revision.
func (c *Commit) Guarded() bool {
	return c.Revision != nil || len(c.Puts) > 0 || len(c.Deletes) > 0
}

// CheckKey says what is wrong with the key of an object or the name of an owner.
func CheckKey(k string) error {
	switch {
	case k == "":
		return fmt.Errorf("%w: an empty key", ErrInvalid)
	case len(k) > MaxKey:
		return tooLarge("a key", len(k), MaxKey, "bytes")
	case !utf8.ValidString(k) || strings.ContainsFunc(k, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%w: key %q, want printable UTF-8", ErrInvalid, k)
	}
	return nil
}

func tooLarge(what string, n, most int, unit string) error {
	return fmt.Errorf("%w: %s of %d %s, at most %d", ErrTooLarge, what, n, unit, most)
}
