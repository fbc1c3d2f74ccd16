package main

import (
	"strings"
	"testing"
	"time"
)

// one is a switch with three hosts: a full member of a partition, a limited one, and one that has
// nothing. Each line may be changed.
const one = `ibwarden certificate 1
made 2026-01-01T00:00:00Z
expires 2026-01-08T00:00:00Z
revision 0
snapshot -
policy -
raw denied
partition 0010 red
keys 0 -
keys 1 0010
keys 2 8010
class 0 ports=2
class 1 ports=1
class 2 ports=1
switch 0x0000000000000001 ports=4 entries=8 enforces=both filters=both key=own protect=1 lease=0 name=s
port 0x0000000000000001 001 state=4 enforce=both filter=both keys=2
port 0x0000000000000001 002 state=4 enforce=both filter=both keys=1
port 0x0000000000000001 003 state=4 enforce=both filter=both keys=0
port 0x0000000000000001 004 state=1 enforce=no filter=no keys=unread
end 0x0000000000000001 node=0x0000000000000001 port=000 type=switch keys=0 class=0 key=own protect=1 lease=0 name=s
end 0x000000000000000a node=0x000000000000000a port=001 type=ca keys=2 class=2 key=own protect=1 lease=0 name=a
end 0x000000000000000b node=0x000000000000000b port=001 type=ca keys=1 class=1 key=own protect=1 lease=0 name=b
end 0x000000000000000c node=0x000000000000000c port=001 type=ca keys=0 class=0 key=own protect=1 lease=0 name=c
cable 0x0000000000000001 001 0x000000000000000a 001 listed
cable 0x0000000000000001 002 0x000000000000000b 001 listed
cable 0x0000000000000001 003 0x000000000000000c 001 listed
`

