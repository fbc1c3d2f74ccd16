package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// fabric has five CAs, the first of which has two ports and the subnet
// manager, two switches and a router.
func fabric() []EndPort {
	return []EndPort{
		{PortGUID: 0x201, NodeGUID: 0x200, Description: "leaf-1", NodeType: ib.NodeSwitch},
		{PortGUID: 0x202, NodeGUID: 0x202, Description: "leaf-2", NodeType: ib.NodeSwitch},
		{PortGUID: 0x11, NodeGUID: 0x10, PortNum: 1, Description: "red-1", NodeType: ib.NodeCA, SM: true},
		{PortGUID: 0x12, NodeGUID: 0x10, PortNum: 2, Description: "red-1", NodeType: ib.NodeCA},
		{PortGUID: 0x21, NodeGUID: 0x20, PortNum: 1, Description: "red-2", NodeType: ib.NodeCA},
		{PortGUID: 0x31, NodeGUID: 0x30, PortNum: 1, Description: "blue-1", NodeType: ib.NodeCA},
		{PortGUID: 0x41, NodeGUID: 0x40, PortNum: 1, Description: "blue-2", NodeType: ib.NodeCA},
		{PortGUID: 0x301, NodeGUID: 0x300, PortNum: 1, Description: "router", NodeType: ib.NodeRouter},
	}
}

func sel(s string) Selector {
	if keyword, ok := KeywordSelector(s); ok {
		return keyword
	}
	kind, text, _ := strings.Cut(s, ":")
	switch kind {
	case "port", "node":
		var guid uint64
		if _, err := fmt.Sscanf(text, "%x", &guid); err != nil {
			panic(err)
		}
		return Selector{Kind: map[string]SelectorKind{"port": SelectPort, "node": SelectNode}[kind], GUID: guid}
	}
	return Selector{Kind: map[string]SelectorKind{"is": SelectDescription, "like": SelectPattern, "group": SelectGroup}[kind], Text: text}
}

// members makes a list from "full ALL", "limited port:11" and so on.
func members(specs ...string) (list []Member) {
	for _, spec := range specs {
		as, who, _ := strings.Cut(spec, " ")
		m := Member{Selector: sel(who), Membership: map[string]Membership{"limited": Limited, "full": Full, "both": Both}[strings.TrimSuffix(as, "0")]}
		m.Index0 = strings.HasSuffix(as, "0")
		list = append(list, m)
	}
	return list
}

// show prints a resolved partition on one line.
func show(r observed.Partition) string {
	list := func(ports []ib.PortGUID) string {
		var words []string
		for _, guid := range ports {
			words = append(words, fmt.Sprintf("%x", uint64(guid)))
		}
		return strings.Join(words, ",")
	}
	return fmt.Sprintf("%v %s full[%s] limited[%s] index0[%s]", r.Base, r.Name, list(r.Full), list(r.Limited), list(r.Index0))
}

