package opensm

import (
	"errors"
	goflag "flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/internal/policy"
)

var update = goflag.Bool("update", false, "write testdata/answers.txt again")

// alone are options that are shown with others beside them, which change what becomes of them.
var alone = map[string]string{
	"m_key": "m_key_protection_level 1\nm_key_lease_period 60\n", "m_key_protection_level": "m_key 5\n", "m_key_lease_period": "m_key 5\n",
	"lmc_esp0": "lmc 2\n", "lfts_file": "routing_engine file\n", "qos_policy_file": "qos TRUE\n", "force_link_speed": "force_link_speed_ext 30\n",
	"perfmgr_sweep_time_s": "perfmgr TRUE\n",
}

// shortly are the values that are shown.
var shortly = []string{"0", "1", "2", "3", "5", "15", "16", "31", "32", "77", "255", "256", "65535", "65536", "-1", "0x10", "TRUE", "true", "both", "in", "out", "off", "updn,ftree", "/etc/x",
	"0:4,1:0", "0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7"}

// texts are files, each shown with the options before it.
var texts = []struct {
	kind       Kind
	conf, text string
}{
	{GUIDToLID, "", "0x10 0x0004 0x0007\n0x11 4 4\n0x10 9 9\n0x12 8\n0x13 9 8\n0x14 0 1\n0x15 0xbfff 0xc000\n0x16 1 0x81\n0x17 0x80 0xff\n0 1 1\nx 1 1\n0x18 3 3 # a comment\n0x19 1 2\n"},
	{GUIDToMKey, "", "0x10 0x5\n0x11\n0x12 5 6\nx 5\n0x13 y\n"},
	{Neighbors, "", "0x10:1 0x11:2\n"},
	{Roots, "root_guid_file r\nrouting_engine updn\n", "0x10\n0X11 # two\nleaf\n\n12\n0\n"},
	{HopWeights, "hop_weights_file h\n", "0x10 1 5\n0x11 1 5\nfive\n"},
	{PrefixRoutes, "", "* *\nfe80000000000001 0x10\n"},
	{PortOrder, "dimn_ports_file d\n", "0x10 1 2\n"},
	{NodeNameMap, "", "0x10 \"leaf\"\n"},
	{Partitions, "", "Default=0x7fff,ipoib : ALL=full ;\nred=0x10,sl=3,ipoib : 0x1=full, 0x2 ;\n"},
	{Partitions, "allow_both_pkeys TRUE\nno_partition_enforcement TRUE\n", "red=0x10 : 0x1=both ;\nblue : ALL=limited, SELF=full ;\n"},
	{Partitions, "qos TRUE\n", "red=0x10,sl=3,rate=3,mtu=4 : 0x1=full ;\n"},
	{Partitions, "", "red=0x10 : 0x1=half ;\n"},
	{QoSPolicy, "", "qos-ulps\ndefault:1\nend-qos-ulps\n"},
}

// rules are bodies of qos-ulps and of qos-match-rules, each shown by itself.
var rules = []string{
	"default : 16", "default : x", "default, pkey 1 : 2", "nothing", "ipoib : 3", "ipoib, pkey 0x10 : 3", "IPoIB, PKey 0x8010 : 3", "ipoib, pkey x : 3", "any : 3",
	"any, pkey 1-0x7fff : 3", "any, pkey 5-3 : 3", "any, pkey 0x10,0x11 : 3", "any, service-id 1-5, 7 : 3", "any, service-id 5-1 : 3", "sdp : 3", "sdp, port-num 1-65535 : 3", "sdp, port-num 65536 : 3",
	"sdp, pkey 1 : 3", "rds : 3", "rds, port-num 7 : 3", "iser : 3", "iser, port-num 7-9 : 3", "iser, port-num : 3", "srp : 3", "srp, target-port-guid 1 : 3", "nfs : 3", "any, service-id 0-0xffffffffffffffff : 3\nany, service-id 5 : 4",
}

