package desired

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// device is one node with a single end port of the given GUID that holds lid.
type device struct {
	kind ib.NodeType
	guid ib.PortGUID
	lid  ib.LID
}

func fabric(devices ...device) *observed.Fabric {
	f := observed.NewFabric()
	for i, d := range devices {
		n := f.AddNode(smp.NodeInfo{
			NodeType: d.kind, NumPorts: 1,
			NodeGUID: ib.NodeGUID(0xF000 + i), PortGUID: d.guid,
		})
		p := &n.Ports[1]
		if d.kind == ib.NodeSwitch {
			p = &n.Ports[0]
		}
		p.GUID, p.Reached, p.InfoRead, p.Info.LID = d.guid, true, true, d.lid
	}
	return f
}

func cas(lids ...ib.LID) []device {
	var out []device
	for i, l := range lids {
		out = append(out, device{ib.NodeCA, ib.PortGUID(i + 1), l})
	}
	return out
}

func assign(t *testing.T, f *observed.Fabric, previous map[ib.PortGUID]ib.LID, lmc ib.LMC) ([]LIDAssignment, []LIDMove) {
	t.Helper()
	assigned, moves, err := AssignLIDs(f, previous, lmc, 0)
	if err != nil {
		t.Fatal(err)
	}
	check(t, f, assigned)
	return assigned, moves
}

// check holds what is true of every assignment.
func check(t *testing.T, f *observed.Fabric, assigned []LIDAssignment) {
	t.Helper()
	if want := len(f.EndPorts()); len(assigned) != want {
		t.Fatalf("%d assignments for %d end ports", len(assigned), want)
	}
	owner := map[ib.LID]*observed.Port{}
	for _, a := range assigned {
		for l := a.LID; int(l) < int(a.LID)+a.LMC.Count(); l++ {
			if !l.IsUnicast() || !a.Contains(l) {
				t.Errorf("%s has LID %d (base %d, LMC %d)", a.Port.GUID, l, a.LID, a.LMC)
			}
			if o := owner[l]; o != nil {
				t.Errorf("LID %d is given to %s and to %s", l, o.GUID, a.Port.GUID)
			}
			owner[l] = a.Port
		}
	}
}

func bases(assigned []LIDAssignment) []ib.LID {
	var out []ib.LID
	for _, a := range assigned {
		out = append(out, a.LID)
	}
	return out
}

func told(moves []LIDMove) []string {
	var out []string
	for _, m := range moves {
		winner := ""
		if m.Winner != nil {
			winner = " " + m.Winner.GUID.String()[16:]
		}
		out = append(out, fmt.Sprintf("%d: %d>%d %s%s", m.Port.GUID, m.From, m.To, m.why()[:5], winner))
	}
	return out
}

