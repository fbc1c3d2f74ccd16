package policyfile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

const whole = `# a policy that uses everything
version: 1
default: full
allow_both: true
raw: allow
descriptions: trusted
groups:
  red: ["red-*", "Node 7 HCA-1", 0x10]
  storage: [{port: 0x0002c90300a1b2c3}, {node: 0x0002c90300a1b2c0}, {description: "st[0-9]"}, ALL_ROUTERS]
aliases:
  - {port: 0x0002c90300a1b2c3, guids: [0x0202c90300000001, 0, 0x0202c90300000002]}
  - port: 0x2
    guids: []
partitions:
  - name: red
    pkey: 0x0010
    sl: 3
    index0: true
    members:
      limited: [ALL, 0x2]
      full: [red, {group: storage}, SELF]
      both: ["both-?"]
    ipoib: {mtu: 4096, rate: 100, scope: [link, 5], qkey: 0x1234, tclass: 7, flow_label: 0xfffff}
    multicast:
      - {mgid: "ff12:401b::16"}
      - mgid: "ff15:401b:8010::17"
        sl: 1
      - {mgid: "ff12::77", mtu: 256, rate: 2.5, qkey: 0, sl: 15}
  - name: blue
    members:
      - {as: full, ports: [ALL]}
      - as: limited
        ports:
          - 0x2
        index0: true
  - {name: Default, ipoib: true}
  - {name: "no members"}
  - name: placed
    members: {full: [{at: "leaf 1:3"}, {port: 0x7, at: "0x0000000000200001:36"}]}
services:
  - name: disks
    pkey: 0x0030
    pkeys: {blue: 0x0077}
    offered_by: [storage, {at: "leaf 1:4"}]
    to: [red, blue]
    sl: 2
    ipoib: {mtu: 4096}
`

func mustRead(t *testing.T, src string) *policy.Policy {
	t.Helper()
	p, err := ReadYAML([]byte(src), "policy.yaml")
	if err != nil {
		t.Fatalf("Read: %v\n%s", err, src)
	}
	return p
}

