package policyfile

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/policy"
)

const manual = `
Default=0x7fff,ipoib,mtu=5,rate=16 :
	mgid=ff12:401b::707,sl=1
	mgid=ff12::1,sl=1,Q_Key=0xDEADBEEF,rate=3,mtu=2
	ALL, SELF=full;
NewPartition , ipoib : 0x123456=full, 0x3456789034=limi,  0x2134af2306 ;
Also = 0x300,indx0,sl=2 : SELF=full ;
Also = 0x300,sl=2 : ALL_SWITCHES=limited ;
Empty=0x301 : ;
`

func TestWriteKeepsTheMeaning(t *testing.T) {
	p := mustReadConf(t, manual)
	out, err := WriteConf(p, "f")
	if err != nil {
		t.Fatal(err)
	}
	again := mustReadConf(t, string(out))
	// Automatic partitions come last.
	p.Partitions = append(append(p.Partitions[:1:1], p.Partitions[2:]...), p.Partitions[1])
	if diff := equalConfPolicies(p, again); diff != "" {
		t.Errorf("read, written and read (-before +after):\n%s\n%s", diff, out)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if strings.TrimSpace(line) == ";" || len(line) > 4000 {
			t.Errorf("a line that OpenSM misreads: %q", line)
		}
	}
}

func TestWriteDefaultMembership(t *testing.T) {
	out, err := WriteConf(&policy.Policy{Default: policy.Full}, "f")
	if err != nil {
		t.Fatal(err)
	}
	if got := short(mustReadConf(t, string(out))); got[0] != "Default=0x7fff: ALL=full SELF=full" {
		t.Errorf("default full was written as\n%s", out)
	}
	// A policy without partitions is not an empty file, which OpenSM drops.
	out, err = WriteConf(&policy.Policy{Default: policy.Limited}, "f")
	if err != nil {
		t.Fatal(err)
	}
	mustReadConf(t, string(out))
}

func TestWriteRefuses(t *testing.T) {
	member := func(s policy.Selector, line int) policy.Member {
		return policy.Member{Selector: s, Membership: policy.Full, Pos: policy.Pos{Line: line, Column: 1}}
	}
	p := &policy.Policy{
		Default: policy.Limited,
		Groups: []policy.Group{{Name: "red", Selectors: []policy.Selector{
			{Kind: policy.SelectPort, GUID: 1}, {Kind: policy.SelectPattern, Text: "red-*"}}}},
		Partitions: []policy.Partition{
			{Name: "A", PKey: 1, Members: []policy.Member{
				member(policy.Selector{Kind: policy.SelectNode, GUID: 7}, 3),
				member(policy.Selector{Kind: policy.SelectDescription, Text: "node 1"}, 4),
				member(policy.Selector{Kind: policy.SelectPort, GUID: 9}, 5),
				member(policy.Selector{Kind: policy.SelectGroup, Text: "red"}, 6)}},
			{Name: "9lives", Pos: policy.Pos{Line: 7, Column: 1}},
		},
	}
	_, err := WriteConf(p, "p.yaml")
	want := []string{
		`p.yaml:3:1: partition "A": node 0x0000000000000007 cannot be written`,
		`p.yaml:4:1: partition "A": description "node 1" cannot be written`,
		`p.yaml:6:1: partition "A": pattern "red-*" (in group "red") cannot be written`,
		`p.yaml:7:1: partition "9lives" without P_Key`,
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("faults:\n%v\nwant %d", err, len(want))
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("fault %d is %q, want %q", i, line, want[i])
		}
	}
}