func TestResolve(t *testing.T) {
	const everyone = "11,12,21,31,41,201,202,301"
	tests := []struct {
		name     string
		policy   Policy
		want     string
		warnings []string
	}{
		{"every kind of selector", Policy{Partitions: []Partition{{Name: "a", PKey: 1, Members: members("full like:red-*", "limited is:blue-1", "full node:200", "limited port:301")}}},
			"0x0001 a full[11,12,21,201] limited[31,301] index0[]", nil},
		{"types", Policy{Partitions: []Partition{{Name: "a", PKey: 1, Members: members("full ALL_CAS", "limited ALL_SWITCHES", "limited ALL_ROUTERS")}}},
			"0x0001 a full[11,12,21,31,41] limited[201,202,301] index0[]", nil},
		{"PK-19: full here, limited there", Policy{Partitions: []Partition{{Name: "a", PKey: 1, Members: members("full SELF")}, {Name: "b", PKey: 2, Members: members("limited SELF")}}},
			"0x0001 a full[11] limited[] index0[]\n0x0002 b full[] limited[11] index0[]", nil},
		{"a group", Policy{Groups: []Group{{Name: "g", Selectors: []Selector{sel("like:red-*"), sel("port:31"), sel("port:11")}}},
			Partitions: []Partition{{Name: "a", PKey: 1, Members: members("limited group:g")}}},
			"0x0001 a full[] limited[11,12,21,31] index0[]", nil},
		{"the last one decides", Policy{Partitions: []Partition{{Name: "a", PKey: 1, Members: members("full ALL", "limited port:21", "limited ALL_SWITCHES", "full port:202")}}},
			"0x0001 a full[11,12,31,41,202,301] limited[21,201] index0[]", nil},
		{"ALL last takes all back", Policy{Partitions: []Partition{{Name: "a", PKey: 1, Members: members("full port:21", "limited ALL")}}},
			"0x0001 a full[] limited[" + everyone + "] index0[]", nil},
		{"index0 goes with the membership", Policy{Partitions: []Partition{{Name: "a", PKey: 1, Members: members("full0 ALL_CAS", "limited port:21")}}},
			"0x0001 a full[11,12,31,41] limited[21] index0[11,12,31,41]", nil},
		{"both is full", Policy{Partitions: []Partition{{Name: "a", PKey: 1, Members: members("both port:21")}}},
			"0x0001 a full[21] limited[] index0[]", nil},
		{"PK-20: both is both", Policy{AllowBoth: true, Partitions: []Partition{{Name: "a", PKey: 1, Members: members("both port:21", "limited port:31")}}},
			"0x0001 a full[21] limited[21,31] index0[]", nil},
		{"sorted by number", Policy{Partitions: []Partition{{Name: "b", PKey: 2, Members: members("full port:21")}, {Name: "auto", Members: members("full port:31")}}},
			"0x0001 auto full[31] limited[] index0[]\n0x0002 b full[21] limited[] index0[]", nil},
		{"PK-34: default full", Policy{Default: Full}, "0x7fff Default full[" + everyone + "] limited[] index0[]", nil},
		{"PK-36: everyone is in the default partition", Policy{}, "0x7fff Default full[11] limited[12,21,31,41,201,202,301] index0[]", nil},
		{"PK-36: raised by the file", Policy{Partitions: []Partition{{Name: "D", PKey: 0x7fff, Members: members("full ALL_SWITCHES")}}},
			"0x7fff D full[11,201,202] limited[12,21,31,41,301] index0[]", nil},
		{"the manager lowered", Policy{Partitions: []Partition{{Name: "D", PKey: 0x7fff, Members: members("limited ALL")}}},
			"0x7fff D full[] limited[" + everyone + "] index0[]", []string{"the subnet manager's port 0x0000000000000011 is only a limited member"}},
		{"nobody", Policy{Partitions: []Partition{{Name: "a", PKey: 1}}},
			"0x0001 a full[] limited[] index0[]", []string{`partition "a" has no member in this fabric`}},
		{"unknown GUIDs and names", Policy{Groups: []Group{{Name: "g", Selectors: []Selector{sel("port:99"), sel("port:11")}}},
			Partitions: []Partition{{Name: "a", PKey: 1, Members: members("full port:98", "full like:green*", "full group:g")}}},
			"0x0001 a full[11] limited[] index0[]", []string{
				`partition "a": no end port for port 0x0000000000000098`,
				`partition "a": no end port for pattern "green*"`,
				`group "g": no end port for port 0x0000000000000099`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.policy.Default == 0 {
				tt.policy.Default = Limited
			}
			got, err := tt.policy.Resolve(fabric(), map[string]ib.PKeyBase{"auto": 1})
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, r := range got.Partitions {
				if r.Base != ib.PKeyBaseDefault || strings.Contains(tt.want, "0x7fff") {
					lines = append(lines, show(r))
				}
			}
			if diff := cmp.Diff(tt.want, strings.Join(lines, "\n")); diff != "" {
				t.Errorf("resolution (-want +got):\n%s", diff)
			}
			if last := got.Partitions[len(got.Partitions)-1]; last.Base != ib.PKeyBaseDefault {
				t.Errorf("the last partition is %v, want the default one", last.Base)
			}
			var warnings []string
			for _, w := range got.Warnings {
				warnings = append(warnings, w.String())
			}
			if !slices.EqualFunc(warnings, tt.warnings, strings.HasPrefix) {
				t.Errorf("warnings %q, want %q", warnings, tt.warnings)
			}
		})
	}
}

