package etcd

import (
	"errors"
	"reflect"
	"testing"

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
	told := func() store.Seen {
		t.Helper()
		for {
			seen, err := b.Told(t.Context())
			if err == nil {
				return seen
			} else if !errors.Is(err, store.ErrUnavailable) {
				t.Fatal(err)
			}
		}
	}
	if seen := told(); !reflect.DeepEqual(seen, store.Seen{}) {
		t.Errorf("nobody has told anything: %v", seen)
	}
	for _, seen := range []store.Seen{
		{Serial: 7, Points: []store.Point{{Revision: 4, Digest: store.Hash{1}, Audit: store.Head{Sequence: 9, Hash: store.Hash{2}}}}, Accepted: []string{"restored/a"}},
		{Serial: 3, Points: []store.Point{{Revision: 2}}},
	} {
		for {
			err := a.Tell(t.Context(), seen)
			if err == nil {
				break
			} else if !errors.Is(err, store.ErrUnavailable) {
				t.Fatal(err)
			}
		}
		if got := told(); !reflect.DeepEqual(got, seen) {
			t.Errorf("told %v: %v", seen, got)
		}
	}
	if contents, err := b.Load(t.Context()); err != nil || contents.Revision != 0 || len(contents.Objects) > 0 {
		t.Errorf("the store has %v, %v", contents, err)
	}
	client := c.Client(0)
	defer client.Close()
	if _, err := client.Put(t.Context(), "/told/seen", "damaged"); err != nil {
		t.Fatal(err)
	}
	for {
		_, err := b.Told(t.Context())
		if errors.Is(err, store.ErrUnavailable) {
			continue
		}
		if !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("a damaged value: %v", err)
		}
		return
	}
}
