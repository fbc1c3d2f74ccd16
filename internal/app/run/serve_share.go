package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

const (
	// shareEvery is the least time between two writings of what the manager keeps, and
	// restAfterShare how many times as long as one took there is none: at most a quarter
	// of a processor's time, and of the store's, goes into that.
	shareEvery     = 20 * time.Millisecond
	restAfterShare = 3
	// shareAgain is when a writing that failed is tried again, and leadsSoon when one is
	// that came before this manager had the store.
	shareAgain = 500 * time.Millisecond
	leadsSoon  = 10 * time.Millisecond
	// shareTimeout bounds one writing, and followTimeout one reading.
	shareTimeout  = 20 * time.Second
	followTimeout = 10 * time.Second
	// followEvery is the least time between two readings of a standby, and followLater
	// that after one which failed.
	followEvery = 50 * time.Millisecond
	followLater = time.Second
	// recallWait is how long a manager that takes over waits for the last that the former
	// one has written. After that what it read as standby counts.
	recallWait = 300 * time.Millisecond
)

// Shared is what the managers of a subnet keep in the store that they share: the master
// writes it, before it acts on it, and the others read it all the time.
type Shared struct {
	saKey   ib.SMKey
	ring    *daemon.Keyring // nil where the keys of ports are not kept
	service *Service
	db      store.Follower
	runner  *daemon.Runner
	keep    func(*cables.List) error // keeps a list of cables here; nil where this manager has one of its own
	ctx     context.Context
	cancel  context.CancelFunc
	ended   sync.WaitGroup

	// Of the goroutine of Run.
	due    bool // there is something new
	leads  bool // this manager was master at the last turn
	back   bool // and the store was one that was rolled back
	passed bool // and has completed a pass since
	listed []byte
	of     uint64 // version of the book that listed is
	list   *cables.List
	lines  []byte // list as text

	busy    atomic.Bool // a writing is under way, or the rest after it
	again   atomic.Bool // the last writing failed
	leading atomic.Bool // leads, for other goroutines
	jobs    chan job

	reading chan struct{} // held by who reads or writes the store
	mu      sync.Mutex    // guards what follows
	objects files.Objects
	mark    store.Mark
	fresh   bool // objects are what the store has: in the epoch asOf nobody else has written since
	asOf    store.Epoch
	// known is the number of the last change that this manager knows of, and missed that
	// there was a later one when it took the store over: by a former master whose last
	// words were not heard, or by one that was master between two times of this one.
	known  uint64
	missed bool
	tried  store.Object // the head that was written last, or may have been
}

// job is what is to be written.
type job struct {
	all              files.All
	registered, keys uint64 // versions
}

// listName names the list of cables in the store.
const listName = "the list of cables in the store"

// Kept reads what a manager has kept in the store that managers share. It enters the keys
// in the book of ring, and hands the list of cables to keep, unless that is nil; some is false where there is nothing, and k nil where nothing is
// shared. What is damaged, or was made with another secret, is an error.
func (s *Service) Kept(ctx context.Context, saKey ib.SMKey, ring *daemon.Keyring, keep func(*cables.List) error) (k *Shared, all files.All, some bool, err error) {
	if s == nil || s.db == nil {
		return nil, all, false, nil
	}
	if ring != nil && !ring.Keeps() {
		ring = nil // it ends with this process
	}
	k = &Shared{saKey: saKey, ring: ring, keep: keep, service: s, db: s.db, jobs: make(chan job, 1), reading: make(chan struct{}, 1)}
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	if _, err = k.read(ctx); err == nil {
		k.known = k.objects.Sequence()
		if all, some, err = k.objects.All(saKey, time.Now()); err == nil {
			err = k.merge(&all)
		}
	}
	if err == nil && some && k.ring != nil {
		if err = k.ring.Save(k.ring.Book); files.IsFull(err) { // the store has it
			telemetry.LogOf(ctx).Warn(err.Error())
			err = nil
		}
	}
	if err == nil && keep != nil && len(all.Cables) > 0 {
		if k.list, err = cables.Read(all.Cables, listName); err == nil {
			k.lines, err = all.Cables, keep(k.list)
		}
	}
	if err != nil {
		err = fmt.Errorf("what managers share in the store (docs/managers.md): %w", err)
	}
	return k, all, some, err
}