func TestResolveErrors(t *testing.T) {
	tests := []struct {
		name   string
		policy Policy
		want   string
	}{
		{"no number", Policy{Partitions: []Partition{{Name: "a"}}}, `partition "a" has no P_Key, and none was allocated`},
		{"one number twice", Policy{Partitions: []Partition{{Name: "a", PKey: 1}, {Name: "b", PKey: 1}}}, `partitions "a" and "b" have the same P_Key 0x0001`},
		{"no group", Policy{Partitions: []Partition{{Name: "a", PKey: 1, Members: members("full group:g")}}}, `no group "g"`},
		{"group in a group", Policy{Groups: []Group{{Name: "g", Selectors: []Selector{sel("group:g")}}},
			Partitions: []Partition{{Name: "a", PKey: 1, Members: members("full group:g")}}}, `group "g" holds group "g"`},
		{"no pattern", Policy{Partitions: []Partition{{Name: "a", PKey: 1, Members: members("full like:[")}}}, `pattern "["`},
		{"no selector", Policy{Partitions: []Partition{{Name: "a", PKey: 1, Members: []Member{{}}}}}, "invalid selector kind 0"},
	}
	for _, tt := range tests {
		if _, err := tt.policy.Resolve(fabric(), nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// A port GUID that two ports claim is reported; the resolution does not depend
// on the order in which they were found.
func TestResolveDuplicateGUID(t *testing.T) {
	p := Policy{Default: Limited, Partitions: []Partition{{Name: "a", PKey: 1, Members: members("full like:red-*")}}}
	ports := append(fabric(), EndPort{PortGUID: 0x31, NodeGUID: 0x50, PortNum: 1, Description: "red-9", NodeType: ib.NodeCA})
	first, err := p.Resolve(ports, nil)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(ports)
	second, err := p.Resolve(ports, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the order of ports matters:\n%s", diff)
	}
	if len(first.Warnings) != 1 || !strings.Contains(first.Warnings[0].Found, "0x0000000000000031") {
		t.Errorf("warnings: %v", first.Warnings)
	}
}

// BenchmarkResolve is a large fabric: 12,000 ports, 729 partitions, by
// pattern, group and GUID.
func BenchmarkResolve(b *testing.B) {
	const ports, parts = 12_000, 729
	var fabric []EndPort
	for i := range ports {
		guid := uint64(0x0002c903_00000000 + 16*i)
		fabric = append(fabric, EndPort{PortGUID: ib.PortGUID(guid + 1), NodeGUID: ib.NodeGUID(guid), PortNum: 1,
			Description: fmt.Sprintf("tenant-%03d node-%05d", i%parts, i), NodeType: ib.NodeCA, SM: i == 0})
	}
	p := Policy{Default: Limited}
	for i := range parts {
		part := Partition{Name: fmt.Sprint("t", i), PKey: ib.PKeyBase(i + 1)}
		part.Members = append(part.Members, Member{Selector: Selector{Kind: SelectPattern, Text: fmt.Sprintf("tenant-%03d *", i)}, Membership: Full})
		for j := range 16 {
			part.Members = append(part.Members, Member{Selector: Selector{Kind: SelectPort, GUID: uint64(fabric[(i*31+j*7)%ports].PortGUID)}, Membership: Limited})
		}
		p.Partitions = append(p.Partitions, part)
	}
	b.Run("fresh", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.Resolve(fabric, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("one member changed", func(b *testing.B) {
		r := NewResolver(fabric)
		for i := 0; b.Loop(); i++ {
			p.Partitions[1].Members[1].GUID = uint64(fabric[i%ports].PortGUID)
			if _, err := r.Resolve(&p, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
