package partition

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// resolution makes one of partitions by hand; the default one is added.
func resolution(parts ...observed.Partition) *policy.Resolution {
	r := &policy.Resolution{Partitions: parts}
	r.Partitions = append(r.Partitions, observed.Partition{Base: ib.PKeyBaseDefault, Name: policy.DefaultName})
	return r
}

func part(base ib.PKeyBase, full ...ib.PortGUID) observed.Partition {
	return observed.Partition{Base: base, Name: fmt.Sprintf("p%d", base), Full: full}
}

func compileOne(t *testing.T, port PortFacts, r *policy.Resolution) Table {
	t.Helper()
	out, err := Compile(Input{Ports: []PortFacts{port}, Resolution: r})
	if err != nil {
		t.Fatal(err)
	}
	return out.EndPorts[0].Table
}

// PK-02, PK-19: one port in several partitions, full in some and limited in others.
func TestPK02AndPK19SeveralPartitions(t *testing.T) {
	l := newLab()
	out := l.apply(t, "A=1 : Hca2=full; B=2 : Hca2=limited; C=3 : Hca2=full;", false)
	if got := l.tables(out)["Hca2"]; got != "7fff 8001 0002 8003" {
		t.Errorf("Hca2 holds %s", got)
	}
}

// PK-34 and PK-36: either form of the default key, and always one of them.
func TestPK34AndPK36DefaultKey(t *testing.T) {
	for conf, want := range map[string]string{
		"Default=0x7fff : ALL=full;":                     "ffff",
		"Default=0x7fff : ALL=limited;":                  "7fff",
		"A=1 : Hca2=full;":                               "7fff 8001",
		"A=1,indx0 : Hca2=full;":                         "8001 7fff",
		"Default=0x7fff,indx0 : Hca2=full; A=1 : Hca2 ;": "ffff 0001",
	} {
		l := newLab()
		if got := l.tables(l.apply(t, conf, false))["Hca2"]; got != want {
			t.Errorf("%s: Hca2 holds %s, want %s", conf, got, want)
		}
	}
}

func TestPlacement(t *testing.T) {
	const port ib.PortGUID = 1
	index0 := func(p observed.Partition) observed.Partition { p.Index0 = p.Full; return p }
	tests := []struct {
		name     string
		tableCap int
		current  Table
		r        *policy.Resolution
		want     string
	}{
		{"nothing read", 8, nil, resolution(part(1, port)), "7fff 8001"},
		{"empty table", 8, Table{0, 0, 0}, resolution(part(1, port)), "7fff 8001"},
		{"foreign keys go and leave gaps", 8, Table{0xffff, 0x8077, 0x8001, 0x0078}, resolution(part(1, port), part(2, port)), "7fff 0 8001 0 8002"},
		{"a foreign key at index 0", 8, Table{0x8077}, resolution(part(1, port)), "7fff 8001"},
		{"default key elsewhere moves to index 0", 8, Table{0x8001, 0x7fff}, resolution(part(1, port)), "7fff 8001"},
		{"other membership keeps the index", 8, Table{0xffff, 0x0001}, resolution(part(1, port)), "7fff 8001"},
		{"of two entries the exact one", 8, Table{0x7fff, 0x0001, 0x8001}, resolution(part(1, port)), "7fff 0 8001"},
		{"of two equal entries the first", 8, Table{0x7fff, 0x8001, 0x8001}, resolution(part(1, port)), "7fff 8001"},
		{"gaps when there is no room behind", 4, Table{0x7fff, 0, 0x8001, 0x8077}, resolution(part(1, port), part(2, port), part(3, port)), "7fff 8002 8001 8003"},
		{"room behind first", 5, Table{0x7fff, 0, 0x8001, 0x8077}, resolution(part(1, port), part(2, port), part(3, port)), "7fff 8003 8001 0 8002"},
		{"exactly full", 3, Table{0x7fff}, resolution(part(1, port), part(2, port)), "7fff 8001 8002"},
		{"one entry", 1, Table{0xffff}, resolution(), "7fff"},
		{"index 0 in a full table", 3, Table{0x7fff, 0x8001, 0x8002}, resolution(part(1, port), index0(part(2, port))), "8002 8001 7fff"},
		{"index 0 while another key goes", 3, Table{0x7fff, 0x8001, 0x8002}, resolution(index0(part(3, port)), part(2, port)), "8003 7fff 8002"},
		{"entries past the size are none", 2, Table{0x7fff, 0x8077, 0x8001}, resolution(part(1, port)), "7fff 8001"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := compileOne(t, PortFacts{PortGUID: port, NodeGUID: 1, PortNum: 1, Cap: tt.tableCap, Current: tt.current}, tt.r)
			if show(got) != tt.want {
				t.Errorf("%s became %s, want %s", show(tt.current), show(got), tt.want)
			}
			if len(got) > tt.tableCap {
				t.Errorf("%d entries in a table of %d", len(got), tt.tableCap)
			}
		})
	}
}