func TestAssign(t *testing.T) {
	type before = map[ib.PortGUID]ib.LID
	for _, c := range []struct {
		name     string
		held     []ib.LID // of CA ports 1, 2, ...
		previous before
		lmc      ib.LMC
		want     []ib.LID
		moves    []string
	}{
		{"nothing known", []ib.LID{0, 0, 0}, nil, 0, []ib.LID{1, 2, 3}, nil},
		{"held LIDs stay", []ib.LID{7, 0, 1}, nil, 0, []ib.LID{7, 2, 1}, nil},
		{"previous before held", []ib.LID{7, 0, 0}, before{1: 9}, 0, []ib.LID{9, 1, 2}, []string{"1: 7>9 as as"}},
		{"previous and held agree", []ib.LID{9, 0}, before{1: 9}, 0, []ib.LID{9, 1}, nil},
		{"held twice: the lower GUID keeps it", []ib.LID{5, 5}, nil, 0, []ib.LID{5, 1}, []string{"2: 5>1 belon 01"}},
		{"held by one, assigned to the other", []ib.LID{5, 0}, before{2: 5}, 0, []ib.LID{1, 5}, []string{"1: 5>1 belon 02"}},
		{"assigned twice: the lower GUID keeps it", []ib.LID{0, 0}, before{1: 5, 2: 5}, 0, []ib.LID{5, 1}, []string{"2: 5>1 belon 01"}},
		{"refused the previous one, keeps the held one", []ib.LID{0, 8}, before{1: 5, 2: 5}, 0, []ib.LID{5, 8}, []string{"2: 5>8 belon 01"}},
		{"multicast", []ib.LID{0xC000, 0xFFFF}, nil, 0, []ib.LID{1, 2}, []string{"1: 49152>1 not w", "2: 65535>2 not w"}},
		{"previous LID 0", []ib.LID{0}, before{1: 0}, 0, []ib.LID{1}, []string{"1: 0>1 not w"}},
		{"absent port's LID is kept", []ib.LID{0, 0}, before{99: 1}, 0, []ib.LID{2, 3}, nil},
		{"absent port before a held LID", []ib.LID{4, 0}, before{99: 4}, 0, []ib.LID{1, 2}, []string{"1: 4>1 kept "}},
		{"highest LID", []ib.LID{0xBFFF}, nil, 0, []ib.LID{0xBFFF}, nil},
		{"LMC: first range is not that of LID 0", []ib.LID{0, 0}, nil, 2, []ib.LID{4, 8}, nil},
		{"LMC: misaligned", []ib.LID{6, 8}, nil, 2, []ib.LID{4, 8}, []string{"1: 6>4 low L"}},
		{"LMC: overlapping", []ib.LID{8, 8}, before{2: 8}, 2, []ib.LID{4, 8}, []string{"1: 8>4 belon 02"}},
		{"LMC: LID 0 has no range", []ib.LID{0, 2}, nil, 7, []ib.LID{128, 256}, []string{"2: 2>256 low L"}},
		{"LMC: last range", []ib.LID{0xBFFC}, nil, 2, []ib.LID{0xBFFC}, nil},
		{"LMC: absent range is kept", []ib.LID{0}, before{99: 4}, 2, []ib.LID{8}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, moves := assign(t, fabric(cas(c.held...)...), c.previous, c.lmc)
			if d := cmp.Diff(c.want, bases(got)); d != "" {
				t.Errorf("LIDs (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.moves, told(moves)); d != "" {
				t.Errorf("moves (-want +got):\n%s", d)
			}
		})
	}
}

// LF-05: LID 0 is reserved and never assigned, whatever a port holds, was
// assigned before, or asks for by its LMC.
func TestLF05LIDZeroIsNeverAssigned(t *testing.T) {
	for lmc := range ib.LMCMax + 1 {
		previous := map[ib.PortGUID]ib.LID{1: 0, 2: 0}
		got, _ := assign(t, fabric(append(cas(0, 0, 0), device{ib.NodeSwitch, 10, 0})...), previous, lmc)
		for _, a := range got {
			if a.LID == ib.LIDReserved {
				t.Errorf("LMC %d: %s was given LID 0", lmc, a.Port.GUID)
			}
		}
	}
}

// PI-13: base LIDs are unicast, and their low LMC bits are zero.
func TestPI13BaseLIDs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 13))
	for lmc := range ib.LMCMax + 1 {
		var devices []device
		previous := map[ib.PortGUID]ib.LID{}
		for i := range 200 {
			kind := []ib.NodeType{ib.NodeCA, ib.NodeSwitch, ib.NodeRouter}[i%3]
			devices = append(devices, device{kind, ib.PortGUID(i + 1), ib.LID(rng.UintN(1 << 16))})
			if i%4 == 0 {
				previous[ib.PortGUID(i+1)] = ib.LID(rng.UintN(1 << 16))
			}
		}
		got, _ := assign(t, fabric(devices...), previous, lmc)
		for _, a := range got {
			if a.LID < 0x0001 || a.LID > 0xBFFF || a.LID&(1<<a.LMC-1) != 0 {
				t.Errorf("%s was given LID 0x%04x with LMC %d", a.Port.GUID, uint16(a.LID), a.LMC)
			}
		}
	}
}

// PI-51: with LMC n a CA or router port answers to 2^n LIDs from its base.
func TestPI51LMCGivesARange(t *testing.T) {
	f := fabric(device{ib.NodeCA, 1, 0}, device{ib.NodeRouter, 2, 0})
	for lmc := range ib.LMCMax + 1 {
		got, _ := assign(t, f, nil, lmc)
		for i, a := range got {
			if want := ib.LID((i + 1) << lmc); a.LMC != lmc || a.LID != want {
				t.Errorf("port %d has LID %d with LMC %d, want %d with %d", i, a.LID, a.LMC, want, lmc)
			}
			if a.Contains(a.LID-1) || !a.Contains(a.LID+1<<lmc-1) || a.Contains(a.LID+1<<lmc) {
				t.Errorf("LMC %d: the range of base LID %d has other bounds", lmc, a.LID)
			}
		}
	}
}

