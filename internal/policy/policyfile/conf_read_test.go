package policyfile

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// short is a policy as the tests below write it: one line for each partition,
// its members behind it.
func short(p *policy.Policy) []string {
	var lines []string
	for _, part := range p.Partitions {
		line := part.Name
		if part.PKey != 0 {
			line += "=" + part.PKey.String()
		}
		line += ":"
		for _, m := range part.Members {
			who, ok := m.Keyword()
			if !ok {
				who = strconv.FormatUint(m.GUID, 16)
			}
			line += " " + who + "=" + m.Membership.String()
			if m.Index0 {
				line += ",indx0"
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func mustReadConf(t *testing.T, src string) *policy.Policy {
	t.Helper()
	p, err := ReadConf([]byte(src), "partitions.conf", Options{})
	if err != nil {
		t.Fatalf("Read(%q): %v", src, err)
	}
	return p
}

func TestRead(t *testing.T) {
	tests := []struct {
		name, src string
		want      []string
		warnings  int
	}{
		{"one", "Storage=0x10 : 0x100004=full, 0x100007=limited, 0x10000a ;\n",
			[]string{"Storage=0x0010: 100004=full 100007=limited 10000a=limited"}, 0},
		{"several on a line", "A=1:0x1;B=2:0x2=full;C=3:;", []string{"A=0x0001: 1=limited", "B=0x0002: 2=full", "C=0x0003:"}, 0},
		{"blanks everywhere", " \tA B = 0x10 , defmember = full : \n 0x1 = limited , 0x2 \n ;", []string{"A B=0x0010: 1=limited 2=full"}, 0},
		{"newlines part members", "A=1 : 0x1\n0x2=full\n\n , 0x3,,\n;", []string{"A=0x0001: 1=limited 2=full 3=limited"}, 0},
		{"comments", "# all\nA=1 : 0x1, # one\n # two\n 0x2;# three ; B=2:0x3;\n", []string{"A=0x0001: 1=limited 2=limited"}, 0},
		{"nameless", "0x30 : 0x1; =0x31:0x2;", []string{"0030=0x0030: 1=limited", "0031=0x0031: 2=limited"}, 0},
		{"decimal and octal", "A=16 : 17;B=010 : 1;", []string{"A=0x0010: 11=limited", "B=0x0008: 1=limited"}, 1},
		{"membership bit in P_Key", "A=0x8055 : 1;", []string{"A=0x0055: 1=limited"}, 1},
		{"automatic", "P1 : 1; P2=0 : 2; P3=0x8000 : 3; P1 : 4=full;", []string{"P1: 1=limited 4=full", "P2: 2=limited", "P3: 3=limited"}, 0},
		{"automatic by a stated name", "A=0x40 : 1; A : 2;", []string{"A=0x0040: 1=limited 2=limited"}, 0},
		{"one name, two numbers", "A : 1; A=0x40 : 2; A : 3;", []string{"A: 1=limited 3=limited", "A-0x0040=0x0040: 2=limited"}, 2},
		{"automatic without a name", ": 1; : 2;", []string{"0001: 1=limited", "0002: 2=limited"}, 2},
		{"definitions add", "A=1 : 1=full; A=1 : 2; B=1 : 3;", []string{"A=0x0001: 1=full 2=limited 3=limited"}, 1},
		{"default by name", "Default : ALL=full;", []string{"Default=0x7fff: ALL=full"}, 0},
		{"default by number", "Foo=0x7fff : SELF=limited;", []string{"Default=0x7fff: SELF=limited"}, 1},
		{"keywords", "A=1 : ALL, ALL_CAS=full, ALL_SWITCHES, ALL_ROUTERS, SELF=full, NONE;",
			[]string{"A=0x0001: ALL=limited ALL_CAS=full ALL_SWITCHES=limited ALL_ROUTERS=limited SELF=full"}, 0},
		{"prefixes", "A=1,d=f : S, ALL_S=l, N, ALL_C=b;", []string{"A=0x0001: SELF=full ALL_SWITCHES=limited ALL_CAS=both"}, 9},
		{"a misspelt membership", "A=1 : 1=ful;", []string{"A=0x0001: 1=full"}, 1},
		{"mgid of the broadcast group", "A=1,ipoib : \n mgid=ff12:401b::ffff:ffff\n1;", []string{"A=0x0001: 1=limited"}, 0},
		{"mgid of the broadcast group, otherwise", "A=1,ipoib,Q_Key=0x77 : \n mgid=ff12:401b:8001::ffff:ffff,sl=2,Q_Key=0x99\n1;", []string{"A=0x0001: 1=limited"}, 1},
		{"last one wins", "A=1 : 1=full, 2, 1=limited; A=1 : 2=full;", []string{"A=0x0001: 1=limited 2=full"}, 2},
		{"indx0 belongs to a definition", "A=1,indx0 : 1=full; A=1 : 2;", []string{"A=0x0001: 1=full,indx0 2=limited"}, 0},
		{"empty flags", "A=1,,ipoib, : 1;", []string{"A=0x0001: 1=limited"}, 0},
		{"no semicolon at the end", "A=1 : 1=full\n", []string{"A=0x0001: 1=full"}, 1},
		{"a byte-order mark", "\uFEFFA=1 : 1;", []string{"A=0x0001: 1=limited"}, 0},
		{"text that is not ASCII", "Größe=1 : 1;", []string{"Größe=0x0001: 1=limited"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := mustReadConf(t, tt.src)
			if diff := cmp.Diff(tt.want, short(p)); diff != "" {
				t.Errorf("policy (-want +got):\n%s", diff)
			}
			if len(p.Warnings) != tt.warnings {
				t.Errorf("warnings %v, want %d", p.Warnings, tt.warnings)
			}
			if p.Default != policy.Limited {
				t.Errorf("default membership %v, want limited", p.Default)
			}
		})
	}
}

func TestReadConfFaults(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"bad key", "A=0x1x : 1;", `1:3: P_Key "0x1x"`},
		{"key too large", "A=65536 : 1;", `1:3: P_Key "65536"`},
		{"negative key", "A=-5 : 1;", `1:3: P_Key "-5"`},
		{"two keys", "A=1=2 : 1;", `1:3: P_Key "1=2"`},
		{"name with a digit first", "1abc : 1;", `1:1: P_Key "1abc"`},
		{"long name", strings.Repeat("n", 64) + "=1 : 1;", "1:1: a name of 64 bytes"},
		{"no port", "A=1 : =full;", "1:6: a membership without a port"},
		{"GUID 0", "A=1 : 0;", `1:7: port GUID "0"`},
		{"GUID of 65 bits", "A=1 : 0x10000000000000000;", `1:7: port GUID "0x10000000000000000"`},
		{"range", "A=1 : 1-5;", `1:7: port GUID "1-5"`},
		{"lower-case keyword", "A=1 : all;", `1:7: "all"`},
		{"value of ipoib", "A=1,ipoib=no : 1;", `1:11: flag ipoib with the value "no"`},
		{"value of indx0", "A=1,indx0=1 : 1;", `1:11: flag indx0 with the value "1"`},
		{"no value", "A=1,mtu : 1;", `1:9: mtu ""`},
		{"empty flag with value", "A=1,=4 : 1;", "1:5: no flag"},
		{"sl", "A=1,sl=16 : 1;", `1:8: sl "16"`},
		{"FlowLabel", "A=1,F=0x100000 : 1;", `1:7: FlowLabel "0x100000"`},
		{"TClass", "A=1,T=256 : 1;", `1:7: TClass "256"`},
		{"Q_Key", "A=1,Q_Key=0x100000000 : 1;", `1:11: Q_Key "0x100000000"`},
		{"scope", "A=1,scope=0 : 1;", `1:11: scope "0"`},
		{"columns count characters", "Größe=1 : 2x;", `1:11: port GUID "2x"`},
		{"mgid twice", "A=1 : \n mgid=ff12::1\n mgid=ff12::1\n1;", "3:7: group ff12::1 again, as at 2:7"},
		{"mgid of the broadcast group twice", "A=1 : \n mgid=ff12:401b::ffff:ffff\n mgid=ff12:401b::ffff:ffff\n1;", "3:7: group ff12:401b::ffff:ffff again"},
		{"mgid of another partition", "A=0x10 : mgid=ff12:401b:11::16\n1;", "1:15: P_Key 0x0011 in the MGID"},
		{"rate of an IPoIB group", "A=0x10 : mgid=ff12:401b::16,rate=7\n1;", "1:15: IPoIB group ff12:401b::16 with MTU 2048 and rate 40"},
		{"unlike IPoIB groups", "A=0x10,mtu=5 : mgid=ff12:401b::16\n1;A=0x10:mgid=ff12:401b::17;", "2:15: IPoIB group ff12:401b::17 with MTU 2048"},
		{"flag of an mgid", "A=0x10 : mgid=ff12::16,ipoib\n1;", `1:24: flag of an mgid "ipoib"`},
		{"mgid without address", "A=0x10 : mgid\n1;", `1:14: mgid ""`},
		{"control character", "A=1 : 1;\x00", "1:9: control character 0x00"},
		{"lone CR", "A=1 : 1;\rB=2 : 2;", "1:9: control character 0x0d"},
		{"not UTF-8", "A\xff=1 : 1;", "1:2: byte 0xff"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := ReadConf([]byte(tt.src), "f", Options{})
			var refused *policy.Error
			if !errors.As(err, &refused) || p != nil {
				t.Fatalf("Read gave %v, %v; want a refusal", p, err)
			}
			if len(refused.Faults) != 1 || !strings.HasPrefix(refused.Faults[0].String(), tt.want) {
				t.Errorf("faults:\n%v\nwant one, %s", err, tt.want)
			}
		})
	}
}

func TestReadListsEveryFault(t *testing.T) {
	_, err := ReadConf([]byte("A=1x : 2x;\nB : 3=fulll\n  4=, x;\nC=1,foo : ;\nno colon\n;\nD=0x2,mtu=9 : 1;"), "my.conf", Options{})
	want := []string{
		`my.conf:1:3: P_Key "1x"; expected a number from 0x0 to 0xffff`,
		`my.conf:1:8: port GUID "2x"; expected a number from 0x1 to 0xffffffffffffffff`,
		`my.conf:2:7: membership "fulll"; expected limited, full or both`,
		`my.conf:3:5: no membership; expected limited, full or both`,
		`my.conf:3:7: "x"; expected a port GUID or ALL, ALL_CAS, ALL_SWITCHES, ALL_ROUTERS, SELF or NONE`,
		`my.conf:4:1: P_Key 0x0001, which "B" at 2:1 gets automatically; expected another P_Key here, or a stated one for "B": OpenSM would merge the two`,
		`my.conf:4:5: flag "foo"; expected mtu, rate, scope, Q_Key, TClass, sl, FlowLabel, ipoib, defmember or indx0`,
		`my.conf:5:1: "no colon" without ':'; expected name, P_Key, flags and ':' on one line`,
		`my.conf:7:11: mtu "9"; expected a code from 1 to 5 (4 is 2048 bytes, 5 is 4096)`,
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestReadStopsAtLimits(t *testing.T) {
	_, err := ReadConf([]byte(strings.Repeat("A=1:x;\n", 5000)), "f", Options{})
	var refused *policy.Error
	if !errors.As(err, &refused) || len(refused.Faults) != 1001 {
		t.Errorf("5000 faults: got %d, want 1000 and a closing word", len(refused.Faults))
	}
	if _, err := ReadConf(make([]byte, ConfSizeMax+1), "f", Options{}); err == nil {
		t.Error("a file past the size limit was read")
	}
	if _, err := ReadConf([]byte(strings.Repeat("\n", 2<<20)), "f", Options{}); err == nil {
		t.Error("a file past the line limit was read")
	}
}

// PK-04, in the numbers that the reader follows: after 32,766 automatic
// partitions none is left.
func TestAutomaticNumbersRunOut(t *testing.T) {
	src := strings.Repeat(":1;\n", int(ib.PKeyBaseMax)-1)
	if p := mustReadConf(t, src); len(p.Partitions) != 32766 {
		t.Errorf("%d partitions, want 32766", len(p.Partitions))
	}
	_, err := ReadConf([]byte(src+"one=0:1;"), "f", Options{})
	if err == nil || !strings.Contains(err.Error(), "no free number left") {
		t.Errorf("one more partition: %v", err)
	}
}

func TestReadAllowBoth(t *testing.T) {
	p, err := ReadConf([]byte("A=1:1=both;"), "f", Options{AllowBoth: true})
	if err != nil || !p.AllowBoth || len(p.Warnings) > 0 {
		t.Errorf("with AllowBoth: %v, %v", p, err)
	}
	p = mustReadConf(t, "A=1:1=both;")
	if p.AllowBoth || len(p.Warnings) != 1 || p.Partitions[0].Members[0].Membership != policy.Both {
		t.Errorf("without AllowBoth: %+v", p)
	}
}

func TestReadGroups(t *testing.T) {
	const src = `Default=0x7fff,ipoib,mtu=5,rate=16,sl=3,Q_Key=0x1234,TClass=7,FlowLabel=9,scope=5:
	mgid=ff12:401b::16	# IGMP ,mtu=2
	mgid=ff12:601b:ffff::2,sl=1
	mgid=ff12::77,mtu=2,rate=3,Q_Key=0xdeadbeef,scope=2
	ALL=full;
P : mgid=ff12:401b:1::16,scope=2,scope=0xe;
`
	p := mustReadConf(t, src)
	type group struct {
		MGID  string
		MTU   ib.MTU
		Rate  ib.Rate
		SL    ib.SL
		QKey  ib.QKey
		Other [2]int
	}
	list := func(part policy.Partition) (groups []group) {
		for _, g := range part.Multicast {
			groups = append(groups, group{g.MGID.String(), g.MTU, g.Rate, g.SL, g.QKey, [2]int{int(g.TClass), int(g.FlowLabel)}})
		}
		return groups
	}
	want := []group{
		{"ff12:401b::ffff:ffff", 5, 16, 3, 0x1234, [2]int{7, 9}},
		{"ff15:401b::16", 5, 16, 3, 0x1234, [2]int{0, 9}},
		{"ff15:601b::2", 5, 16, 1, 0x1234, [2]int{0, 9}},
		{"ff12::77", 2, 3, 3, 0xdeadbeef, [2]int{0, 9}},
		{"ff15::77", 2, 3, 3, 0xdeadbeef, [2]int{0, 9}},
	}
	if diff := cmp.Diff(want, list(p.Partitions[0])); diff != "" {
		t.Errorf("groups of the default partition (-want +got):\n%s", diff)
	}
	want = []group{{"ff12:401b::16", 4, 3, 0, 0x0b1b, [2]int{}}, {"ff1e:401b::16", 4, 3, 0, 0x0b1b, [2]int{}}}
	if diff := cmp.Diff(want, list(p.Partitions[1])); diff != "" {
		t.Errorf("groups of P (-want +got):\n%s", diff)
	}
	if p.Partitions[0].SL != 3 || p.Partitions[1].SL != 0 {
		t.Errorf("SLs %d and %d, want 3 and 0", p.Partitions[0].SL, p.Partitions[1].SL)
	}
	if g := p.Partitions[1].Multicast[0]; g.AddressIn(1).String() != "ff12:401b:8001::16" {
		t.Errorf("address in partition 1: %v", g.AddressIn(1))
	}
	if len(p.Warnings) != 1 {
		t.Errorf("warnings %v, want one, of the scope of the broadcast group", p.Warnings)
	}
}

// equalConfPolicies compares all but places and warnings.
func equalConfPolicies(a, b *policy.Policy) string {
	return cmp.Diff(a, b, cmpopts.IgnoreTypes(policy.Pos{}), cmpopts.IgnoreFields(policy.Policy{}, "Warnings"), cmpopts.EquateEmpty())
}

// TestBroadcastGroupTwice: of the group that ipoib makes, and that an mgid names once
// more, the flags of the definition count (OpenSM 3.3.23, asked by saquery MCMR, shows
// the Q_Key 0x77 of the former and not the 0x99 of the latter).
func TestBroadcastGroupTwice(t *testing.T) {
	p := mustReadConf(t, "A=0x10,ipoib,Q_Key=0x77,TClass=1 : mgid=ff12:401b:8010::ffff:ffff,scope=2,scope=5,sl=2,Q_Key=0x99\n1;")
	groups := p.Partitions[0].Multicast
	if len(groups) != 2 || groups[0].QKey != 0x77 || groups[0].SL != 0 || groups[0].Scope() != 2 || groups[1].QKey != 0x99 || groups[1].Scope() != 5 {
		t.Errorf("groups %+v", groups)
	}
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0].String(), "is made by ipoib already, and stays as it is") {
		t.Errorf("warnings %v", p.Warnings)
	}
}