// TestRules has for each clause of the rules a fabric in which it decides.
func TestRules(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	const s = "0x0000000000000001 "
	// the second host has the keys of the first
	full := []string{"class 1 ports=1\nclass 2 ports=1", "class 2 ports=2", "keys=1 class=1", "keys=2 class=2", "002 state=4 enforce=both filter=both keys=1", "002 state=4 enforce=both filter=both keys=2",
		"keys 1 0010\nkeys 2 8010", "keys 1 8010", "keys=2", "keys=1", "class=2", "class=1", "class 2", "class 1"}
	// the second is limited, as the third is
	limited := []string{"class 0 ports=2\nclass 1 ports=1", "class 0 ports=1\nclass 1 ports=2", "name=b\nend 0x000000000000000c node=0x000000000000000c port=001 type=ca keys=0 class=0",
		"name=b\nend 0x000000000000000c node=0x000000000000000c port=001 type=ca keys=1 class=1", "003 state=4 enforce=both filter=both keys=0", "003 state=4 enforce=both filter=both keys=1"}
	uncabled := []string{"cable " + s + "003 0x000000000000000c 001 listed\n", "", "class 0 ports=2", "class 0 ports=1",
		"end 0x000000000000000c node=0x000000000000000c port=001 type=ca keys=0 class=0 key=own protect=1 lease=0 name=c\n", ""}
	for _, x := range []struct {
		name   string
		edits  []string // pairs of old and new text
		status int
		says   string
	}{
		{"a full and a limited member", nil, yes, "yes: 4 end ports in 3 classes"},
		{"two full members", full, yes, "yes: 4 end ports in 2 classes"},
		{"two limited members", limited, no, "the tables of both have the partition"},
		{"nothing checks, and all may talk", append(full, "001 state=4 enforce=both filter=both keys=1", "001 state=4 enforce=no filter=both keys=0"), yes, ""},
		{"one that has nothing gets anything", []string{"003 state=4 enforce=both", "003 state=4 enforce=in"}, no, "0x000000000000000c (c:001) with P_Key 0x8010: no switch port checks what the second gets"},
		{"one that has nothing sends anything", []string{"003 state=4 enforce=both", "003 state=4 enforce=out"}, no, "0x000000000000000c (c:001) can send to"},
		{"its own table is no matter where nothing passes", []string{"keys=0 class=0 key=own protect=1 lease=0 name=c", "keys=2 class=0 key=own protect=1 lease=0 name=c"}, yes, ""},
		{"one of many is let do nothing", []string{"001 state=4 enforce=both filter=both keys=2", "001 state=4 enforce=both filter=both keys=0"}, no, "which holds 0x000000000000000a (a:001), lacks 0x8010"},
		{"a switch port has a partition too many", []string{"003 state=4 enforce=both filter=both keys=0", "003 state=4 enforce=both filter=both keys=2"}, no, "which holds 0x000000000000000c (c:001), has 0x8010"},
		{"a switch port that checks out has one too few", []string{"001 state=4 enforce=both filter=both keys=2", "001 state=4 enforce=out filter=both keys=0"}, no, "lacks 0x8010"},
		{"membership at a switch port", []string{"002 state=4 enforce=both filter=both keys=1", "002 state=4 enforce=both filter=both keys=2"}, yes, ""},
		{"membership in a host", []string{"keys=1 class=1", "keys=2 class=1"}, no, "table of 0x000000000000000b (b:001) has 0x8010"},
		{"a host lacks membership", []string{"keys=2 class=2", "keys=1 class=2"}, no, "table of 0x000000000000000a (a:001) lacks 0x8010"},
		{"port 0 has a key", []string{"port=000 type=switch keys=0", "port=000 type=switch keys=2"}, no, "can send to 0x0000000000000001 (s:000)"},
		{"port 0 was not read", []string{"port=000 type=switch keys=0", "port=000 type=switch keys=unread"}, unknown, "the P_Key table of 0x0000000000000001 (s:000) was not read"},
		{"raw in", []string{"001 state=4 enforce=both filter=both", "001 state=4 enforce=both filter=out"}, no, "to 0x0000000000000001 (s:000) raw packets"},
		{"raw out alone: a switch sends nothing", []string{"001 state=4 enforce=both filter=both", "001 state=4 enforce=both filter=in"}, yes, ""},
		{"raw both", []string{"001 state=4 enforce=both filter=both", "001 state=4 enforce=both filter=no", "003 state=4 enforce=both filter=both", "003 state=4 enforce=both filter=no"}, no, "0x000000000000000a (a:001) can send to 0x000000000000000c (c:001) raw packets"},
		{"whether it checks was not read", []string{"001 state=4 enforce=both filter=both", "001 state=4 enforce=unread filter=both"}, unknown, "whether port " + s + "001 (s) checks the P_Keys of 0x000000000000000a (a:001) was not read"},
		{"raw from one that gets none", []string{"001 state=4 enforce=both filter=both", "001 state=4 enforce=both filter=out", "003 state=4 enforce=both filter=both", "003 state=4 enforce=both filter=in"}, no, "0x000000000000000a (a:001) can send to 0x000000000000000c (c:001) raw packets"},
		{"a partition in common after another", []string{"partition 0010 red", "partition 0005 x\npartition 0010 red", "keys 1 0010\nkeys 2 8010", "keys 1 0005 0010\nkeys 2 0005 8010"}, yes, ""},
		{"nothing checks one that may talk with the others", []string{"001 state=4 enforce=both", "001 state=4 enforce=no"}, yes, ""},
		{"filters not read, and raw allowed", []string{"001 state=4 enforce=both filter=both", "001 state=4 enforce=both filter=unread", "raw denied", "raw allowed"}, yes, ""},
		{"one GUID twice", []string{"end 0x000000000000000c node", "end 0x000000000000000b node"}, unknown, "two end ports have the GUID 0x000000000000000b"},
		{"host to host", []string{"cable " + s + "002 0x000000000000000b 001 listed\ncable " + s + "003 0x000000000000000c 001 listed\n", "cable 0x000000000000000b 001 0x000000000000000c 001 listed\n",
			"002 state=4", "002 state=1", "003 state=4", "003 state=1"}, no, "0x000000000000000b (b:001) can send to 0x000000000000000c (c:001) with P_Key 0x8001: no switch port checks"},
		{"a port that is let do nothing", uncabled, yes, ""},
		{"a stranger", append(uncabled, "003 state=4 enforce=both filter=both keys=0", "003 state=4 enforce=both filter=both keys=2"), unknown, "who is behind port " + s + "003 (s) was not read"},
		{"a stranger that no switch checks one way", append(uncabled, "003 state=4 enforce=both", "003 state=4 enforce=in"), unknown, "who is behind"},
		{"a stranger that sends raw packets", append(uncabled, "003 state=4 enforce=both filter=both", "003 state=4 enforce=both filter=out"), unknown, "who is behind"},
		{"that may", append(uncabled, "003 state=4 enforce=both filter=both", "003 state=4 enforce=both filter=out", "raw denied", "raw allowed"), yes, ""},
		{"a port that is up", []string{"004 state=1", "004 state=3"}, unknown, "who is behind port " + s + "004"},
		{"a port that comes up", []string{"004 state=1", "004 state=2"}, yes, ""},
		{"a port that was not read", []string{"004 state=1", "004 state=unread"}, unknown, "who is behind port " + s + "004"},
		{"what else is not known", []string{"name=c\n", "name=c\n", "003 0x000000000000000c 001 listed\n", "003 0x000000000000000c 001 listed\nunread 0x000000000000000c anything\n"}, unknown, "0x000000000000000c: anything"},
		{"a no counts more than what is not known", []string{"key=own protect=1 lease=0 name=s\nport", "key=none protect=0 lease=0 name=s\nport", "001 listed\ncable " + s + "002", "001 unlisted\ncable " + s + "002"}, no, "unknown: that port"},
	} {
		t.Run(x.name, func(t *testing.T) {
			text := one
			for i := 0; i < len(x.edits); i += 2 {
				if !strings.Contains(text, x.edits[i]) {
					t.Fatalf("the certificate has no %q", x.edits[i])
				}
				text = strings.ReplaceAll(text, x.edits[i], x.edits[i+1])
			}
			if status, out := verifyText(t, summed(text), now); status != x.status || !strings.Contains(out, x.says) {
				t.Errorf("status %d, want %d and %q:\n%s", status, x.status, x.says, out)
			}
		})
	}
}