// The order of new keys is OpenSM's: by the number with its bytes swapped.
func TestOrderOfNewKeys(t *testing.T) {
	got := compileOne(t, PortFacts{PortGUID: 1, Cap: 64}, resolution(part(0x10, 1), part(0x100, 1), part(0x20, 1), part(0x1001, 1), part(0x7eff, 1)))
	if want := "7fff 8100 9001 8010 8020 feff"; show(got) != want {
		t.Errorf("got %s, want %s", show(got), want)
	}
}

// PK-20: both keys of a partition only when that is allowed; the switch port
// holds the full one alone, which lets both pass.
func TestPK20BothKeys(t *testing.T) {
	port := PortFacts{PortGUID: 1, Cap: 8, Facing: &SwitchPortFacts{SwitchGUID: 2, PortNum: 1, Cap: 8, InboundCap: true, OutboundCap: true}}
	both := part(5, 1)
	both.Limited, both.Index0 = both.Full, both.Full
	r := resolution(both)
	if got := compileOne(t, port, r); show(got) != "8005 7fff" {
		t.Errorf("not allowed: %s", show(got))
	}
	r.AllowBoth = true
	out, err := Compile(Input{Ports: []PortFacts{port}, Resolution: r})
	if err != nil {
		t.Fatal(err)
	}
	if got := show(out.EndPorts[0].Table); got != "8005 0005 7fff" {
		t.Errorf("allowed: %s", got)
	}
	if got := show(out.SwitchPorts[0].Table); got != "8005 ffff" {
		t.Errorf("the switch port holds %s", got)
	}
	// One of the two goes, the other keeps its index.
	port.Current = out.EndPorts[0].Table
	r.Partitions[0].Full, r.Partitions[0].Index0 = nil, nil
	if got := compileOne(t, port, r); show(got) != "7fff 0005" {
		t.Errorf("limited alone: %s", show(got))
	}
}

// NI-20, PT-06, PT-08: each table is planned within its own size, and every
// port that is too small is named.
func TestNI20PT06PT08Sizes(t *testing.T) {
	var ports []PortFacts
	for i, tableCap := range []int{1, 2, 32, 128} {
		ports = append(ports, PortFacts{PortGUID: ib.PortGUID(i + 1), NodeGUID: ib.NodeGUID(i + 1), PortNum: 1, Cap: tableCap})
	}
	_, err := Compile(Input{Ports: ports, Resolution: resolution(part(1, 1, 2, 3, 4), part(2, 2, 3, 4))})
	var refused *Error
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want a refusal", err)
	}
	got := map[ib.PortGUID][2]int{}
	for _, o := range refused.Overflows {
		got[o.PortGUID] = [2]int{o.Cap, o.Needed}
	}
	if diff := cmp.Diff(map[ib.PortGUID][2]int{1: {1, 2}, 2: {2, 3}}, got); diff != "" {
		t.Errorf("overflows (-want +got):\n%s", diff)
	}
	if out, err := Compile(Input{Ports: ports, Resolution: resolution(part(1, 2, 3, 4))}); err != nil || len(out.EndPorts) != 4 {
		t.Errorf("what fits: %v", err)
	}
}

