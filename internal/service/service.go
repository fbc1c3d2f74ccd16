package service

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/preview"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/store"
)

// SubnetManager is the subnet manager, as the service knows it.
type SubnetManager interface {
	// SetPolicy has the manager carry out a policy. It returns at once; the manager
	// calls Service.Done or Service.Refused with the revision, or with a later one.
	SetPolicy(revision uint64, p *policy.Policy)
	// FollowPolicy is the same for a revision that another manager wrote, and that may not
	// be the last: after a takeover it gives nobody what the tables did not hold then.
	FollowPolicy(revision uint64, p *policy.Policy)
	// HoldBack has the manager give no port more than the tables hold now, whatever the
	// policy gives, for a reason; "" ends it. older says that the policy that it has is
	// older than the tables may be.
	HoldBack(why string, older bool)
	// Predict says what the manager would write for a policy. The error says why the
	// fabric cannot take it.
	Predict(ctx context.Context, p *policy.Policy) (*Plan, error)
	// Snapshot is the fabric as the manager last read it.
	Snapshot(ctx context.Context) (*snapshot.Snapshot, error)
}

// Plan is what a change would do to the fabric.
type Plan struct {
	*preview.Preview
	// Text is the same for people, as `ibwarden plan` prints it.
	Text string `json:"text"`
	// Fabric is the size of what it was planned for.
	Fabric observed.Counts `json:"-"`
	// Warnings are those of the policy.
	Warnings []string `json:"-"`
	// Faults are the places that could not be read or used; Unread of them should have
	// been.
	Faults, Unread int `json:"-"`
}

// ErrNotRead says that the manager has not read the fabric yet.
var ErrNotRead = errors.New("the fabric has not been read yet")

// Outcome is what became of a revision on the fabric.
type Outcome struct {
	// State is pending, proved, failed (written, and not proved) or refused (the
	// fabric cannot take it; nothing was written).
	State   OutcomeState      `json:"state"`
	Verdict isolation.Verdict `json:"verdict,omitempty"`
	// At is when the manager said so.
	At time.Time `json:"at"`
	// Seconds is the time from the change to the verdict.
	Seconds float64 `json:"seconds,omitempty"`
	// Writes and Failures are those of the pass that the verdict is of.
	Writes   int      `json:"writes"`
	Failures int      `json:"failures,omitempty"`
	Reasons  []string `json:"reasons,omitempty"`
}

// OutcomeState is the state of an Outcome.
type OutcomeState string

// The states of an Outcome.
const (
	Pending OutcomeState = "pending"
	Proved  OutcomeState = "proved"
	Failed  OutcomeState = "failed"
	Refused OutcomeState = "refused"
)

// Record is one revision as the history keeps it.
type Record struct {
	Number uint64          `json:"revision"`
	At     time.Time       `json:"at"`
	By     string          `json:"by"`
	Tenant string          `json:"tenant"`
	Action string          `json:"action"`
	Why    string          `json:"why,omitempty"`
	Words  []string        `json:"words"`
	Change json.RawMessage `json:"change"`
	Edits  []Edit          `json:"edits"`
	// Told are the words for who made it, if he may not see all of them.
	Told []string `json:"told,omitempty"`
	// Concerns are the tenants who may see the revision besides the provider.
	Concerns []string `json:"concerns"`
	Outcome  *Outcome `json:"outcome,omitempty"`
}

