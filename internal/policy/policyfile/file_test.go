package policyfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/policy"
)

func TestReadTellsFormatsApart(t *testing.T) {
	const yaml, conf = "# x\n\nversion: 1\n", "# x\nversion : 0x1;\n"
	tests := []struct {
		name, src string
		yaml      bool
	}{
		{"a.yaml", yaml, true}, {"a.YML", yaml, true}, {"partitions.conf", conf, false},
		{"stdin", yaml, true}, {"stdin", conf, false},
		{"stdin", "---\nversion: 1\n", true}, {"stdin", "{version: 1}\n", true}, {"stdin", "\uFEFFversion: 1\r\n", true},
		{"stdin", "Default=0x7fff : ALL=full;\n", false}, {"stdin", "partitions: 0x1;\n", false},
	}
	for _, tt := range tests {
		if _, err := Read([]byte(tt.src), tt.name, Options{}); err != nil {
			t.Errorf("%s, %q: %v", tt.name, tt.src, err)
		}
		if got := isYAML([]byte(tt.src), tt.name); got != tt.yaml {
			t.Errorf("%s, %q is YAML: %v, want %v", tt.name, tt.src, got, tt.yaml)
		}
	}
	for _, src := range []string{"", "#\n", "\n"} {
		if _, err := Read([]byte(src), "stdin", Options{}); err == nil {
			t.Errorf("%q was read", src)
		}
	}
}

func TestConvert(t *testing.T) {
	const conf = "A=1 : 0x1=full, 0x1 ;\n"
	yaml, warnings, err := Convert([]byte(conf), "p.conf", Options{})
	if err != nil || len(warnings) != 1 || !strings.Contains(string(yaml), "- name: A\n    pkey: 0x0001\n") {
		t.Errorf("to YAML: %v, %v\n%s", err, warnings, yaml)
	}
	back, _, err := Convert(yaml, "p.yaml", Options{})
	if want := "# OpenSM partition configuration, written by ibwarden\nA=0x0001 :\n\t0x0000000000000001=limited ;\n"; err != nil || string(back) != want {
		t.Errorf("back: %v\n%s\nwant\n%s", err, back, want)
	}
	var refused *policy.Error
	if _, _, err := Convert([]byte("A=1 : x;"), "p.conf", Options{}); !errors.As(err, &refused) {
		t.Errorf("a fault: %v", err)
	}
	out, _, err := Convert([]byte("version: 1\npartitions: [{name: a, members: {full: [\"n*\"]}}]\ndescriptions: trusted\n"), "p.yaml", Options{})
	if !errors.As(err, &refused) || len(out) > 0 || !strings.Contains(err.Error(), `p.yaml:2:41: partition "a": pattern "n*"`) {
		t.Errorf("what partitions.conf cannot say: %v\n%s", err, out)
	}
}

// ports is a fabric of n end ports whose GUIDs are 1 to n.
func ports(n int) (list []policy.EndPort) {
	for i := 1; i <= n; i++ {
		list = append(list, policy.EndPort{
			PortGUID: ib.PortGUID(i), NodeGUID: ib.NodeGUID(0x100 + i/2), PortNum: ib.PortNum(1 + i%2),
			Description: fmt.Sprintf("node-%d", i/2), NodeType: ib.NodeType(1 + i%3), SM: i == 5,
			Switch: ib.NodeGUID(0x200 + i%2), SwitchName: fmt.Sprint("leaf ", i%2), SwitchPort: ib.PortNum(i),
		})
	}
	return list
}

// selectors draws a list without repetition from those that both formats know,
// or from all.
func selectors(t *rapid.T, groups []policy.Group, all bool) []policy.Selector {
	from := []policy.Selector{{Kind: policy.SelectAll}, {Kind: policy.SelectCAs}, {Kind: policy.SelectSwitches}, {Kind: policy.SelectRouters}, {Kind: policy.SelectSelf}}
	for guid := range uint64(15) {
		from = append(from, policy.Selector{Kind: policy.SelectPort, GUID: guid + 1})
	}
	for _, g := range groups {
		from = append(from, policy.Selector{Kind: policy.SelectGroup, Text: g.Name})
	}
	if all {
		for i := range uint64(7) {
			at := policy.Place{Name: fmt.Sprint("leaf ", i%2), Port: ib.PortNum(i + 1)}
			if i%3 == 0 {
				at.Switch, at.Name = ib.NodeGUID(0x200+i%2), ""
			}
			from = append(from, policy.Selector{Kind: policy.SelectPlace, At: at}, policy.Selector{Kind: policy.SelectPlace, GUID: i + 1, At: at})
			from = append(from, policy.Selector{Kind: policy.SelectNode, GUID: 0x100 + i},
				policy.Selector{Kind: policy.SelectDescription, Text: fmt.Sprint("node-", i)},
				policy.Selector{Kind: policy.SelectPattern, Text: fmt.Sprintf("node-[%d-5]*", min(i, 5))})
		}
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, 6, rapid.ID[policy.Selector]).Draw(t, "selectors")
}

