package scenario_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/lab/scenario"
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
)

// small is what the scripts below begin with: the inline form of a topology.
const small = `fabric {
Switch 3 "S1"
[1] "A"[1]
[2] "B"[1]
Ca 1 "A"
[1] "S1"[1]

Ca 1 "B"
[1] "S1"[2]
}
manager A
`

// up is a fabric with two queue pairs.
const up = "bring-up\nqp Q on A service=UD qkey=5\nqp R on B service=UD qkey=5\n"

// asks is a question to subnet administration, with its answer.
const asks = "resign A\nfrom B\nwarden A tenants-moved.yaml\nsettle\nsa B get NodeRecord LID=lid(B)\n"

// wrong are expectations that do not hold, by kind: every kind of expect line
// can fail, and says what was expected and what was there.
var wrong = []struct{ name, script, expected, got string }{
	{"status", "get B NodeInfo\nexpect status 0x001C", "status 0x001c (invalid", "status ok"},
	{"status ok", "get B SwitchInfo\nexpect status ok", "status ok", "status 0x000c"},
	{"status of silence", "fault B mute\nget B NodeInfo\nexpect status ok", "status ok", "timeout"},
	{"timeout", "get B NodeInfo\nexpect timeout", "timeout", "status ok"},
	{"answer", "get B NodeInfo\nexpect answer NumPorts=2", "NumPorts=2", "NumPorts=1"},
	{"answer of silence", "fault B mute\nget B NodeInfo\nexpect answer NumPorts=1", "NumPorts=1", "timeout"},
	{"attribute", "expect B PortInfo PortState=Active", "PortState=Active", "PortState=Init"},
	{"attribute not equal", "expect B NodeInfo NumPorts!=1", "NumPorts!=1", "NumPorts=1"},
	{"attribute at least", "expect B NodeInfo NumPorts>=2", "NumPorts>=2", "NumPorts=1"},
	{"attribute at most", "expect B NodeInfo NumPorts<=0", "NumPorts<=0", "NumPorts=1"},
	{"attribute of text", "expect B NodeDescription NodeString=C", "NodeString=C", `NodeString="B"`},
	{"attribute of silence", "fault B mute\nexpect B NodeInfo NumPorts=1", "NumPorts=1", "timeout"},
	{"attribute refused", "expect B SwitchInfo LinearFDBCap=0", "LinearFDBCap=0", "status 0x000c"},
	{"counter", "expect counter B PKeyViolations 1", "PKeyViolations=1", "PKeyViolations=0"},
	{"trap", "expect trap 128", "trap 128", "no trap"},
	{"trap of another kind", "bring-up\nunlink S1:2\nadvance 1s\nexpect trap 256", "trap 256", "trap 128"},
	{"trap field", "bring-up\nunlink S1:2\nadvance 1s\nexpect trap 128 IssuerLID=lid(A)", "IssuerLID=lid(A)", "IssuerLID=1"},
	{"trap detail", "bring-up\nunlink S1:2\nadvance 1s\nexpect trap 128 LID=9", "LID=9", "LID=1"},
	{"trap level", "bring-up\nunlink S1:2\nadvance 1s\nexpect trap 128 sl=3", "sl=3", "sl=0"},
	{"no trap", "bring-up\nunlink S1:2\nadvance 1s\nexpect no trap", "no trap", "trap 128"},
	{"no trap of a kind", "bring-up\nunlink S1:2\nadvance 1s\nexpect no trap 128", "no trap 128", "trap 128"},
	{"drop", "get B NodeInfo\nexpect drop at B lost", "a drop at B: lost", "no drop"},
	{"drop elsewhere", "fault B mute\nget B NodeInfo\nexpect timeout\nexpect drop at S1 \"agent mute\"", "a drop at S1: agent mute", "a drop at B:1: agent mute"},
	{"no drop", "fault B mute\nget B NodeInfo\nexpect timeout\nexpect no drop", "no drop", "a drop at B:1: agent mute"},
	{"cable", "expect cable S1:1 B:1", "a cable to B:1", "a cable to A:1"},
	{"no cable", "expect no cable S1:1", "no cable at S1:1", "a cable to A:1"},
	{"refused", "qp Q on A service=UD\nexpect refused", "refused", "accepted"},
	{"received", up + "send Q -> R\nexpect received R 2", "2 received", "1 received"},
	{"received key", up + "send Q -> R\nexpect received R 1 pkey=0x8001", "pkey=0x8001", "pkey=0xffff"},
	{"received index", up + "send Q -> R\nexpect received R 1 pkey-index=1", "pkey-index=0x1", "pkey-index=0x0"},
	{"received bytes", up + "send Q -> R bytes=8\nexpect received R 1 bytes=9", "bytes=0x9", "bytes=0x8"},
	{"received nothing", up + "send Q -> R qkey=9\nexpect received R 1", "1 received", "0 received; a drop at B:1: Q_Key"},
	{"nothing", up + "send Q -> R\nexpect nothing R", "0 received", "1 received"},
	{"completion", up + "send Q -> R\nexpect completion Q flushed", "flushed", "success"},
	{"no completion", up + "expect completion Q success", "success", "no completion"},
	{"state", up + "expect qp Q state=ERR", "state=ERR", "state=RTS"},
	{"index of a pair", up + "expect qp Q pkey-index=1", "pkey-index=1", "pkey-index=0"},
	{"key of a pair", up + "expect qp Q qkey=6", "qkey=0x00000006", "qkey=0x00000005"},
	{"event", up + "pkeys B 0xFFFF 0x8001\nexpect event A pkey-change", "pkey-change at A", "no event"},
	{"another event", up + "pkeys B 0xFFFF 0x8001\nexpect event B gid-change", "gid-change at B", "pkey-change at port 1"},
	{"sent", up + "expect sent A", "packets from A", "none; no drop"},
	{"sent packets", up + "send Q -> R count=2\nexpect sent A packets=3", "3 packets", "2 packets"},
	{"sent key", up + "send Q -> R\nexpect sent A pkey=0x8001", "pkey=0x8001", "pkey=0xffff"},
	{"sent Q_Key", up + "send Q -> R\nexpect sent A qkey=6", "qkey=0x6", "qkey=0x5"},
	{"sent level", up + "send Q -> R sl=1\nexpect sent A sl=2", "sl=0x2", "sl=0x1"},
	{"sent VL", up + "send Q -> R\nexpect sent A vl=9", "vl=0x9", "vl=0x0"},
	{"sent raw", up + "send Q -> R\nexpect sent A raw", "a packet without a P_Key", "pkey=0xffff"},
	{"reply status", asks + "expect reply status 0x0300", "status 0x0300", "status ok"},
	{"reply none", asks + "expect reply none", "no answer", "status ok"},
	{"reply records", asks + "expect reply records 9", "9 records", "1 records"},
	{"reply record", asks + "expect reply record NodeInfo.NumPorts=2", "a record with NodeInfo.NumPorts=2", "1 records; NodeInfo.NumPorts=1"},
	{"reply of silence", "bring-up\nsa A get NodeRecord LID=1", "status ok", "timeout"},
	{"heard", "bring-up\nexpect heard A guid(B)", "0x100002 heard", "not heard"},
	{"key unknown", "bring-up\nown B PortInfo MKey=0x5EC0DE1234567 MKeyProtectBits=0\nget B PortInfo with-mkey=0x5EC0DE1234567\nexpect key B unknown to A", "unknown", "known"},
	{"key known", "bring-up\nown A PortInfo MKey=0x5EC0DE1234567\nexpect key A known to B", "known", "unknown"},
	{"keys safe", "bring-up\nresign A\nown B PortInfo MKey=0x5EC0DE1234567 MKeyProtectBits=0\nget B PortInfo with-mkey=0x5EC0DE1234567\nexpect keys safe", "no M_Key known", "A knows that of B:1"},
	{"sent raw with a key", "bring-up\nqp Q on A service=IPv6\nqp R on B service=IPv6\nsend Q -> R\nexpect sent A pkey=1", "pkey=0x1", "a packet without pkey"},
	{"data drop", up + "send Q -> R qkey=9\nexpect drop at B \"P_Key base\"", "a drop at B: P_Key base", "a drop at B:1: Q_Key"},
	{"verdict", "warden B tenants.yaml\nsettle\nexpect verdict B violated", "violated", "isolated"},
	{"no verdict yet", "warden B tenants.yaml\nexpect verdict B isolated", "isolated", "unknown"},
	{"requests", "get B NodeInfo\nexpect requests get NodeInfo 2", "2 times", "1 times"},
	{"some requests", "expect requests set PKeyTable some", "some", "0 times"},
	{"a qp that nobody asks about", "qp Q on A service=UD pkey-index=99", "accepted", "refused"},
	{"a modify that nobody asks about", up + "modify Q qkey=0x80010001\nforget", "accepted", "refused"},
	{"a connect that nobody asks about", up + "connect Q R\nforget", "accepted", "refused"},
	{"a get that nobody asks about", "get B SwitchInfo", "status ok", "status 0x000c"},
	{"a set that nobody asks about", "set B PortInfo PortState=5\nadvance 1ms", "status ok", "status 0x001c"},
	{"a table that nobody asks about", "pkeys S1:3 1 2 3\nfault B mute\npkeys B 0x8001\nforget", "status ok", "timeout"},
}

