package ibsimtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// The fabric and the policy that files are corrupted on. The hosts' port GUIDs
// are 0x100001, 0x100003 and so on; the manager is on the first.
const (
	badPolicyFabric = "fattree,radix=4,levels=2"
	goodPolicy      = `# Two tenants and what they share.
Default=0x7fff, ipoib : ALL=limited, SELF=full ;
Storage=0x0010, defmember=limited :
    0x100003=full, # the server
    0x100005, 0x100007, 0x100009 ;
Blue=0x8020 : 0x100005=full, 0x100007=full ;
Green = 0x0030 , defmember=full : 0x100009, 0x10000b,
    0x10000d=limited ;
Auto, indx0 : 0x10000f=full, ALL_SWITCHES=limited ;
mgmt=0x40, ipoib, mtu=4, rate=3 : SELF=full, ALL_CAS=limited ;
Auto : 0x100003=limited ;
`
)

// badPolicy is a file that may be refused; when it is taken, it has to mean
// what it says.
type badPolicy struct {
	name, text string
	// refused reports whether it must not be taken.
	refused bool
	// same says that, taken, it means the good policy.
	same bool
}

// traps are files for which OpenSM opens the fabric, loses members, or joins
// partitions; and policies that do not fit. They stand behind the good policy
// unless they are whole files.
var traps = []badPolicy{
	{name: "bad GUID", text: "X=0x50 : 0xZZZ=full ;\n", refused: true},
	{name: "bad keyword", text: "X=0x50 : EVERYBODY ;\n", refused: true},
	{name: "a name for a port", text: "X=0x50 : H0_0 ;\n", refused: true},
	{name: "a range", text: "X=0x50 : 0x100001-0x100009 ;\n", refused: true},
	{name: "no colon", text: "X=0x50\n: ALL ;\n", refused: true},
	{name: "no semicolon", text: "X=0x50 : ALL\nY=0x51 : ALL ;\n", refused: true},
	{name: "the manual's example", text: "X=0x50 : defmember=limited : ALL ;\n", refused: true},
	{name: "semicolon alone", text: "X=0x50 : 0x100003\n;\n"},
	{name: "automatic key stated later", text: "Fix=0x1 : 0x100005=full ;\n", refused: true},
	{name: "= with nothing", text: "X=0x50 : 0x100003= ;\n", refused: true},
	{name: "Full", text: "X=0x50 : 0x100003=Full ;\n", refused: true},
	{name: "misspelt flag", text: "X=0x50, ipiob : 0x100003 ;\n", refused: true},
	{name: "misspelt defmember", text: "X=0x50, defmember=fulll : 0x100003 ;\n", refused: true},
	{name: "key of 17 bits", text: "X=0x18045 : 0x100003 ;\n", refused: true},
	{name: "negative key", text: "X=-5 : 0x100003 ;\n", refused: true},
	{name: "mtu in bytes", text: "X=0x50, ipoib, mtu=4096 : 0x100003 ;\n", refused: true},
	{name: "comment behind an mgid", text: "X=0x50 : mgid=ff12::77 # Q_Key=0x99,mtu=2,\n 0x100003 ;\n"},
	{name: "definition behind an mgid", text: "X=0x50 : 0x100003, mgid=ff12::77; Y=0x51 : 0x100005=full ;\n"},
	{name: "unicast mgid", text: "X=0x50 : mgid=fe80::1\n 0x100003 ;\n", refused: true},
	{name: "two keys at index 0", text: "X=0x50, indx0 : 0x10000f=full ;\n", refused: true},
	{name: "more keys than a host has room for", text: many(70, "0x100003=full"), refused: true},
	{name: "more keys than a switch has room for", text: many(8, "ALL_SWITCHES"), refused: true},
}

// many is a policy of that many partitions.
func many(partitions int, members string) string {
	var b strings.Builder
	for i := range partitions {
		fmt.Fprintf(&b, "M%d=0x%x : %s ;\n", i, 0x100+i, members)
	}
	return b.String()
}

