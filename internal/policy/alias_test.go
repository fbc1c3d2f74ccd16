package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibwarden/ibwarden/ib"
)

const (
	aliasOne = ib.PortGUID(0x0200000000000001)
	aliasTwo = ib.PortGUID(0x0200000000000002)
)

func aliasMember(g ib.PortGUID, m Membership) Member {
	return Member{Selector: Selector{Kind: SelectPort, GUID: uint64(g)}, Membership: m}
}

// TestResolveAliases: GI-03.
func TestResolveAliases(t *testing.T) {
	ports := append(fabric(), EndPort{PortGUID: aliasTwo, NodeGUID: 0x50, PortNum: 1, NodeType: ib.NodeCA},
		EndPort{PortGUID: 0x61, NodeGUID: 0x60, PortNum: 1, NodeType: ib.NodeCA}, EndPort{PortGUID: 0x61, NodeGUID: 0x62, PortNum: 1, NodeType: ib.NodeCA})
	p := &Policy{
		Default: Limited,
		Groups:  []Group{{Name: "g", Selectors: []Selector{{Kind: SelectPort, GUID: uint64(aliasTwo)}}}},
		Aliases: []PortAliases{
			{Port: 0x31, GUIDs: []ib.PortGUID{0, aliasOne, aliasTwo}},
			{Port: 0x99, GUIDs: []ib.PortGUID{aliasOne + 8}},
			{Port: 0x61, GUIDs: []ib.PortGUID{aliasOne + 9}},
			{Port: 0x21},
		},
		Partitions: []Partition{
			{Name: "a", PKey: 1, Members: []Member{aliasMember(aliasOne, Full)}},
			{Name: "b", PKey: 2, Members: []Member{{Selector: Selector{Kind: SelectGroup, Text: "g"}, Membership: Full}}},
			{Name: "c", PKey: 3, Members: []Member{{Selector: Selector{Kind: SelectAll}, Membership: Full}, aliasMember(aliasTwo, Limited)}},
			{Name: "d", PKey: 4, Members: []Member{aliasMember(aliasOne+8, Full)}},
		},
	}
	r, err := p.Resolve(ports, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []PortAliases{{Port: 0x21}, {Port: 0x31, GUIDs: []ib.PortGUID{0, aliasOne, 0}}}
	if diff := cmp.Diff(want, r.Aliases, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("aliases (-want +got):\n%s", diff)
	}
	for i, want := range []string{
		"0x0001 a full[31] limited[] index0[]", "0x0002 b full[31] limited[] index0[]",
		"0x0003 c full[11,12,21,41,61,201,202,301,200000000000002] limited[31] index0[]", "0x0004 d full[] limited[] index0[]",
	} {
		if got := show(r.Partitions[i]); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	text := ""
	for _, w := range r.Warnings {
		text += w.String() + "\n"
	}
	for _, want := range []string{
		"alias GUID 0x0200000000000002 of port 0x0000000000000031 is the GUID of a port: it is not given",
		"aliases: no end port for port 0x0000000000000099", "two ports claim to be 0x0000000000000061; neither gets an alias",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no warning %q in\n%s", want, text)
		}
	}
}

// TestResolveRefusesAliases: policies made by hand.
func TestResolveRefusesAliases(t *testing.T) {
	for _, c := range []struct {
		name    string
		aliases []PortAliases
		want    string
	}{
		{"GI-07: universal", []PortAliases{{Port: 1, GUIDs: []ib.PortGUID{0x10}}}, "not locally scoped"},
		{"GI-03: of two ports", []PortAliases{{Port: 1, GUIDs: []ib.PortGUID{aliasOne}}, {Port: 2, GUIDs: []ib.PortGUID{aliasOne}}}, "of port 0x0000000000000001 and of port 0x0000000000000002"},
	} {
		p := &Policy{Default: Limited, Aliases: c.aliases}
		if _, err := p.Resolve(fabric(), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := p.ResolveGroups(fabric()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: groups: %v", c.name, err)
		}
	}
}