func TestExpectationsCanFail(t *testing.T) {
	for _, w := range wrong {
		t.Run(w.name, func(t *testing.T) {
			r := run(t, "wrong", small+w.script)
			if len(r.Failures) != 1 {
				t.Fatalf("%d failures, want one:\n%s", len(r.Failures), printed(r))
			}
			f := r.Failures[0]
			if !strings.HasPrefix(f.Expected, w.expected) || !strings.HasPrefix(f.Got, w.got) {
				t.Errorf("expected %q, got %q; want %q and %q", f.Expected, f.Got, w.expected, w.got)
			}
			out := printed(r)
			for _, part := range []string{fmt.Sprintf("wrong:%d: ", f.Line), "expected: ", "got: ", "seed:     1", " expectations hold; seed 1, "} {
				if !strings.Contains(out, part) {
					t.Errorf("the report has no %q:\n%s", part, out)
				}
			}
		})
	}
}

// TestRuleOfFailure checks that a failure is reported under its rule.
func TestRuleOfFailure(t *testing.T) {
	r := run(t, "wrong", small+"rule PK-01 \"first\"\nexpect B NodeInfo NumPorts=1\nrule PK-02 \"second\"\nexpect B NodeInfo NumPorts=7\n")
	out := printed(r)
	if !strings.Contains(out, "holds  line 12   PK-01  first\nFAILS  line 14   PK-02  second\n") || !strings.Contains(out, "rules:    PK-02\n") {
		t.Errorf("%s", out)
	}
}

