package watch

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// A device that falls silent and answers again, time after time, is followed each second; a link
// that changes as often is left alone for half a minute, and so is silence behind it.
func TestSilenceIsFollowedSooner(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf")
	mute, flapping, both := b.Host(leaf, "mute").Peer, b.Host(leaf, "flapping").Peer, b.Host(leaf, "both").Peer
	b.ManagedFrom(b.Host(leaf, "manager"))
	var x ChangedLinks
	counts := make(map[string]int)
	for now := time.Duration(0); now < 20*time.Second; now += 50 * time.Millisecond {
		x.AddMute(now, mute, "mute")
		x.Add(now, flapping, "flapping", now)
		x.Add(now, both, "both", now)
		x.AddMute(now, both, "both")
		due, _ := x.Follow(b.Fabric, now)
		for _, p := range due {
			counts[p.Peer.Node.Description]++
		}
		x.Followed(b.Fabric)
	}
	if n := counts["mute"]; n < 20 || n > 30 {
		t.Errorf("silence was followed %d times in 20 s, want about once a second", n)
	}
	for _, name := range []string{"flapping", "both"} {
		if n := counts[name]; n == 0 || n > 6 {
			t.Errorf("%s: a link that changes was followed %d times in 20 s", name, n)
		}
	}
}