// NI-22: a device that reports no table is flagged; nothing is planned for it,
// and only asking more of it than nothing is an error.
// A port that the caller has fenced gets the default partition only, its switch
// port too, and the others what they should; a conflict about index 0 is refused
// all the same.
func TestFence(t *testing.T) {
	ports := []PortFacts{
		{PortGUID: 1, NodeGUID: 1, PortNum: 1, Cap: 2, Facing: &SwitchPortFacts{SwitchGUID: 9, PortNum: 1, Cap: 8, InboundCap: true, OutboundCap: true}},
		{PortGUID: 2, NodeGUID: 2, PortNum: 1, Cap: 8},
	}
	r := resolution(part(1, 1, 2), part(2, 1, 2))
	fence := func(g ib.PortGUID) func(ib.PortGUID) bool { return func(x ib.PortGUID) bool { return x == g } }
	out, err := Compile(Input{Ports: ports, Resolution: r, Fence: fence(1)})
	if err != nil {
		t.Fatal(err)
	}
	if got := out.EndPorts[0].Table; !slices.Equal(got, Table{0x7FFF}) {
		t.Errorf("the fenced port gets %v", got)
	}
	if got := out.SwitchPorts[0].Table; !slices.Equal(got, Table{0xFFFF}) {
		t.Errorf("its switch port gets %v", got)
	}
	if got := valid(out.EndPorts[1].Table); got != 3 {
		t.Errorf("the other gets %d keys", got)
	}
	if len(out.Fenced) != 1 || out.Fenced[0].PortGUID != 1 || out.Fenced[0].Needed != 3 || out.Fenced[0].Cap != 2 {
		t.Errorf("fenced: %v", out.Fenced)
	}
	var refused *Error
	if _, err := Compile(Input{Ports: ports, Resolution: r, Fence: fence(2)}); !errors.As(err, &refused) || len(refused.Overflows) != 1 {
		t.Errorf("another one fenced: %v", err)
	}
	for i := range 2 {
		r.Partitions[i].Index0 = []ib.PortGUID{1}
	}
	if _, err := Compile(Input{Ports: ports, Resolution: r, Fence: fence(1)}); !errors.As(err, &refused) || len(refused.Index0) != 1 {
		t.Errorf("two keys for index 0: %v", err)
	}
}

func valid(t Table) (n int) {
	for _, k := range t {
		if k.IsValid() {
			n++
		}
	}
	return n
}

func TestNI22NoTable(t *testing.T) {
	ports := []PortFacts{{PortGUID: 1, NodeGUID: 1, PortNum: 1}, {PortGUID: 2, NodeGUID: 2, PortNum: 1, Cap: 2}}
	out, err := Compile(Input{Ports: ports, Resolution: resolution(part(1, 2))})
	if err != nil || len(out.EndPorts) != 1 || len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "reports a P_Key table of no entries") {
		t.Errorf("got %+v, %v", out, err)
	}
	if _, err := Compile(Input{Ports: ports, Resolution: resolution(part(1, 1))}); err == nil {
		t.Error("a key was planned for a port without a table")
	}
}

// NI-21, PT-07: PartitionCap counts for port 0, PartitionEnforcementCap for
// the external ports.
func TestNI21PT07SwitchSizes(t *testing.T) {
	l := newLab()
	for i := range l.ports {
		if f := l.ports[i].Facing; f != nil {
			f.Cap, f.InboundCap, f.OutboundCap = 32, true, true
		}
	}
	var conf strings.Builder
	for i := range 31 {
		fmt.Fprintf(&conf, "P%d=%d : Hca2=full;\n", i, i+1)
	}
	out := l.apply(t, conf.String(), false)
	if len(out.NotEnforced) != 0 {
		t.Errorf("32 keys fill 32 entries, yet %+v", out.NotEnforced)
	}
	_, err := Compile(Input{Ports: l.ports, Resolution: l.resolve(t, strings.ReplaceAll(conf.String(), "Hca2", "ALL_SWITCHES"), false)})
	var refused *Error
	if !errors.As(err, &refused) || len(refused.Overflows) != 2 || refused.Overflows[0].Cap != 8 {
		t.Errorf("32 keys for port 0 of 8 entries: %v", err)
	}
}

