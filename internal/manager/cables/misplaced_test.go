package cables

import (
	"testing"

	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// A port is misplaced where the list has its GUID behind another switch port, or not at all, and
// where it is cabled to nothing; without a list nobody is.
func TestIsMisplaced(t *testing.T) {
	n := topology.Demo()
	f := found(t, n)
	list, _ := learned(t, f)
	red, blue := port(t, n, f, "red-1", 1), port(t, n, f, "blue-1", 1)
	leaf := f.Node(red.Peer.Node.GUID())
	for _, x := range []struct {
		name string
		l    *List
		p    observed.Port
		want bool
	}{
		{"at its place", list, *red, false},
		{"behind another switch port", list, observed.Port{Node: red.Node, Num: 1, GUID: red.GUID, Peer: blue.Peer}, true},
		{"cabled to nothing", list, observed.Port{Node: red.Node, Num: 1, GUID: red.GUID}, true},
		{"as another device", list, observed.Port{Node: blue.Node, Num: 1, GUID: red.GUID, Peer: red.Peer}, true},
		{"a GUID that the list has not", list, observed.Port{Node: red.Node, Num: 1, GUID: 0xBAD, Peer: red.Peer}, true},
		{"port 0 of a switch", list, leaf.Ports[0], false},
		{"an empty list", &List{}, *red, true},
		{"no list", nil, observed.Port{Node: red.Node, Num: 1, GUID: 0xBAD}, false},
	} {
		if got := x.l.IsMisplaced(&x.p); got != x.want {
			t.Errorf("%s: misplaced %v, want %v", x.name, got, x.want)
		}
	}
}
