package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// summed is text with its last line.
func summed(body string) []byte {
	return fmt.Appendf([]byte(body), "sha256 %x\n", sha256.Sum256([]byte(body)))
}

// demonstration is the certificate of the demonstration fabric without its last line, and a
// time at which it was valid.
func demonstration(t *testing.T) (string, time.Time) {
	text, err := os.ReadFile(filepath.Join("testdata", "demonstration.cert"))
	if err != nil {
		t.Fatal(err)
	}
	body := string(text[:bytes.LastIndex(text[:len(text)-1], []byte("\n"))+1])
	if !bytes.Equal(summed(body), text) {
		t.Fatal("the certificate does not end with its sum")
	}
	c, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	now, err := time.Parse(timeForm, c.made)
	if err != nil {
		t.Fatal(err)
	}
	return body, now.Add(time.Hour)
}

func verifyText(t *testing.T, text []byte, now time.Time) (int, string) {
	path := filepath.Join(t.TempDir(), "certificate")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	status := run([]string{path}, now, &out)
	return status, out.String()
}

// TestVerdicts changes one thing of the demonstration fabric, and makes the last line again.
func TestVerdicts(t *testing.T) {
	body, now := demonstration(t)
	const leaf1, mgmt = "0x0000000000200000", "0x0000000000100001"
	for _, x := range []struct {
		name, old, new string
		status         int
		says           string
	}{
		{"nothing", "", "", yes, "yes: 22 end ports in 5 classes at 6 switches"},
		{"inbound off", "port " + leaf1 + " 002 state=4 enforce=both", "port " + leaf1 + " 002 state=4 enforce=out", no, "with P_Key 0x8"},
		{"outbound off", "port " + leaf1 + " 002 state=4 enforce=both", "port " + leaf1 + " 002 state=4 enforce=in", no, "no switch port checks what the second gets"},
		{"both off", "port " + leaf1 + " 002 state=4 enforce=both", "port " + leaf1 + " 002 state=4 enforce=no", no, "no switch port checks what the first sends"},
		{"no capability", "switch " + leaf1 + " ports=8 entries=64 enforces=both", "switch " + leaf1 + " ports=8 entries=64 enforces=no", no, "no switch port checks"},
		{"no table", "switch " + leaf1 + " ports=8 entries=64", "switch " + leaf1 + " ports=8 entries=0", no, "no switch port checks"},
		{"raw", "port " + leaf1 + " 002 state=4 enforce=both filter=both", "port " + leaf1 + " 002 state=4 enforce=both filter=no", no, "raw packets"},
		{"raw out of the filters' reach", "switch " + leaf1 + " ports=8 entries=64 enforces=both filters=both", "switch " + leaf1 + " ports=8 entries=64 enforces=both filters=no", no, "raw packets"},
		{"raw allowed", "raw denied", "raw allowed", yes, "the policy allows them"},
		{"another's table", "port " + leaf1 + " 002 state=4 enforce=both filter=both keys=3", "port " + leaf1 + " 002 state=4 enforce=both filter=both keys=5", no, "the tables of both have the partition"},
		{"no M_Key", "switch " + leaf1 + " ports=8 entries=64 enforces=both filters=both key=own protect=2", "switch " + leaf1 + " ports=8 entries=64 enforces=both filters=both key=none protect=0", no, "it has no M_Key"},
		{"weak M_Key", leaf1 + " ports=8 entries=64 enforces=both filters=both key=own", leaf1 + " ports=8 entries=64 enforces=both filters=both key=weak", no, "can be guessed"},
		{"shared M_Key", leaf1 + " ports=8 entries=64 enforces=both filters=both key=own", leaf1 + " ports=8 entries=64 enforces=both filters=both key=shared", no, "the same M_Key"},
		{"level 0", leaf1 + " ports=8 entries=64 enforces=both filters=both key=own protect=2", leaf1 + " ports=8 entries=64 enforces=both filters=both key=own protect=0", no, "protection level is 0"},
		{"lease", "key=own protect=2 lease=0 name=leaf-1\nswitch", "key=own protect=2 lease=15 name=leaf-1\nswitch", no, "the lease of 15 s"},
		{"hidden M_Key", leaf1 + " ports=8 entries=64 enforces=both filters=both key=own", leaf1 + " ports=8 entries=64 enforces=both filters=both key=hidden", unknown, leaf1},
		{"agent", leaf1 + " ports=8 entries=64 enforces=both filters=both key=own protect=2 lease=0", leaf1 + " ports=8 entries=64 enforces=both filters=both key=unread protect=unread lease=unread", unknown, leaf1},
		{"SwitchInfo", leaf1 + " ports=8 entries=64 enforces=both filters=both", leaf1 + " ports=8 entries=unread enforces=unread filters=unread", unknown, leaf1 + " 002"},
		{"PortInfo", leaf1 + " 002 state=4 enforce=both filter=both", leaf1 + " 002 state=unread enforce=unread filter=unread", unknown, leaf1 + " 002"},
		{"filters not read", leaf1 + " 002 state=4 enforce=both filter=both", leaf1 + " 002 state=4 enforce=both filter=unread", unknown, "filters the raw packets"},
		{"guard's table", leaf1 + " 002 state=4 enforce=both filter=both keys=3", leaf1 + " 002 state=4 enforce=both filter=both keys=unread", unknown, leaf1 + " 002"},
		{"host's table", mgmt + " node=0x0000000000100000 port=001 type=ca keys=2", mgmt + " node=0x0000000000100000 port=001 type=ca keys=unread", unknown, mgmt},
		{"unlisted", " listed\n", " unlisted\n", unknown, "on no list of cables"},
		{"uncabled", "cable 0x0000000000100000 001 " + leaf1 + " 001 listed\n", "", unknown, "where " + mgmt},
		{"a device not read", "cable 0x0000000000100000 001", "cable 0x0000000000100000 002", unknown, "port 0x0000000000100000 002 was not read"},
	} {
		t.Run(x.name, func(t *testing.T) {
			if !strings.Contains(body, x.old) {
				t.Fatalf("the certificate has no %q", x.old)
			}
			status, out := verifyText(t, summed(strings.Replace(body, x.old, x.new, 1)), now)
			if status != x.status || !strings.Contains(out, x.says) {
				t.Errorf("status %d, want %d and %q:\n%s", status, x.status, x.says, out)
			}
		})
	}
	status, out := verifyText(t, summed(body+"unread "+leaf1+" anything\n"), now)
	if status != unknown || !strings.Contains(out, leaf1) {
		t.Errorf("unread: status %d: %s", status, out)
	}
}