// bad are scripts that are refused, with the place that the error names and a
// part of what it says. The script stands behind small, which has 11 lines.
var bad = []struct {
	script       string
	line, column int
	says         string
}{
	{"frobnicate", 12, 1, `"frobnicate" is no statement; want one of rule, advance`},
	{"advnace 1s", 12, 1, `"advnace" is no statement; did you mean 'advance'?; want one of rule, advance`},
	{"expect noting Q", 12, 8, `"noting" is nothing that can be expected; did you mean 'nothing'?; want one of status, timeout`},
	{"expect S1:9 PortInfo LID=1", 12, 8, `port "9" of S1: want 0 to 3`},
	{"advance", 12, 8, "the line ends: want a time"},
	{"advance 10", 12, 9, "want a time with its unit"},
	{"advance -1ms", 12, 9, "want a time with its unit"},
	{"advance 9999999h", 12, 9, "want a time with its unit"},
	{"advance 1ms 2ms", 12, 13, "want the end of the line"},
	{"link S1:3", 12, 10, "want NODE:PORT"},
	{"link S1:3 A:2", 12, 11, `port "2" of A: want 1 to 1`},
	{"link S1 A:1", 12, 6, "want NODE:PORT, a port that can have a cable"},
	{"link S1:0 A:1", 12, 6, "a port that can have a cable"},
	{"unlink Z:1", 12, 8, `the fabric has no node "Z"; want one of S1, A, B`},
	{"power maybe A", 12, 7, "want on or off"},
	{"fault A", 12, 8, "want mute, late=TIME"},
	{"fault A loss=2", 12, 9, "want a share from 0 to 1"},
	{"fault A loss=0.5,Nonsense", 12, 9, "want an attribute"},
	{"fault A sings=1", 12, 9, "want mute"},
	{"qp Q on A service=UD\nattach Q 5", 13, 10, "want a multicast LID"},
	{"qp Q on A service=UD\nmulticast Q -> 5", 13, 16, "want a multicast LID"},
	{"attach Nobody 0xC001", 12, 8, "want a queue pair that a qp line above makes"},
	{"noise A", 12, 7, "want NODE:PORT, a port that can have a cable"},
	{"noise A:1 flips=2", 12, 11, "want a share from 0 to 1"},
	{"noise A:1 flips=0", 12, 18, "want a share or time above 0"},
	{"noise A:1 sings=1", 12, 11, "want none, flips=SHARE"},
	{"reckless maybe A:1", 12, 10, "want on or off"},
	{"reckless on S1:0", 12, 13, "a port that can have a cable"},
	{"spoil on A", 12, 10, "A: want a switch or router"},
	{"get A", 12, 6, "want an attribute"},
	{"get A PortInf", 12, 7, "want an attribute: Notice, NodeDescription"},
	{"get A PortInfo[1", 12, 7, "want a closing bracket"},
	{"get A PortInfo[x]", 12, 7, "want a number of 16 bits"},
	{"get A PortInfo[1,2]", 12, 7, "want one number in brackets"},
	{"get A PortInfo LID=1", 12, 16, "want with-mkey=KEY, to-lid=LID, route=PORT,... or hop-count=N"},
	{"get A PortInfo with-mkey=zzz", 12, 16, "want a number of 64 bits"},
	{"get A PortInfo route=1,x", 12, 16, "want a number of 8 bits"},
	{"get A PortInfo route=1" + strings.Repeat(",1", 63), 12, 16, "64 hops, want 63 at most"},
	{"get A PortInfo hop-count=64", 12, 16, "want 0 to 63"},
	{"get A PortInfo to-lid=1 route=1", 12, 32, "want no route="},
	{"answer A to B NodeInfo NumPorts=1", 12, 10, "want for"},
	{"answer A for B NodeInfo", 12, 24, "want FIELD=VALUE, count=N or seen=on"},
	{"set A PortInfo", 12, 15, "want FIELD=VALUE"},
	{"set A PortInfo LIDD=1", 12, 16, `field "LIDD": want one of MKey`},
	{"set A PortInfo LID=0x10000", 12, 16, "want a number of 16 bits"},
	{"set A PortInfo LID=010", 12, 16, "want a number of 16 bits"},
	{"set A PortInfo LMC=9", 12, 16, "LMC"},
	{"set A PortInfo PortState=Sideways", 12, 16, "want a number of 8 bits or one of active, armed"},
	{"set A PortInfo LID=lid(Q)", 12, 16, `the fabric has no node "Q"`},
	{"set A PortInfo LID=size(A)", 12, 16, "want lid(NODE)"},
	{"set A PortInfo LID", 12, 16, "want FIELD=VALUE"},
	{"set A PKeyTable 0=1 40=2", 12, 21, "want entries of one block in a line"},
	{"set A PKeyTable[0] 32=1", 12, 20, "want 0 to 31"},
	{"set A NodeDescription NodeString=0xZZ", 12, 23, "bytes as 0x"},
	{"pkeys A", 12, 8, "want P_Key"},
	{"pkeys A 0x10000", 12, 9, "want a number of 16 bits"},
	{"expect", 12, 7, "want a node"},
	{"expect A PortInfo LID>=0", 12, 19, "want a comparison that can fail"},
	{"expect status maybe", 12, 15, "want a number of 16 bits"},
	{"expect answer LID=1", 12, 20, "want a get or set line before it"},
	{"expect counter A Violations 1", 12, 18, `field "Violations": want one of`},
	{"expect trap 128 Colour=1", 12, 17, "trap 128: field"},
	{"expect drop at A sadness", 12, 18, `want one of "lost"`},
	{"expect no luck", 12, 11, "want trap or drop or cable"},
	{"qp", 12, 3, "want a name"},
	{"qp X at A", 12, 6, `"at": want on`},
	{"qp X on A service=XX", 12, 11, "want service= one of EtherType, GSI"},
	{"qp X on A service=UD colour=1", 12, 22, "want one of pkey-index, qkey, privileged"},
	{"qp X on A service=UD qkey=0x100000000", 12, 22, "want a number of 32 bits"},
	{"qp X on A service=UD\nqp X on A service=UD", 13, 4, "want a name that no other queue pair has"},
	{"send X -> Y", 12, 6, "want a queue pair that a qp line above makes"},
	{"qp X on A service=GSI\nqp Y on B service=GSI\nsend X -> Y qkey=5", 14, 13, "want no qkey= from QP1"},
	{"qp X on A service=RC\nqp Y on B service=RC\nsend X -> Y bytes=8 qkey=5", 14, 21, "want no qkey= from RC"},
	{"qp X on A service=UD\nsend X -> X pkey-index=1", 13, 13, "want no pkey-index= but from QP1"},
	{"qp X on A service=UD\nsend X X", 13, 8, "want ->"},
	{"qp X on A service=UD\nmodify X", 13, 9, "want pkey-index= or qkey="},
	{"qp X on A service=UD\nforge A -> X", 13, 13, "want pkey=KEY"},
	{"qp X on A service=UD\nexpect completion X happiness", 13, 21, "want one of RNR retry exceeded"},
	{"qp X on A service=UD\nexpect qp X", 13, 12, "want state="},
	{"qp X on A service=UD\nexpect qp X state=GONE", 13, 13, "want RESET"},
	{"inject A 0xZZ", 12, 10, "want pairs of hexadecimal digits"},
	{"expect event A birthday", 12, 16, "want gid-change or lid-change"},
	{"warden B", 12, 9, "want a policy file"},
	{"warden B nowhere.yaml", 12, 10, "nowhere.yaml"},
	{"warden B star.topology", 12, 10, "star.topology"},
	{"warden B tenants.yaml 16", 12, 23, "want a number of 4 bits"},
	{"expect verdict B sunny", 12, 18, "want isolated or"},
	{"expect requests put PKeyTable 1", 12, 17, "want get or set"},
	{"rule PK-1\nexpect no trap", 12, 6, "want the id of a rule"},
	{"rule \"only text\"", 12, 17, "want at least one id"},
	{"rule PK-01\nadvance 1ms", 12, 1, "want an expect line under it"},
	{"seed 5", 12, 1, "want it before anything happens"},
	{"get A \"NodeInfo", 12, 7, "no closing quotation mark"},
	{"advance 1ms\x01", 12, 12, "control character"},
	{"advance \xff", 12, 9, "want UTF-8"},
	{"mkey 0x1FFFFFFFFFFFFFFFF", 12, 6, "want a number of 64 bits"},
}

