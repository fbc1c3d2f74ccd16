package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

func offered(from ib.PKeyBase, to ...string) *Policy {
	member := func(guid uint64) []Member {
		return []Member{{Selector: Selector{Kind: SelectPort, GUID: guid}, Membership: Full}}
	}
	p := &Policy{Default: None, Partitions: []Partition{
		{Name: "red", PKey: 0x10, Members: member(1)}, {Name: "blue", PKey: 0x20, Members: member(2)}, {Name: "green", PKey: 0x40, Members: member(3)},
	}}
	s := Service{Name: "storage", From: from, OfferedBy: []Selector{{Kind: SelectPort, GUID: 9}, {Kind: SelectPort, GUID: 3}}}
	for _, name := range to {
		s.To = append(s.To, Tenant{Name: name})
	}
	if err := p.AddService(s); err != nil {
		panic(err)
	}
	return p
}

// A service is a partition for each tenant: who offers it is full in each, a
// tenant limited in its own, and no tenant in another's. The manager, port 8,
// is in all.
func TestServiceIsAPartitionForEachTenant(t *testing.T) {
	p := offered(0x30, "red", "blue", "green")
	keys, err := Allocate(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ports []EndPort
	for _, g := range []ib.PortGUID{1, 2, 3, 8, 9} {
		ports = append(ports, EndPort{PortGUID: g, NodeGUID: ib.NodeGUID(g), PortNum: 1, NodeType: ib.NodeCA, SM: g == 8})
	}
	r, err := p.Resolve(ports, keys)
	if err != nil {
		t.Fatal(err)
	}
	want := []observed.Partition{
		{Base: 0x10, Name: "red", Full: []ib.PortGUID{1, 8}},
		{Base: 0x20, Name: "blue", Full: []ib.PortGUID{2, 8}, Order: 1},
		{Base: 0x30, Name: "storage/red", Full: []ib.PortGUID{3, 8, 9}, Limited: []ib.PortGUID{1}, Order: 3},
		{Base: 0x31, Name: "storage/blue", Full: []ib.PortGUID{3, 8, 9}, Limited: []ib.PortGUID{2}, Order: 4},
		{Base: 0x32, Name: "storage/green", Full: []ib.PortGUID{3, 8, 9}, Order: 5},
		{Base: 0x40, Name: "green", Full: []ib.PortGUID{3, 8}, Order: 2},
	}
	if diff := cmp.Diff(want, r.Partitions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The numbers of a service stay with its tenants, whoever comes, goes, or
// changes places in the list.
func TestServiceKeepsItsNumbers(t *testing.T) {
	first, err := Allocate(offered(0x30, "red", "blue"), nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Allocate(offered(0x30, "green", "blue"), first)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]ib.PKeyBase{"storage/blue": 0x31, "storage/green": 0x32}
	if diff := cmp.Diff(want, second); diff != "" {
		t.Errorf("red's number went to another, or blue's changed (-want +got):\n%s", diff)
	}
	if _, err := Allocate(offered(0x7ffe, "red", "blue"), nil); err == nil || !strings.Contains(err.Error(), "no P_Key is left from 0x7ffe up, all 2 are in use") {
		t.Errorf("a block that is too small: %v", err)
	}
}

func TestServiceToNobody(t *testing.T) {
	p := offered(0, "red")
	for _, name := range []string{"violet", "storage/red"} {
		before := len(p.Partitions)
		if err := p.AddService(Service{Name: "x", To: []Tenant{{Name: name}}}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("a service to %s: %v", name, err)
		}
		if len(p.Partitions) != before || len(p.Services) != 1 {
			t.Errorf("a refused service left something behind")
		}
	}
}

// A place is a switch port and no more than that: who stands elsewhere is not
// meant, nor is anybody where two switches have the name or two ports the place.
func TestPlaces(t *testing.T) {
	ports := []EndPort{
		{PortGUID: 1, NodeGUID: 1, PortNum: 1, Switch: 0x100, SwitchName: "leaf-1", SwitchPort: 3},
		{PortGUID: 2, NodeGUID: 2, PortNum: 1, Switch: 0x100, SwitchName: "leaf-1", SwitchPort: 4},
		{PortGUID: 3, NodeGUID: 3, PortNum: 1, Switch: 0x200, SwitchName: "twin", SwitchPort: 3},
		{PortGUID: 4, NodeGUID: 4, PortNum: 1, Switch: 0x300, SwitchName: "twin", SwitchPort: 5},
		{PortGUID: 5, NodeGUID: 5, PortNum: 1, Switch: 0x400, SwitchName: "leaf-4", SwitchPort: 1},
		{PortGUID: 6, NodeGUID: 6, PortNum: 1, Switch: 0x400, SwitchName: "leaf-4", SwitchPort: 1},
		{PortGUID: 7, NodeGUID: 0x100, PortNum: 0},
	}
	at := func(guid uint64, place Place) Selector { return Selector{Kind: SelectPlace, GUID: guid, At: place} }
	for _, tt := range []struct {
		s    Selector
		want []ib.PortGUID
	}{
		{at(0, Place{Name: "leaf-1", Port: 3}), []ib.PortGUID{1}},
		{at(0, Place{Switch: 0x100, Port: 4}), []ib.PortGUID{2}},
		{at(1, Place{Name: "leaf-1", Port: 3}), []ib.PortGUID{1}},
		{at(2, Place{Name: "leaf-1", Port: 3}), nil},
		{at(0x2, Place{Switch: 0x100, Port: 4}), []ib.PortGUID{2}},
		{at(0, Place{Name: "leaf-1", Port: 5}), nil},
		{at(0, Place{Name: "twin", Port: 3}), nil},
		{at(0, Place{Switch: 0x200, Port: 3}), []ib.PortGUID{3}},
		{at(0, Place{Name: "leaf-4", Port: 1}), nil},
		{at(5, Place{Name: "leaf-4", Port: 1}), nil},
		{at(0, Place{Name: "nowhere", Port: 1}), nil},
		{at(0, Place{}), nil},
	} {
		p := &Policy{Default: None, Partitions: []Partition{{Name: "a", PKey: 1, Members: []Member{{Selector: tt.s, Membership: Full}}}}}
		r, err := p.Resolve(ports, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, r.Partitions[0].Full); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.s, diff)
		}
		if (len(tt.want) == 0) != (len(r.Warnings) > 0) {
			t.Errorf("%v: warnings %v", tt.s, r.Warnings)
		}
		p.MayBeAbsent = true
		if r, _ = p.Resolve(ports, nil); len(r.Warnings) > 0 {
			t.Errorf("%v: warnings %v, and it may be absent", tt.s, r.Warnings)
		}
	}
}
