package bolt

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// filled is the directory of a store with some history, closed, and its last contents.
func filled(t testing.TB, revisions uint64) (dir string, was *store.Contents) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	s := open(t, dir)
	defer s.Close()
	e, err := s.Acquire(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	for n := range revisions {
		if _, err := s.Commit(t.Context(), storetest.Next(e, n, store.Object{Key: strconv.FormatUint(n%50, 10), Value: []byte("value")})); err != nil {
			t.Fatal(err)
		}
	}
	return dir, storetest.Verify(t, s)
}

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestModes(t *testing.T) {
	dir, _ := filled(t, 1)
	file := filepath.Join(dir, FileName)
	for path, want := range map[string]os.FileMode{dir: 0o700, file: 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v, error %v", path, info.Mode(), want, err)
		}
	}
	for _, c := range []struct {
		path      string
		mode, was os.FileMode
	}{{file, 0o640, 0o600}, {file, 0o602, 0o600}, {dir, 0o755, 0o700}, {dir, 0o720, 0o700}} {
		if err := os.Chmod(c.path, c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); !errors.Is(err, store.ErrPermissions) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s with mode %o: %v", c.path, c.mode, err)
		}
		if err := os.Chmod(c.path, c.was); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(file, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); !errors.Is(err, store.ErrPermissions) {
			t.Errorf("a file of another user: %v", err)
		}
		if err := os.Chown(file, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	open(t, dir).Close()
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(file, elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, file); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("a symbolic link: %v", err)
	}
}

// TestMain lets the test run itself as another process, see crash_test.go.
func TestMain(m *testing.M) {
	if what := os.Getenv("IBWARDEN_STORE_CHILD"); what != "" {
		child(what, os.Getenv("IBWARDEN_STORE_DIR"))
		return
	}
	os.Exit(m.Run())
}

func TestLockedByAnother(t *testing.T) {
	dir, was := filled(t, 2)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "IBWARDEN_STORE_CHILD=hold", "IBWARDEN_STORE_DIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), filepath.Join(dir, FileName)) || !strings.Contains(err.Error(), "process "+strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("error %v, want one that names process %d", err, cmd.Process.Pid)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	defer s.Close()
	if now := storetest.Verify(t, s); now.Revision != was.Revision {
		t.Errorf("revision %d, want %d", now.Revision, was.Revision)
	}
}

// TestTorn opens files that end too soon, have other bytes or are no store: each is refused
// or has all that it had, and the process goes on.
func TestTorn(t *testing.T) {
	dir, was := filled(t, 300)
	file := filepath.Join(dir, FileName)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tries := 25
	if need.Soak() {
		tries = 3000
	}
	r := rand.New(rand.NewPCG(need.Seed(t, 3), 0))
	refused, noticed, held := 0, 0, 0
	try := func(what string, data []byte) {
		t.Helper()
		if err := os.Remove(file); err != nil { // what is mapped stays as it is
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir)
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrNewer) {
				t.Fatalf("%s: %v", what, err)
			}
			if _, again := Open(dir); again == nil || again.Error() != err.Error() {
				t.Fatalf("%s: %v, and at once again: %v", what, err, again)
			}
			refused++
			return
		}
		defer s.Close()
		now, _, err := store.VerifyStore(t.Context(), s, []store.Head{was.Audit})
		var broken *store.BrokenError
		switch {
		case err == nil && now.Revision == was.Revision && len(now.Objects) == len(was.Objects):
			held++
		case errors.Is(err, store.ErrCorrupt), errors.As(err, &broken):
			noticed++
		default:
			t.Errorf("%s: opened with revision %d, %v", what, now.Revision, err)
		}
	}
	for _, n := range []int{0, 1, 100, 4096, 8192, 16384, len(whole) / 2, len(whole) - 4096, len(whole) - 1} {
		try("cut off at "+strconv.Itoa(n), whole[:n])
	}
	for range tries {
		n := r.IntN(len(whole))
		try("cut off at "+strconv.Itoa(n), whole[:n])
		bent := append([]byte(nil), whole...)
		n = r.IntN(len(whole))
		bent[n] ^= 1 << r.IntN(8)
		try("byte "+strconv.Itoa(n)+" changed", bent)
		page := r.IntN(len(whole)/4096) * 4096
		copy(bent[page:], make([]byte, 4096))
		try("page at "+strconv.Itoa(page)+" without bytes", bent)
	}
	t.Logf("of a file of %d bytes: %d refused, %d noticed later, %d unharmed", len(whole), refused, noticed, held)
	if refused == 0 || noticed == 0 || held == 0 {
		t.Error("one of the three never came up")
	}
}

// TestEndMissing: a file without its end is refused when it is opened, also when nothing
// has asked for what stood there.
func TestEndMissing(t *testing.T) {
	dir, _ := filled(t, 100)
	s := open(t, dir)
	var used int64
	if err := s.db.View(func(tx *bbolt.Tx) error { used = tx.Size(); return nil }); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := os.Truncate(filepath.Join(dir, FileName), used-1); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), "its end is missing") {
		t.Errorf("error %v", err)
	}
}

func TestFormats(t *testing.T) {
	dir, was := filled(t, 3)
	file := filepath.Join(dir, FileName)
	setFormat := func(text string) {
		t.Helper()
		db, err := bbolt.Open(file, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Put(formatKey, []byte(text)) }); err != nil {
			t.Fatal(err)
		}
	}
	setFormat("9")
	_, err := Open(dir)
	var newer *store.NewerError
	if !errors.As(err, &newer) || newer.Has != 9 || newer.Knows != Format || newer.What != file {
		t.Errorf("a newer store: %v", err)
	}
	setFormat("none")
	if _, err := Open(dir); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("a store without a format: %v", err)
	}
	setFormat("1")

	// A program of two formats later finds the store of this one.
	db, err := bbolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	order := ""
	steps := []step{
		func(tx *bbolt.Tx) error { order += "2"; return tx.Bucket(metaBucket).Put([]byte("two"), []byte("2")) },
		func(tx *bbolt.Tx) error { order += "3"; return errors.New("not now") },
	}
	if err := migrate(db, file, 3, steps); err == nil || !strings.Contains(err.Error(), "from format 2 to 3: not now") {
		t.Errorf("a step that fails: %v", err)
	}
	if err := db.View(func(tx *bbolt.Tx) error {
		if m := tx.Bucket(metaBucket); m.Get([]byte("two")) != nil || string(m.Get(formatKey)) != "1" {
			t.Error("a migration that failed left something")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	steps[1] = func(tx *bbolt.Tx) error { order += "3"; return nil }
	if err := migrate(db, file, 3, steps); err != nil || order != "2323" {
		t.Errorf("steps %s: %v", order, err)
	}
	db.Close()
	if _, err := Open(dir); !errors.As(err, &newer) || newer.Has != 3 {
		t.Errorf("after the migration: %v", err)
	}
	if err := os.Rename(file+".format1", file); err != nil { // the copy is the store as it was
		t.Fatal(err)
	}
	s := open(t, dir)
	defer s.Close()
	if now := storetest.Verify(t, s, was.Audit); now.Revision != was.Revision {
		t.Errorf("the copy has revision %d, want %d", now.Revision, was.Revision)
	}
}
