package engine

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// The light sweeps of a drift period read every block, each of them its share, and go on where the
// one before has ended, whatever the list is by then.
func TestRoundShares(t *testing.T) {
	for _, x := range []struct {
		name         string
		blocks       int
		sweep, drift time.Duration
		share        int
	}{
		{"nothing to read", 0, 10 * time.Second, time.Minute, 0},
		{"a sixth of it", 12, 10 * time.Second, time.Minute, 2},
		{"rounded up", 13, 10 * time.Second, time.Minute, 3},
		{"fewer blocks than sweeps", 2, 10 * time.Second, time.Minute, 1},
		{"less than two sweeps", 5, 10 * time.Second, 19 * time.Second, 5},
		{"no whole sweep", 5, 10 * time.Second, time.Second, 5},
	} {
		r := round{}
		for i := range x.blocks {
			r.blocks = append(r.blocks, observed.Block{Modifier: uint32(i)})
		}
		times := make(map[uint32]int)
		next := uint32(0)
		for range max(1, x.drift/x.sweep) {
			due := r.share(x.sweep, x.drift)
			if len(due) != x.share {
				t.Errorf("%s: a sweep reads %d, want %d", x.name, len(due), x.share)
			}
			for _, b := range due {
				if b.Modifier != next {
					t.Errorf("%s: block %d is read after %d", x.name, b.Modifier, next)
				}
				times[b.Modifier]++
				next = (next + 1) % uint32(x.blocks)
			}
		}
		if len(times) != x.blocks {
			t.Errorf("%s: %d of %d blocks are read in a drift period", x.name, len(times), x.blocks)
		}
		if x.blocks > 3 { // ports have gone
			r.blocks, r.cursor = r.blocks[:3], x.blocks-1
			for _, b := range r.share(x.sweep, x.drift) {
				if b.Modifier > 2 {
					t.Errorf("%s: block %d is read, which is not there", x.name, b.Modifier)
				}
			}
		}
	}
}

// A light sweep that gives way begins again at once, with the same share.
func TestCheckingGivesWay(t *testing.T) {
	e := &Engine{round: round{next: time.Minute, blocks: make([]observed.Block, 12)}}
	c := &checking{from: e.round.cursor}
	e.round.share(10*time.Second, time.Minute)
	if !c.giveWay(e, 7) || e.round.cursor != 0 || e.round.next != 7 {
		t.Errorf("the next begins at %v, from block %d", e.round.next, e.round.cursor)
	}
}
