package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// TestCompare runs the comparison once, on the smaller of its fabrics, so that it still runs when
// somebody wants its figures.
func TestCompare(t *testing.T) {
	_, err := ibsimtest.FindTools()
	need.Need(t, err)
	binary := filepath.Join(t.TempDir(), "ibwarden")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/ibwarden/ibwarden/cmd/ibwarden").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := compare(fabrics[0], binary, 1, ""); err != nil {
		t.Fatal(err)
	}
}
