package policyfile

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibwarden/ibwarden/internal/policy"
)

var seeds = []string{
	manual,
	"Storage=0x10 : 0x100004=full, 0x100007=limited, 0x10000a ;\n",
	"P1 : 0x1=full; P2,indx0 : 0x2=both; P1 : ALL_CAS; A=0x8055,d=f,sl=3 : S, NONE;",
	"A=1,mtu=5,rate=16,scope=2,Q_Key=1,TClass=2,FlowLabel=3,ipoib:\nmgid=ff12:601b::2,sl=1 # c\n1;\n",
	"# nothing\n", ": 1;", "A=1:1;;", "A=1\r\n:2;\r\n",
}

// checkRead holds for every text: a policy or a refusal, nothing between; and
// a policy can be written and read again without a change.
func checkRead(t interface {
	Fatalf(string, ...any)
	Helper()
}, data []byte) {
	t.Helper()
	p, err := ReadConf(data, "f", Options{AllowBoth: len(data)%2 == 0})
	var refused *policy.Error
	if err != nil {
		if p != nil || !errors.As(err, &refused) || len(refused.Faults) == 0 {
			t.Fatalf("refusal %v with policy %v", err, p)
		}
		return
	}
	if len(p.Partitions) == 0 {
		t.Fatalf("a policy without partitions from %q", data)
	}
	if p.Default != policy.Limited {
		t.Fatalf("default membership %v", p.Default)
	}
	out, err := WriteConf(p, "f")
	if err != nil {
		return // a name that begins with a digit, for one
	}
	again, err := ReadConf(out, "f", Options{AllowBoth: p.AllowBoth})
	if err != nil {
		t.Fatalf("%q was written as\n%s\nand refused: %v", data, out, err)
	}
	statedFirst(p)
	if diff := equalConfPolicies(p, again); diff != "" {
		t.Fatalf("%q was written as\n%s\nwhich is another policy:\n%s", data, out, diff)
	}
}

// statedFirst brings the partitions into the order that Write gives them.
func statedFirst(p *policy.Policy) {
	var stated, automatic []policy.Partition
	for _, part := range p.Partitions {
		if part.PKey != 0 {
			stated = append(stated, part)
		} else {
			automatic = append(automatic, part)
		}
	}
	p.Partitions = append(stated, automatic...)
}

func FuzzReadConf(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkRead(t, data) })
}

// Files that were damaged on the way: flipped bits, cut short, with other line
// ends, with a line that never ends.
func TestDamagedFiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := []byte(rapid.SampledFrom(seeds).Draw(t, "seed"))
		for range rapid.IntRange(1, 4).Draw(t, "damages") {
			at := rapid.IntRange(0, len(data)).Draw(t, "at")
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				if at < len(data) {
					data[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
				}
			case 1:
				data = data[:at]
			case 2:
				data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
			case 3:
				filler := strings.Repeat(" ", 5000)
				data = bytes.Join([][]byte{data[:at], data[at:]}, []byte(filler))
			case 4:
				data = bytes.ReplaceAll(data, []byte("\n"), nil)
			case 5:
				word := rapid.SampledFrom([]string{";", ":", ",", "=", "#", "mgid=", "\n", "0x", "full"}).Draw(t, "word")
				data = bytes.Join([][]byte{data[:at], data[at:]}, []byte(word))
			}
		}
		checkRead(t, data)
	})
}

// An over-long line means what the same members on short lines mean.
func TestLongLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		guids := rapid.SliceOfN(rapid.StringMatching(`0x1[0-9a-f]{1,12}(=full|=limited)?`), 1, 600).Draw(t, "members")
		long, err := ReadConf([]byte("A=1 : "+strings.Join(guids, ", ")+";"), "f", Options{})
		if err != nil {
			t.Fatal(err)
		}
		short, err := ReadConf([]byte("A=1 :\n"+strings.Join(guids, ",\r\n")+"\n;\n"), "f", Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := equalConfPolicies(long, short); diff != "" {
			t.Fatalf("one line against many:\n%s", diff)
		}
	})
}