// Edit is one object before and after, as the history keeps it.
type Edit struct {
	Key    string          `json:"key"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// Config is what a service is told once.
type Config struct {
	Store   store.Store
	Manager SubnetManager
	// Base is the policy for as long as no file was applied.
	Base *policy.Policy
	// Owner says who writes the store, for people.
	Owner string
	// Now is the time.
	Now func() time.Time
	// Shared reports whether other managers use the store: this one writes it only while it
	// is master (Lead).
	Shared bool
	// Seen is what was seen of the store in earlier runs; KeepSeen, unless nil, keeps what
	// was seen for the next.
	Seen     store.Seen
	KeepSeen func(store.Seen)
	// Witness, unless nil, is where managers that share the store tell each other what they
	// have seen of it.
	Witness store.Witness
}

// ErrUnknown says that nobody knows whether a change was stored: the store was lost while
// it was asked. The same request with the same Request.Repeat tells.
var ErrUnknown = errors.New("it is not known whether the change was stored")

// ErrNotMaster says that this manager does not manage the subnet, and so changes
// nothing in a store that others share.
var ErrNotMaster = errors.New("this manager is not the master of the subnet: ask the master")

// Service is the state of the fabric's tenants, and the way to change it. Its methods
// may be called from several goroutines.
type Service struct {
	config Config
	epoch  store.Epoch // of this service as the writer; mu and write are held to change it
	events *hubs

	write sync.Mutex // held by the one change that is being made
	// Only who holds write may use these.
	repeats  repeats
	refusals refusals
	wrote    time.Time // the last commit
	numbered bool      // the store has the numbers of revisions by tenant

	mu     sync.RWMutex // guards what follows
	state  *resource.State
	proved uint64 // the last revision with a verdict
	// resolved are the partitions that Numbered was called with.
	resolved []observed.Partition
	// outcomes are those of the last outcomesKept revisions since the service began; the
	// history has all.
	outcomes map[uint64]*Outcome
	since    map[uint64]begun // revisions that have no outcome yet
	carried  uint64           // the last revision that the manager carried out, plus one; 0 for none in this run
	settled  chan struct{}    // closed, and made again, when an outcome is known
	leads    bool             // this service writes the store, for as long as the store lets it
	lost     error            // why nothing can be written now
	fenced   error            // who has taken the store over from this service, which leads all the same; nil for nobody
	rolledBack
	trying  chan struct{}   // closed when the try of a store that was lost is over; nil while there is none
	notes   []store.Outcome // outcomes that are to be stored, the oldest first, one for a revision
	noted   chan struct{}   // wakes who stores them
	closing chan struct{}
	closed  sync.WaitGroup

	standby sync.Mutex         // held to begin or end what follows
	follows context.CancelFunc // ends the following of a store that others write, or the look whether they do; nil while there is neither
	ended   chan struct{}      // closed when that has ended
}

// rolledBack is what a service knows of a store that may be older than what was seen of it.
type rolledBack struct {
	back     *store.RolledBackError // it was rolled back, and is not accepted; nil where it was not
	released bool                   // it counts again, and the manager is not told yet
	older    bool                   // the state is that of the store that was rolled back
	seen     store.Seen             // what was seen of the store
	kept     uint64                 // the Serial of what KeepSeen was given
}

// begun is when a revision was made, and which tenants it concerns.
type begun struct {
	at      time.Time
	tenants []string
}

// outcomesKept is how many outcomes are kept in memory.
const outcomesKept = 10_000

// Open reads a store and, unless others share it, takes it over: from then on no other
// service can write it.
func Open(ctx context.Context, c Config) (*Service, error) {
	s := &Service{
		config: c, events: newHubs(hex.EncodeToString(randomBytes(4)), c.Now), repeats: newRepeats(nil), refusals: newRefusals(),
		outcomes: map[uint64]*Outcome{}, since: map[uint64]begun{}, settled: make(chan struct{}),
		noted: make(chan struct{}, 1), closing: make(chan struct{}), leads: !c.Shared, rolledBack: rolledBack{seen: c.Seen.Clone(), kept: c.Seen.Serial},
	}
	if c.Shared {
		s.lost = ErrNotMaster
		if err := s.load(ctx); err != nil {
			return nil, err
		}
		s.follow()
	} else if err := s.lead(ctx); errors.Is(err, store.ErrFull) {
		if e := s.load(ctx); e != nil { // what stands is guarded meanwhile
			return nil, e
		}
		s.lost = err
	} else if err != nil {
		return nil, err
	} else if back := s.Back(); back != nil {
		s.lost = back
	}
	s.closed.Go(s.keepNotes)
	return s, nil
}

// lead takes over the store and reads it.
func (s *Service) lead(ctx context.Context) error {
	epoch, err := s.config.Store.Acquire(ctx, s.config.Owner)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.epoch = epoch
	s.mu.Unlock()
	switch err = s.load(ctx); {
	case s.Back() != nil: // what the revisions of such a store came to counts no more
		return nil
	case err != nil:
		return err
	}
	return s.loadUnsettled(ctx)
}

// unsettledMost bounds the revisions without an outcome that are looked for.
const unsettledMost = 1000

// loadUnsettled finds the last revisions that have no outcome: their writer ended
// before they were carried out. They have the outcome of what is carried out next.
func (s *Service) loadUnsettled(ctx context.Context) error {
	for rev, err := range s.config.Store.Revisions(ctx, store.Range{Newest: true, Limit: unsettledMost}) {
		if err != nil {
			return err
		}
		if len(rev.Outcome) > 0 {
			break
		}
		record, err := decodeRecord(rev)
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.since[rev.Number] = begun{record.At, record.Concerns}
		s.mu.Unlock()
	}
	return nil
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails: it would end the program
	return b
}

// stored is an object as the store keeps it.
type stored struct {
	Revision uint64          `json:"revision"`
	Object   json.RawMessage `json:"object"`
}

// load reads the store. One that was rolled back is not entered where a later state is known:
// the error is a *store.RolledBackError. Its caller holds write, but for Open.
func (s *Service) load(ctx context.Context) error {
	told, err := s.learn(ctx)
	if err != nil {
		return err
	}
	s.mu.RLock()
	seen, known := s.seen.Clone(), s.state != nil // before it is read: what comes later is not missing in it
	s.mu.RUnlock()
	contents, err := s.config.Store.Load(ctx)
	if err != nil {
		return err
	}
	back, err := compare(ctx, s.config.Store, &seen, contents)
	if err != nil {
		return err
	}
	if back != nil {
		s.tell(ctx, &told, &seen)
	}
	if back != nil && known {
		s.mu.RLock()
		older := s.state.Last() < back.Seen // another manager saw more than this one
		s.mu.RUnlock()
		s.holdBack(back, older)
		return back
	}
	r, err := s.read(ctx, contents)
	if err != nil {
		return err
	}
	s.enterRead(r)
	if back != nil {
		s.holdBack(back, true)
	} else {
		s.saw(seen, contents)
	}
	return nil
}

// loaded is what a store holds.
type loaded struct {
	state *resource.State
	keys  map[string]repeated
	// numbered is that of a Service.
	numbered bool
}

// enterRead makes what was read the state.
func (s *Service) enterRead(r *loaded) {
	s.repeats = newRepeats(r.keys)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.numbered = r.state, r.numbered
	s.numberBase()
}

// read decodes what a store holds.
func (s *Service) read(ctx context.Context, contents *store.Contents) (*loaded, error) {
	state := resource.New(s.config.Base)
	keys := map[string]repeated{}
	var numbers numbersRead
	for _, o := range contents.Objects {
		if ofManager(o.Key) {
			continue
		}
		if is, err := numbers.take(o); err != nil {
			return nil, err
		} else if is {
			continue
		}
		if id, is := cutPrefix(o.Key, repeatedPrefix); is {
			var r repeated
			if err := json.Unmarshal(o.Value, &r); err != nil {
				return nil, fmt.Errorf("store: %s: %w", o.Key, err)
			}
			keys[id] = r
			continue
		}
		var v stored
		if err := json.Unmarshal(o.Value, &v); err != nil {
			return nil, fmt.Errorf("store: %s: %w", o.Key, err)
		}
		object, err := resource.Decode(o.Key, v.Object)
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		if err := state.Restore(object, v.Revision); err != nil {
			return nil, fmt.Errorf("store: %s: %w", o.Key, err)
		}
	}
	state.SetLast(contents.Revision)
	if err := numbers.enter(state); err != nil {
		return nil, err
	}
	if !numbers.numbered && contents.Revision > 0 {
		if err := s.number(ctx, state); err != nil {
			return nil, err
		}
	}
	return &loaded{state, keys, numbers.numbered}, nil
}

func cutPrefix(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):], true
	}
	return s, false
}

// Read calls f with the state, which f may not keep. old tells why what is read may
// be old: the store cannot be reached, or another manager writes it now.
func (s *Service) Read(f func(*resource.State)) (old error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f(s.state)
	if s.lost != nil && s.lost == s.asideLocked() {
		return fmt.Errorf("%w; this is revision %d, as the store has it", s.lost, s.state.Last())
	}
	return s.lost
}

// Manager is the subnet manager.
func (s *Service) Manager() SubnetManager { return s.config.Manager }

// Now is the time of the service.
func (s *Service) Now() time.Time { return s.config.Now() }

// Policy is the policy of the last revision, with which the manager begins.
func (s *Service) Policy() (revision uint64, p *policy.Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Last(), s.state.Policy()
}

// Numbered is called by the manager with the partitions of a policy as it has resolved it: those of
// the base that state no number have the one that the fabric has.
func (s *Service) Numbered(list []observed.Partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(list) == len(s.resolved) && (len(list) == 0 || &list[0] == &s.resolved[0]) {
		return // the same again
	}
	s.resolved = list
	s.numberBase()
}

// numberBase enters the numbers of resolved partitions into the state; mu is held.
func (s *Service) numberBase() {
	unnumbered := map[string]bool{}
	if s.config.Base != nil {
		for i := range s.config.Base.Partitions {
			if p := &s.config.Base.Partitions[i]; p.PKey == 0 {
				unnumbered[p.Name] = true
			}
		}
	}
	numbers := map[string]ib.PKeyBase{}
	for i := range s.resolved {
		if p := &s.resolved[i]; unnumbered[p.Name] {
			numbers[p.Name] = p.Base
		}
	}
	s.state.Allocated = numbers
}

// Done is called by the manager when it has carried out the policy of a revision, and
// with it every revision before.
func (s *Service) Done(revision uint64, o Outcome) {
	o.State = Failed
	if o.Verdict.Holds() && o.Failures == 0 {
		o.State = Proved
	}
	s.settle(revision, o)
}

// Refused is called by the manager when it cannot carry out the policy of a revision:
// nothing was written. The revision is taken back, unless a newer one is on its way; and
// if that does not help, the one before it, down to what the manager carried out last.
func (s *Service) Refused(revision uint64, err error) {
	s.mu.RLock()
	_, pending := s.since[revision]
	carried := s.carried
	s.mu.RUnlock()
	s.settle(revision, Outcome{State: Refused, Reasons: []string{err.Error()}})
	// A revision is to blame only if it is new, and the manager has carried out another
	// before it.
	if pending && carried > 0 {
		s.closed.Go(func() { s.takeBack(revision, err) })
	}
}

// settle notes what became of every revision up to one that has had no outcome. It
// does not wait for the store.
func (s *Service) settle(revision uint64, o Outcome) {
	now := s.config.Now()
	o.At = now
	var settled []Event
	s.mu.Lock()
	for n := s.proved + 1; n <= revision; n++ {
		each := o
		b, known := s.since[n]
		if known {
			each.Seconds = now.Sub(b.at).Seconds()
			delete(s.since, n)
		} else if n != revision {
			continue // of an earlier run: it has its outcome
		}
		s.outcomes[n] = &each
		delete(s.outcomes, n-outcomesKept)
		data, _ := json.Marshal(each)
		s.noteLocked(store.Outcome{Revision: n, Data: data})
		settled = append(settled, Event{At: now, Kind: EventOutcome, Revision: n, Tenants: b.tenants, Text: string(o.State), Outcome: &each})
	}
	if o.State != Refused {
		s.carried = max(s.carried, revision+1)
	}
	if o.State == Proved {
		s.proved = max(s.proved, revision)
	}
	close(s.settled)
	s.settled = make(chan struct{})
	s.mu.Unlock()
	for _, e := range settled {
		s.events.add(e)
	}
	s.wakeNotes()
}

// Tell adds what the manager says of the fabric to the events.
func (s *Service) Tell(name, text string) {
	s.events.add(Event{At: s.config.Now(), Kind: EventManager, Name: name, Text: text})
}

// Events yields the events that a caller may see after the one with an ID, and then
// each as it happens, until ctx ends.
func (s *Service) Events(ctx context.Context, by resource.Caller, after string) iter.Seq[Event] {
	return s.events.seenBy(by).follow(ctx, after, false)
}

// KeptEvents yields those of Events that have happened.
func (s *Service) KeptEvents(by resource.Caller, after string) iter.Seq[Event] {
	return s.events.seenBy(by).follow(context.Background(), after, true)
}
