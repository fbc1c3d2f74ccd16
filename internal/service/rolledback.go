package service

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/store"
)

// acceptedPrefix begins the keys of the objects that say that a store was accepted though it
// had been rolled back.
const acceptedPrefix = string(resource.KindRestored) + "/"

// acceptedIn are those of a store.
func acceptedIn(c *store.Contents) (keys []string) {
	for _, o := range c.Objects {
		if strings.HasPrefix(o.Key, acceptedPrefix) {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

// compare looks whether a store has what was seen of it. What was seen before the provider
// accepted a store that was rolled back counts no more, once for each time: a store that
// is rolled back again, to a moment behind that, is not accepted by it.
func compare(ctx context.Context, db store.Store, seen *store.Seen, c *store.Contents) (*store.RolledBackError, error) {
	back, err := seen.Compare(ctx, db, c)
	if back == nil || err != nil {
		return nil, err
	}
	for _, key := range acceptedIn(c) {
		if !seen.Knows(key) {
			return nil, nil
		}
	}
	return back, nil
}

// saw notes that a store was read which has all that was seen of it, or was accepted.
func (s *Service) saw(seen store.Seen, c *store.Contents) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range acceptedIn(c) {
		if !seen.Knows(key) {
			s.seen.Accept(key)
		}
	}
	s.seen.Add(store.Point{Revision: c.Revision, Audit: c.Audit})
	s.standsLocked()
	s.wakeNotes()
}

// learn takes in what other managers have told of the store, and returns it.
func (s *Service) learn(ctx context.Context) (told store.Seen, err error) {
	if s.config.Witness == nil {
		return told, nil
	}
	if told, err = s.config.Witness.Told(ctx); err != nil {
		return told, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Learn(told)
	s.wakeNotes()
	return told, nil
}

// tell has other managers know what was seen of a store that was rolled back, unless they were
// told. What could not be told is told when the store is read again, which is soon.
func (s *Service) tell(ctx context.Context, told, seen *store.Seen) {
	if s.config.Witness != nil && (told.Last() != seen.Last() || len(told.Accepted) != len(seen.Accepted)) {
		_ = s.config.Witness.Tell(ctx, *seen)
	}
}

// sawRevisionLocked notes a revision that another manager wrote; mu is held.
func (s *Service) sawRevisionLocked(rev store.Revision, d resource.Diff) {
	for _, e := range d.Edits {
		if strings.HasPrefix(e.Key, acceptedPrefix) && e.After != nil {
			s.seen.Know(e.Key)
		}
	}
	s.seen.Add(store.Point{Revision: rev.Number, Digest: store.Sum(rev.Data)})
	s.wakeNotes()
}

// sawCommit notes what a commit of this service came to. The error says that it was carried
// out by a store that was rolled back: its audit log ends before what was seen of it.
func (s *Service) sawCommit(c *store.Commit, done store.Committed) error {
	p := store.Point{Revision: done.Revision, Audit: done.Audit}
	if c.Revision != nil {
		p.Digest = store.Sum(c.Revision)
	}
	s.mu.Lock()
	last, end := s.seen.Last(), s.seen.Head()
	back := done.Revision < last.Revision || done.Audit.Sequence < end.Sequence || done.Audit.Sequence == end.Sequence && done.Audit != end
	if !back {
		s.seen.Add(p)
		s.wakeNotes()
	}
	s.mu.Unlock()
	if !back {
		return nil
	}
	err := fmt.Errorf("%w: what it has is not what was written before", store.ErrRolledBack)
	s.failed(err)
	return &unknownError{err}
}

// isOlder reports whether the policy here is that of a store that was rolled back.
func (s *Service) isOlder() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.older
}

// holdBack notes that the store was rolled back; entered says that its content is the state
// here, since no later one was known.
func (s *Service) holdBack(back *store.RolledBackError, entered bool) {
	s.mu.Lock()
	again := s.back != nil && *s.back == *back
	s.back, s.released, s.older = back, false, s.older || entered
	if s.leads && !errors.Is(s.lost, store.ErrFenced) {
		s.lost = back
	}
	older := s.older
	s.mu.Unlock()
	if !again {
		s.config.Manager.HoldBack(back.Error(), older)
	}
}

// standsLocked ends that; mu is held.
func (s *Service) standsLocked() {
	if s.back == nil {
		return
	}
	s.back, s.older, s.released = nil, false, true
	if errors.Is(s.lost, store.ErrRolledBack) && s.leads {
		s.lost = errReadAgain
	}
}

// release has the manager give ports what its policy says again, where the store counts again:
// its caller has handed the policy over.
func (s *Service) release() {
	s.mu.Lock()
	released := s.released
	s.released = false
	s.mu.Unlock()
	if released {
		s.config.Manager.HoldBack("", false)
	}
}

// errReadAgain is why nothing is written to a store that is as it was again: until Recover has
// tried it.
var errReadAgain = fmt.Errorf("%w: it was rolled back, and is read again", store.ErrUnavailable)

// Back reports whether the store was rolled back, and what is missing in it; nil where it was not,
// or was accepted. Until then the manager gives no port more than it has, and nothing is
// written to the store.
func (s *Service) Back() *store.RolledBackError {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.back
}

// Seen is what was seen of the store.
func (s *Service) Seen() store.Seen {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.seen.Clone()
}

// keepSeen keeps what was seen of the store for the next run.
func (s *Service) keepSeen() {
	s.mu.Lock()
	seen, kept := s.seen.Clone(), s.kept
	s.kept = seen.Serial
	s.mu.Unlock()
	if s.config.KeepSeen != nil && seen.Serial != kept {
		s.config.KeepSeen(seen)
	}
}

// acceptedIDBytes is how long the random ID of an acceptance is.
const acceptedIDBytes = 8

// acceptRestored is what the history calls it.
const acceptRestored = "accept restored store"

// acceptance is the object that says that a store is accepted, and how it gets into the store.
func (s *Service) acceptance(r *Request, last uint64, now time.Time) (*resource.Restored, resource.Diff) {
	id := make([]byte, acceptedIDBytes)
	rand.Read(id) // never fails: it would end the program
	x := &resource.Restored{ID: fmt.Sprintf("%x", id), Last: last, At: now, By: r.By.Name, Why: r.Why}
	words := fmt.Sprintf("the store is accepted as it is, with revision %d as its last", last)
	if back := s.Back(); back != nil {
		if x.First, x.Seen = back.Missing(); x.First <= x.Seen {
			words += fmt.Sprintf(": revisions %d to %d, which were seen, are given up", x.First, x.Seen)
		}
	}
	return x, resource.Diff{Edits: []resource.Edit{{Key: x.Key(), After: x}}, Words: []string{words}, About: []string{x.Key()}}
}

// Refuses says why the store takes no changes, though this manager writes it or follows who
// does; "" where it does.
func (s *Service) Refuses() string {
	if back := s.Back(); back != nil {
		return back.Error()
	}
	if err := s.writable(); err != nil && !errors.Is(err, ErrNotMaster) {
		return err.Error()
	}
	return ""
}

// AcceptRestored makes the store, as it is, the one that counts: it loads it, and writes a
// revision into it that says so, which the other managers take over. The request has the
// caller and the reason. Only who writes the store can: the errors are those of Do.
func (s *Service) AcceptRestored(ctx context.Context, r Request) (*Result, error) {
	switch by := r.By; {
	case !by.IsProvider() || by.ReadOnly || by.Keys.First != 0:
		return nil, &resource.Refusal{Reason: resource.Forbidden, Detail: "only the provider may do this"}
	case r.Why == "" || len(r.Why) > resource.WhyMax:
		return nil, &resource.Refusal{Reason: resource.Invalid, Field: "why", Detail: fmt.Sprintf("want the reason, of at most %d bytes", resource.WhyMax)}
	}
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.writable(); err != nil && !errors.Is(err, store.ErrRolledBack) {
		return nil, err
	}
	contents, err := s.config.Store.Load(ctx)
	if err != nil {
		return nil, err
	}
	read, err := s.read(ctx, contents)
	if err != nil {
		return nil, err
	}
	now := s.config.Now()
	change, diff := s.acceptance(&r, contents.Revision, now)
	body, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	c, err := s.commit(contents.Revision, Record{At: now, By: r.By.Name, Tenant: r.By.Tenant, Action: acceptRestored, Why: r.Why, Change: body}, diff)
	if err != nil {
		return nil, err
	}
	c.Audit = []store.Entry{{
		Time: now, Caller: r.By.Name, Tenant: r.By.Tenant, Action: acceptRestored, Request: r.ID, Decision: store.Accepted,
		Object: diff.Edits[0].Key, Reason: bounded(r.Why), Revision: contents.Revision + 1,
	}}
	done, err := s.transact(ctx, c)
	if err != nil {
		return nil, err
	}
	s.enterRead(read)
	s.mu.Lock()
	s.seen.Accept(diff.Edits[0].Key)
	s.outcomes, s.since, s.notes = map[uint64]*Outcome{}, map[uint64]begun{}, nil
	s.proved, s.carried = 0, 0
	s.standsLocked()
	s.lost = nil
	s.mu.Unlock()
	s.enter(diff, done.Revision, r.By, now)
	s.release()
	return resultOf(done.Revision, diff, manager), s.sawCommit(&c, done)
}
