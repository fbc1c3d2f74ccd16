package service

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/store"
)

// Request is a change that a caller asks for.
type Request struct {
	Change resource.Change
	By     resource.Caller
	// Why is a reason for the history; it may be empty.
	Why string
	// Seen is as in resource.Request: the revision that the caller has seen, or
	// resource.Unseen.
	Seen uint64
	// Look, unless nil, reads the state that the change is made to, with no other change in
	// between, and returns Seen, or why the change is refused: always, or by IfChanged unless
	// it changes nothing. It may not keep the state.
	Look func(*resource.State) (seen uint64, err error)
	// Amend, unless nil, makes the change from the state, after Look; Change is then one of its kind,
	// and stands for it until then.
	Amend func(*resource.State) (resource.Change, error)
	// Touched, unless nil, is the revision that last changed what the request is about: asked
	// of the state that a request which changes nothing finds, for Result.Touched.
	Touched func(*resource.State) uint64
	// Repeat is an idempotency key: a second request of the caller with it changes
	// nothing and is answered as the first. "" for none. A dry run has none.
	Repeat string
	// Digest is of what the caller sent, so that the same key for something else is told
	// apart; "" for that of Change, for callers who make the same Change each time.
	Digest string
	// DryRun plans the change and makes none.
	DryRun bool
	// Wait waits until the manager has carried the change out, or could not.
	Wait bool
	// ID names the request in the audit log.
	ID string
}

// IfChanged is the error of a Look that refuses the change only if it changes something: what
// says again what is there replaces nothing unseen.
type IfChanged struct{ Err error }

func (e IfChanged) Error() string { return e.Err.Error() }

// Result is what became of a Request.
type Result struct {
	// Revision is the one that the change made; the last one when it changed nothing.
	Revision uint64   `json:"revision"`
	Words    []string `json:"words"`
	// Touched is that of the request, of one that changed nothing.
	Touched uint64 `json:"-"`
	// Plan is that of a dry run.
	Plan *Plan `json:"plan,omitempty"`
	// Outcome is what became of the revision so far.
	Outcome *Outcome `json:"outcome,omitempty"`
	// Repeated reports whether an earlier request with the same idempotency key did it.
	Repeated bool `json:"repeated,omitempty"`
	// Keys are the keys of the objects that were changed.
	Keys []string `json:"-"`
	// Edits are these objects before and after.
	Edits []resource.Edit `json:"-"`
}

// Do makes a change. The error is a *resource.Refusal, that of Look, ErrRepeat, one of store, of the
// manager (for a dry run), or that of ctx while it waits.
func (s *Service) Do(ctx context.Context, r Request) (*Result, error) {
	result, planned, err := s.change(ctx, r)
	if err != nil {
		return nil, err
	}
	if r.DryRun && planned != nil {
		// Others may write meanwhile.
		result.Plan, err = s.config.Manager.Predict(ctx, planned)
		return result, err
	}
	now := s.Outcome(result.Revision)
	if r.Wait {
		now, err = s.wait(ctx, result.Revision)
	}
	if now != nil { // else that of the history
		result.Outcome = now
	}
	return result, err
}

// fabric is what the manager knows of ports, if it tells.
func (s *Service) fabric() resource.Fabric {
	f, _ := s.config.Manager.(resource.Fabric)
	return f
}

