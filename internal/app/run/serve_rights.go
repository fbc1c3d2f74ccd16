package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/store"
)

const (
	// renewalsMost is how many renewals may be under way at once: one that a member of the
	// store does not answer holds up no other.
	renewalsMost = 8
	// hungAfter is how long the engine may not ask for its right to write until that is not
	// renewed any more: it hangs, and others are to take over.
	hungAfter = time.Second
	// followLeaseAgain is when a lease that could not be followed is tried again.
	followLeaseAgain = 100 * time.Millisecond
	// giveTimeout bounds the giving up of the lease.
	giveTimeout = 2 * time.Second
)

// rights is this manager's part in the lease of a store that managers share: who may write
// to the fabric (package mastership). nil where nothing is shared.
type rights struct {
	db     store.Leaser
	ttl    time.Duration
	origin time.Time // of its time
	lost   func()    // is called when another one has taken the lease
	cancel context.CancelFunc
	ended  sync.WaitGroup
	under  atomic.Int32 // renewals
	deaf   atomic.Bool
	ready  atomic.Bool // what the store had when the term began is read

	mu      sync.Mutex
	keeper  *mastership.Keeper
	changed chan struct{}  // closed when there is news
	loaded  bool           // and the engine has it
	why     string         // the store does not answer, or what else is in the way
	grant   daemon.Granted // what the engine is told
}

func newRights(db store.Leaser, ttl time.Duration, lost func()) *rights {
	r := &rights{db: db, ttl: ttl, origin: time.Now(), lost: lost, keeper: mastership.NewKeeper(ttl), changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.ended.Go(func() { r.follow(ctx) })
	r.ended.Go(func() { r.beat(ctx) })
	return r
}

// end ends it; the lease is given up.
func (r *rights) end() {
	if r != nil {
		r.give(true)
		r.cancel()
		r.ended.Wait()
	}
}

func (r *rights) now() time.Duration { return time.Since(r.origin) }

// news tells who waits; mu is held.
func (r *rights) news() {
	close(r.changed)
	r.changed = make(chan struct{})
	g := r.keeper.Grant()
	if !r.loaded {
		g = mastership.Grant{}
	}
	g.Why = r.why
	r.grant.Set(g, r.origin)
}

// follow sees every change of the record.
func (r *rights) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := r.db.FollowLease(ctx, func(l store.Lease) {
			r.mu.Lock()
			had := r.keeper.Term() != 0
			r.keeper.See(r.now(), mastership.Record{Version: l.Version, Term: uint64(l.Epoch), Given: l.Given, TTL: l.TTL})
			lost := had && r.keeper.Term() == 0
			r.explain(nil)
			r.news()
			r.mu.Unlock()
			if lost {
				r.lost()
			}
		})
		r.mu.Lock()
		r.explain(err)
		r.news()
		r.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(followLeaseAgain):
		}
	}
}

// explain says why there is no right to write, or why it is not renewed; mu is held.
func (r *rights) explain(err error) {
	rec, known := r.keeper.Record()
	switch {
	case err != nil:
		r.why = fmt.Sprintf("the store that managers share does not answer (%v): bring it back", err)
	case r.keeper.Term() == 0 && known && rec.Term != 0 && !rec.Given:
		r.why = fmt.Sprintf("the manager of epoch %d has the right to write in the store that managers share, and renews it: look there (ibwarden show managers)", rec.Term)
	default:
		r.why = ""
	}
}

// beat renews what this manager has.
func (r *rights) beat(ctx context.Context) {
	tick := time.NewTicker(mastership.RenewEvery(r.ttl))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.mu.Lock()
		sent, term := r.now(), r.keeper.Term()
		r.mu.Unlock()
		hangs := sent-r.grant.Seen() > hungAfter
		if term == 0 || hangs || r.under.Load() >= renewalsMost {
			continue
		}
		r.under.Add(1)
		r.ended.Go(func() {
			defer r.under.Add(-1)
			r.renew(ctx, sent, term)
		})
	}
}

func (r *rights) renew(ctx context.Context, sent time.Duration, term uint64) {
	ctx, cancel := context.WithTimeout(ctx, r.ttl)
	defer cancel()
	err := r.db.RenewLease(ctx)
	r.mu.Lock()
	lost := errors.Is(err, store.ErrFenced) && r.keeper.Term() == term
	switch {
	case err == nil:
		r.keeper.Renewed(sent, term)
		r.explain(nil)
	case lost:
		r.keeper.Lost()
		r.explain(nil)
	case r.keeper.Term() == term:
		r.explain(err)
	}
	r.news()
	r.mu.Unlock()
	if lost {
		r.lost()
	}
}

// await waits until this manager has the lease, or may take it.
func (r *rights) await(ctx context.Context) error {
	for r != nil {
		r.mu.Lock()
		at, known := r.keeper.Free()
		has, changed := r.keeper.Term() != 0, r.changed
		r.mu.Unlock()
		deaf := r.deaf.Load()
		if has || known && r.now() >= at && !deaf {
			return nil
		}
		var free <-chan time.Time
		if known && !deaf {
			free = time.After(at - r.now())
		}
		select {
		case <-free:
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// acquire takes the store over together with the lease, if that may be taken now.
func (r *rights) acquire(ctx context.Context, owner string) (store.Epoch, error) {
	r.mu.Lock()
	at, known := r.keeper.Free()
	before, _ := r.keeper.Record()
	sent := r.now()
	if r.keeper.Term() != 0 {
		known, at = true, 0 // it has it, and takes the store over from an older version
	}
	r.loaded = false
	r.ready.Store(false)
	r.news()
	r.mu.Unlock()
	if !known || sent < at || r.deaf.Load() {
		return 0, fmt.Errorf("%w until %v ago", store.ErrHeld, r.ttl)
	}
	epoch, err := r.db.AcquireLease(ctx, owner, before.Version, r.ttl)
	if err != nil {
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keeper.Took(sent, uint64(epoch), before)
	return epoch, nil
}

// uses has the engine write as soon as it has what was read. It reports whether this manager
// may write to the store.
func (r *rights) uses() bool {
	if r == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	has := r.keeper.Term() != 0
	r.ready.Store(has && !r.loaded)
	return has
}

// holds reports whether this manager has the lease.
func (r *rights) holds() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keeper.Term() != 0
}

// give gives the lease up where the manager is not master any more, or is deaf, so that
// another manager need not wait. The engine has ended its writing by then, or ends it at once.
func (r *rights) give(resigns bool) {
	if r == nil || !resigns && !r.deaf.Load() {
		return
	}
	r.mu.Lock()
	had := r.keeper.Term() != 0
	r.keeper.Lost()
	r.loaded = false
	r.ready.Store(false)
	r.news()
	r.mu.Unlock()
	if !had {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), giveTimeout)
	defer cancel()
	_ = r.db.GiveLease(ctx) // else it ends by itself
}

// turn is called between turns of the engine. It lets the engine write once that has been
// given what the store had when the term began, and notes whether it hears anything of its
// fabric; it reports whether that has changed.
func (r *rights) turn(e *engine.Engine, m *daemon.Served) (heard bool) {
	if r == nil {
		return false
	}
	deaf := e.Lease().Deaf()
	heard = r.deaf.Swap(deaf) != deaf
	load := r.ready.Load() && !m.Pending()
	if !heard && !load {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if load {
		r.ready.Store(false)
		r.loaded = r.keeper.Term() != 0
	}
	r.explain(nil)
	r.news()
	return heard
}