// wholeFiles take the place of the good policy.
var wholeFiles = []badPolicy{
	{name: "empty", text: "", refused: true},
	{name: "blank", text: " \n\t\n", refused: true},
	{name: "only comments", text: "# A=0x10 : ALL=full ;\n# ;\n", refused: true},
	{name: "zero bytes", text: strings.Repeat("\x00", 4096), refused: true},
	{name: "UTF-16", text: "\xff\xfeA\x00=\x001\x00:\x00;\x00", refused: true},
	{name: "an ELF file", text: "\x7fELF\x02\x01\x01\x00;:;:", refused: true},
	{name: "CRLF", text: strings.ReplaceAll(goodPolicy, "\n", "\r\n"), same: true},
	{name: "CRLF in one line", text: strings.Replace(goodPolicy, ";\n", ";\r\n", 1), same: true},
	{name: "a line of 6,000 bytes", text: strings.Replace(goodPolicy, "0x100005, 0x100007,", strings.Repeat("0x100005, ", 600)+"0x100007,", 1), same: true},
	{name: "one line", text: strings.ReplaceAll(noComments.ReplaceAllString(goodPolicy, "\n"), "\n", strings.Repeat(" ", 900)), same: true},
	{name: "a comment of 10,000 bytes", text: goodPolicy + "#" + strings.Repeat(" A=0x5:ALL=full;", 625) + "\n", same: true},
	{name: "a member past column 4094", text: strings.Replace(goodPolicy, "0x100009 ;", strings.Repeat(" ", 4060)+"0x100009 ;", 1), same: true},
}

var noComments = regexp.MustCompile(`#.*\n`)

const (
	bitFlips    = 16
	truncations = 6
	soakDamages = 50 // times as many of both, with IBWARDEN_SOAK
)

// corrupted are random damages to the good policy.
func corrupted(rng *rand.Rand) (all []badPolicy) {
	times := 1
	if need.Soak() {
		times = soakDamages
	}
	for range bitFlips * times {
		data := []byte(goodPolicy)
		at, bit := rng.IntN(len(data)), rng.IntN(8)
		data[at] ^= 1 << bit
		all = append(all, badPolicy{name: fmt.Sprintf("bit %d of byte %d flipped", bit, at), text: string(data)})
	}
	for range truncations * times {
		at := rng.IntN(len(goodPolicy))
		all = append(all, badPolicy{name: fmt.Sprintf("cut to %d bytes", at), text: goodPolicy[:at]})
	}
	return all
}