func TestBadScripts(t *testing.T) {
	for _, b := range bad {
		_, err := compile("bad", small+b.script)
		wantFault(t, b.script, err, b.line, b.column, b.says)
	}
}

func wantFault(t *testing.T, script string, err error, line, column int, says string) {
	t.Helper()
	var f *testbed.ScriptFault
	if !errors.As(err, &f) {
		t.Errorf("%q: error %v, want a fault", script, err)
		return
	}
	if f.Line != line || f.Column != column || !strings.Contains(f.Text, says) {
		t.Errorf("%q:\n%v\nwant %d:%d: ...%s...", script, err, line, column, says)
	}
}

// TestBadSettings are faults of what stands before a story.
func TestBadSettings(t *testing.T) {
	for _, b := range []struct {
		script       string
		line, column int
		says         string
	}{
		{"", 1, 1, "no fabric"},
		{"advance 1ms", 1, 1, "want a fabric line before it"},
		{"fabric nonsense,x=1", 1, 8, "nonsense"},
		{"fabric {\nSwitch 3 \"S1\"\n", 1, 8, "want a line with }"},
		{"fabric {\nSwitch 3 \"S1\"\n[1] \"A\"[1]\n}", 3, 1, "A"},
		{"seed x", 1, 6, "want a number of 64 bits"},
		{"fabric demo\ndevice nobody led=on", 2, 8, `the fabric has no node "nobody"`},
		{"fabric demo\ndevice * wings=on", 2, 10, "want one of automatic-migration, bad-input-ignored, bad-input-partly"},
		{"fabric demo\ndevice mgmt-1 enforcement-cap=1", 2, 15, "no switch"},
		{"fabric demo\ndevice * led=maybe", 2, 10, "want on or off"},
		{"fabric demo\ndevice * partition-cap=0", 1, 1, "the fabric: "},
		{"device * led=on", 1, 16, "want a fabric line before device lines"},
		{"option hop-delay=5", 1, 8, "want a time with its unit"},
		{"option colour=red", 1, 8, "want hop-delay"},
		{"option loss=1.5", 1, 8, "want a share"},
	} {
		_, err := compile("bad", b.script)
		wantFault(t, b.script, err, b.line, b.column, b.says)
	}
}