// merge enters keys in the book of this manager: between turns of the engine, or before Run.
func (k *Shared) merge(all *files.All) error {
	if k.ring == nil || len(all.Book) == 0 {
		return nil
	}
	if all.Secret != k.ring.Ring.Sum() {
		return errors.New("it was written with another master secret: managers that share a store share the secret")
	}
	var b mkey.Book
	if err := json.Unmarshal(all.Book, &b); err != nil {
		return fmt.Errorf("key book: %w", err)
	}
	return k.ring.Book.Merge(&b)
}

// SharesKeys reports whether managers store which port has which key.
func (k *Shared) SharesKeys() bool { return k != nil && k.ring != nil }

// read reads what has been written since, and reports whether there was anything.
func (k *Shared) read(ctx context.Context) (news bool, err error) {
	select {
	case k.reading <- struct{}{}:
		defer func() { <-k.reading }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return k.readHeld(ctx)
}

func (k *Shared) readHeld(ctx context.Context) (news bool, err error) {
	k.mu.Lock()
	after := k.mark
	k.mu.Unlock()
	list, at, err := k.db.Objects(ctx, files.Prefix, after)
	if err != nil {
		return false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.objects.Enter(list)
	k.mark = at
	return len(list) > 0, nil
}

// Begin begins to write and to read, until End. It is called before the runner runs.
func (k *Shared) Begin(r *daemon.Runner) {
	if k == nil {
		return
	}
	k.runner = r
	k.ctx, k.cancel = context.WithCancel(context.Background())
	r.Share(func() bool {
		leads := isMaster(r.Engine())
		k.due = k.due || leads
		return leads
	})
	r.Recall(k.recall)
	k.service.share.Store(k)
	k.ended.Go(k.write)
	k.ended.Go(k.follow)
}

// End ends it.
func (k *Shared) End() {
	if k != nil && k.cancel != nil {
		k.cancel()
		k.ended.Wait()
	}
}

// turn is called between turns of the engine: what is new goes to who writes it.
func (k *Shared) turn(e *engine.Engine) {
	if k == nil {
		return
	}
	if leads := isMaster(e); leads != k.leads {
		k.leads, k.due, k.passed = leads, leads, false
		k.leading.Store(leads)
		k.mu.Lock()
		k.fresh = false
		k.mu.Unlock()
		k.service.isMaster(leads)
	}
	if back := k.service.Back() != nil; back != k.back {
		if k.back = back; !back {
			k.forget()
			k.due = true
		}
	}
	k.due = k.due || e.Cables() != k.list
	if !k.leads || !k.due && !k.again.Load() || k.busy.Load() {
		return
	}
	k.due = false
	k.again.Store(false)
	k.busy.Store(true)
	k.jobs <- k.job(e)
}

// forget has everything read again: a store that was rolled back, and is accepted or put right,
// does not have what it is known to have had.
func (k *Shared) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.objects, k.mark, k.fresh, k.tried = files.Objects{}, 0, false, store.Object{}
}

// isMaster reports whether a manager may write to its subnet.
func isMaster(e *engine.Engine) bool { return e.Status().State == smp.SMMaster }

// job is what there is to keep now.
func (k *Shared) job(e *engine.Engine) (j job) {
	j.all = files.All{Assigned: files.CopyState(e.Assigned()), Registered: k.runner.RegisteredHere(k.saKey)}
	j.registered, j.keys = k.runner.Versions()
	if l := e.Cables(); l != k.list {
		var text bytes.Buffer
		if k.list = l; l != nil {
			_ = l.Write(&text) // a Buffer takes all
		}
		k.lines = text.Bytes()
	}
	j.all.Cables = k.lines
	if k.ring == nil {
		return j
	}
	if k.listed == nil || k.of != j.keys {
		if data, err := json.Marshal(k.ring.Book); err == nil { // of its own form: there is none
			k.listed, k.of = data, j.keys
		}
	}
	j.all.Book, j.all.Secret = k.listed, k.ring.Ring.Sum()
	return j
}

// completed has everything written after a pass. The first one of a master ends the bounds
// that the tables of the former one set, since the policy is the store's.
func (k *Shared) completed() {
	if k == nil {
		return
	}
	if k.due = true; !k.passed {
		k.passed = true
		k.service.Again()
	}
}

// write writes what the engine hands over.
func (k *Shared) write() {
	for {
		var j job
		select {
		case j = <-k.jobs:
		case <-k.ctx.Done():
			return
		}
		began := time.Now()
		err := k.store(&j)
		rest := max(shareEvery, restAfterShare*time.Since(began))
		switch {
		case errors.Is(err, service.ErrNotMaster), errors.Is(err, errResumed):
			rest = leadsSoon
		case err != nil:
			rest = shareAgain
		default:
			err = k.runner.Stored(k.ctx, j.registered, j.keys, k.lookBack)
		}
		k.again.Store(err != nil)
		k.pause(rest)
		k.busy.Store(false)
		k.runner.Wake()
	}
}

func (k *Shared) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-k.ctx.Done():
	}
}

