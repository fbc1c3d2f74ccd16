package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/store"
)

// TestFileThatIsGone removes the file under a store, and puts another one in its place: nothing
// is acknowledged that a restart would lose, also not to who only asks, reads go on, and the
// first file counts again when it is back.
func TestFileThatIsGone(t *testing.T) {
	dir := t.TempDir() + "/store"
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	epoch, err := s.Acquire(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	entry := []store.Entry{{Time: time.Unix(1e9, 0), Action: "test", Decision: store.Accepted}}
	tries := func() [3]error {
		_, asked := s.Commit(t.Context(), store.Commit{Epoch: epoch})
		_, wrote := s.Commit(t.Context(), store.Commit{Epoch: epoch, Audit: entry})
		_, err := s.Load(t.Context())
		return [3]error{asked, wrote, err}
	}
	if e := tries(); e != [3]error{} {
		t.Fatal(e)
	}
	path, aside := filepath.Join(dir, FileName), filepath.Join(dir, "aside")
	for _, way := range []struct {
		name string
		do   func() error
	}{
		{"removed", func() error { return nil }},
		{"another file", func() error { return os.WriteFile(path, []byte("another"), 0o600) }},
		{"a link to it", func() error { return os.Symlink(aside, path) }},
	} {
		if err := os.Rename(path, aside); err != nil {
			t.Fatal(err)
		}
		if err := way.do(); err != nil {
			t.Fatal(err)
		}
		if e := tries(); !errors.Is(e[0], store.ErrUnavailable) || !errors.Is(e[1], store.ErrUnavailable) || e[2] != nil {
			t.Errorf("%s: asking %v, writing %v, reading %v", way.name, e[0], e[1], e[2])
		}
		if err := os.Rename(aside, path); err != nil {
			t.Fatal(err)
		}
		if e := tries(); e != [3]error{} {
			t.Errorf("%s and put back: %v", way.name, e)
		}
	}
	before := lastWrite(t, s)
	if _, err := s.Commit(t.Context(), store.Commit{Epoch: epoch + 1}); !errors.Is(err, store.ErrFenced) {
		t.Errorf("asked with another epoch: %v", err)
	}
	done, err := s.Commit(t.Context(), store.Commit{Epoch: epoch})
	if err != nil || done.Audit.Sequence != 4 || lastWrite(t, s) != before {
		t.Errorf("asking came to %+v, %v, and wrote", done, err)
	}
}

// lastWrite is the number of the last transaction that wrote.
func lastWrite(t *testing.T, s *Store) (id int) {
	tx, err := s.db.Begin(false)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	return tx.ID()
}