// change makes a change and stores it; of a dry run it returns the policy that it would
// come to.
func (s *Service) change(ctx context.Context, r Request) (result *Result, planned *policy.Policy, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, nil, err
	}
	s.write.Lock()
	defer s.write.Unlock()
	if err := s.writable(); err != nil {
		return nil, nil, err
	}
	body, err := json.Marshal(r.Change)
	if err != nil {
		return nil, nil, err
	}
	if r.DryRun {
		r.Repeat = ""
	}
	repeat, digest := repeatKey(r.By, r.Repeat), r.digest(body)
	if result, err := s.again(ctx, r, digest); result != nil || err != nil {
		return result, nil, err
	}
	now, kind := s.config.Now(), r.Change.Action()
	s.mu.Lock()
	diff, err := s.plan(&r, now)
	last := s.state.Last()
	s.mu.Unlock()
	entry := store.Entry{Time: now, Caller: r.By.Name, Tenant: r.By.Tenant, Action: kind, Request: r.ID, Decision: store.Accepted}
	if err != nil {
		if !r.DryRun {
			if e := s.refuse(ctx, r, entry, err); e != nil {
				return nil, nil, e
			}
		}
		return nil, nil, err
	}
	result = s.resultOf(&r, last, diff)
	if r.DryRun {
		s.mu.Lock()
		defer s.mu.Unlock()
		return result, s.state.PolicyWith(diff), nil
	}
	if len(diff.Edits) == 0 {
		return result, nil, s.remember(ctx, repeat, r, repeated{Digest: digest, Revision: last, Touched: result.Touched, At: now, Tenant: r.By.Tenant})
	}
	body, _ = json.Marshal(r.Change) // as the first time, or as Amend made it
	c, err := s.commit(last, Record{At: now, By: r.By.Name, Tenant: r.By.Tenant, Action: kind, Why: r.Why, Change: body}, diff)
	if err != nil {
		return nil, nil, err
	}
	entry.Revision, entry.Object = last+1, bounded(strings.Join(result.Keys, " "))
	c.Audit = []store.Entry{entry}
	kept := repeated{Digest: digest, Revision: last + 1, At: now, Tenant: r.By.Tenant, Changed: true}
	if r.Repeat != "" {
		v, _ := json.Marshal(kept)
		c.Puts = append(c.Puts, store.Object{Key: repeatedPrefix + repeat, Value: v})
	}
	forgotten := s.repeats.old(now, r.By.Tenant)
	c.Deletes = append(c.Deletes, forgotten.keys()...)
	if err := s.put(ctx, c); err != nil {
		return nil, nil, err
	}
	s.repeats.forget(forgotten)
	if r.Repeat != "" {
		s.repeats.add(repeat, kept)
	}
	s.numbered = true
	s.enter(diff, last+1, r.By, now)
	result.Revision = last + 1
	return result, nil, nil
}

// plan plans a change. Its caller holds mu, and write until the change is made.
func (s *Service) plan(r *Request, now time.Time) (diff resource.Diff, err error) {
	refused := s.refusals.lately(r.By, now)
	if err = s.state.InQuota(r.By, now, refused); err != nil {
		return diff, err
	}
	seen := r.Seen
	var changed IfChanged
	if r.Look != nil {
		if seen, err = r.Look(s.state); err != nil && !errors.As(err, &changed) {
			return diff, err
		}
	}
	if r.Amend != nil {
		change, err := r.Amend(s.state)
		if err != nil {
			return diff, err
		}
		r.Change = change
	}
	id := ""
	switch r.Change.(type) {
	case resource.OfferPorts, resource.Approve: // another tenant sees it: it may not count the changes of this one
		if id = "offer"; !r.DryRun {
			id += "-" + hex.EncodeToString(randomBytes(6))
		}
	}
	diff, err = s.state.Plan(resource.Request{Change: r.Change, By: r.By, At: now, Why: r.Why, Seen: seen, Refused: refused, Proved: s.proved, ID: id, Fabric: s.fabric()})
	if changed.Err != nil && (err != nil || len(diff.Edits) > 0) {
		return resource.Diff{}, changed.Err // also where it could not be made: he is told no more than before
	}
	return diff, err
}

// resultOf is the result of a request before it is stored; its caller holds write.
func (s *Service) resultOf(of *Request, last uint64, d resource.Diff) *Result {
	r := resultOf(last, d, of.By)
	if len(d.Edits) == 0 && of.Touched != nil {
		s.mu.RLock()
		defer s.mu.RUnlock()
		r.Touched = of.Touched(s.state)
	}
	return r
}

func resultOf(last uint64, d resource.Diff, by resource.Caller) *Result {
	r := &Result{Revision: last, Words: append([]string{}, d.WordsFor(by)...), Edits: d.Edits}
	for _, e := range d.Edits {
		r.Keys = append(r.Keys, e.Key)
	}
	return r
}

// enter makes what was stored the state, and hands its policy to the manager.
func (s *Service) enter(d resource.Diff, revision uint64, by resource.Caller, now time.Time) {
	s.mu.Lock()
	concerned := s.concerned(d)
	s.state.Commit(d, revision, by, now)
	s.since[revision] = begun{now, concerned}
	p := s.state.Policy()
	s.mu.Unlock()
	s.config.Manager.SetPolicy(revision, p)
	s.changed(Record{Number: revision, At: now, Tenant: by.Tenant, Words: d.Words, Concerns: concerned})
}