var levels = []string{
	"name: quick\nsl: 3", "name: quick\nsl: 15", "name: quick\nsl: 16", "name: quick", "name: quick\nsl: 3\nrate-limit: 3", "name: quick\nsl: 3\nrate-limit: 1", "name: quick\nsl: 3\nrate-limit: 99",
	"name: quick\nsl: 3\nrate-limit: 2", "name: quick\nuse: x\nsl: 3\npath-bits: 4\nmtu-limit: 4", "name: other\nsl: 3", "name: default\nsl: 3",
}

var matches = []string{
	"pkey: 0x10\nqos-level-name: quick", "pkey: x\nqos-level-name: quick", "service-id: 1-3\nqos-level-name: quick", "service-id: 3-1\nqos-level-name: quick", "qos-level-name: quick", "qos-level-name:",
	"use: x", "source: a\nqos-level-name: quick", "destination: a\nqos-level-name: quick", "qos-class: 1\nqos-level-name: quick", "colour: red\nqos-level-name: quick", "",
	"pkey: 0x10\nservice-id: 5\nqos-level-name: quick", "pkey: 0x7fff\nqos-level-name: quick",
}

// said is all that a report says.
func said(r *Report) string {
	var b strings.Builder
	for i := range r.Lines {
		l := &r.Lines[i]
		fmt.Fprintf(&b, "  %s %s: %s: %s: %s\n", l.Place(), l.What, l.Verdict, l.Becomes, l.Why)
	}
	fmt.Fprintf(&b, "  taken %d, not needed %d, not possible %d, at default %d\n", r.Count(Taken), r.Count(NotNeeded), r.Count(NotPossible), r.AtDefault)
	for _, d := range r.Defaults {
		fmt.Fprintf(&b, "  default %s %s\n", d.Option, d.Value)
	}
	for _, text := range r.Announced {
		fmt.Fprintf(&b, "  announced: %s\n", text)
	}
	if r.MKey != 0 || r.BadKeys || r.Open || len(r.LIDs)+len(r.RootGUIDs) > 0 {
		fmt.Fprintf(&b, "  M_Key %#x, bad keys %v, open %v, LIDs %v, roots %#x\n", r.MKey, r.BadKeys, r.Open, r.LIDs, r.RootGUIDs)
	}
	return b.String()
}

// shown is what becomes of files, with the policy and the configuration.
func shown(t *testing.T, conf string, files map[Kind]Text, o Options) string {
	t.Helper()
	c, err := ReadConf(Text{"opensm.conf", []byte(conf)})
	if err == nil {
		var r *Report
		if r, err = Migrate(c, files, o); err == nil {
			checkReport(t, r, "")
			return said(r) + "  " + strings.ReplaceAll(strings.TrimSpace(string(r.ConfigText())), "\n", "\n  ") + "\n  " + strings.ReplaceAll(strings.TrimSpace(string(r.PolicyText())), "\n", "\n  ") + "\n"
		}
	}
	var refused *policy.Error
	if !errors.As(err, &refused) {
		t.Errorf("%v is no refusal", err)
	}
	return fmt.Sprintf("  refused: %v\n", err)
}

