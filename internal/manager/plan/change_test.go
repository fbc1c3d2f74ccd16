package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

const (
	red  = ib.PKey(0x8010)
	blue = ib.PKey(0x8020)
)

// changeStar is a switch with hosts that are all in red, each behind a port that
// checks, and 100 routes.
func changeStar(hosts int) *observed.Fabric {
	b := subnettest.New()
	b.NodeInfo.PartitionCap, b.SwitchInfo.PartitionEnforcementCap, b.SwitchInfo.LinearFDBCap = 40, 40, 1024
	sw := b.Switch(hosts, "switch")
	for i := 1; i <= hosts; i++ {
		p := b.Host(sw, fmt.Sprint("host-", i))
		keys := [40]ib.PKey{0: red, 35: 0x8035}
		subnettest.SetPKeysThrough(p, keys[:]...)
	}
	s := sw.Switch
	s.Info.LinearFDBTop, s.LFT, s.LFTRead = 99, slices.Repeat([]ib.PortNum{ib.PortNone}, 128), []bool{true, true}
	copy(s.LFT, slices.Repeat([]ib.PortNum{1}, 100))
	return b.Fabric
}

// other wants a bit of everything to be otherwise.
func other(f *observed.Fabric) *observed.Desired {
	d := observed.NewDesired(f)
	p := f.Nodes[1].Port(1)
	for _, x := range []*observed.Port{p, p.Peer} {
		d.Port(x).PKeys = slices.Clone(x.PKeys)
		d.Port(x).PKeys[0], d.Port(x).PKeys[35], d.Port(x).PKeys[36] = blue, 0x0035, 0x8036
	}
	d.Port(p).Elements, d.Port(p).Info.LID = observed.ElementLID, 77
	d.Nodes[0].LFT = make([]ib.PortNum, 200)
	for i := range d.Nodes[0].LFT {
		d.Nodes[0].LFT[i] = 2
	}
	return d
}

