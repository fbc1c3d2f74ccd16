package bolt

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// Files of testdata that every later version of the program has to read: a store and its
// backup, each as the version that its name says wrote it.
const (
	oldStore  = "testdata/format1.db"
	oldBackup = "testdata/format1.backup"
)

// TestOldFormats opens the store and restores the backup of every format there was. When
// one of the two files is missing, IBWARDEN_UPDATE=1 writes it, in the present format.
func TestOldFormats(t *testing.T) {
	if os.Getenv("IBWARDEN_UPDATE") != "" {
		writeOld(t)
	}
	data, err := os.ReadFile(oldStore)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	defer s.Close()
	head, err := store.ParseHead("3:47ca407c585e1fb1b08a824f2fb03dee05132edefe17c7b929576efdef71504c")
	if err != nil {
		t.Fatal(err)
	}
	now := storetest.CheckSteps(t, s, 3, head)

	backup, err := os.ReadFile(oldBackup)
	if err != nil {
		t.Fatal(err)
	}
	again := open(t, filepath.Join(t.TempDir(), "store"))
	defer again.Close()
	if _, err := store.Restore(t.Context(), again, bytes.NewReader(backup), oldBackup); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(now, storetest.CheckSteps(t, again, 3, head)); d != "" {
		t.Errorf("the store and its backup differ:\n%s", d)
	}
}

func writeOld(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(oldStore); err == nil {
		t.Fatalf("%s is there: what an older version wrote is not written again", oldStore)
	}
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir)
	epoch, err := s.Acquire(t.Context(), "format 1")
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(3) {
		at, err := s.Commit(t.Context(), storetest.Step(epoch, n+1))
		if err != nil {
			t.Fatal(err)
		}
		t.Log(at.Audit)
	}
	var backup bytes.Buffer
	if _, err := store.Backup(t.Context(), s, &backup); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{oldStore: data, oldBackup: backup.Bytes()} {
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