func wantWhole() *policy.Policy {
	sel := func(kind policy.SelectorKind, guid uint64, text string) policy.Selector {
		return policy.Selector{Kind: kind, GUID: guid, Text: text}
	}
	member := func(s policy.Selector, m policy.Membership, index0 bool) policy.Member {
		return policy.Member{Selector: s, Membership: m, Index0: index0}
	}
	gid := func(s string) ib.GID {
		g, err := ib.ParseGID(s)
		if err != nil {
			panic(err)
		}
		return g
	}
	disks := policy.Service{
		Name: "disks", From: 0x30, SL: 2,
		OfferedBy: []policy.Selector{sel(policy.SelectGroup, 0, "storage"), {Kind: policy.SelectPlace, At: policy.Place{Name: "leaf 1", Port: 4}}},
		To:        []policy.Tenant{{Name: "red"}, {Name: "blue", PKey: 0x77}},
		Multicast: []policy.MulticastGroup{{MGID: gid("ff12:401b::ffff:ffff"), MTU: ib.MTU4096, Rate: 3, SL: 2, QKey: 0x0b1b}},
	}
	return &policy.Policy{
		Default: policy.Full, AllowBoth: true, AllowRaw: true, TrustDescriptions: true,
		Services: []policy.Service{disks},
		Groups: []policy.Group{
			{Name: "red", Selectors: []policy.Selector{sel(policy.SelectPattern, 0, "red-*"), sel(policy.SelectDescription, 0, "Node 7 HCA-1"), sel(policy.SelectPort, 0x10, "")}},
			{Name: "storage", Selectors: []policy.Selector{sel(policy.SelectPort, 0x0002c90300a1b2c3, ""), sel(policy.SelectNode, 0x0002c90300a1b2c0, ""),
				sel(policy.SelectPattern, 0, "st[0-9]"), sel(policy.SelectRouters, 0, "")}},
		},
		Aliases: []policy.PortAliases{
			{Port: 0x0002c90300a1b2c3, GUIDs: []ib.PortGUID{0x0202c90300000001, 0, 0x0202c90300000002}}, {Port: 2},
		},
		Partitions: []policy.Partition{
			{Name: "red", PKey: 0x10, SL: 3,
				Members: []policy.Member{
					member(sel(policy.SelectAll, 0, ""), policy.Limited, true),
					member(sel(policy.SelectGroup, 0, "red"), policy.Full, true),
					member(sel(policy.SelectGroup, 0, "storage"), policy.Full, true),
					member(sel(policy.SelectPattern, 0, "both-?"), policy.Both, true),
					member(sel(policy.SelectSelf, 0, ""), policy.Full, true),
					member(sel(policy.SelectPort, 2, ""), policy.Limited, true),
				},
				Multicast: []policy.MulticastGroup{
					{MGID: gid("ff12:401b::ffff:ffff"), MTU: ib.MTU4096, Rate: 16, SL: 3, QKey: 0x1234, TClass: 7, FlowLabel: 0xfffff},
					{MGID: gid("ff15:401b::ffff:ffff"), MTU: ib.MTU4096, Rate: 16, SL: 3, QKey: 0x1234, TClass: 7, FlowLabel: 0xfffff},
					{MGID: gid("ff12:401b::16"), MTU: ib.MTU4096, Rate: 16, SL: 3, QKey: 0x0b1b},
					{MGID: gid("ff15:401b::17"), MTU: ib.MTU4096, Rate: 16, SL: 1, QKey: 0x0b1b},
					{MGID: gid("ff12::77"), MTU: ib.MTU256, Rate: 2, SL: 15},
				}},
			{Name: "blue", Members: []policy.Member{
				member(sel(policy.SelectAll, 0, ""), policy.Full, false), member(sel(policy.SelectPort, 2, ""), policy.Limited, true)}},
			{Name: "Default", PKey: 0x7fff, Multicast: []policy.MulticastGroup{
				{MGID: gid("ff12:401b::ffff:ffff"), MTU: ib.MTU2048, Rate: 3, QKey: 0x0b1b}}},
			{Name: "no members"},
			{Name: "placed", Members: []policy.Member{
				member(policy.Selector{Kind: policy.SelectPlace, At: policy.Place{Name: "leaf 1", Port: 3}}, policy.Full, false),
				member(policy.Selector{Kind: policy.SelectPlace, GUID: 7, At: policy.Place{Switch: 0x200001, Port: 36}}, policy.Full, false)}},
			{Name: "disks/red", Service: "disks", Tenant: "red", From: 0x30, SL: 2, Multicast: disks.Multicast, Members: []policy.Member{
				member(sel(policy.SelectAll, 0, ""), policy.Limited, false),
				member(sel(policy.SelectGroup, 0, "red"), policy.Limited, false),
				member(sel(policy.SelectPattern, 0, "both-?"), policy.Limited, false),
				member(sel(policy.SelectSelf, 0, ""), policy.Limited, false),
				member(sel(policy.SelectPort, 2, ""), policy.Limited, false),
				member(disks.OfferedBy[0], policy.Full, false), member(disks.OfferedBy[1], policy.Full, false)}},
			{Name: "disks/blue", Service: "disks", Tenant: "blue", PKey: 0x77, From: 0x30, SL: 2, Multicast: disks.Multicast, Members: []policy.Member{
				member(sel(policy.SelectAll, 0, ""), policy.Limited, false),
				member(sel(policy.SelectPort, 2, ""), policy.Limited, false),
				member(disks.OfferedBy[0], policy.Full, false), member(disks.OfferedBy[1], policy.Full, false)}},
		},
	}
}

// equalPolicies compares all but places and warnings.
func equalPolicies(a, b *policy.Policy) string {
	return cmp.Diff(a, b, cmpopts.IgnoreTypes(policy.Pos{}, []policy.Pos{}), cmpopts.IgnoreFields(policy.Policy{}, "Warnings", "Source"), cmpopts.EquateEmpty())
}

func TestReadWhole(t *testing.T) {
	p := mustRead(t, whole)
	if diff := equalPolicies(wantWhole(), p); diff != "" {
		t.Errorf("policy (-want +got):\n%s", diff)
	}
	if len(p.Warnings) != 0 {
		t.Errorf("warnings: %v", p.Warnings)
	}
	if p.Source != "policy.yaml" || len(p.Groups[0].At) != 3 || p.Groups[0].At[2] != (policy.Pos{Line: 8, Column: 34}) {
		t.Errorf("%q, the third name of the first group is at %v, want policy.yaml and 8:34", p.Source, p.Groups[0].At)
	}
	if at := p.Partitions[0].Members[3].Pos; at != (policy.Pos{Line: 22, Column: 14}) {
		t.Errorf("the pattern is at %v, want 22:14", at)
	}
}