// commit is what the store is to keep of a change.
func (s *Service) commit(last uint64, record Record, d resource.Diff) (c store.Commit, err error) {
	c = store.Commit{Epoch: s.epoch, After: last}
	record.Words = d.Words
	if told := d.WordsFor(resource.Caller{Name: record.By, Tenant: record.Tenant}); len(told) < len(d.Words) {
		record.Told = told
	}
	for _, e := range d.Edits {
		edit := Edit{Key: e.Key}
		if e.Before != nil {
			if edit.Before, err = json.Marshal(e.Before); err != nil {
				return c, err
			}
		}
		if e.After == nil {
			c.Deletes = append(c.Deletes, e.Key)
		} else {
			if edit.After, err = json.Marshal(e.After); err != nil {
				return c, err
			}
			v, err := json.Marshal(stored{last + 1, edit.After})
			if err != nil {
				return c, err
			}
			c.Puts = append(c.Puts, store.Object{Key: e.Key, Value: v})
		}
		record.Edits = append(record.Edits, edit)
	}
	s.mu.RLock()
	record.Concerns = s.concerned(d)
	touches := s.state.Touches(d)
	s.mu.RUnlock()
	if record.Action != acceptRestored { // which is for another state than this, and no tenant's
		c.Puts = append(c.Puts, s.numberPuts(touches, last+1)...)
	}
	c.Revision, err = json.Marshal(record)
	return c, err
}

// concerned are the tenants whose objects a diff changes.
func (s *Service) concerned(d resource.Diff) []string {
	set := map[string]bool{}
	for _, e := range d.Edits {
		for _, o := range []resource.Object{e.Before, e.After} {
			for _, t := range s.state.Concerns(o) {
				set[t] = true
			}
		}
	}
	delete(set, "")
	return slices.Sorted(maps.Keys(set))
}

// Outcome is what became of a revision so far; Pending for one that the manager has
// not carried out, nil for one of an earlier run, whose outcome is in the history.
func (s *Service) Outcome(revision uint64) *Outcome {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.outcome(revision)
}

func (s *Service) outcome(revision uint64) *Outcome {
	if o := s.outcomes[revision]; o != nil {
		return o
	}
	if b, known := s.since[revision]; known {
		return &Outcome{State: Pending, At: b.at}
	}
	return nil
}

// Settled is closed when the next revision has its outcome.
func (s *Service) Settled() <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.settled
}

// Returnable reports whether ports or pools that were released can be given back to the
// policy file: their release was proved.
func (s *Service) Returnable() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.state.Returnable(s.proved)
}

// wait waits for the outcome of a revision.
func (s *Service) wait(ctx context.Context, revision uint64) (*Outcome, error) {
	for {
		s.mu.RLock()
		o, settled := s.outcome(revision), s.settled
		s.mu.RUnlock()
		if o == nil || o.State != Pending {
			return o, nil
		}
		select {
		case <-ctx.Done():
			return o, ctx.Err()
		case <-settled:
		}
	}
}

// History yields the revisions that a caller may see, newest first or oldest first. The range is in
// the numbers by which the caller knows them (resource.State.NumberFor), the records have those of
// the store.
func (s *Service) History(ctx context.Context, by resource.Caller, r store.Range) ([]Record, error) {
	var list []Record
	if r.From != 0 {
		s.mu.RLock()
		from, is := s.state.RevisionFor(by, r.From)
		if !is && r.Newest {
			from, is = s.state.Last(), true
		}
		s.mu.RUnlock()
		if !is {
			return nil, nil
		}
		r.From = from
	}
	most := r.Limit
	r.Limit = 0
	for rev, err := range s.config.Store.Revisions(ctx, r) {
		if err != nil {
			return nil, err
		}
		record, err := decodeRecord(rev)
		if err != nil {
			return nil, err
		}
		if !by.IsProvider() && !slices.Contains(record.Concerns, by.Tenant) {
			continue
		}
		if list = append(list, record); most > 0 && len(list) == most {
			break
		}
	}
	return list, nil
}

// Revision is the revision that a caller knows by a number, if he may see it.
func (s *Service) Revision(ctx context.Context, by resource.Caller, number uint64) (*Record, error) {
	s.mu.RLock()
	revision, is := s.state.RevisionFor(by, number)
	s.mu.RUnlock()
	if !is || revision == 0 {
		return nil, fmt.Errorf("revision %d: %w", number, store.ErrNotFound)
	}
	rev, err := s.config.Store.Revision(ctx, revision)
	if err != nil {
		return nil, err
	}
	record, err := decodeRecord(rev)
	if err != nil {
		return nil, err
	}
	if !by.IsProvider() && !slices.Contains(record.Concerns, by.Tenant) {
		return nil, fmt.Errorf("revision %d: %w", number, store.ErrNotFound)
	}
	return &record, nil
}

