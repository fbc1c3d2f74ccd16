package engine

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
)

// What a policy takes away is written, and nothing that it gives; devices that do not answer are given
// up in time.
func TestNarrowing(t *testing.T) {
	for _, x := range []struct {
		name     string
		a, b     []ib.PKey // what the policy wants of hosts, who have red and blue, and red
		mute     bool      // devices do not answer
		starts   bool
		keeps    bool // host a keeps blue
		failures int
	}{
		{name: "nothing changes", a: []ib.PKey{red, blue}, b: []ib.PKey{red}, keeps: true},
		{name: "one is given more", a: []ib.PKey{red, blue}, b: []ib.PKey{red, blue}, keeps: true},
		{name: "one loses", a: []ib.PKey{red}, b: []ib.PKey{red}, starts: true},
		{name: "one loses what another is given", a: []ib.PKey{red}, b: []ib.PKey{red, blue}, starts: true},
		{name: "nobody answers", a: []ib.PKey{red}, b: []ib.PKey{red}, mute: true, starts: true, keeps: true},
	} {
		b := newBench(t)
		b.wants(b.a, x.a...)
		b.wants(b.b, x.b...)
		failures := 0
		const now = 5 * time.Second
		n := startNarrowing(b.window, now, b.fabric, b.want, func(apply.Failure) { failures++ })
		if (n != nil) != x.starts {
			t.Errorf("%s: it starts: %v", x.name, n != nil)
		}
		if !x.mute {
			b.exchange()
		}
		if x.starts {
			if b.window.Idle() == x.mute || n.late(now+narrowMost-1) || b.window.Idle() == x.mute {
				t.Errorf("%s: given up too soon", x.name)
			}
			if !n.late(now+narrowMost) || !b.window.Idle() {
				t.Errorf("%s: it is not given up", x.name)
			}
		}
		if keeps := b.a.PKeys[1] == blue && b.a.Peer.PKeys[1] == blue; keeps != x.keeps || b.b.PKeys[1] != 0 || failures > 0 {
			t.Errorf("%s: a has %v, its switch port %v, b %v, %d failures", x.name, b.a.PKeys[:2], b.a.Peer.PKeys[:2], b.b.PKeys[:2], failures)
		}
		for _, p := range b.sets {
			if p.Node != b.a.Node && p.Node != b.a.Peer.Node {
				t.Errorf("%s: %s is written to", x.name, p)
			}
		}
	}
}