// PI-53: a base switch port 0 has LMC 0 whatever the subnet's LMC; an
// enhanced one takes it.
func TestPI53SwitchesHaveLMCZero(t *testing.T) {
	f := fabric(device{ib.NodeSwitch, 1, 0}, device{ib.NodeSwitch, 2, 0}, device{ib.NodeSwitch, 3, 6}, device{ib.NodeCA, 4, 0})
	f.Nodes[1].Switch.Info.EnhancedPort0 = true
	got, moves := assign(t, f, nil, 3)
	want := []struct {
		lid ib.LID
		lmc ib.LMC
	}{{1, 0}, {8, 3}, {6, 0}, {16, 3}}
	for i, a := range got {
		if a.LID != want[i].lid || a.LMC != want[i].lmc {
			t.Errorf("%s has LID %d with LMC %d, want %+v", a.Port.GUID, a.LID, a.LMC, want[i])
		}
	}
	if len(moves) != 0 {
		t.Errorf("moved: %v", moves)
	}
}

func TestExhaustion(t *testing.T) {
	many := func(n int, kind ib.NodeType) *observed.Fabric {
		f := observed.NewFabric()
		for i := range n {
			node := f.AddNode(smp.NodeInfo{NodeType: kind, NumPorts: 1, NodeGUID: ib.NodeGUID(i + 1), PortGUID: ib.PortGUID(i + 1)})
			p := &node.Ports[1]
			if kind == ib.NodeSwitch {
				p = &node.Ports[0]
			}
			p.GUID, p.Reached = ib.PortGUID(i+1), true
		}
		return f
	}
	for _, c := range []struct {
		ports int
		lmc   ib.LMC
		want  []string // parts of the error; none for success
	}{
		{0xBFFF, 0, nil},
		{0xC000, 0, []string{"49152 CA and router ports and 0 switches", "has 49151"}},
		{383, 7, nil},
		{384, 7, []string{"LMC 7", "384 end ports", "128 LIDs each", "need 49152", "has 49151", "take LMC 6"}},
	} {
		f := many(c.ports, ib.NodeCA)
		_, _, err := AssignLIDs(f, nil, c.lmc, 0)
		if before := CheckLIDs(f, c.lmc); fmt.Sprint(before) != fmt.Sprint(err) {
			t.Errorf("%d ports, LMC %d: Check says %v, Assign %v", c.ports, c.lmc, before, err)
		}
		switch {
		case c.want == nil && err != nil:
			t.Errorf("%d ports, LMC %d: %v", c.ports, c.lmc, err)
		case c.want != nil && err == nil:
			t.Errorf("%d ports, LMC %d: no error", c.ports, c.lmc)
		}
		for _, part := range c.want {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%d ports, LMC %d: error %q does not say %q", c.ports, c.lmc, err, part)
			}
		}
	}

	// There are enough, but a switch keeps one that lies in the middle of a range.
	f := many(383, ib.NodeCA)
	n := f.AddNode(smp.NodeInfo{NodeType: ib.NodeSwitch, NumPorts: 1, NodeGUID: 0xF000, PortGUID: 0xF000})
	n.Ports[0].Reached = true
	_, _, err := AssignLIDs(f, map[ib.PortGUID]ib.LID{0xF000: 200}, 7, 0)
	if CheckLIDs(f, 7) != nil || err == nil || !strings.Contains(err.Error(), "no 128 LIDs in a row are left (LMC 7) for one of 383 end ports") {
		t.Errorf("a range is broken up: %v, and before %v", err, CheckLIDs(f, 7))
	}

	// The LIDs of absent ports go last, but they go.
	f = many(0xBFFF, ib.NodeSwitch)
	previous := map[ib.PortGUID]ib.LID{0xAAAA_0000: 17, 0xAAAA_0001: 18}
	got, _ := assign(t, f, previous, 0)
	if last := bases(got)[0xBFFD:]; last[0] != 17 || last[1] != 18 {
		t.Errorf("the last two ports have LIDs %v, want those of the absent ports, 17 and 18", last)
	}
}