func decodeRecord(rev store.Revision) (r Record, err error) {
	if err = json.Unmarshal(rev.Data, &r); err != nil {
		return r, fmt.Errorf("revision %d: %w", rev.Number, err)
	}
	r.Number = rev.Number
	if len(rev.Outcome) > 0 {
		r.Outcome = new(Outcome)
		if err = json.Unmarshal(rev.Outcome, r.Outcome); err != nil {
			return r, fmt.Errorf("outcome of revision %d: %w", rev.Number, err)
		}
	}
	return r, nil
}

// manager is the caller of the revisions that the manager itself makes necessary.
var manager = resource.Caller{Name: "subnet manager", Tenant: resource.Provider}

// takenBack is the action of a revision that undoes another. What it took back is not
// taken back again.
const takenBack = "take back"

// takeBackTimeout bounds the taking back of a revision.
const takeBackTimeout = 10 * time.Second

// takeBack makes a revision that undoes one that the manager refused: the last that
// counts for the policy and has not been taken back yet.
func (s *Service) takeBack(revision uint64, why error) {
	ctx, cancel := context.WithTimeout(context.Background(), takeBackTimeout)
	defer cancel()
	s.write.Lock()
	defer s.write.Unlock()
	s.mu.RLock()
	last, carried, lost := s.state.Last(), s.carried, s.lost
	s.mu.RUnlock()
	if lost != nil {
		return // when the store is back its policy goes to the manager, which refuses it again
	}
	if last != revision {
		return // a newer one is on its way, which has this one in it
	}
	for n := revision; n >= carried && n > 0; n-- {
		record, err := s.record(ctx, n)
		if err != nil {
			s.failed(err)
			return
		}
		if record.Action == takenBack { // what it took back is not taken back again
			var of undone
			if json.Unmarshal(record.Change, &of) != nil || of.Revision == 0 {
				return
			}
			n = of.Revision
			continue
		}
		diff, err := undo(record)
		if err != nil || len(diff.Edits) == 0 {
			continue // it did not change the policy
		}
		diff.Words = []string{fmt.Sprintf("revision %d is taken back: the fabric cannot take it: %v", n, why)}
		s.undo(ctx, n, diff, why)
		return
	}
}

// undone is what the history keeps of a revision that undoes another.
type undone struct {
	Revision uint64 `json:"revision"`
}

// record reads one revision of the history.
func (s *Service) record(ctx context.Context, number uint64) (Record, error) {
	rev, err := s.config.Store.Revision(ctx, number)
	if err != nil {
		return Record{}, err
	}
	return decodeRecord(rev)
}

// undo is the diff that brings back what a revision changed of the policy. Rights and
// tokens stay: the manager knows nothing of them.
func undo(record Record) (diff resource.Diff, err error) {
	for _, e := range slices.Backward(record.Edits) {
		if kind, _, _ := strings.Cut(e.Key, "/"); slices.Contains(rights, resource.Kind(kind)) {
			continue
		}
		back := resource.Edit{Key: e.Key}
		if back.Before, err = object(e.Key, e.After); err == nil {
			back.After, err = object(e.Key, e.Before)
		}
		if err != nil {
			return diff, err
		}
		diff.Edits = append(diff.Edits, back)
	}
	return diff, nil
}

// rights are the kinds of objects that no policy is made of.
var rights = []resource.Kind{resource.KindTenant, resource.KindToken, resource.KindApproval}

// undo commits the diff that undoes a revision.
func (s *Service) undo(ctx context.Context, number uint64, diff resource.Diff, why error) {
	now, last := s.config.Now(), s.state.Last()
	body, _ := json.Marshal(undone{number})
	c, err := s.commit(last, Record{At: now, By: manager.Name, Tenant: manager.Tenant, Action: takenBack, Why: why.Error(), Change: body}, diff)
	if err != nil {
		return
	}
	c.Audit = []store.Entry{{Time: now, Caller: manager.Name, Tenant: manager.Tenant, Action: takenBack, Decision: store.Accepted, Reason: bounded(why.Error()), Revision: last + 1}}
	if s.put(ctx, c) != nil {
		return // the next writer reads the store first, and the manager refuses again
	}
	s.numbered = true
	s.enter(diff, last+1, manager, now)
}

// bounded is a text that fits into a field of the audit log.
func bounded(text string) string {
	if len(text) <= store.MaxField {
		return text
	}
	return strings.ToValidUTF8(text[:store.MaxField], "")
}

// object decodes an object of the history; nil where there was none.
func object(key string, data json.RawMessage) (resource.Object, error) {
	if len(data) == 0 {
		return nil, nil
	}
	return resource.Decode(key, data)
}