// carry writes a plan to the snapshot, up to so many writes.
func carry(t *testing.T, f *observed.Fabric, d *observed.Desired, most int) int {
	t.Helper()
	p := Diff(f, d)
	n := 0
	for _, s := range p.Stages {
		for _, op := range s.Ops {
			if n++; n > most {
				return n - 1
			}
			w, err := p.Fill(op)
			if err != nil {
				t.Fatal(err)
			}
			if op.Attribute == smp.AttrPortInfo && w.State == 0 {
				var info smp.PortInfo
				if err := info.UnmarshalBinary(w.Data[:]); err != nil {
					t.Fatal(err)
				}
				info.PortState, info.PortPhysicalState = op.Port.Info.PortState, op.Port.Info.PortPhysicalState
				if err := info.Encode(&w.Data); err != nil {
					t.Fatal(err)
				}
			}
			if err := op.Port.Absorb(op.Attribute, op.Modifier, w.Data[:]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return n
}

// Wherever a change is cut off, it is found between its ends, can be finished
// and can be undone, and both come to exactly that end.
func TestCutOffAnywhere(t *testing.T) {
	for _, side := range []ChangeSide{OldSide, NewSide} {
		for cut := 0; ; cut++ {
			f := changeStar(3)
			d := other(f)
			p := Diff(f, d)
			c, err := ChangeOf(f, d, p)
			if err != nil {
				t.Fatal(err)
			}
			if s := c.Compare(f); s.Position != AtOld {
				t.Fatalf("before the first write: %+v", s)
			}
			done := carry(t, f, d, cut)
			want := BetweenSides
			if cut == 0 {
				want = AtOld
			} else if done == p.Len() {
				want = AtNew
			}
			if s := c.Compare(f); s.Position != want {
				t.Fatalf("after %d writes: %+v, want %v", done, s, want)
			}
			target, err := c.Target(f, side)
			if err != nil {
				t.Fatal(err)
			}
			carry(t, f, target, 1000)
			end := map[ChangeSide]ChangePosition{OldSide: AtOld, NewSide: AtNew}[side]
			if s := c.Compare(f); s.Position != end {
				t.Fatalf("%v after %d writes: %+v", side, done, s)
			}
			want0, top := changeStar(3), ib.LID(99)
			if side == NewSide {
				top = 199
			} else if !slices.Equal(f.Nodes[0].Switch.LFT[:128], want0.Nodes[0].Switch.LFT) || !slices.Equal(f.Nodes[1].Port(1).PKeys, want0.Nodes[1].Port(1).PKeys) {
				t.Fatalf("undone after %d writes: not as it was", done)
			}
			if got := f.Nodes[0].Switch.Info.LinearFDBTop; got != top {
				t.Fatalf("%v after %d writes: LinearFDBTop %d, want %d", side, done, got, top)
			}
			if done < cut {
				break
			}
		}
	}
}

func TestElsewhere(t *testing.T) {
	for name, tamper := range map[string]func(*observed.Fabric){
		"a foreign key":      func(f *observed.Fabric) { f.Nodes[1].Port(1).PKeys[0] = 0x8099 },
		"a full key":         func(f *observed.Fabric) { f.Nodes[1].Port(1).PKeys[7] = blue },
		"not read":           func(f *observed.Fabric) { f.Nodes[1].Port(1).PKeysRead[1] = false },
		"another LID":        func(f *observed.Fabric) { f.Nodes[1].Port(1).Info.LID = 5 },
		"not reached":        func(f *observed.Fabric) { f.Nodes[1].Port(1).Reached = false },
		"another route":      func(f *observed.Fabric) { f.Nodes[0].Switch.LFT[3] = 3 },
		"another top":        func(f *observed.Fabric) { f.Nodes[0].Switch.Info.LinearFDBTop = 7 },
		"no switch any more": func(f *observed.Fabric) { f.Nodes[0].Switch = nil },
		"PortInfo not known": func(f *observed.Fabric) { f.Nodes[1].Port(1).InfoRead = false },
	} {
		f := changeStar(3)
		d := other(f)
		c, err := ChangeOf(f, d, Diff(f, d))
		if err != nil {
			t.Fatal(err)
		}
		carry(t, f, d, 2)
		tamper(f)
		if s := c.Compare(f); s.Position != Elsewhere || len(s.Elsewhere) == 0 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestUnreadTablesCannotBeChanged(t *testing.T) {
	f := changeStar(2)
	f.Nodes[1].Port(1).PKeysRead[0] = false
	d := other(f)
	if c, err := ChangeOf(f, d, Diff(f, d)); err == nil {
		t.Errorf("a change of what was not read: %+v", c)
	}
}

// A host gets no key of a partition that another has still to leave.
func TestStepWaits(t *testing.T) {
	f := changeStar(3)
	full := observed.NewDesired(f)
	give := func(i int, k ib.PKey) {
		p := f.Nodes[i].Port(1)
		full.Port(p).PKeys, full.Port(p.Peer).PKeys = []ib.PKey{k}, []ib.PKey{k}
	}
	f.Nodes[2].Port(1).PKeys[0], f.Nodes[0].Ports[2].PKeys[0] = blue, blue
	give(1, blue)
	give(2, red)
	if got := ChangedNodes(f, full); !slices.Equal(got, []*observed.Node{f.Nodes[1], f.Nodes[2]}) {
		t.Fatalf("nodes %v", got)
	}
	one, waiting := NextStep(f, full, map[*observed.Node]bool{f.Nodes[1]: true})
	if waiting != 2 || one.Port(f.Nodes[1].Port(1)).PKeys[0] != ib.PKeyInvalid || one.Port(f.Nodes[2].Port(1)).PKeys != nil {
		t.Errorf("one host: %d keys wait, want the host's and the switch port's", waiting)
	}
	both, waiting := NextStep(f, full, map[*observed.Node]bool{f.Nodes[1]: true, f.Nodes[2]: true})
	if waiting != 0 || both.Port(f.Nodes[1].Port(1)).PKeys[0] != blue {
		t.Errorf("both hosts: %d keys wait", waiting)
	}
}