func TestReadCRLFAndFlow(t *testing.T) {
	p := mustRead(t, strings.ReplaceAll(whole, "\n", "\r\n"))
	if diff := equalPolicies(wantWhole(), p); diff != "" {
		t.Errorf("with CRLF (-want +got):\n%s", diff)
	}
	p = mustRead(t, `{version: 1, partitions: [{name: a, pkey: 32767, members: {full: [ALL]}}]}`)
	if p.Partitions[0].PKey != ib.PKeyBaseDefault {
		t.Errorf("flow style: %+v", p)
	}
}

func TestReadBothNeedsAllowBoth(t *testing.T) {
	p := mustRead(t, "version: 1\npartitions:\n - {name: a, members: {both: [0x1]}}\n")
	if len(p.Warnings) != 1 || p.Warnings[0].Pos != (policy.Pos{Line: 3, Column: 31}) {
		t.Errorf("warnings %v, want one at 3:31", p.Warnings)
	}
}

func TestReadYAMLFaults(t *testing.T) {
	partition := func(s string) string { return "version: 1\npartitions:\n  - name: a\n    " + s + "\n" }
	served := func(s string) string {
		return "version: 1\npartitions:\n  - {name: a, pkey: 0x0005}\nservices:\n  - " + s + "\n"
	}
	aliased := func(s string) string { return "version: 1\naliases:\n  - " + s + "\n" }
	tests := []struct {
		name, src string
		want      []string
	}{
		{"empty", "", []string{"nothing in the file"}},
		{"comment", "# x\n", []string{"nothing in the file"}},
		{"a list", "- a\n", []string{"1:1: a list for the policy", "1:1: a policy without version"}},
		{"a word", "hello\n", []string{`1:1: "hello" for the policy`, "1:1: a policy without version"}},
		{"descriptions believed", "version: 1\ndescriptions: yes\n", []string{`2:15: "yes" for descriptions; expected trusted`}},
		{"a pattern nobody trusts", "version: 1\ngroups: {a: [\"n*\"]}\n", []string{`2:14: pattern "n*" goes by what a node says of itself; expected a port GUID, a place ({at: "SWITCH:PORT"}), or descriptions: trusted`}},
		{"a description nobody trusts", "version: 1\ngroups: {a: [n1, {description: n2}]}\n", []string{`2:14: description "n1" goes by`, `2:32: description "n2" goes by`}},
		{"a group without ports", "version: 1\ngroups: {a: {may_be_absent: true}}\n", []string{"2:10: an incomplete group; expected ports"}},
		{"places", partition(`members: {full: [{at: leaf}, {at: "leaf:0"}, {at: "leaf:255"}, {at: ":3"}, {at: "0xz:3"}, {at: "leaf:x"}]}`), []string{
			`4:27: "leaf" for at; expected SWITCH:PORT`, `4:39: "leaf:0" for at`, `4:55: "leaf:255" for at`, `4:73: ":3" for at`, `4:85: "0xz:3" for at`, `4:100: "leaf:x" for at`}},
		{"a place and a node", partition(`members: {full: [{at: "leaf:3", node: 0x1}]}`), []string{"4:22: a selector with 2 keys"}},
		{"half a service", served("{name: s, to: [a]}"), []string{"5:12: an incomplete service; expected name, offered_by and to"}},
		{"a service to nobody", served("{name: s, offered_by: [SELF], to: []}"), []string{"5:39: a service to nobody"}},
		{"a service to strangers", served("{name: s, offered_by: [SELF], to: [a, b, a]}"), []string{`5:43: no partition or group "b"`, `5:46: tenant "a" again`}},
		{"a service of a service", served("{name: s, offered_by: [SELF], to: [a]}\n  - {name: t, offered_by: [SELF], to: [s/a]}"), []string{`6:40: "s/a" is the partition of a service`}},
		{"two services", served("{name: s, offered_by: [SELF], to: [a]}\n  - {name: s, offered_by: [SELF], to: [a]}"), []string{`6:12: service "s" again`}},
		{"a service's number twice", served("{name: s, offered_by: [SELF], to: [a], pkeys: {a: 0x0005}}"), []string{"5:40: pkey 0x0005 again"}},
		{"the default partition as a service", served("{name: s, offered_by: [SELF], to: [a], pkeys: {a: 0x7fff}}"), []string{`5:55: "0x7fff" for pkey`}},
		{"a number for a stranger", served("{name: s, offered_by: [SELF], to: [a], pkeys: {b: 0x0006}}"), []string{`5:52: tenant "b"; expected a tenant that the service is offered to`}},
		{"a service for the world", served("{name: s, offered_by: [SELF], to: [a], ipoib: {scope: site}}"), []string{"5:51: another scope for a service"}},
		{"no version", "default: full\n", []string{"1:1: a policy without version"}},
		{"version 2", "version: 2\n", []string{`1:10: "2" for version; expected 1`}},
		{"two documents", "version: 1\n---\nversion: 1\n", []string{"3:1: a second document"}},
		{"unknown key", "version: 1\npartition: []\n", []string{`2:1: key "partition" of the policy`}},
		{"repeated key", "version: 1\ndefault: full\ndefault: limited\n", []string{`3:1: key "default" of the policy again, as at 2:1`}},
		{"default both", "version: 1\ndefault: both\n", []string{`2:10: "both" for a membership`}},
		{"allow_both as a word", "version: 1\nallow_both: yes\n", []string{`2:13: "yes" for allow_both`}},
		{"raw packets in part", "version: 1\nraw: some\n", []string{`2:6: "some" for raw packets; expected allow or deny`}},
		{"anchor", "version: &v 1\n", []string{"1:10: an anchor or alias for version"}},
		{"tag", "version: !!int 1\n", []string{"1:10: a tag for version"}},
		{"merge key", "version: 1\n<<: {default: full}\n", []string{`2:1: "<<" as a key of the policy`}},
		{"syntax", "version: 1\ngroups: [a\n", []string{"2:9: sequence end token ']' not found"}},
		{"tab", "version: 1\n\tdefault: full\n", []string{"2:1: found character '\t' that cannot start any token"}},
		{"control character", "version: 1\x01\n", []string{"1:11: control character 0x01"}},

		{"GI-07: a universal alias GUID", aliased("{port: 1, guids: [0x0002c90300000001]}"), []string{"3:23: 0x0002c90300000001, which is not locally scoped for an alias GUID; expected a GUID with the local bit"}},
		{"GI-07: one too long for a GUID", aliased("{port: 1, guids: [0x10202c90300000001]}"), []string{`3:23: "0x10202c90300000001" for an alias GUID`}},
		{"GI-03: an alias of two ports", aliased("{port: 1, guids: [0x0200000000000001]}\n  - {port: 2, guids: [0, 0x0200000000000001]}"), []string{"4:26: alias GUID 0x0200000000000001 again, as at 3:23"}},
		{"GI-03: an alias twice", aliased("{port: 1, guids: [0x0200000000000001, 0x0200000000000001]}"), []string{"3:43: alias GUID 0x0200000000000001 again"}},
		{"GI-03: an alias that is a port", aliased("{port: 1, guids: [0x0200000000000001]}\n  - {port: 0x0200000000000001, guids: []}"), []string{"3:23: alias GUID 0x0200000000000001, which is the port at 4:12"}},
		{"aliases of a port twice", aliased("{port: 1, guids: []}\n  - {port: 1, guids: []}"), []string{"4:12: aliases of port 0x0000000000000001 again, as at 3:12"}},
		{"aliases without a port", aliased("{guids: []}"), []string{"3:5: an incomplete entry of aliases"}},
		{"aliases without GUIDs", aliased("{port: 1}"), []string{"3:5: an incomplete entry of aliases"}},
		{"aliases as a mapping", "version: 1\naliases: {port: 1}\n", []string{"2:10: a mapping for aliases"}},
		{"too many aliases", aliased("{port: 1, guids: [" + strings.Repeat("0,", 254) + "0]}"), []string{"3:531: more than 254 alias GUIDs of one port"}},

		{"PK-03: pkey 0x8000", partition("pkey: 0x8000"), []string{`4:11: "0x8000" for pkey; expected a number from 0x1 to 0x7fff`}},
		{"PK-03: pkey 0", partition("pkey: 0"), []string{`4:11: "0" for pkey`}},
		{"negative pkey", partition("pkey: -1"), []string{`4:11: "-1" for pkey`}},
		{"octal pkey", partition("pkey: 010"), []string{`4:11: "010" for pkey`}},
		{"pkey with a fraction", partition("pkey: 1.5"), []string{`4:11: "1.5" for pkey`}},
		{"pkey with underscores", partition("pkey: 1_0"), []string{`4:11: "1_0" for pkey`}},
		{"pkey that is nothing", partition("pkey:"), []string{"4:11: nothing for pkey"}},
		{"pkey twice", partition("pkey: 1\n  - {name: b, pkey: 1}"), []string{"5:12: pkey 0x0001 again, as at 3:11"}},
		{"name twice", partition("\n  - {name: a}"), []string{`5:12: partition "a" again, as at 3:11`}},
		{"no name", "version: 1\npartitions:\n  - pkey: 1\n", []string{"3:5: no name for a partition"}},
		{"name with a colon", "version: 1\npartitions:\n  - name: \"a:b\"\n", []string{`3:11: name "a:b" for a partition`}},
		{"long name", "version: 1\npartitions:\n  - name: " + strings.Repeat("n", 64) + "\n", []string{"3:11: a name of 64 bytes for a partition"}},
		{"Default elsewhere", "version: 1\npartitions:\n  - {name: Default, pkey: 1}\n", []string{`3:12: partition "Default" with pkey 0x0001`}},
		{"sl", partition("sl: 16"), []string{`4:9: "16" for sl; expected a number from 0 to 15`}},
		{"index0", partition("index0: 1"), []string{`4:13: "1" for index0; expected true or false`}},

		{"members as a word", partition("members: ALL"), []string{`4:14: "ALL" for members; expected a mapping`}},
		{"unknown membership", partition("members: {Full: []}"), []string{`4:15: key "Full" of members; did you mean 'full'?; expected both, full or limited`}},
		{"no group", partition("members: {full: [node-1]}"), []string{`4:22: no group "node-1"`}},
		{"decimal GUID", partition("members: {full: [12]}"), []string{`4:22: no group "12"`}},
		{"keyword in lower case", partition("members: {full: [all]}"), []string{`4:22: no group "all"`}},
		{"GUID 0", partition("members: {full: [0x0]}"), []string{`4:22: "0x0" for a GUID`}},
		{"GUID of 65 bits", partition("members: {full: [0x10000000000000000]}"), []string{`4:22: "0x10000000000000000" for a GUID`}},
		{"bad pattern", partition("members: {full: [\"a[\"]}"), []string{`4:22: pattern "a[": [ without a set and ]`}},
		{"two selectors in one", partition("members: {full: [{port: 1, node: 2}]}"), []string{"4:22: a selector with 2 keys"}},
		{"empty description", partition("members: {full: [{description: \"\"}]}"), []string{"4:36: no text"}},
		{"selector again", partition("members: {full: [0x1], limited: [0x01]}"), []string{"4:38: port 0x0000000000000001 again, as at 4:22"}},
		{"entry without as", partition("members: [{ports: [ALL]}]"), []string{"4:15: an incomplete entry of members"}},
		{"entry with a bad as", partition("members: [{as: fulll, ports: [ALL]}]"), []string{`4:20: "fulll" for a membership`}},
		{"entry that is a word", partition("members: [ALL]"), []string{`4:15: "ALL" for an entry of members`, "4:15: an incomplete entry of members"}},

		{"group that is no list", "version: 1\ngroups: {a: b}\n", []string{`2:13: "b" for group "a"; expected a list`}},
		{"group in a group", "version: 1\ngroups: {a: [{group: b}]}\n", []string{`2:15: key "group" of a selector; expected at, description, may_be_absent, node or port`}},
		{"group twice", "version: 1\ngroups: {a: [], a: []}\n", []string{`2:17: key "a" of groups again`}},
		{"group with a keyword's name", "version: 1\ngroups: {SELF: []}\n", []string{`2:10: group "SELF"`}},

		{"mtu", partition("ipoib: {mtu: 5}"), []string{`4:18: "5" for mtu; expected 256, 512, 1024, 2048 or 4096 bytes`}},
		{"rate", partition("ipoib: {rate: 99}"), []string{`4:19: "99" for rate`}},
		{"rate 2.55", partition("ipoib: {rate: 2.55}"), []string{`4:19: "2.55" for rate`}},
		{"scope", partition("ipoib: {scope: local}"), []string{`4:20: "local" for scope`}},
		{"scope twice", partition("ipoib: {scope: [link, 2]}"), []string{"4:12: group ff12:401b::ffff:ffff again"}},
		{"qkey", partition("ipoib: {qkey: 0x100000000}"), []string{`4:19: "0x100000000" for qkey`}},
		{"qkey 0 of IPoIB", partition("ipoib: {qkey: 0}"), []string{`4:19: "0" for qkey`}},
		{"no mgid", partition("multicast: [{mtu: 256}]"), []string{"4:17: a multicast group without an address"}},
		{"unicast mgid", partition("multicast: [{mgid: \"fe80::1\"}]"), []string{`4:24: "fe80::1" for mgid`}},
		{"another key in the mgid", partition("multicast: [{mgid: \"ff12:401b:8011::1\"}]\n    pkey: 0x10"), []string{"4:24: P_Key 0x8011 in the MGID; expected 0, or the partition's pkey (0x0010)"}},
		{"mgid unlike ipoib", partition("ipoib: {mtu: 4096}\n    multicast: [{mgid: \"ff12:401b::1\", mtu: 2048}]"), []string{"5:24: IPoIB group ff12:401b::1 with MTU 2048"}},
		{"mgid twice", partition("multicast: [{mgid: \"ff12::1\"}, {mgid: \"ff12::1\"}]"), []string{"4:43: group ff12::1 again, as at 4:24"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := ReadYAML([]byte(tt.src), "f")
			var refused *policy.Error
			if !errors.As(err, &refused) || p != nil {
				t.Fatalf("Read gave %v, %v; want a refusal", p, err)
			}
			ok := len(refused.Faults) == len(tt.want)
			for i := 0; ok && i < len(tt.want); i++ {
				ok = strings.HasPrefix(refused.Faults[i].String(), tt.want[i])
			}
			if !ok {
				t.Errorf("faults:\n%v\nwant:\n%s", err, strings.Join(tt.want, "\n"))
			}
		})
	}
}

