package plan

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
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
