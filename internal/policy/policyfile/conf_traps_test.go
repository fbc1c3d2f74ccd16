package policyfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The traps of OpenSM 3.3.23, each seen live unless it says otherwise. Where
// OpenSM drops the file it opens the fabric: every port becomes a full member
// of the default partition.
func TestOpenSMTraps(t *testing.T) {
	long := "Long=0x20 : " + strings.Repeat("0x100004=full, ", 400) + "0x100007=full;"
	tests := []struct {
		name string
		// opensm is what OpenSM does with src.
		opensm, src string
		// fault is how our refusal begins, when src is refused; otherwise src
		// means want.
		fault string
		want  []string
	}{
		{"headline 1: empty file", "drops it", "", "no definition in the file", nil},
		{"headline 1: nothing but comments", "drops it", "# A=1 : 1;\n\n", "no definition in the file", nil},
		{"headline 1: any fault", "drops all of the file", "A=1 : 1; B=2 : 0xZZZ=full;", `1:16: port GUID "0xZZZ"`, nil},
		{"headline 4: an automatic number is stated later", "puts both in 0x0001", "P1 : 1;\nFix=0x1 : 2;", `2:1: P_Key 0x0001, which "P1" at 1:1 gets automatically`, nil},
		{"headline 4: example 4 in full", "puts Hca4 and P1 in 0x0001",
			"P1 : 0x100004=full; P2 : 0x100004=full; P1 : 0x100007=full; Fix=0x1 : 0x10000a=full; P3 : 0x10000a;", `1:61: P_Key 0x0001, which "P1"`, nil},
		{"headline 4: stated before", "numbers P1 0x0002", "Fix=0x1 : 2; P1 : 1;", "", []string{"Fix=0x0001: 2=limited", "P1: 1=limited"}},

		{"fatal: bad GUID", "drops the file", "A=1 : 0x1g;", `1:7: port GUID "0x1g"`, nil},
		{"fatal: bad keyword", "drops the file", "A=1 : EVERYBODY;", `1:7: "EVERYBODY"`, nil},
		{"fatal: a name for a port", "drops the file", "A=1 : Hca2;", `1:7: "Hca2"`, nil},
		{"fatal: a range", "drops the file", "A=1 : 0x1-0x5;", `1:7: port GUID "0x1-0x5"`, nil},
		{"fatal: no colon on the line", "drops the file", "A=1\n : 1;", `1:1: "A=1" without ':'`, nil},
		{"fatal: no semicolon before the next", "drops the file", "A=1 : 1\nB=2 : 2;", "2:5: ':' among the members", nil},
		{"fatal: CRLF", "drops the file", "A=1 : 1,\r\n 2 ;\r\n", "", []string{"A=0x0001: 1=limited 2=limited"}},
		{"fatal: semicolon on a line of its own", "reads stale bytes, drops the file", "A=1 : 1\n;\n", "", []string{"A=0x0001: 1=limited"}},
		{"fatal: two semicolons", "reads stale bytes, drops the file", "A=1 : 1;;\n", "1:9: ';' without a definition", nil},
		{"fatal: defmember after a second colon", "drops the file, though its manual has it", "A=1 : defmember=limited : 1;", "1:25: ':' among the members", nil},
		{"no semicolon at the end of the file", "accepts it", "A=1 : 1\n", "", []string{"A=0x0001: 1=limited"}},
		{"a file cut short in a line", "accepts it; what follows may narrow it", "A=1,defmember=full : 1, 2", "1:5: the last definition", nil},
		{"a file cut short in a list", "accepts it", "A=1,defmember=full : 1,\n", "1:5: the last definition", nil},

		{"membership: = with nothing", "full, though its manual says limited", "A=1 : 1= ;", "1:9: no membership", nil},
		{"membership: Full", "limited", "A=1 : 1=Full;", `1:9: membership "Full"`, nil},
		{"membership: fulll", "limited", "A=1 : 1=fulll;", `1:9: membership "fulll"`, nil},
		{"membership: both without -W", "full", "A=1 : 1=both;", "", []string{"A=0x0001: 1=both"}},
		{"defmember misspelt", "keeps limited", "A=1,defmember=ful1 : 1;", `1:15: membership "ful1"`, nil},
		{"unknown flag", "ignores it", "A=1,ipiob : 1;", `1:5: flag "ipiob"`, nil},
		{"prefix of indx0", "ignores it", "A=1,ind : 1;", `1:5: flag "ind"`, nil},
		{"flag s", "scope, not sl", "A=1,s=2 : 1;", `1:5: flag "s", which can be scope or sl`, nil},
		{"keyword A", "ALL", "A=1 : A=full;", `1:7: keyword "A", which can be ALL`, nil},
		{"keyword ALL_", "ALL_CAS", "A=1 : ALL_=full;", `1:7: keyword "ALL_", which can be ALL_CAS`, nil},
		{"P_Key of 17 bits", "0x0045", "A=0x18045 : 1;", `1:3: P_Key "0x18045"`, nil},
		{"negative P_Key", "0x7ffb", "A=-5 : 1;", `1:3: P_Key "-5"`, nil},
		{"octal P_Key", "0x0008", "A=010 : 1;", "", []string{"A=0x0008: 1=limited"}},
		{"junk behind the P_Key", "drops the file", "A=0x10a! : 1;", `1:3: P_Key "0x10a!"`, nil},
		{"mtu in bytes", "makes no broadcast group", "A=1,ipoib,mtu=4096 : 1;", "1:15: mtu \"4096\"", nil},
		{"mtu that is no number", "makes no broadcast group", "A=1,ipoib,mtu=big : 1;", `1:15: mtu "big"`, nil},
		{"rate in Gb/s", "makes no broadcast group", "A=1,ipoib,rate=100 : 1;", `1:16: rate "100"`, nil},

		{"a line of more than 4094 bytes", "loses the GUID at the cut", long, "", []string{"Long=0x0020: 100004=full 100007=full"}},
		{"comment behind an mgid", "takes it for flags", "A=1 : mgid=ff12::77 # Q_Key=0x99,mtu=2,\n 1;", "", []string{"A=0x0001: 1=limited"}},
		{"definition behind an mgid", "takes it for flags, loses the partition", "A=1 : 1, mgid=ff12::77; Y=2 : 2=full;", "",
			[]string{"A=0x0001: 1=limited", "Y=0x0002: 2=full"}},
		{"member behind an mgid", "takes it for a flag, loses the member", "A=1 : mgid=ff12::77, 2=full;", `1:22: flag of an mgid "2"`, nil},
		{"unicast mgid", "skips the group", "A=1 : mgid=fe80::1\n1;", `1:12: mgid "fe80::1"`, nil},
		{"mgid with another scope", "makes the group in scope 2", "A=1 : mgid=ff15::77\n1;", "1:12: mgid ff15::77 of scope 5", nil},
		{"mgid of another partition", "skips the group", "A=1 : mgid=ff12:401b:2::77\n1;", "1:12: P_Key 0x0002 in the MGID", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := ReadConf([]byte(tt.src), "f", Options{})
			switch {
			case tt.fault != "" && err == nil:
				t.Fatalf("read as %q; OpenSM: %s; want a refusal", short(p), tt.opensm)
			case tt.fault != "":
				if got := strings.TrimLeft(strings.TrimPrefix(err.Error(), "f:"), " "); !strings.HasPrefix(got, tt.fault) || strings.Contains(got, "\n") {
					t.Errorf("refused with\n%v\nwant one fault, %q", err, tt.fault)
				}
			case err != nil:
				t.Fatalf("refused: %v", err)
			default:
				if diff := cmp.Diff(tt.want, short(p)); diff != "" {
					t.Errorf("policy (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// The comment behind an mgid must not reach the group.
func TestCommentBehindMGIDIsNoFlag(t *testing.T) {
	g := mustReadConf(t, "A=1 : mgid=ff12::77 # Q_Key=0x99,mtu=2,\n 1;").Partitions[0].Multicast[0]
	if g.QKey != 0 || g.MTU.Bytes() != 2048 {
		t.Errorf("Q_Key %v and MTU %v, want 0 and 2048", g.QKey, g.MTU)
	}
}
