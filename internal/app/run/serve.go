package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/api/racks"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/metrics"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
	"github.com/ibwarden/ibwarden/internal/store/etcd"
)

// Service is the service of a manager that runs, with its store. The nil Service is that
// of a run that has none.
type Service struct {
	*service.Service
	manager *daemon.Served
	store   *headed
	counts  *metrics.Store
	calls   *metrics.API
	// heads is closed to end those who write the head of the audit log, who close told;
	// nil while nobody does.
	heads, told chan struct{}
	// where names the store, as --store does, without secrets.
	where string
	// scratch is a directory to remove at the end.
	scratch string
	// stop ends the API; nil while it is not served.
	stop func()
	// shared reports whether other managers use the store.
	shared bool
	leader
	file    atomic.Pointer[resource.File] // a policy file that waits until this one is the master
	db      store.Follower                // the store that others share; nil for none
	witness store.Witness                 // the same
	share   atomic.Pointer[Shared]        // what the manager keeps in it; nil until it runs
	rights  *rights                       // nil where nothing is shared
	seen    *seenFiles
	racks   atomic.Pointer[racks.File] // what --racks names; nil for none
	// alertmanagers are told of alarms; nil for none.
	alertmanagers *telemetry.Alertmanagers
}

// Options say where a service keeps what, and for whom.
type Options struct {
	// Store is bolt:DIR or etcd:URL,...; "" for the directory store in Data, or one that
	// is removed at the end.
	Store string
	Data  daemon.DataDir
	// State is the state file; beside it is kept what was seen of the store. "" for none.
	State string
	// Fabric names the fabric, as --fabric does.
	Fabric string
	// Base is the policy for as long as no file was applied.
	Base *policy.Policy
	// Lease is how long the right to write to the fabric stands in a store that managers
	// share until it is renewed; 0 for mastership.DefaultTTL.
	Lease time.Duration
}

// storeName is the directory of the store in a data directory.
const storeName = "store"