// TestNoCertificate: what does not belong together, or was changed, is no certificate.
func TestNoCertificate(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for name, edits := range map[string][]string{
		"one port at two cables": {"cable 0x0000000000000001 002", "cable 0x0000000000000001 001"},
		"a key of partition 0": {"keys 1 0010\nkeys 2 8010", "keys 1 0000\nkeys 2 0010\nkeys 3 8010", "keys=1", "keys=2", "keys=2", "keys=3", "class=1", "class=2", "class=2", "class=3",
			"class 1", "class 2", "class 2", "class 3", "004 state=1 enforce=no filter=no keys=unread", "004 state=1 enforce=no filter=no keys=1"},
		"sets that are not in order": {"keys 1 0010\nkeys 2 8010", "keys 1 8010\nkeys 2 0010", "keys=1", "keys=2", "keys=2", "keys=1", "class=1", "class=2", "class=2", "class=1"},
	} {
		if status, out := verifyText(t, summed(strings.NewReplacer(edits...).Replace(one)), now); status != unknown || !strings.Contains(out, "is no certificate") {
			t.Errorf("%s: status %d: %s", name, status, out)
		}
	}
	changed := []byte(strings.Replace(string(summed(one)), "name=a", "name=x", 1))
	if status, out := verifyText(t, changed, now); status != unknown || !strings.Contains(out, "not the SHA-256 of what stands before") {
		t.Errorf("a byte that was changed: status %d: %s", status, out)
	}
}
