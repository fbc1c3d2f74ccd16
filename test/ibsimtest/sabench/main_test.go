package main

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// TestCompare runs the comparison once, on a small fabric, so that it still runs when
// somebody wants its figures. No query may be refused.
func TestCompare(t *testing.T) {
	_, err := ibsimtest.FindTools()
	need.Need(t, err)
	binary := filepath.Join(t.TempDir(), "ibwarden")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/ibwarden/ibwarden/cmd/ibwarden").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := compare("fattree,radix=8,levels=2", binary, 1, time.Second); err != nil {
		t.Fatal(err)
	}
}
