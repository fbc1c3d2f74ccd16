// Package serve opens the service of a subnet manager that runs, and joins the two.
package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/cli/about"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
)

// Service is the service of a manager that runs, with its store. The nil Service is that
// of a run that has none.
type Service struct {
	*service.Service
	manager *daemon.Served
	store   store.Store
	// scratch is a directory to remove at the end.
	scratch string
}

// Options say where a service keeps what, and for whom.
type Options struct {
	// Store is bolt:DIR; "" for the directory store in Data, or one that is removed at
	// the end.
	Store string
	Data  daemon.DataDir
	// Fabric names the fabric, as --fabric does.
	Fabric string
	// Base is the policy for as long as no file was applied.
	Base *policy.Policy
}

// storeName is the directory of the store in a data directory.
const storeName = "store"

// Open opens the store and the service.
func Open(ctx context.Context, o Options) (*Service, error) {
	s := &Service{manager: daemon.NewServed(o.Fabric)}
	path := ""
	kind, rest, _ := strings.Cut(o.Store, ":")
	switch {
	case kind == "bolt" && rest != "":
		path = rest
	case o.Store != "":
		return nil, fmt.Errorf("--store %q: want bolt:DIR", o.Store)
	case o.Data != "":
		path = o.Data.File(storeName)
	default:
		tmp, err := os.MkdirTemp("", "ibwarden-")
		if err != nil {
			return nil, err
		}
		s.scratch, path = tmp, filepath.Join(tmp, storeName)
	}
	db, err := bolt.Open(path)
	if err == nil {
		s.store = db
		host, _ := os.Hostname()
		s.Service, err = service.Open(ctx, service.Config{
			Store: db, Manager: s.manager, Base: o.Base, Now: time.Now,
			Owner: fmt.Sprintf("ibwarden %s, process %d on %s", about.This().Version, os.Getpid(), host),
		})
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close stores what is known and removes what is not kept.
func (s *Service) Close() error {
	if s == nil {
		return nil
	}
	var errs []error
	if s.Service != nil {
		s.Service.Close()
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

// ApplyFile makes a policy file the one in force, if it is not.
func (s *Service) ApplyFile(ctx context.Context, f resource.File) error {
	_, err := s.Do(ctx, service.Request{Change: resource.PutFile{File: f}, By: fileCaller, Seen: resource.Unseen})
	return err
}

// Knows reports whether the store says who belongs to which partition.
func (s *Service) Knows() (some bool) {
	if s != nil {
		s.Read(func(r *resource.State) { some = r.File() != nil || len(r.Partitions("")) > 0 })
	}
	return some
}

// Begin tells which runner carries out the policy of the store, which its engine was
// made with.
func (s *Service) Begin(r *daemon.Runner, p *policy.Policy) {
	if s != nil {
		revision, _ := s.Policy()
		s.manager.Begin(r, s.Service, revision, p)
	}
}

// Event passes on what the manager reports.
func (s *Service) Event(e event.Event) {
	if s != nil {
		s.manager.Event(e)
	}
}

// Turn gives the engine what was asked for, between two of its turns.
func (s *Service) Turn(e *engine.Engine) {
	if s != nil {
		s.manager.Turn(e)
	}
}

// Again has the manager carry out the policy in force once more: whoever asks for it
// lets it give, after a takeover, what the tables did not hold.
func (s *Service) Again() { s.manager.SetPolicy(s.Policy()) }
