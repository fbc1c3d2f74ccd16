package run

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
)

// Without a data directory the history is in one that is removed at the end; a manager that has proved nothing keeps
// nothing; and where the directory cannot be had, that is said, and the last minutes are kept all the same.
func TestWhereThePastIsKept(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	defer s.Close()
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, nil))
	h := s.openPast("", log)
	if _, err := os.Stat(h.scratch); h.scratch == "" || err != nil {
		t.Errorf("%q: %v", h.scratch, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	h.keep(ended, log)
	if _, err := os.Stat(h.scratch); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", h.scratch, err)
	}
	if list := h.source().Moments(); len(list) != 0 {
		t.Errorf("%v is kept without a verdict", list)
	}
	if h = s.openPast(daemon.DataDir(dir), log); h.scratch != "" || out.Len() != 0 {
		t.Errorf("%q: %s", h.scratch, &out)
	}
	path := filepath.Join(dir, pastName)
	if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if h = s.openPast(daemon.DataDir(dir), log); !strings.Contains(out.String(), "how the fabric was is not kept as a whole: mkdir "+path) || h.source() == nil {
		t.Errorf("of %s is said %s", path, &out)
	}
}
