package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// What one run assigned is what the next one is told.
func TestStateRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	want := desired.Assigned{
		LIDs: map[ib.PortGUID]ib.LID{1: 2, 0x100009: 7}, PKeys: map[string]ib.PKeyBase{"red": 0x10},
		Forgets: map[observed.Place]observed.Element{{Node: 3, Port: 4}: observed.ElementHOQLife},
		Fenced:  map[ib.PortGUID]bool{5: true, 6: true}, Aliases: true, Managed: true,
	}
	if err := SaveState(path, want); err != nil {
		t.Fatal(err)
	}
	got, err := LoadState(path)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, (-saved +loaded):\n%s", err, diff)
	}
	for text, words := range map[string]string{
		`{"version": 2}`:                    "version 2",
		`{"version": 1, "walls": ["x"]}`:    "a newer ibwarden has written it",
		`{"version": 1}{"version": 1}`:      "after top-level value",
		`{"version": 1, "fenced": ["x"]}`:   "fenced port",
		`{"version": 1, "lids": {"0x1":0}}`: "want a unicast LID",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadState(path); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", text, err, words)
		}
	}
}