// SW-03: the switch port holds the keys of the end port behind it, so no
// allowed packet is dropped. SW-14: without a table, the two capability bits
// mean nothing. An exact fit enforces (headline 3: OpenSM's does not), and a
// table that is too small never enforces with part of the keys.
func TestSW03SW14Enforcement(t *testing.T) {
	tests := []struct {
		name              string
		tableCap          int
		inCap, outCap     bool
		hasTable, in, out bool
		reasons           []Reason
	}{
		{"all there is", 64, true, true, true, true, true, nil},
		{"exact fit", 3, true, true, true, true, true, nil},
		{"one too few", 2, true, true, false, false, false, []Reason{TableTooSmall}},
		{"no table", 0, true, true, false, false, false, []Reason{NoTable}},
		{"no inbound", 3, false, true, true, false, true, []Reason{NoInboundCap}},
		{"no outbound", 3, true, false, true, true, false, []Reason{NoOutboundCap}},
		{"a table and neither, as ibsim", 64, false, false, true, false, false, []Reason{NoInboundCap, NoOutboundCap}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			port := PortFacts{PortGUID: 1, NodeGUID: 1, PortNum: 1, Cap: 64,
				Facing: &SwitchPortFacts{SwitchGUID: 2, PortNum: 7, Cap: tt.tableCap, InboundCap: tt.inCap, OutboundCap: tt.outCap}}
			out, err := Compile(Input{Ports: []PortFacts{port}, Resolution: resolution(part(1, 1), part(2, 1))})
			if err != nil {
				t.Fatal(err)
			}
			want := SwitchPort{SwitchGUID: 2, PortNum: 7, Peer: 1, HasTable: tt.hasTable, Inbound: tt.in, Outbound: tt.out}
			if tt.hasTable {
				want.Table = out.EndPorts[0].Table
				if tt.in || tt.out {
					want.Table = full(want.Table)
				}
			}
			if diff := cmp.Diff(want, out.SwitchPorts[0]); diff != "" {
				t.Errorf("switch port (-want +got):\n%s", diff)
			}
			var missing []NotEnforced
			if tt.reasons != nil {
				missing = []NotEnforced{{SwitchGUID: 2, PortNum: 7, Peer: 1, Reasons: tt.reasons, Cap: tt.tableCap, Needed: 3}}
			}
			if diff := cmp.Diff(missing, out.NotEnforced); diff != "" {
				t.Errorf("not enforced (-want +got):\n%s", diff)
			}
		})
	}
}