// TestNobodyBehind: a port in use whose cable was not read has to let nothing pass, in both directions.
func TestNobodyBehind(t *testing.T) {
	body, now := demonstration(t)
	const leaf1 = "0x0000000000200000"
	for state, want := range map[string]int{
		"state=4 enforce=both filter=both keys=0": yes, "state=1 enforce=no filter=no keys=unread": yes, "state=2 enforce=no filter=no keys=unread": yes,
		"state=4 enforce=out filter=both keys=0": unknown, "state=4 enforce=in filter=both keys=0": unknown, "state=4 enforce=no filter=both keys=0": unknown,
		"state=4 enforce=both filter=out keys=0": unknown, "state=4 enforce=both filter=in keys=0": unknown, "state=4 enforce=both filter=unread keys=0": unknown,
		"state=4 enforce=both filter=both keys=unread": unknown, "state=4 enforce=both filter=both keys=3": unknown,
		"state=4 enforce=unread filter=both keys=0": unknown, "state=unread enforce=no filter=no keys=unread": unknown,
	} {
		text := strings.Replace(body, "switch "+leaf1+" ports=8", "switch "+leaf1+" ports=9", 1)
		text = strings.Replace(text, "port 0x0000000000200001 001", "port "+leaf1+" 009 "+state+"\nport 0x0000000000200001 001", 1)
		if status, out := verifyText(t, summed(text), now); status != want || want == unknown && !strings.Contains(out, "who is behind port "+leaf1+" 009") {
			t.Errorf("%s: status %d, want %d: %s", state, status, want, out)
		}
	}
}

func TestTimes(t *testing.T) {
	body, now := demonstration(t)
	for _, expires := range []string{"9999-99-99T99:99:99Z", "2999-01-01T00:00:00Z", "2020-01-01T00:00:00Z"} {
		at := strings.Index(body, "expires ") + len("expires ")
		text := body[:at] + expires + body[at+len(expires):]
		if status, out := verifyText(t, summed(text), now); status != unknown || !strings.Contains(out, "want 168h0m0s between them") {
			t.Errorf("expires %s: status %d: %s", expires, status, out)
		}
	}
	for days, want := range map[int]int{-1: unknown, 0: yes, 6: yes, 8: unknown} {
		if status, out := verifyText(t, summed(body), now.AddDate(0, 0, days)); status != want {
			t.Errorf("after %d days: status %d, want %d: %s", days, status, want, out)
		}
	}
}