// TestImpossible are statements that only a run shows to be impossible.
func TestImpossible(t *testing.T) {
	for script, says := range map[string]string{
		"link S1:1 S1:3":   "has a cable already",
		"unlink S1:3":      "has no cable",
		"power on A":       "is on already",
		"swap S1:1 A:1":    "the two ends of one cable",
		"flap S1:3":        "has no cable",
		"expect status ok": "want a get or set before it",
		"expect timeout":   "want a get or set before it",
		"unlink B:1\nadvance 1ms\nget B NodeInfo": "no way there from A:1",
		"resign B":                           "no manager runs there",
		"get B NodeInfo to-lid=0":            "want the LID of a port that has one",
		"power off B\nbring-up\npower off B": "is off already",
	} {
		s, err := compile("impossible", small+script)
		if err != nil {
			t.Errorf("%q: %v", script, err)
			continue
		}
		r, err := s.Run()
		wantFault(t, script, err, 11+1+strings.Count(script, "\n"), 1, says)
		if r == nil {
			t.Errorf("%q: no report", script)
		}
	}
}

// TestSeed checks that the seed decides what is lost, and that it is all.
func TestSeed(t *testing.T) {
	const story = small + `fault B loss=0.5
get B NodeInfo
get B NodeInfo
get B NodeInfo
get B NodeInfo
get B NodeInfo
get B NodeInfo
`
	out := map[string]bool{}
	for seed := 1; seed <= 8; seed++ {
		script := fmt.Sprintf("seed %d\n", seed) + story
		first, second := printed(run(t, "seed", script)), printed(run(t, "seed", script))
		if first != second {
			t.Errorf("seed %d: two runs differ:\n%s\n%s", seed, first, second)
		}
		_, events, _ := strings.Cut(first, "seed:")
		out[events] = true
	}
	if len(out) < 4 {
		t.Errorf("8 seeds gave %d runs, want several", len(out))
	}
}

func FuzzCompile(f *testing.F) {
	for _, text := range stories(f) {
		f.Add(text)
	}
	for _, b := range bad {
		f.Add(small + b.script)
	}
	for _, w := range wrong {
		f.Add(small + w.script)
	}
	f.Fuzz(func(t *testing.T, script string) {
		if len(script) > 1<<14 {
			t.Skip()
		}
		s, err := scenario.Compile(scenario.Source{Name: "fuzz", Text: []byte(script)})
		var fault *testbed.ScriptFault
		if err != nil {
			if !errors.As(err, &fault) || fault.Line < 1 || fault.Column < 1 {
				t.Fatalf("%v: want a fault with a line and a column", err)
			}
			return
		}
		_ = s.Rules()
	})
}