// drawPolicy draws a policy of a few partitions.
func drawPolicy(t *rapid.T, all bool) *policy.Policy {
	defaults := []policy.Membership{policy.Limited, policy.Full}
	if all {
		defaults = append(defaults, policy.None)
	}
	p := &policy.Policy{Default: rapid.SampledFrom(defaults).Draw(t, "default"), AllowBoth: rapid.Bool().Draw(t, "allow both")}
	for _, name := range []string{"g1", "g2"} {
		p.Groups = append(p.Groups, policy.Group{Name: name, Selectors: selectors(t, nil, all)})
	}
	if all {
		p.TrustDescriptions = true
		p.MayBeAbsent = rapid.Bool().Draw(t, "may be absent")
		p.AbsentWarns = !p.MayBeAbsent && rapid.Bool().Draw(t, "absent warns")
		p.Groups[1].MayBeAbsent = rapid.Bool().Draw(t, "g2 may be absent")
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"red", "blue", "Storage 1", "Größe", "true", "NO", "1e3", "0x1f", "x-y", "~", "a'b\"c\\", policy.DefaultName}), 0, 5, rapid.ID[string]).Draw(t, "names") {
		part := policy.Partition{Name: name, SL: ib.SL(rapid.IntRange(0, 2).Draw(t, "sl"))}
		if name == policy.DefaultName {
			part.PKey = ib.PKeyBaseDefault
		} else if rapid.Bool().Draw(t, "stated") || unicode.IsDigit(rune(name[0])) {
			part.PKey = ib.PKeyBase(3*len(p.Partitions) + rapid.IntRange(1, 3).Draw(t, "P_Key"))
		}
		for _, s := range selectors(t, p.Groups, all) {
			part.Members = append(part.Members, policy.Member{Selector: s,
				Membership: policy.Membership(rapid.IntRange(1, 3).Draw(t, "membership")), Index0: rapid.Bool().Draw(t, "index0")})
		}
		for _, mgid := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"ff12:401b::ffff:ffff", "ff15:401b::ffff:ffff", "ff12:601b::16"}), 0, 3, rapid.ID[string]).Draw(t, "groups") {
			address, err := ib.ParseGID(mgid)
			if err != nil {
				t.Fatal(err)
			}
			part.Multicast = append(part.Multicast, policy.MulticastGroup{MGID: address, MTU: ib.MTU4096, Rate: 16,
				SL: ib.SL(rapid.IntRange(0, 1).Draw(t, "group sl")), QKey: ib.QKey(rapid.IntRange(1, 9).Draw(t, "qkey")), TClass: 1, FlowLabel: 2})
		}
		part.MayBeAbsent = all && rapid.Bool().Draw(t, "partition may be absent")
		p.Partitions = append(p.Partitions, part)
	}
	drawServices(t, p, all)
	if all {
		drawAbsentees(t, p)
	}
	return p
}

// drawAbsentees lets some of the names that the policy has be absent by themselves.
func drawAbsentees(t *rapid.T, p *policy.Policy) {
	for _, part := range p.Partitions {
		for _, m := range part.Members {
			if m.IsName() && rapid.Bool().Draw(t, "absentee") {
				if p.Absentees == nil {
					p.Absentees = map[policy.Selector]bool{}
				}
				p.Absentees[m.Selector] = true
			}
		}
	}
}

// drawServices adds services to some of the partitions and groups.
func drawServices(t *rapid.T, p *policy.Policy, all bool) {
	tenants := []string{"g1", "g2"}
	for _, part := range p.Partitions {
		if part.PKey != ib.PKeyBaseDefault {
			tenants = append(tenants, part.Name)
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "services") {
		s := policy.Service{
			Name: fmt.Sprint("service ", i), From: ib.PKeyBase(rapid.SampledFrom([]int{0, 0x30}).Draw(t, "from")),
			SL: ib.SL(rapid.IntRange(0, 1).Draw(t, "service sl")), OfferedBy: selectors(t, p.Groups, all),
			MayBeAbsent: all && rapid.Bool().Draw(t, "service may be absent"),
		}
		for j, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(tenants), 1, 4, rapid.ID[string]).Draw(t, "to") {
			tenant := policy.Tenant{Name: name}
			if rapid.Bool().Draw(t, "tenant's number stated") {
				tenant.PKey = ib.PKeyBase(0x100 + 0x10*i + j)
			}
			s.To = append(s.To, tenant)
		}
		if rapid.Bool().Draw(t, "service ipoib") {
			s.Multicast = []policy.MulticastGroup{{MGID: policy.Broadcast(policy.ScopeLink), MTU: ib.MTU4096, Rate: 16, SL: s.SL, QKey: 7}}
		}
		if err := p.AddService(s); err != nil {
			t.Fatal(err)
		}
	}
}

