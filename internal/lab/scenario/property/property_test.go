package property

import (
	"testing"

	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// TestOneForwardingTable: the tables that a switch has do not depend on the order in which
// the two capacities are given.
func TestOneForwardingTable(t *testing.T) {
	for _, x := range []struct {
		said           []string
		linear, random uint16
	}{
		{[]string{"random-cap=100", "linear-cap=0"}, 0, 100},
		{[]string{"linear-cap=0", "random-cap=100"}, 0, 100},
		{[]string{"random-cap=100"}, 0, 100},
		{[]string{"linear-cap=300", "random-cap=0"}, 300, 0},
		{[]string{"random-cap=0", "linear-cap=300"}, 300, 0},
	} {
		c := sma.Config{Switch: &sma.SwitchConfig{LinearFDBCap: 49152}}
		for _, said := range x.said {
			apply, err := Read(said)
			if err != nil || !apply(&c) {
				t.Fatal(said, err)
			}
		}
		if c.Switch.LinearFDBCap != x.linear || c.Switch.RandomFDBCap != x.random {
			t.Errorf("%v: linear %d, random %d; want %d, %d", x.said, c.Switch.LinearFDBCap, c.Switch.RandomFDBCap, x.linear, x.random)
		}
	}
}
