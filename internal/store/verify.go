package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Chain says against what Verify holds the entries of an audit log.
type Chain struct {
	Checkpoint Checkpoint // where the log begins
	Head       Head       // where it ends
	// Anchors are heads of the same log that were written down elsewhere, in any order.
	// One that is before the checkpoint cannot be checked and is an error.
	Anchors []Head
	// Digest returns the hash of the data of a revision, to be held against the entry
	// that committed it. Nil: revisions are not looked at.
	Digest func(revision uint64) (Hash, error)
	// Oldest and Last are the revisions that the history has. With Digest set, each of
	// them has to have an entry that committed it, in their order.
	Oldest, Last uint64
}

// BrokenError says where an audit log breaks.
type BrokenError struct {
	Sequence uint64 // the entry that is not as it ought to be
	Reason   string
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("the audit log breaks at entry %d: %s", e.Sequence, e.Reason)
}

// Verify reads the entries of a log, oldest first, and returns how many there are. It
// fails with a BrokenError if an entry was changed, removed, added or moved, if entries
// are missing at either end, if an anchor is not in the chain, or if a revision is not
// the one that was committed; and with the error of the iterator.
func Verify(c Chain, entries iter.Seq2[Entry, error]) (count uint64, err error) {
	v := verifier{Chain: c, at: Head(c.Checkpoint), stated: c.Checkpoint == Checkpoint{}, anchors: map[uint64]Hash{}, next: c.Oldest}
	if err := v.enterAnchors(); err != nil {
		return 0, err
	}
	for e, err := range entries {
		if err != nil {
			return count, err
		}
		if err := v.entry(&e); err != nil {
			return count, err
		}
		count++
	}
	return count, v.end()
}

// VerifyStore verifies the audit log and the history of a store, as they are at one
// moment, with anchors that were written down elsewhere. It returns the state of the
// store and how many entries there are.
func VerifyStore(ctx context.Context, s Store, anchors []Head) (*Contents, uint64, error) {
	return VerifyEach(ctx, s, anchors, func(Revision) {})
}

// VerifyEach is VerifyStore, and calls each for the revisions of the history, in their order.
// They are those that were committed if there is no error; else the last one may not be.
func VerifyEach(ctx context.Context, s Store, anchors []Head, each func(Revision)) (*Contents, uint64, error) {
	now, err := s.Load(ctx)
	if err != nil {
		return nil, 0, err
	}
	next, stop := iter.Pull2(s.Revisions(ctx, Range{From: now.Oldest}))
	defer stop()
	var at Revision
	count, err := Verify(Chain{
		Checkpoint: now.Checkpoint, Head: now.Audit, Anchors: anchors, Oldest: now.Oldest, Last: now.Revision,
		Digest: func(n uint64) (Hash, error) {
			for at.Number < n {
				r, err, ok := next()
				if err != nil {
					return Hash{}, err
				}
				if !ok {
					break
				}
				at = r
				each(r)
			}
			if at.Number != n {
				return Hash{}, fmt.Errorf("revision %d: %w", n, ErrNotFound)
			}
			return Sum(at.Data), nil
		},
	}, upTo(s.Audit(ctx, Range{}), now.Audit.Sequence))
	return now, count, err
}

// upTo ends an iteration after an entry.
func upTo(entries iter.Seq2[Entry, error], last uint64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for e, err := range entries {
			if err == nil && e.Sequence > last || !yield(e, err) {
				return
			}
		}
	}
}

type verifier struct {
	Chain
	at      Head // the last entry that was looked at
	stated  bool // an entry states the checkpoint
	anchors map[uint64]Hash
	next    uint64 // the revision whose entry comes next
}

func (v *verifier) enterAnchors() error {
	for _, a := range v.Anchors {
		if was, double := v.anchors[a.Sequence]; double && was != a.Hash {
			return broken(a.Sequence, "two anchors of this entry have different hashes: %s and %s", was, a.Hash)
		}
		if a.Sequence < v.Checkpoint.Sequence {
			return broken(a.Sequence, "the anchor is before the checkpoint, entry %d: the entries up to it were trimmed", v.Checkpoint.Sequence)
		}
		v.anchors[a.Sequence] = a.Hash
	}
	return v.anchor()
}

// anchor compares the entry looked at last with the anchor for it.
func (v *verifier) anchor() error {
	if want, ok := v.anchors[v.at.Sequence]; ok && want != v.at.Hash {
		return broken(v.at.Sequence, "its hash is %s, and the anchor says %s", v.at.Hash, want)
	}
	return nil
}

func (v *verifier) entry(e *Entry) error {
	want := v.at.Sequence + 1
	if e.Sequence > want {
		return broken(want, "it is missing: entry %d is in its place", e.Sequence)
	}
	if e.Sequence != want {
		return broken(want, "entry %d is in its place", e.Sequence)
	}
	if e.Previous != v.at.Hash {
		return broken(want, "it follows an entry with the hash %s, and the one before has %s", e.Previous, v.at.Hash)
	}
	if sum := Sum(e.content()); e.Hash != sum {
		return broken(want, "its hash is %s, and its content has %s", e.Hash, sum)
	}
	v.at = Head{Sequence: e.Sequence, Hash: e.Hash}
	if err := v.anchor(); err != nil {
		return err
	}
	if e.Begins != nil && *e.Begins == v.Checkpoint {
		v.stated = true
	}
	if v.Digest == nil || e.Digest == (Hash{}) {
		return nil
	}
	return v.revision(e)
}

func (v *verifier) revision(e *Entry) error {
	if e.Revision < v.Oldest {
		return nil
	}
	if e.Revision > v.Last {
		return broken(e.Sequence, "it commits revision %d, and the history ends with %d", e.Revision, v.Last)
	}
	if e.Revision > v.next {
		return broken(e.Sequence, "no entry commits revision %d: this one commits revision %d", v.next, e.Revision)
	}
	if e.Revision != v.next && e.Revision+1 != v.next { // several entries may be about one
		return broken(e.Sequence, "it commits revision %d, and revision %d comes next", e.Revision, v.next)
	}
	has, err := v.Digest(e.Revision)
	if errors.Is(err, ErrNotFound) {
		return broken(e.Sequence, "it commits revision %d, which is missing in the history", e.Revision)
	}
	if err != nil {
		return err
	}
	if has != e.Digest {
		return broken(e.Sequence, "revision %d is not what was committed: its hash is %s, and the entry says %s", e.Revision, has, e.Digest)
	}
	v.next = e.Revision + 1
	return nil
}

func (v *verifier) end() error {
	if v.at != v.Head {
		if v.at.Sequence < v.Head.Sequence {
			return broken(v.at.Sequence+1, "the log ends before it, and its head is entry %d", v.Head.Sequence)
		}
		return broken(v.at.Sequence, "the head of the log is %s, and the last entry is %s", v.Head, v.at)
	}
	if !v.stated {
		return broken(v.Checkpoint.Sequence+1, "no entry states the checkpoint from which the log begins, entry %d", v.Checkpoint.Sequence)
	}
	for n := range v.anchors {
		if n > v.at.Sequence {
			return broken(v.at.Sequence+1, "the log ends before it, and there is an anchor for entry %d", n)
		}
	}
	if v.Digest != nil && v.Last > 0 && v.next != v.Last+1 {
		return broken(v.at.Sequence, "the history has revisions up to %d, and no entry commits revision %d", v.Last, v.next)
	}
	return nil
}

func broken(sequence uint64, format string, args ...any) error {
	return &BrokenError{Sequence: sequence, Reason: fmt.Sprintf(format, args...)}
}
