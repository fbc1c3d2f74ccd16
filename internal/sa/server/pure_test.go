package server

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// TestViewLeavesPartitionsAlone: the manager's partitions are not put into another
// order, and the view finds them in whatever order they are.
func TestViewLeavesPartitionsAlone(t *testing.T) {
	parts := []observed.Partition{{Name: "blue", Base: 2, SL: 5}, {Name: "red", Base: 1, SL: 4}}
	v := NewView(observed.Subnet{Fabric: star(3), GIDPrefix: ib.DefaultGIDPrefix, Partitions: parts})
	if parts[0].Base != 2 || parts[1].Base != 1 {
		t.Errorf("they are %v now", parts)
	}
	for base, sl := range map[ib.PKeyBase]ib.SL{1: 4, 2: 5, 3: 0} {
		p := v.Partition(base)
		if (p == nil) != (base == 3) || p != nil && p.SL != sl {
			t.Errorf("partition %s: %+v, want service level %d", base, p, sl)
		}
	}
}