// resolve gives who belongs where, or what is wrong.
func resolve(t *rapid.T, p *policy.Policy) []observed.Partition {
	keys, err := policy.Allocate(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Resolve(ports(12), keys)
	if err != nil {
		t.Fatal(err)
	}
	return r.Partitions
}

// sameMeaning compares policies that were resolved: the order of a partition's
// groups means nothing.
var sameMeaning = cmp.Options{
	cmpopts.EquateEmpty(),
	cmpopts.SortSlices(func(a, b group.Group) bool { return bytes.Compare(a.MGID[:], b.MGID[:]) < 0 }),
}

// A policy written in either format and read again is the same on any fabric.
func TestConversionKeepsTheMeaning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t, false)
		yaml := WriteYAML(p)
		fromYAML, err := ReadYAML(yaml, "f")
		if err != nil {
			t.Fatalf("%v\n%s", err, yaml)
		}
		conf, err := WriteConf(fromYAML, "f")
		if err != nil {
			t.Fatal(err)
		}
		fromConf, err := ReadConf(conf, "f", Options{AllowBoth: p.AllowBoth})
		if err != nil {
			t.Fatalf("%v\n%s", err, conf)
		}
		want := resolve(t, p)
		if diff := cmp.Diff(want, resolve(t, fromYAML), sameMeaning); diff != "" {
			t.Fatalf("YAML (-before +after):\n%s\n%s", diff, yaml)
		}
		if diff := cmp.Diff(want, resolve(t, fromConf), sameMeaning); diff != "" {
			t.Fatalf("partitions.conf (-before +after):\n%s\n%s\n%s", diff, yaml, conf)
		}
	})
}

// The same with every kind of selector, through YAML alone; and not only the
// meaning, but the whole policy stays.
func TestYAMLKeepsThePolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t, true)
		out := WriteYAML(p)
		again, err := ReadYAML(out, "f")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if diff := cmp.Diff(p, again, cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(policy.Pos{}, []policy.Pos{}), cmpopts.IgnoreFields(policy.Policy{}, "Warnings", "Source")); diff != "" {
			t.Fatalf("(-before +after):\n%s\n%s", diff, out)
		}
	})
}

// The judge of Resolve: for every port and partition, go through the members
// and ask each whether it selects the port.
func TestResolveAgreesWithTheDefinition(t *testing.T) {
	selects := func(p *policy.Policy, s policy.Selector, port policy.EndPort) bool { return false }
	selects = func(p *policy.Policy, s policy.Selector, port policy.EndPort) bool {
		switch s.Kind {
		case policy.SelectAll:
			return true
		case policy.SelectCAs, policy.SelectSwitches, policy.SelectRouters:
			return int(port.NodeType) == 1+int(s.Kind-policy.SelectCAs)
		case policy.SelectSelf:
			return port.SM
		case policy.SelectPort:
			return uint64(port.PortGUID) == s.GUID
		case policy.SelectPlace:
			return (s.GUID == 0 || uint64(port.PortGUID) == s.GUID) && s.At.Port == port.SwitchPort &&
				(s.At.Switch == port.Switch || s.At.Switch == 0 && s.At.Name == port.SwitchName)
		case policy.SelectNode:
			return uint64(port.NodeGUID) == s.GUID
		case policy.SelectDescription:
			return port.Description == s.Text
		case policy.SelectPattern: // node-[a-5]*
			digit := port.Description[len("node-")]
			return digit >= s.Text[len("node-[")] && digit <= '5'
		}
		for _, g := range p.Groups {
			for _, inner := range g.Selectors {
				if g.Name == s.Text && selects(p, inner, port) {
					return true
				}
			}
		}
		return false
	}
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t, true)
		got := map[string]string{}
		for _, part := range resolve(t, p) {
			for _, guid := range part.Limited {
				got[fmt.Sprint(part.Name, guid)] += "l"
			}
			for _, guid := range part.Full {
				got[fmt.Sprint(part.Name, guid)] += "f"
			}
			for _, guid := range part.Index0 {
				got[fmt.Sprint(part.Name, guid)] += "0"
			}
		}
		want := map[string]string{}
		words := map[policy.Membership]string{policy.Limited: "l", policy.Full: "f", policy.Both: "f"}
		if p.AllowBoth {
			words[policy.Both] = "lf"
		}
		for _, port := range ports(12) {
			if p.Default == policy.None {
				break
			}
			want[fmt.Sprint(policy.DefaultName, port.PortGUID)] = words[p.Default]
			if port.SM {
				want[fmt.Sprint(policy.DefaultName, port.PortGUID)] = "f"
			}
		}
		for _, part := range p.Partitions {
			members := 0
			for _, port := range ports(12) {
				for _, m := range part.Members {
					if selects(p, m.Selector, port) {
						word := words[m.Membership]
						if m.Index0 {
							word += "0"
						}
						want[fmt.Sprint(part.Name, port.PortGUID)] = word
					}
				}
				if want[fmt.Sprint(part.Name, port.PortGUID)] != "" {
					members++
				}
			}
			for _, port := range ports(12) { // without a default partition the manager is in all
				if word := want[fmt.Sprint(part.Name, port.PortGUID)]; p.Default == policy.None && port.SM && members > 0 {
					want[fmt.Sprint(part.Name, port.PortGUID)] = "f" + strings.Trim(word, "lf")
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("members (-want +got):\n%s\n%s", diff, WriteYAML(p))
		}
	})
}
