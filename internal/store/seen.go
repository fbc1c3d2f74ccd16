package store

import (
	"context"
	"fmt"
	"slices"
)

// Point is a moment in the life of a store, as somebody saw it. A revision and a head of the
// audit log are never seen before they are on the disk, so that a store which does not have
// them any more was rolled back.
type Point struct {
	Revision uint64 `json:"revision"` // the last one then
	Digest   Hash   `json:"digest,omitzero"`
	Audit    Head   `json:"audit,omitzero"` // zero where it was not seen; so is Digest, the hash of the revision's data
}

// pointsKept is how many points are kept: as many revisions back it is known which ones a store
// that was rolled back has kept.
const pointsKept = 64

// Seen is what somebody has seen of a store. It is kept apart from the store, and compared
// with it whenever that is read again.
type Seen struct {
	// Serial counts the changes: of two copies the one with the higher Serial counts.
	Serial uint64 `json:"serial"`
	// Points are the last ones, the oldest first, at most one for each revision.
	Points []Point `json:"points"`
	// Accepted names the stores that were accepted though they had been rolled back.
	Accepted []string `json:"accepted,omitempty"`
}

// Clone is a copy, which does not change with s.
func (s *Seen) Clone() Seen {
	return Seen{s.Serial, slices.Clone(s.Points), slices.Clone(s.Accepted)}
}

// Last is the newest point.
func (s *Seen) Last() (m Point) {
	if n := len(s.Points); n > 0 {
		m = s.Points[n-1]
	}
	return m
}

// Add enters a point. One that is older than the last is not entered: somebody was told late.
func (s *Seen) Add(m Point) {
	last := s.Last()
	switch {
	case m == last, m.Revision < last.Revision, m.Audit != (Head{}) && m.Audit.Sequence < s.Head().Sequence:
		return
	case len(s.Points) > 0 && m.Revision == last.Revision:
		if m.Digest == (Hash{}) {
			m.Digest = last.Digest
		}
		if m.Audit == (Head{}) {
			m.Audit = last.Audit
		}
		if m == last {
			return
		}
		s.Points[len(s.Points)-1] = m
	default:
		s.Points = append(s.Points, m)
		s.Points = slices.Delete(s.Points, 0, max(0, len(s.Points)-pointsKept))
	}
	s.Serial++
}

// Head is the newest head of the audit log.
func (s *Seen) Head() Head {
	for _, m := range slices.Backward(s.Points) {
		if m.Audit != (Head{}) {
			return m.Audit
		}
	}
	return Head{}
}

// Accept enters the name of a store that was accepted; what was seen before does not count
// any more.
func (s *Seen) Accept(name string) {
	s.Points = nil
	s.Know(name)
}

// Knows reports whether a store of this name was accepted before.
func (s *Seen) Knows(name string) bool { return slices.Contains(s.Accepted, name) }

// Know enters the name of a store that was accepted before anything was seen of it.
func (s *Seen) Know(name string) {
	if !s.Knows(name) {
		s.Accepted = append(s.Accepted, name)
		s.Serial++
	}
}

// Learn takes in what another manager has seen of the same store. Who knows of more stores that were
// accepted has seen later times; what it has not seen since counts no more.
func (s *Seen) Learn(o Seen) {
	if slices.ContainsFunc(s.Accepted, func(name string) bool { return !o.Knows(name) }) {
		return // it is of before one was accepted
	}
	for _, name := range o.Accepted {
		if !s.Knows(name) {
			s.Accept(name)
		}
	}
	for _, m := range o.Points {
		s.Add(m)
	}
}

// Witness is a store in which managers leave word of what they have seen of it, apart from its
// revisions: where it was rolled back, who has not seen what is missing learns it from who has.
type Witness interface {
	// Told is what was left; nothing where nobody did.
	Told(ctx context.Context) (Seen, error)
	// Tell leaves it, in place of what was left before.
	Tell(ctx context.Context, s Seen) error
}

// Compare looks whether a store, as it was loaded after the last point was added, has what was
// seen. back says what it has not; nil for nothing.
func (s *Seen) Compare(ctx context.Context, db Store, c *Contents) (back *RolledBackError, err error) {
	if len(s.Points) == 0 {
		return nil, nil
	}
	has, err := s.has(ctx, db, c)
	if has || err != nil {
		return nil, err
	}
	back = &RolledBackError{Last: c.Revision, Audit: c.Audit, Seen: s.Last().Revision, SeenAudit: s.Head()}
	back.First, err = s.missing(ctx, db, c)
	return back, err
}

// missing is the first revision that was seen and that a store does not have, or with another
// content; above the last that was seen where there is none.
func (s *Seen) missing(ctx context.Context, db Store, c *Contents) (first uint64, err error) {
	first = c.Revision + 1
	other := false // some of the store have another content
	for _, m := range slices.Backward(s.Points) {
		if m.Revision > c.Revision {
			continue
		}
		same, err := m.sameRevision(ctx, db, c)
		switch {
		case err != nil:
			return 0, err
		case same && other:
			return m.Revision + 1, nil
		case same:
			return first, nil
		}
		first, other = m.Revision, true
	}
	return first, nil
}

// sameRevision reports whether a store that has as many revisions has the one that was seen,
// as far as that can be told.
func (m *Point) sameRevision(ctx context.Context, db Store, c *Contents) (bool, error) {
	only := *m
	if m.Digest != (Hash{}) || m.Audit.Sequence > c.Audit.Sequence {
		only.Audit = Head{}
	}
	return only.same(ctx, db, c)
}

// has reports whether a store has the newest point, and the newest head of its audit log, in
// whose chain everything before is.
func (s *Seen) has(ctx context.Context, db Store, c *Contents) (bool, error) {
	for _, m := range []Point{{Revision: s.Last().Revision, Audit: s.Head()}, s.Last()} {
		if same, err := m.same(ctx, db, c); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// same reports whether a store has what was seen, as far as it was not trimmed since.
func (m *Point) same(ctx context.Context, db Store, c *Contents) (bool, error) {
	if m.Revision > c.Revision || m.Audit.Sequence > c.Audit.Sequence {
		return false, nil
	}
	if at := m.Audit; at != (Head{}) && at.Sequence >= c.Checkpoint.Sequence {
		is, err := headAt(ctx, db, c, at.Sequence)
		if err != nil || is != at.Hash {
			return false, err
		}
	}
	if m.Digest == (Hash{}) || m.Revision == 0 || m.Revision < c.Oldest {
		return true, nil
	}
	r, err := db.Revision(ctx, m.Revision)
	return err == nil && Sum(r.Data) == m.Digest, err
}

// headAt is the hash of an entry of the audit log that is not before its checkpoint.
func headAt(ctx context.Context, db Store, c *Contents, sequence uint64) (Hash, error) {
	switch sequence {
	case c.Audit.Sequence:
		return c.Audit.Hash, nil
	case c.Checkpoint.Sequence:
		return c.Checkpoint.Hash, nil
	}
	for e, err := range db.Audit(ctx, Range{From: sequence, Limit: 1}) {
		return e.Hash, err
	}
	return Hash{}, fmt.Errorf("audit entry %d: %w", sequence, ErrNotFound)
}