// Nesting that would overflow a recursive parser's stack is found before it.
func TestReadDeepNesting(t *testing.T) {
	const n = 100_000
	for name, src := range map[string]string{
		"flow lists":    "a: " + strings.Repeat("[", n),
		"flow mappings": strings.Repeat("{a: ", n),
		"block lists":   strings.Repeat("- ", n) + "a",
		"keys":          strings.Repeat("? ", n) + "a",
		"tags":          strings.Repeat("!a ", n) + "a",
		"indentation":   "a:\n" + strings.Repeat(" ", 200) + "b: 1\n",
	} {
		p, err := ReadYAML([]byte(src), "f")
		if p != nil || err == nil || len(err.Error()) > 300 {
			t.Errorf("%s: got %v, %.300v", name, p, err)
		}
	}
}

func TestReadLimits(t *testing.T) {
	if _, err := ReadYAML(make([]byte, YAMLSizeMax+1), "f"); err == nil {
		t.Error("a file past the size limit was read")
	}
	var b strings.Builder
	b.WriteString("version: 1\npartitions:\n")
	for i := range policy.PartitionsMax + 1 {
		fmt.Fprintf(&b, "- {name: p%d}\n", i)
	}
	if _, err := ReadYAML([]byte(b.String()), "f"); err == nil || !strings.Contains(err.Error(), "more than 32767 partitions") {
		t.Errorf("too many partitions: %v", err)
	}
}