// A file with a fault is refused whole and leaves the fabric as it was, to the
// last table; one that is taken does what it says.
func TestBadPolicyLeavesTheFabric(t *testing.T) {
	need.Long(t, "ibwarden on a hundred policies, one by one")
	l := topologyOf(t, badPolicyFabric)
	r := newRig(t, l, "")
	seed := baseSeed()
	files := slices.Concat(wholeFiles, corrupted(rand.New(rand.NewPCG(seed, 0))))
	for _, trap := range traps {
		trap.text = goodPolicy + trap.text
		files = append(files, trap)
	}
	good, bad := r.file("good.conf", goodPolicy), filepath.Join(r.sim.Dir, "bad.conf")
	r.bringUp(good)
	r.checkKeys("ibwarden", r.read(true), evaluate(mustRead(t, goodPolicy), r.model))
	before := r.snapshot()
	var refused []badPolicy
	for _, f := range files {
		r.file("bad.conf", f.text)
		o := r.runOnce("--policy", bad)
		switch {
		case o.status == 2:
			refused = append(refused, f)
			if f.same {
				t.Errorf("%s: refused, but it means the good policy:\n%s", f.name, o.stderr)
			}
			if o.stdout != "" || !strings.Contains(o.stderr, "refused") {
				t.Errorf("%s: refused with output %q and message\n%s", f.name, o.stdout, o.stderr)
			}
		case o.status == 0 && !f.refused:
			r.checkTaken(f, o)
			r.bringUp(good)
			before = r.snapshot() // keys may stand at another index now
		default:
			t.Errorf("%s (SOAK_SEED=%d): exit status %d, refused wanted: %v\n%s\n%s", f.name, seed, o.status, f.refused, o.stderr, f.text)
		}
		if after := r.snapshot(); !reflect.DeepEqual(before, after) {
			t.Fatalf("%s: the fabric has changed from\n%v\nto\n%v", f.name, before, after)
		}
	}
	t.Logf("%d files, %d of them refused", len(files), len(refused))
	if len(refused) < len(files)/3 {
		t.Errorf("only %d of %d files were refused", len(refused), len(files))
	}
	// Once more in the eyes of smpquery.
	first := r.read(true)
	for _, f := range refused {
		r.file("bad.conf", f.text)
		if o := r.runOnce("--policy", bad); o.status != 2 {
			t.Errorf("%s: exit status %d, once 2", f.name, o.status)
		}
	}
	if after := r.read(true); !reflect.DeepEqual(first, after) {
		t.Errorf("after bad policies smpquery reads\n%+v\nbefore\n%+v", after, first)
	}
}

func mustRead(t *testing.T, text string) []statement {
	t.Helper()
	statements, err := readConf(text)
	if err != nil {
		t.Fatal(err)
	}
	return statements
}

// checkTaken holds the tables after a file was taken against what the model
// reads in it.
func (r *rig) checkTaken(f badPolicy, o output) {
	r.Helper()
	text := f.text
	if f.same {
		text = goodPolicy
	}
	statements, err := readConf(text)
	if err != nil {
		r.Errorf("%s: taken: %v\n%s", f.name, err, o.stderr)
		return
	}
	meant, read := evaluate(statements, r.model), r.read(true)
	for _, e := range r.model.ends {
		want := keySet(meant.table(e))
		for who, table := range map[string][]uint16{"port": read.keys[e], "the switch port that faces": read.guard[e]} {
			if table != nil && !slices.Equal(keySet(table), want) {
				r.Errorf("%s: taken: %s %v has %s, want %s\n%s", f.name, who, e, keysText(table), keysText(want), f.text)
			}
		}
	}
}

// keySet is the keys of a table, sorted, without the gaps.
func keySet(table []uint16) []uint16 {
	set := slices.DeleteFunc(slices.Clone(table), func(k uint16) bool { return k == 0 })
	slices.Sort(set)
	return set
}

// What is wrong before anything is read is refused too.
func TestBadInputLeavesTheFabric(t *testing.T) {
	r := newRig(t, topologyOf(t, badPolicyFabric), "")
	good := r.file("good.conf", goodPolicy)
	before := r.read(false)
	if err := os.Mkdir(filepath.Join(r.sim.Dir, "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.file("bad.yaml", "partitions:\n  - name: A\n    pkey: 0x99999\n")
	for _, args := range [][]string{
		{"--policy", "missing.conf"},
		{"--policy", "directory"},
		{"--policy", "bad.yaml"},
		{"--policy", good, "--lmc", "8"},
		{"--policy", good, "--routing", "fastest"},
		{"--policy", good, "--nonsense"},
		{"--policy", good, "argument"},
		{"--policy", good, "--guid", "0x1"},
	} {
		if o := r.runOnce(args...); o.status != 2 || o.stdout != "" || o.stderr == "" {
			t.Errorf("%v: exit status %d, output %q, message %q", args, o.status, o.stdout, o.stderr)
		}
	}
	if after := r.read(false); !reflect.DeepEqual(before, after) {
		t.Errorf("after bad input smpquery reads\n%+v\nbefore\n%+v", after, before)
	}
}
