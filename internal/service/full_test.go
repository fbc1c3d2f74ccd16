package service_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

// full is a store on a disk that is full for as long as the test says so.
type full struct {
	store.Store
	is bool
}

func (f *full) Acquire(ctx context.Context, owner string) (store.Epoch, error) {
	if f.is {
		return 0, fmt.Errorf("test: %w", store.ErrFull)
	}
	return f.Store.Acquire(ctx, owner)
}

// TestFullAtTheStart: a service whose disk is full when it starts has the policy that is
// stored, refuses changes and says why, and takes them once there is room.
func TestFullAtTheStart(t *testing.T) {
	a := open(t, filepath.Join(t.TempDir(), "store"), false)
	a.must(partition(5))
	a.Close()
	f, m := &full{Store: a.store.Store, is: true}, &recorder{}
	t.Cleanup(func() { f.Store.Close() })
	s, err := service.Open(t.Context(), service.Config{Store: f, Manager: m, Base: &policy.Policy{Default: policy.Limited}, Owner: "test", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	b := &rig{T: t, Service: s, manager: m}
	defer s.Close()
	if revision, p := s.Policy(); revision != 1 || len(p.Partitions) != 1 {
		t.Errorf("revision %d with %d partitions: want what is stored", revision, len(p.Partitions))
	}
	for range 2 {
		if _, err := b.do(partition(6)); !errors.Is(err, store.ErrFull) {
			t.Errorf("a change: %v", err)
		}
	}
	if s.Refuses() == "" {
		t.Error("it does not say why it takes no changes")
	}
	f.is = false
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := b.must(partition(6)); r.Revision != 2 || s.Refuses() != "" {
		t.Errorf("revision %d, %q", r.Revision, s.Refuses())
	}
}