// PT-10, PT-14: index i is entry i mod 32 of block i/32, and no block is past
// the size of the table, however large that is.
func TestPT10PT14Blocks(t *testing.T) {
	r := resolution()
	for base := ib.PKeyBase(1); base < ib.PKeyBaseDefault; base++ {
		r.Partitions = slices.Insert(r.Partitions, len(r.Partitions)-1, part(base, 1))
	}
	table := compileOne(t, PortFacts{PortGUID: 1, Cap: 32768}, r)
	if len(table) != 32767 || table.Blocks() != 1024 {
		t.Fatalf("%d entries in %d blocks", len(table), table.Blocks())
	}
	seen := map[ib.PKey]bool{}
	for n := range table.Blocks() {
		for i, k := range table.Block(n) {
			if at := 32*n + i; at < len(table) && table[at] != k || at >= len(table) && k != 0 {
				t.Fatalf("block %d entry %d is %v", n, i, k)
			}
			if k != 0 && seen[k] {
				t.Fatalf("%v twice", k)
			}
			seen[k] = true
		}
	}
	if table.Block(1024) != ([32]ib.PKey{}) || (Table{}).Blocks() != 0 {
		t.Error("a block past the table is not empty")
	}
	for _, tt := range []struct{ tableCap, keys, blocks int }{{5, 5, 1}, {32, 32, 1}, {33, 33, 2}, {40, 40, 2}, {40, 33, 2}, {64, 32, 1}} {
		r := resolution()
		for i := 1; i < tt.keys; i++ {
			r.Partitions = append(r.Partitions, part(ib.PKeyBase(i), 1))
		}
		if table := compileOne(t, PortFacts{PortGUID: 1, Cap: tt.tableCap}, r); table.Blocks() != tt.blocks || len(table) > tt.tableCap {
			t.Errorf("%d keys in %d entries: %d entries in %d blocks, want %d blocks", tt.keys, tt.tableCap, len(table), table.Blocks(), tt.blocks)
		}
	}
}

// No key reaches a port that another port of the same node should have.
func TestPortsOfOneNodeAreApart(t *testing.T) {
	const node ib.NodeGUID = 0x10
	ports := []PortFacts{
		{PortGUID: 0x12, NodeGUID: node, PortNum: 2, Cap: 8},
		{PortGUID: ib.PortGUID(node), NodeGUID: node, PortNum: 1, Cap: 8}, // NI-17: a port may have its node's GUID
		{PortGUID: 0x13, NodeGUID: node, PortNum: 3, Cap: 8},
	}
	out, err := Compile(Input{Ports: ports, Resolution: resolution(part(1, 0x10), part(2, 0x12), part(3, 0x10, 0x12))})
	if err != nil {
		t.Fatal(err)
	}
	want := map[ib.PortNum]string{1: "7fff 8001 8003", 2: "7fff 8002 8003", 3: "7fff"}
	if len(out.EndPorts) != len(want) {
		t.Errorf("%d ports get a table, want %d", len(out.EndPorts), len(want))
	}
	for _, end := range out.EndPorts {
		if got := show(end.Table); got != want[end.PortNum] {
			t.Errorf("port %d holds %s, want %s", end.PortNum, got, want[end.PortNum])
		}
	}
}