// Open opens the store and the service.
func Open(ctx context.Context, o Options) (*Service, error) {
	s := &Service{manager: daemon.NewServed(o.Fabric)}
	err := s.open(ctx, &o)
	var seen store.Seen
	if err == nil {
		seen, err = s.seen.read()
	}
	if err == nil {
		host, _ := os.Hostname()
		s.Service, err = service.Open(ctx, service.Config{
			Store: s.store, Manager: s.manager, Base: o.Base, Now: time.Now, Shared: s.shared,
			Seen: seen, KeepSeen: s.seen.keep, Witness: s.witness,
			Owner: fmt.Sprintf("ibwarden %s, process %d on %s", terminal.ThisProgram().Version, os.Getpid(), host),
		})
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if s.shared {
		s.beginLead()
	}
	return s, nil
}

// open opens the store.
func (s *Service) open(ctx context.Context, o *Options) (err error) {
	kind, rest, _ := strings.Cut(o.Store, ":")
	path := rest
	switch {
	case kind == "etcd" && rest != "":
		s.shared, s.where = true, "etcd:"+named(rest)
		db, err := etcd.Open(ctx, etcd.Config{Endpoints: strings.Split(rest, ",")})
		if err != nil {
			return err
		}
		s.db, s.witness, s.seen = db, db, newSeenFiles("", o.State)
		s.rights = newRights(db, cmp.Or(o.Lease, mastership.DefaultTTL), s.lostLease)
		s.keep(db)
		return nil
	case kind == "bolt" && rest != "":
	case o.Store != "":
		return fmt.Errorf("--store %q: want bolt:DIR, or etcd: and URLs with commas between them", o.Store)
	case o.Data != "":
		path = o.Data.File(storeName)
	default:
		if s.scratch, err = os.MkdirTemp("", "ibwarden-"); err != nil {
			return err
		}
		path = filepath.Join(s.scratch, storeName)
	}
	s.where = "bolt:" + path
	db, err := bolt.Open(path)
	if err != nil {
		return err
	}
	if s.seen = new(seenFiles); s.scratch == "" {
		s.seen = newSeenFiles(path, o.State)
	}
	s.keep(db)
	return nil
}

// keep makes a store the one of the service.
func (s *Service) keep(db store.Store) {
	s.counts, s.calls = &metrics.Store{Leads: s.leads, Up: s.reaches, Missing: s.missing}, metrics.NewAPI(api.Operations()...)
	s.store = &headed{Store: &measured{&fencing{db, s.rights, s.askOthers}, s.counts}}
}

// Close ends the API, stores what is known and removes what is not kept.
func (s *Service) Close() error {
	if s == nil {
		return nil
	}
	if s.stop != nil {
		s.stop()
	}
	s.share.Load().End()
	s.endLead()
	s.rights.end()
	var errs []error
	if s.Service != nil {
		s.Service.Close()
	}
	if s.heads != nil {
		close(s.heads)
		<-s.told
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.scratch != "" {
		errs = append(errs, os.RemoveAll(s.scratch))
	}
	return errors.Join(errs...)
}

// fileCaller is who applies the file of --policy.
var fileCaller = resource.Caller{Name: "run --policy", Tenant: resource.Provider}

// ApplyFile makes a policy file the one in force, if it is not. In a store that others
// share the master does, once it is master, and only where the store has no file: a
// manager that takes over does not bring a file of its own.
func (s *Service) ApplyFile(ctx context.Context, f resource.File) error {
	_, err := s.Do(ctx, service.Request{Change: resource.PutFile{File: f}, By: fileCaller, Seen: resource.Unseen})
	if waits(err) {
		s.file.Store(&f)
		return &WaitsError{err}
	}
	if !errors.Is(err, service.ErrNotMaster) {
		return err
	}
	has, why := s.hasFile(f)
	if !has && why == nil {
		s.file.Store(&f)
	}
	return why
}

// WaitsError says why a policy file is not applied yet: the service takes no changes now.
type WaitsError struct{ Err error }

func (w *WaitsError) Error() string {
	return fmt.Sprintf("the policy file is not applied, what was in force stays: %v", w.Err)
}

// Unwrap returns the cause.
func (w *WaitsError) Unwrap() error { return w.Err }

// hasFile reports whether the store has a policy file. The error says that it is
// another one than f.
func (s *Service) hasFile(f resource.File) (has bool, err error) {
	_ = s.Read(func(r *resource.State) {
		in := r.File()
		if has = in != nil; has && (in.Text != f.Text || in.AllowBoth != f.AllowBoth) {
			err = fmt.Errorf("policy file %s: the store that managers share has another one, %s: apply this one to the master (ibwarden apply --server), and start without --policy", f.Name, in.Name)
		}
	})
	return has, err
}

// applyLater applies the file that waited until this manager is master.
func (s *Service) applyLater(ctx context.Context) error {
	f := s.file.Load()
	if f == nil {
		return nil
	}
	has := false
	if s.shared { // else the file is this manager's own
		has, _ = s.hasFile(*f)
	}
	if !has {
		_, err := s.Do(ctx, service.Request{Change: resource.PutFile{File: *f}, By: fileCaller, Seen: resource.Unseen})
		var refusal *resource.Refusal
		if err != nil && !errors.As(err, &refusal) {
			return err
		}
	}
	s.file.CompareAndSwap(f, nil)
	return nil
}

// Knows reports whether the store says who belongs to which partition.
func (s *Service) Knows() (some bool) {
	if s != nil {
		s.Read(func(r *resource.State) { some = r.File() != nil || len(r.Partitions("")) > 0 })
	}
	return some
}

// Learns reports whether the store says by now who belongs to which partition: what managers
// that share it wrote since it was opened is read.
func (s *Service) Learns(ctx context.Context) (bool, error) {
	if !s.Shares() {
		return s.Knows(), nil
	}
	err := s.Refresh(ctx)
	if errors.Is(err, store.ErrRolledBack) {
		err = nil // what is known here is later
	}
	return s.Knows(), err
}

// Shares reports whether other managers use the store.
func (s *Service) Shares() bool { return s != nil && s.shared }

// Begin tells which runner carries out the policy of the store, and with which one, of which
// revision, its engine was made.
func (s *Service) Begin(r *daemon.Runner, revision uint64, p *policy.Policy) {
	if s != nil {
		s.manager.Begin(r, s.Service, revision, p)
		if s.shared {
			r.Engine().AwaitConfirmation()
			r.Lease(&s.rights.grant)
		}
	}
}

// Event passes on what the manager reports.
func (s *Service) Event(e event.Event) {
	if s == nil {
		return
	}
	switch e := e.(type) {
	case event.Completed:
		s.isMaster(true)
		s.share.Load().completed()
	case event.Deferred:
		s.isMaster(false)
	case event.Asked:
		s.asked(e.Alone)
	case event.Slept:
		s.confirm()
	case event.LockedOut:
		s.share.Load().rereadKeys()
	}
	s.manager.Event(e)
	if name, told := toldAs(e); told {
		s.Tell(name, e.String())
	}
}

// Turn gives the engine what was asked for, between two of its turns.
func (s *Service) Turn(e *engine.Engine) {
	if s != nil {
		s.manager.Turn(e)
		s.share.Load().turn(e)
		if s.rights.turn(e, s.manager) {
			s.isMaster(s.master.Load())
		}
	}
}

// Again has the manager carry out the policy in force once more. By calling it after a
// takeover, the caller allows access that the previous manager's tables did not give.
//
// It does nothing while the store is one that was rolled back.
func (s *Service) Again() {
	if s.Back() == nil {
		s.manager.SetPolicy(s.Policy())
	}
}

// toldAs is the name under which subscribers of the service see an event. Debugging events
// are not shown to them.
func toldAs(e event.Event) (name string, told bool) {
	d := telemetry.Describe(e)
	return d.Kind, d.Level >= slog.LevelInfo
}
