package etcd

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/store"
)

// TestTold: what one manager tells of the store every other one reads, also from a manager that may
// not write; what is damaged is an error.
func TestTold(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	a, b := c.open(t, "/told/"), c.open(t, "/told/")
	defer a.Close()
	defer b.Close()
	told := func() (seen store.Seen) {
		t.Helper()
		answered(t, func() (err error) { seen, err = b.Told(t.Context()); return err })
		return seen
	}
	if seen := told(); !reflect.DeepEqual(seen, store.Seen{}) {
		t.Errorf("nobody has told anything: %v", seen)
	}
	for _, seen := range []store.Seen{
		{Serial: 7, Points: []store.Point{{Revision: 4, Digest: store.Hash{1}, Audit: store.Head{Sequence: 9, Hash: store.Hash{2}}}}, Accepted: []string{"restored/a"}},
		{Serial: 3, Points: []store.Point{{Revision: 2}}},
	} {
		answered(t, func() error { return a.Tell(t.Context(), seen) })
		if got := told(); !reflect.DeepEqual(got, seen) {
			t.Errorf("told %v: %v", seen, got)
		}
	}
	var contents *store.Contents
	answered(t, func() (err error) { contents, err = b.Load(t.Context()); return err })
	if contents.Revision != 0 || len(contents.Objects) > 0 {
		t.Errorf("the store has %v", *contents)
	}
	client := c.Client(0)
	defer client.Close()
	put := func() (err error) { _, err = client.Put(t.Context(), "/told/seen", "damaged"); return err }
	for late := time.Now().Add(startWait); ; {
		err := put() // lost where the member that leads does not answer
		if err == nil {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("after %v: %v", startWait, err)
		}
	}
	var damaged error
	answered(t, func() error {
		if _, damaged = b.Told(t.Context()); errors.Is(damaged, store.ErrUnavailable) {
			return damaged
		}
		return nil
	})
	if !errors.Is(damaged, store.ErrCorrupt) {
		t.Errorf("a damaged value: %v", damaged)
	}
}
