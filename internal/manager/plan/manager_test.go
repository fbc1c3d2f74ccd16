package plan

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Of the tables that are to be read at the manager: what it has goes late, what
// it gets comes early, unless another port gains or loses that partition.
func TestUnion(t *testing.T) {
	others := newMoves()
	others.gained[0x20] = true
	for _, tt := range []struct {
		name             string
		now, after, want []ib.PKey
	}{
		{"nothing goes", []ib.PKey{0x8001}, []ib.PKey{0x8001, 0x8002}, []ib.PKey{0x8001, 0x8002, 0, 0}},
		{"stays where it was", []ib.PKey{0xffff, 0x8001}, []ib.PKey{0xffff}, []ib.PKey{0xffff, 0x8001, 0, 0}},
		{"makes way at index 0", []ib.PKey{0xffff, 0x8001}, []ib.PKey{0x8001}, []ib.PKey{0x8001, 0, 0xffff, 0}},
		{"somebody else gets it", []ib.PKey{0xffff, 0x8020}, []ib.PKey{0xffff}, []ib.PKey{0xffff, 0, 0, 0}},
		{"full until the last", []ib.PKey{0x8001}, []ib.PKey{0x0001}, []ib.PKey{0x8001, 0, 0, 0}},
		{"full at once", []ib.PKey{0x0001}, []ib.PKey{0x8001}, []ib.PKey{0x8001, 0, 0, 0}},
		{"no room", []ib.PKey{0xffff, 0x8001, 0x8002, 0x8003}, []ib.PKey{0x8001, 0x8002, 0x8003, 0x8004}, []ib.PKey{0x8001, 0x8002, 0x8003, 0x8004}},
	} {
		if got := union(tt.now, tt.after, tt.after, 4, &others); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A key comes to the manager early where nobody else loses it. A table with a write under way
// may hold it, though what was read of it before is what is wanted.
func TestManagerWaitsForWhatIsNotRead(t *testing.T) {
	for _, unread := range []bool{false, true} {
		f := star(3, func(int) bool { return true }, smp.PortActive)
		self, other := f.Nodes[0].Ports[1].Peer, f.Nodes[0].Ports[2].Peer
		f.Self = self
		d := observed.NewDesired(f)
		for _, p := range []*observed.Port{self, other} {
			p.PKeys[0], p.Peer.PKeys[0] = 0xffff, 0xffff
			d.Port(p).PKeys, d.Port(p.Peer).PKeys = []ib.PKey{0xffff}, []ib.PKey{0xffff}
		}
		d.Port(self).PKeys, d.Port(self.Peer).PKeys = []ib.PKey{0xffff, 0x8002}, []ib.PKey{0xffff, 0x8002}
		if unread {
			other.MarkUnread(smp.AttrPKeyTable, 0)
		}
		first := Diff(f, d).Stages[0]
		if early := first.Ops[0].Kind == ReadyEnd; early == unread {
			t.Errorf("with a table that is not read %v: the first stage is %q", unread, first.Name)
		}
	}
}
