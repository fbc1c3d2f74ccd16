package snapshot

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFormatStays: a file that an earlier version wrote, with answers of every attribute
// that a snapshot holds, is read, and written again it is the same file, byte for byte.
// IBWARDEN_UPDATE=1 writes a new one; earlier versions read that only if the order of
// answers within a node is the same.
func TestFormatStays(t *testing.T) {
	path := filepath.Join("testdata", "everything.snapshot")
	if os.Getenv("IBWARDEN_UPDATE") == "1" {
		s := &Snapshot{
			ReadAt: time.Unix(1e9, 0).UTC(), Source: "sim", Asked: []string{AskedForwarding, AskedMulticast, AskedQoS},
			Faults: []Fault{{"leaf:3", "no answer"}}, Fabric: randomFabric(rand.New(rand.NewPCG(1, 7))),
		}
		if err := os.WriteFile(path, written(t, s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name := range kept {
		if !bytes.Contains(file, []byte(`"attribute":"`+name+`"`)) {
			t.Errorf("%s has no answer of %s", path, name)
		}
	}
	s, err := Read(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	got, want := strings.Split(string(written(t, s)), "\n"), strings.Split(string(file), "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("line %d of %s is written differently: %.400s", i+1, path, strings.Join(got[min(i, len(got)):], "\n"))
		}
	}
}