// store writes what the store lacks of a job.
func (k *Shared) store(j *job) error {
	ctx, cancel := context.WithTimeout(k.ctx, shareTimeout)
	defer cancel()
	select {
	case k.reading <- struct{}{}:
		defer func() { <-k.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := k.service.Writable(); errors.Is(err, service.ErrNotMaster) {
		return err // the store is taken over first
	}
	// Another manager may have had the store between two epochs, while this one believed that it was
	// master all the time. The pass that follows writes what is new, and who knows of all.
	epoch := k.service.Epoch()
	k.mu.Lock()
	k.fresh = k.fresh && k.asOf == epoch
	k.asOf = epoch
	fresh := k.fresh
	k.mu.Unlock()
	if !fresh {
		if _, err := k.readHeld(ctx); err != nil {
			return err
		}
		if err := k.resume(ctx); err != nil {
			return err
		}
	}
	list, err := k.changes(j)
	if err != nil || len(list) == 0 {
		return err
	}
	err = k.service.Keep(ctx, epoch, list)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tried = list[len(list)-1]
	if k.fresh = err == nil; k.fresh {
		k.objects.Enter(list)
		k.known = k.objects.Sequence()
	}
	return err
}

// errResumed says that a job is older than what was read from the store before it was written.
var errResumed = errors.New("another master wrote meanwhile")

// resume takes in what another master wrote while this one was stopped, and believed that it was
// master all the time. Where it cannot be taken in, changes sees it.
func (k *Shared) resume(ctx context.Context) error {
	k.mu.Lock()
	news := k.objects.Sequence() != k.known && !k.objects.Has(k.tried) && !k.missed
	at := k.objects.Sequence()
	all, some, err := k.objects.All(k.saKey, time.Now())
	k.mu.Unlock()
	if !news || !some || err != nil {
		return nil
	}
	resumed := false
	err = k.runner.Ask(ctx, func(e *engine.Engine) {
		if k.merge(&all) != nil || !k.runner.Resume(&all) {
			return
		}
		k.setCables(e, all.Cables)
		k.mu.Lock()
		k.known, k.fresh = at, true
		k.mu.Unlock()
		resumed = true
	})
	if resumed {
		return errResumed
	}
	return err
}

// changes are what the store lacks of a job. Where others have written what this manager
// does not know of, they do not say that it knows what all hosts registered.
func (k *Shared) changes(j *job) ([]store.Object, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.objects.Has(k.tried) { // a writing of which it was not known whether it was done
		k.known = k.objects.Sequence()
	}
	list, err := k.objects.Changes(&j.all, time.Now())
	if err == nil && len(list) == 0 {
		k.known, k.missed = k.objects.Sequence(), false
	}
	if k.missed = k.missed || k.objects.Sequence() != k.known; k.missed && err == nil {
		j.all.Registered.Manager = 0
		return k.objects.Changes(&j.all, time.Now())
	}
	return list, err
}

// follow reads what the master writes, for as long as this manager is not it.
func (k *Shared) follow() {
	for k.ctx.Err() == nil {
		rest := followEvery
		if !k.leading.Load() {
			if err := k.followOnce(); err != nil {
				rest = followLater
			}
		}
		k.pause(rest)
		k.mu.Lock()
		mark := k.mark
		k.mu.Unlock()
		k.db.Await(k.ctx, mark)
	}
}

func (k *Shared) followOnce() error {
	ctx, cancel := context.WithTimeout(k.ctx, followTimeout)
	defer cancel()
	news, err := k.read(ctx)
	if err != nil || !news {
		return err
	}
	k.mu.Lock()
	all, some, err := k.objects.All(k.saKey, time.Now())
	k.mu.Unlock()
	if err != nil || !some {
		return nil // recall says it, if it comes to that
	}
	return k.runner.Ask(ctx, func(e *engine.Engine) {
		if k.leads {
			return // meanwhile
		}
		if err := k.merge(&all); err == nil {
			k.setCables(e, all.Cables)
		}
	})
}

// rereadKeys reads the keys that other managers have stored, until that has succeeded, and
// tells the engine. It is called in the goroutine of Run.
func (k *Shared) rereadKeys() {
	if k == nil {
		return // keying.Config.Shared says that there is one
	}
	k.ended.Go(func() {
		for k.ctx.Err() == nil {
			if err := k.readKeys(); err == nil {
				return
			}
			k.pause(followLater)
		}
	})
}

// readKeys reads them once. The error is that of the store: what is wrong with what is there
// is told to the engine.
func (k *Shared) readKeys() error {
	ctx, cancel := context.WithTimeout(k.ctx, followTimeout)
	defer cancel()
	if _, err := k.read(ctx); err != nil {
		return err
	}
	k.mu.Lock()
	all, _, err := k.objects.All(k.saKey, time.Now())
	k.mu.Unlock()
	return k.runner.Ask(ctx, func(e *engine.Engine) {
		if err == nil {
			err = k.merge(&all)
		}
		if err == nil { // followOnce does not see again what was read here
			k.setCables(e, all.Cables)
		}
		e.KeysRead(err)
	})
}

// setCables gives the engine the list of cables of the master, and keeps it here. It is
// called in the goroutine of Run.
func (k *Shared) setCables(e *engine.Engine, text []byte) {
	if k.keep == nil || len(text) == 0 || bytes.Equal(text, k.lines) {
		return
	}
	l, err := cables.Read(text, listName)
	if err == nil {
		err = k.keep(l)
	}
	if err != nil {
		return // the next reading tries again
	}
	k.list, k.lines = l, text
	e.SetCables(l)
}

// recall is what the former master kept. It is called in the goroutine of Run, which waits
// for it.
func (k *Shared) recall() (files.All, error) {
	ctx, cancel := context.WithTimeout(k.ctx, recallWait)
	defer cancel()
	_, _ = k.read(ctx) // if it does not answer, store looks back later
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known = k.objects.Sequence()
	all, some, err := k.objects.All(k.saKey, time.Now())
	if err == nil && !some {
		return all, errors.New("there is nothing in the store")
	}
	if err == nil {
		err = k.merge(&all)
	}
	if err == nil {
		k.setCables(k.runner.Engine(), all.Cables)
	}
	return all, err
}

// lookBack has hosts register again where others have registered hosts of which this manager
// does not know.
func (k *Shared) lookBack() {
	k.mu.Lock()
	missed := k.missed
	k.missed = false
	k.mu.Unlock()
	if missed {
		k.due = true
		k.runner.Reregister("what hosts registered last with another manager is not known here")
	}
}
