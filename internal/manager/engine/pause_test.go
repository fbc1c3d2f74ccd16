package engine

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/mastership"
)

// A manager with the right to write waits for what an earlier one sent; without it, it reads the subnet
// again, sooner where it could not read all.
func TestPausing(t *testing.T) {
	const now, wait = 3 * time.Second, 8 * time.Second
	for _, x := range []struct {
		whole, right bool
		ends         time.Duration
	}{
		{true, true, wait},
		{false, true, wait},
		{true, false, now + mastership.Patience},
		{false, false, now + cutOffAgain},
	} {
		if got := newPausing(now, x.whole).ends(x.right, wait); got != x.ends {
			t.Errorf("read whole %v, right to write %v: it ends at %v, want %v", x.whole, x.right, got, x.ends)
		}
	}
}
