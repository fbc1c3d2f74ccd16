package main

import (
	"os"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

func TestMain(m *testing.M) { os.Exit(need.Main(m)) }

// TestCompare runs the comparison once, on the smaller of its fabrics, so that it
// still runs when somebody wants its figures.
func TestCompare(t *testing.T) {
	need.Long(t, "OpenSM and ibwarden in turn")
	_, err := ibsimtest.FindTools()
	need.Need(t, err)
	binary, err := need.Ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	if err := compare(fabrics[0], binary, 1, ""); err != nil {
		t.Fatal(err)
	}
}

// TestPaths runs the comparison once, on a small fabric, so that it still runs when
// somebody wants its figures. No query may be refused but with BUSY, which a host that asks
// more than its share gets on a fast machine.
func TestPaths(t *testing.T) {
	need.Long(t, "OpenSM and ibwarden in turn")
	_, err := ibsimtest.FindTools()
	need.Need(t, err)
	binary, err := need.Ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	if err := comparePaths("fattree,radix=8,levels=2", binary, 1, time.Second); err != nil {
		t.Fatal(err)
	}
}
