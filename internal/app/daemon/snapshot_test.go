package daemon_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
)

// What a sweep left comes back from a file as it was, and the file is nobody
// else's to read.
func TestSnapshotFile(t *testing.T) {
	for _, fabric := range []string{"sim", "sim:random,seed=7,switches=8,hosts=20", "sim:torus,x=3,y=3"} {
		link, err := daemon.Open(fabric, 0)
		if err != nil {
			t.Fatal(err)
		}
		s, smps, err := daemon.Snapshot(context.Background(), link, fabric, sweep.Options{Forwarding: true, QoS: true, ClearChange: true}, nil)
		link.Close()
		if err != nil || smps.Set != 0 || smps.Get < 100 {
			t.Fatalf("%s: %+v, %v", fabric, smps, err)
		}
		path := filepath.Join(t.TempDir(), "snap")
		if err := daemon.SaveSnapshot(path, s); err != nil {
			t.Fatal(err)
		}
		back, err := daemon.LoadSnapshot(path)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(s, back) {
			t.Errorf("%s: it came back otherwise", fabric)
		}
		if i, err := os.Stat(path); err != nil || i.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v; want 0600", i.Mode(), err)
		}
		if err := os.Truncate(path, 1000); err != nil {
			t.Fatal(err)
		}
		if _, err := daemon.LoadSnapshot(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("a file cut short: %v", err)
		}
	}
}
