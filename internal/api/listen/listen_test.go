package listen

import (
	"fmt"
	"testing"
)

// TestConnectionsAreCounted: one peer does not have them all, and the provider finds a
// place when everybody else has none.
func TestConnectionsAreCounted(t *testing.T) {
	c := &counter{peers: map[string]int{}}
	for range ConnectionsPerPeer {
		if !c.enter("uid 1", false) {
			t.Fatal("refused before the limit")
		}
	}
	if c.enter("uid 1", false) {
		t.Error("a peer has more than its share")
	}
	for i := 0; c.all < ConnectionsMax-ConnectionsReserved; i++ {
		if !c.enter(fmt.Sprint("peer ", i), false) {
			t.Fatal("refused before the limit")
		}
	}
	if c.enter("uid 2", false) {
		t.Error("others have what is reserved")
	}
	for range ConnectionsReserved {
		if !c.enter("uid 0", true) {
			t.Fatal("the provider is refused")
		}
	}
	if c.enter("uid 0", true) {
		t.Error("more than there are")
	}
	if c.refused != 2 || c.refusedPeer != 1 {
		t.Errorf("%d and %d refusals are counted, want 2 and 1", c.refused, c.refusedPeer)
	}
	c.leave("uid 1")
	if c.all != ConnectionsMax-1 || c.peers["uid 1"] != ConnectionsPerPeer-1 {
		t.Errorf("%d connections, %d of uid 1", c.all, c.peers["uid 1"])
	}
}