// A port GUID that several ports claim gets none of them a key.
func TestClaimedTwice(t *testing.T) {
	ports := []PortFacts{
		{PortGUID: 1, NodeGUID: 0x10, PortNum: 1, Cap: 8},
		{PortGUID: 1, NodeGUID: 0x20, PortNum: 1, Cap: 8},
		{PortGUID: 1, NodeGUID: 0x30, PortNum: 1, Cap: 8},
		{PortGUID: 2, NodeGUID: 0x40, PortNum: 1, Cap: 8},
	}
	out, err := Compile(Input{Ports: ports, Resolution: resolution(part(1, 1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range out.EndPorts {
		want := "7fff"
		if end.PortGUID == 2 {
			want = "7fff 8001"
		}
		if got := show(end.Table); got != want {
			t.Errorf("node %v holds %s, want %s", end.NodeGUID, got, want)
		}
	}
	if len(out.Warnings) != 2 {
		t.Errorf("warnings: %q", out.Warnings)
	}
}

// drawInput draws a fabric of a few ports with arbitrary tables and members.
func drawInput(t *rapid.T) Input {
	keys := rapid.SampledFrom([]ib.PKey{0, 0, 0x0001, 0x8001, 0x0002, 0x8002, 0x8003, 0x0103, 0x7fff, 0xffff, 0x8000, 0x8077})
	in := Input{Resolution: drawResolution(t, rapid.Bool().Draw(t, "allow both"))}
	needed := 5
	if in.Resolution.AllowBoth {
		needed = 10
	}
	for guid := ib.PortGUID(1); guid <= 4; guid++ {
		port := PortFacts{PortGUID: guid, NodeGUID: ib.NodeGUID(guid / 2), PortNum: ib.PortNum(guid % 2), Cap: needed + rapid.IntRange(0, 4).Draw(t, "cap")}
		port.Current = rapid.SliceOfN(keys, 0, port.Cap).Draw(t, "current")
		if rapid.Bool().Draw(t, "on a switch") {
			port.Facing = &SwitchPortFacts{SwitchGUID: 9, PortNum: ib.PortNum(guid), Cap: rapid.IntRange(0, 5).Draw(t, "switch cap"),
				InboundCap: rapid.Bool().Draw(t, "in"), OutboundCap: rapid.Bool().Draw(t, "out")}
		}
		in.Ports = append(in.Ports, port)
	}
	return in
}

func drawResolution(t *rapid.T, allowBoth bool) *policy.Resolution {
	guids := rapid.SliceOfNDistinct(rapid.SampledFrom([]ib.PortGUID{1, 2, 3, 4}), 0, 4, rapid.ID[ib.PortGUID])
	r := &policy.Resolution{AllowBoth: allowBoth}
	claimed := map[ib.PortGUID]bool{}
	for _, base := range []ib.PKeyBase{1, 2, 3, 0x103, ib.PKeyBaseDefault} {
		p := observed.Partition{Base: base, Name: base.String(), Full: guids.Draw(t, "full"), Limited: guids.Draw(t, "limited")}
		for _, guid := range p.Full {
			p.Limited = slices.DeleteFunc(p.Limited, func(g ib.PortGUID) bool { return g == guid && !allowBoth })
			if !claimed[guid] && rapid.IntRange(0, 3).Draw(t, "index0") == 0 {
				claimed[guid] = true
				p.Index0 = append(p.Index0, guid)
			}
		}
		slices.Sort(p.Full)
		slices.Sort(p.Limited)
		r.Partitions = append(r.Partitions, p)
	}
	return r
}

// What every table must be, whatever was in it before.
func TestTablesHoldWhatIsAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		out, err := Compile(in)
		if err != nil {
			t.Fatal(err)
		}
		for i, end := range out.EndPorts {
			want := map[ib.PKey]bool{}
			first := ib.PKeyInvalid
			for _, p := range in.Resolution.Partitions {
				full := slices.Contains(p.Full, end.PortGUID)
				if full {
					want[p.Base.Full()] = true
				}
				if slices.Contains(p.Limited, end.PortGUID) || p.Base == ib.PKeyBaseDefault && !full {
					want[p.Base.Limited()] = true
				}
				if slices.Contains(p.Index0, end.PortGUID) {
					first = p.Base.Full()
				}
			}
			got := map[ib.PKey]bool{}
			for _, k := range end.Table {
				if k != 0 && got[k] {
					t.Fatalf("%v twice in %s", k, show(end.Table))
				}
				if k != 0 {
					got[k] = true
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("keys of port %v (-want +got):\n%s", end.PortGUID, diff)
			}
			at0 := end.Table[0]
			if at0.Base() != ib.PKeyBaseDefault && first == 0 || first != 0 && at0 != first {
				t.Fatalf("index 0 of %s, claimed by %v", show(end.Table), first)
			}
			if len(end.Table) > in.Ports[i].Cap {
				t.Fatalf("%s in %d entries", show(end.Table), in.Ports[i].Cap)
			}
		}
		checkGuards(t, in, out)
	})
}

// checkGuards holds for all switch ports: enforcement means a whole table.
func checkGuards(t *rapid.T, in Input, out Output) {
	for _, guard := range out.SwitchPorts {
		port := in.Ports[guard.Peer-1]
		table := out.EndPorts[guard.Peer-1].Table
		if guard.Inbound || guard.Outbound {
			// A port that checks must let pass what its peer sends and gets.
			for _, k := range table {
				if k != 0 && !slices.ContainsFunc(guard.Table, func(e ib.PKey) bool { return k.Matches(e) }) {
					t.Fatalf("%v of %s does not pass %s", k, show(table), show(guard.Table))
				}
			}
			table = full(compact(table))
		}
		for _, k := range table {
			covered := slices.Contains(guard.Table, k) || slices.Contains(guard.Table, k.Base().Full()) && slices.Contains(table, k.Base().Full())
			if k != 0 && guard.HasTable && !covered {
				t.Fatalf("%v of %s is not in %s", k, show(table), show(guard.Table))
			}
		}
		for _, k := range guard.Table {
			if k == 0 || !slices.Contains(table, k) {
				t.Fatalf("%v of %s is not in %s", k, show(guard.Table), show(table))
			}
		}
		if len(guard.Table) > port.Facing.Cap || !guard.HasTable && (guard.Inbound || guard.Outbound) ||
			guard.Inbound && !port.Facing.InboundCap || guard.Outbound && !port.Facing.OutboundCap {
			t.Fatalf("%+v on %+v", guard, *port.Facing)
		}
		complete := guard.HasTable && guard.Inbound && guard.Outbound
		listed := slices.ContainsFunc(out.NotEnforced, func(n NotEnforced) bool { return n.Peer == guard.Peer })
		if complete == listed {
			t.Fatalf("%+v; listed as not enforced: %v", guard, listed)
		}
	}
}

// Keys keep their index from one policy to the next, except those that index 0
// concerns; an unchanged policy changes nothing; the order of ports does not
// matter.
func TestIndexesAreStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		before, err := Compile(in)
		if err != nil {
			t.Fatal(err)
		}
		for i := range in.Ports {
			in.Ports[i].Current = before.EndPorts[i].Table
		}
		again, err := Compile(in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, again); diff != "" {
			t.Fatalf("an unchanged policy:\n%s", diff)
		}
		in.Resolution = drawResolution(t, in.Resolution.AllowBoth)
		after, err := Compile(in)
		if err != nil {
			t.Fatal(err)
		}
		for i, end := range after.EndPorts {
			old := before.EndPorts[i].Table
			for at, k := range end.Table {
				was := slices.IndexFunc(old, func(o ib.PKey) bool {
					return k != 0 && (o == k || o.Base() == k.Base() && !in.Resolution.AllowBoth)
				})
				if was > 0 && at > 0 && was != at {
					t.Fatalf("%v moved: %s became %s", k, show(old), show(end.Table))
				}
			}
		}
		slices.Reverse(in.Ports)
		reversed, err := Compile(in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(after, reversed); diff != "" {
			t.Fatalf("ports in another order:\n%s", diff)
		}
	})
}