func TestBadLMC(t *testing.T) {
	if _, _, err := AssignLIDs(fabric(cas(0)...), nil, 8, 0); err == nil || !strings.Contains(err.Error(), "LMC 8, want 0 to 7") {
		t.Errorf("error %v", err)
	}
}

func TestUnreachedPortsAreLeftOut(t *testing.T) {
	f := fabric(cas(3, 4)...)
	f.Nodes[0].Ports[1].Reached = false
	got, _ := assign(t, f, nil, 0)
	if len(got) != 1 || got[0].Port.GUID != 2 {
		t.Errorf("assigned %v", got)
	}
}

func TestUnreadPortInfoIsNoClaim(t *testing.T) {
	f := fabric(cas(3, 3)...)
	f.Nodes[0].Ports[1].InfoRead = false
	got, moves := assign(t, f, nil, 0)
	if d := cmp.Diff([]ib.LID{1, 3}, bases(got)); d != "" || len(moves) != 0 {
		t.Errorf("LIDs (-want +got):\n%s moves %v", d, moves)
	}
}

// An assignment that is fed back comes out unchanged, wherever the devices
// stand in the order of discovery and whatever they hold meanwhile.
func TestStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lmc := ib.LMC(rapid.IntRange(0, 3).Draw(t, "lmc"))
		count := rapid.IntRange(1, 40).Draw(t, "devices")
		lids := rapid.SliceOfN(rapid.Uint16Range(0, 80), count, count)
		build := func(label string, order []int) *observed.Fabric {
			held := lids.Draw(t, label)
			devices := make([]device, 0, count)
			for _, i := range order {
				kind := []ib.NodeType{ib.NodeCA, ib.NodeSwitch}[i%2]
				devices = append(devices, device{kind, ib.PortGUID(i + 1), ib.LID(held[i])})
			}
			return fabric(devices...)
		}
		order := make([]int, count)
		for i := range order {
			order[i] = i
		}
		first, _, err := AssignLIDs(build("held", order), nil, lmc, 0)
		if err != nil {
			t.Fatal(err)
		}
		previous := map[ib.PortGUID]ib.LID{}
		for _, a := range first {
			previous[a.Port.GUID] = a.LID
		}
		slices.Reverse(order)
		second, moves, err := AssignLIDs(build("held later", order), previous, lmc, 0)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(bases(first), bases(second)); d != "" {
			t.Errorf("LIDs (-first +second):\n%s", d)
		}
		for _, m := range moves {
			if m.Reason != LIDReassigned {
				t.Errorf("moved: %s", m)
			}
		}
	})
}

func TestMoveString(t *testing.T) {
	f := fabric(cas(5, 5)...)
	f.Nodes[0].Description, f.Nodes[1].Description = "first", "second"
	_, moves := assign(t, f, nil, 0)
	if len(moves) != 1 || moves[0].String() != "second: LID 5 to 1: belongs to first" {
		t.Errorf("moves %v", moves)
	}
}

func TestEnter(t *testing.T) {
	f := fabric(device{ib.NodeCA, 1, 0}, device{ib.NodeSwitch, 2, 0})
	got, _ := assign(t, f, nil, 2)
	d := observed.NewDesired(f)
	EnterLIDs(got, d)
	for _, a := range got {
		want := d.Port(a.Port)
		if want.Elements != observed.ElementLID|observed.ElementLMC || want.Info.LID != a.LID || want.Info.LMC != a.LMC {
			t.Errorf("%s: desired %v LID %d LMC %d, assigned %+v", a.Port.GUID, want.Elements.Names(), want.Info.LID, want.Info.LMC, a)
		}
	}
	if other := d.Nodes[1].Ports[1]; other.Elements != 0 {
		t.Errorf("an external port is to be written: %v", other.Elements.Names())
	}
}

func BenchmarkAssign(b *testing.B) {
	f := fabric(cas(make([]ib.LID, 12000)...)...)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := AssignLIDs(f, nil, 0, 0); err != nil {
			b.Fatal(err)
		}
	}
}
