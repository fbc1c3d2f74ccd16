package plan

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// shared and private are tables of a manager and of two tenants with two hosts
// each, and of the switch ports before them, with a default partition and without.
var (
	shared = [][2][]ib.PKey{
		{{0xFFFF}, {0xFFFF}},
		{{0x7FFF, 0x8001}, {0xFFFF, 0x8001}}, {{0x7FFF, 0x8001}, {0xFFFF, 0x8001}},
		{{0x7FFF, 0x8002}, {0xFFFF, 0x8002}}, {{0x7FFF, 0x8002}, {0xFFFF, 0x8002}},
	}
	private = [][2][]ib.PKey{
		{{0x8001, 0x8002}, {0x8001, 0x8002}},
		{{0x8001}, {0x8001}}, {{0x8001}, {0x8001}}, {{0x8002}, {0x8002}}, {{0x8002}, {0x8002}},
	}
)

// asks reports whether a host can ask the manager as Linux does.
func asks(f *observed.Fabric, host *observed.Port) bool {
	k := host.PKeys[0]
	for _, have := range host.PKeys {
		if have.Base() == ib.PKeyBaseDefault {
			k = have
		}
	}
	passes := func(p *observed.Port) bool {
		return slices.ContainsFunc(p.Peer.PKeys, func(g ib.PKey) bool { return g.IsValid() && g.Base() == k.Base() })
	}
	return slices.ContainsFunc(f.Self.PKeys, k.Matches) && passes(host) && passes(f.Self)
}

// Step by step, one host at a time, from a shared default partition to none and
// back: after each write every host can ask, and the journal says where the
// fabric stands.
func TestStepsToNoDefault(t *testing.T) {
	for name, tt := range map[string][2][][2][]ib.PKey{"to none": {shared, private}, "back": {private, shared}} {
		f := changeStar(5)
		f.Self = f.Nodes[1].Port(1)
		full := observed.NewDesired(f)
		for i := range 5 {
			p := f.Nodes[1+i].Port(1)
			for n, x := range []*observed.Port{p, p.Peer} {
				clear(x.PKeys)
				copy(x.PKeys, tt[0][i][n])
				full.Port(x).PKeys = tt[1][i][n]
			}
		}
		c, err := ChangeOf(f, full, Diff(f, full))
		if err != nil {
			t.Fatal(err)
		}
		look := func(what string) {
			t.Helper()
			for i := 2; i <= 5; i++ {
				if host := f.Nodes[i].Port(1); !asks(f, host) {
					t.Errorf("%s, %s: host %d cannot ask: it has %v and the manager %v", name, what, i, host.PKeys[:3], f.Self.PKeys[:4])
				}
			}
			if s := c.Compare(f); s.Position == Elsewhere {
				t.Errorf("%s, %s: %v", name, what, s.Elsewhere)
			}
		}
		done := map[*observed.Node]bool{}
		for _, n := range ChangedNodes(f, full) {
			done[n] = true
			step, waiting := NextStep(f, full, done)
			if waiting > 0 {
				t.Errorf("%s: %d keys wait", name, waiting)
			}
			p := Diff(f, step)
			for _, stage := range p.Stages {
				for _, op := range stage.Ops {
					w, err := p.Fill(op)
					if err != nil || op.Attribute != smp.AttrPKeyTable {
						t.Fatal(op, err)
					}
					if err := op.Port.Absorb(smp.AttrPKeyTable, op.Modifier, w.Data[:]); err != nil {
						t.Fatal(err)
					}
					look(stage.Name + " at " + op.Port.String())
				}
			}
		}
		if s := c.Compare(f); s.Position != AtNew {
			t.Errorf("%s: at the end %+v", name, s)
		}
	}
}