// BenchmarkCompile is a large fabric: 12,000 ports in four of 729 partitions each.
func BenchmarkCompile(b *testing.B) {
	const ports, parts = 12_000, 729
	in := Input{Resolution: &policy.Resolution{}}
	for i := range parts {
		in.Resolution.Partitions = append(in.Resolution.Partitions, observed.Partition{Base: ib.PKeyBase(i + 1)})
	}
	all := observed.Partition{Base: ib.PKeyBaseDefault}
	for i := range ports {
		guid := ib.PortGUID(i + 1)
		in.Ports = append(in.Ports, PortFacts{PortGUID: guid, NodeGUID: ib.NodeGUID(guid), PortNum: 1, Cap: 128, Current: Table{0xffff},
			Facing: &SwitchPortFacts{SwitchGUID: ib.NodeGUID(1 + i/18), PortNum: ib.PortNum(1 + i%18), Cap: 32, InboundCap: true, OutboundCap: true}})
		for j := range 4 {
			p := &in.Resolution.Partitions[(i+j*101)%parts]
			p.Full = append(p.Full, guid)
		}
		all.Limited = append(all.Limited, guid)
	}
	in.Resolution.Partitions = append(in.Resolution.Partitions, all)
	for b.Loop() {
		if _, err := Compile(in); err != nil {
			b.Fatal(err)
		}
	}
}