func TestWriteKeepsThePolicy(t *testing.T) {
	p := mustRead(t, whole)
	out := WriteYAML(p)
	if diff := equalPolicies(p, mustRead(t, string(out))); diff != "" {
		t.Errorf("read, written and read (-before +after):\n%s\n%s", diff, out)
	}
}

func TestWriteIsReadable(t *testing.T) {
	p := mustRead(t, "version: 1\ndescriptions: trusted\ngroups: {g: [\"a*\"]}\npartitions:\n - {name: a, pkey: 16, index0: true, members: {limited: [ALL], full: [g, 0x1]}}\n")
	want := `version: 1
default: limited
descriptions: trusted
groups:
  g: ["a*"]
partitions:
  - name: a
    pkey: 0x0010
    index0: true
    members:
      limited:
        - ALL
      full:
        - {group: g}
        - 0x0000000000000001
`
	if diff := cmp.Diff(want, string(WriteYAML(p))); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

func FuzzReadYAML(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("version: 1\npartitions: [{name: a, members: {full: [0x1, SELF]}}]\n"))
	f.Add([]byte("version: 1\ndefault: fulll\ngroups: {a: [x, y]}\n"))
	f.Add([]byte("a: &x [*x]\n? - b\n: |\n  c\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ReadYAML(data, "f")
		var refused *policy.Error
		if err != nil {
			if p != nil || !errors.As(err, &refused) || len(refused.Faults) == 0 {
				t.Fatalf("refusal %v with policy %v", err, p)
			}
			return
		}
		out := WriteYAML(p)
		again, err := ReadYAML(out, "f")
		if err != nil {
			t.Fatalf("%q was written as\n%s\nand refused: %v", data, out, err)
		}
		if diff := equalPolicies(p, again); diff != "" {
			t.Fatalf("%q was written as\n%s\nwhich is another policy:\n%s", data, out, diff)
		}
	})
}