// TestAnswers: what becomes of each option that ibwarden decides on, with values that are good
// and bad for it, and of lines of each file. testdata/answers.txt has all of it: go test -update
// writes it, and the difference is to be read.
func TestAnswers(t *testing.T) {
	var b strings.Builder
	partitions := Text{"partitions.conf", []byte("A=0x10 : 0x1=full;\n")}
	for _, name := range slices.Sorted(maps.Keys(decided)) {
		values := map[string][]string{} // by what becomes of them
		var order []string
		for _, v := range shortly {
			if name == "partition_config_file" {
				continue
			}
			c, err := ReadConf(Text{"opensm.conf", []byte(alone[name] + name + " " + v + "\n")})
			if err != nil {
				t.Fatal(err)
			}
			r, err := Migrate(c, map[Kind]Text{Partitions: partitions}, Options{PolicyPath: "/x/policy.yaml", MKeyPath: "/x/m_key"})
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for i := range r.Lines {
				if l := &r.Lines[i]; l.File == "opensm.conf" {
					_, value, _ := strings.Cut(l.What, " ")
					text += strings.TrimRight(fmt.Sprintf("  %s: %s: %s", l.Verdict, l.Becomes, l.Why), ": ") + "\n"
					if value != "" && value != "0" {
						text = regexp.MustCompile(`(: |engine )`+regexp.QuoteMeta(value)+`([:s} ,\n])`).ReplaceAllString(text, "${1}VALUE$2")
					}
				}
			}
			if values[text] == nil {
				order = append(order, text)
			}
			values[text] = append(values[text], fmt.Sprintf("%q", v))
		}
		for _, text := range order {
			fmt.Fprintf(&b, "%s %s\n%s", name, strings.Join(values[text], " "), text)
		}
	}
	// What stands here for an OpenSM without files is not repeated for each.
	first := shown(t, "", map[Kind]Text{Partitions: partitions}, Options{PolicyPath: "/x/policy.yaml"})
	fmt.Fprintf(&b, "\npartitions.conf alone:\n%s", first)
	fresh := func(text string) string {
		out := ""
		for line := range strings.Lines(text) {
			if !strings.Contains(first, line) {
				out += line
			}
		}
		return out
	}
	for _, x := range texts {
		files := map[Kind]Text{Partitions: partitions}
		files[x.kind] = Text{string(x.kind), []byte(x.text)}
		fmt.Fprintf(&b, "\n%s%s:\n%s", x.conf, x.kind, fresh(shown(t, x.conf, files, Options{PolicyPath: "/x/policy.yaml", DataDir: "/data"})))
	}
	fmt.Fprintf(&b, "\nnothing:\n%s", fresh(shown(t, "", nil, Options{PolicyPath: "/x/policy.yaml"})))
	fmt.Fprintf(&b, "\nkeys and cables:\n%s", fresh(shown(t, "sm_key 5\nm_key 7\n", map[Kind]Text{Partitions: partitions, GUIDToMKey: {"k", []byte("0x10 5\n")}, Neighbors: {"n", []byte("0x10:1 0x11:2\n0x10 0x11:2\n0x10:1\n0x10:300 0x11:2\n")}},
		Options{PolicyPath: "/x/policy.yaml", MKeyPath: "/x/key", DataDir: "/d"})))
	for _, rule := range rules {
		fmt.Fprintf(&b, "\n%s\n%s", rule, ruled(t, "qos-ulps\n"+rule+"\ndefault : 1\nend-qos-ulps\n"))
	}
	for _, level := range levels {
		fmt.Fprintf(&b, "\nlevel %s\n%s", level, ruled(t, "qos-levels\nqos-level\n"+level+"\nend-qos-level\nqos-level\nname: DEFAULT\nsl: 1\nend-qos-level\nend-qos-levels\nqos-match-rules\nqos-match-rule\npkey: 0x10\nqos-level-name: quick\nend-qos-match-rule\nend-qos-match-rules\n"))
	}
	for _, match := range matches {
		fmt.Fprintf(&b, "\nmatch %s\n%s", match, ruled(t, "QoS-Levels\nqos-level\nname: DEFAULT\nsl: 0\nend-qos-level\nqos-level\nname: quick\nsl: 3\nrate-limit: 6\nend-qos-level\nEND-QOS-LEVELS\nqos-match-rules\nqos-match-rule\n"+match+"\nend-qos-match-rule\nend-qos-match-rules\nstray\n"))
	}
	path := filepath.Join("testdata", "answers.txt")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// ruled is what becomes of a QoS policy, beside two partitions, one with groups.
func ruled(t *testing.T, text string) string {
	t.Helper()
	r := qosOf(t, text, true)
	var b strings.Builder
	for i := range r.Lines {
		if l := &r.Lines[i]; l.File == "q.conf" {
			fmt.Fprintf(&b, "  %s %s: %s: %s: %s\n", l.Place(), l.What, l.Verdict, l.Becomes, l.Why)
		}
	}
	for _, line := range levelsOf(t, r) {
		b.WriteString("    " + line + "\n")
	}
	return b.String()
}