// TestOneSpelling: what is written otherwise than ibwarden writes it is no certificate.
func TestOneSpelling(t *testing.T) {
	body, now := demonstration(t)
	lines := strings.SplitAfter(body, "\n")
	swap := func(i int) string {
		l := append([]string{}, lines...)
		l[i], l[i+1] = l[i+1], l[i]
		return strings.Join(l, "")
	}
	tried := map[string]string{"no line at all": "", "an empty line": "\n" + body, "an empty line at the end": body + "\n", "no end of line": strings.TrimSuffix(body, "\n")}
	for i := range lines[:len(lines)-2] {
		tried[fmt.Sprintf("lines %d and %d", i+1, i+2)] = swap(i)
	}
	for i, l := range lines[:len(lines)-1] {
		tried[fmt.Sprintf("line %d twice", i+1)] = strings.Join(lines[:i+1], "") + l + strings.Join(lines[i+1:], "")
		tried[fmt.Sprintf("line %d with two spaces", i+1)] = strings.Replace(body, l, strings.Replace(l, " ", "  ", 1), 1)
		tried[fmt.Sprintf("line %d with a space at the end", i+1)] = strings.Replace(body, l, strings.Replace(l, "\n", " \n", 1), 1)
		tried[fmt.Sprintf("line %d in capitals", i+1)] = strings.Replace(body, l, strings.ToUpper(l[:1])+l[1:], 1)
	}
	for name, edit := range map[string][2]string{
		"a leading zero": {"entries=64", "entries=064"}, "GUID in capitals": {"0x000000000010000f", "0x000000000010000F"},
		"version": {"certificate 1", "certificate 2"}, "a set not in order": {"8010 0030 0040", "0030 8010 0040"},
		"a partition twice in a set": {"8010 0030 0040", "0010 8010 0030 0040"}, "partition 0": {"keys 1 8010", "keys 1 8000 8010"},
		"another number": {"keys 3 ", "keys 9 "}, "no such set": {"keys=3", "keys=99"}, "a count": {"ports=6", "ports=7"}, "a port too many": {"port 0x0000000000200001 001", "port 0x0000000000200000 009 state=1 enforce=no filter=no keys=unread\nport 0x0000000000200001 001"}, "a port left out": {"port 0x0000000000200000 008 state=4 enforce=no filter=no keys=unread\n", ""}, "another number of a port": {"port 0x0000000000200000 008", "port 0x0000000000200000 009"}, "a level that is none": {"protect=2", "protect=8"},
		"a class that is nobody's": {"class 4", "class 3 ports=0\nclass 4"}, "a partition without a name": {"partition 0010 red\n", ""},
		"no raw": {"raw denied\n", ""}, "a port that is not told of": {"ports=8", "ports=9"}, "type": {"type=ca", "type=switch"}, "port 0 of a host": {"port=001 type=ca", "port=000 type=ca"},
		"a word": {"filter=both", "filter=maybe"}, "nothing has a set": {"keys 7 8030 8031 8042", "keys 7 8030 8031 8042\nkeys 8 8041"},
		"no cable's end": {"0x0000000000200000 001 listed", "0x0000000000200000 099 listed"}, "a cable of port 0": {"0x0000000000200000 001 listed", "0x0000000000200000 000 listed"}, "a switch gone": {lines[25], ""},
	} {
		if tried[name] = strings.Replace(body, edit[0], edit[1], 1); tried[name] == body {
			t.Errorf("%s: the certificate has no %q", name, edit[0])
		}
	}
	tried["a port 10 in place of port 9"] = strings.NewReplacer("switch 0x0000000000200000 ports=8", "switch 0x0000000000200000 ports=9",
		"port 0x0000000000200001 001", "port 0x0000000000200000 010 state=1 enforce=no filter=no keys=unread\nport 0x0000000000200001 001").Replace(body)
	for name, text := range tried {
		if status, out := verifyText(t, summed(text), now); status != unknown || !strings.Contains(out, "is no certificate") {
			t.Errorf("%s: status %d: %s", name, status, out)
		}
	}
	if len(tried) < 400 {
		t.Errorf("only %d were tried", len(tried))
	}
}

func TestNoFile(t *testing.T) {
	for _, args := range [][]string{nil, {"a", "b"}, {filepath.Join(t.TempDir(), "absent")}, {t.TempDir()}} {
		var out bytes.Buffer
		if status := run(args, time.Now(), &out); status != unknown || !strings.HasPrefix(out.String(), "unknown: ") {
			t.Errorf("%v: status %d: %s", args, status, out.String())
		}
	}
}
