package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
)

func TestParseNumber(t *testing.T) {
	tests := []struct {
		s         string
		want      uint64
		octal, ok bool
	}{
		{"0", 0, false, true},
		{"10", 10, false, true},
		{"010", 8, true, true},
		{"0x10", 16, false, true},
		{"0XfF", 255, false, true},
		{"0xffffffffffffffff", 1<<64 - 1, false, true},
		{"18446744073709551616", 1<<64 - 1, false, false},
		{"", 0, false, false},
		{"0x", 0, false, false},
		{"08", 0, true, false},
		{"-1", 0, false, false},
		{"+1", 0, false, false},
		{" 1", 0, false, false},
		{"1_0", 0, false, false},
		{"0b1", 0, true, false},
		{"1e3", 0, false, false},
	}
	for _, tt := range tests {
		got, octal, ok := ParseNumber(tt.s)
		if got != tt.want || octal != tt.octal || ok != tt.ok {
			t.Errorf("%q: %d, octal %v, %v; want %d, octal %v, %v", tt.s, got, octal, ok, tt.want, tt.octal, tt.ok)
		}
	}
}

func TestTextKeepsItsPlace(t *testing.T) {
	line := SourceText{S: "\tGröße = 1 ,  zwei", Pos: Pos{Line: 3, Column: 1}}
	first, rest, found := line.Cut(',')
	name, value, _ := first.Cut('=')
	name, value, rest = name.Trim(), value.Trim(), rest.Trim()
	if !found || name.S != "Größe" || value.S != "1" || rest.S != "zwei" {
		t.Fatalf("%q, %q, %q", name.S, value.S, rest.S)
	}
	for _, x := range []struct {
		text SourceText
		want int
	}{{name, 2}, {value, 10}, {rest, 15}} {
		if x.text.Pos != (Pos{Line: 3, Column: x.want}) {
			t.Errorf("%q is at %v, want 3:%d", x.text.S, x.text.Pos, x.want)
		}
	}
	if blank := (SourceText{S: " \t", Pos: line.Pos}).Trim(); blank.S != "" || blank.Pos != line.Pos {
		t.Errorf("blanks became %+v", blank)
	}
	if _, tail, found := name.Cut('#'); found || tail.S != "" || tail.Pos.Column != 7 {
		t.Errorf("cut at nothing: %+v, %v", tail, found)
	}
}

func TestMatchWord(t *testing.T) {
	words := []string{"ALL", "ALL_CAS", "SELF"}
	for s, want := range map[string]string{"ALL": "ALL", "ALL_": "ALL_CAS", "S": "SELF", "A": "", "SELFISH": ""} {
		if got, _ := MatchWord(s, words); got != want {
			t.Errorf("%q stands for %q, want %q", s, got, want)
		}
	}
	if _, candidates := MatchWord("A", words); len(candidates) != 2 {
		t.Errorf("candidates for A: %q", candidates)
	}
}

func TestClean(t *testing.T) {
	var n SourceNotes
	if got := n.Clean([]byte("\uFEFFa\r\nb\uFFFDc\td\n"), 100); got != "a\nb\uFFFDc\td\n" || len(n.Faults) > 0 {
		t.Errorf("got %q, %v", got, n.Faults)
	}
	n.Clean([]byte("ok\nä\x00\xfe\rx\x7f"), 100)
	want := []string{
		"2:2: control character 0x00; expected text", "2:3: byte 0xfe; expected UTF-8",
		"2:4: control character 0x0d; expected text", "2:6: control character 0x7f; expected text",
	}
	var got []string
	for _, f := range n.Faults {
		got = append(got, f.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	n = SourceNotes{}
	if n.Clean(make([]byte, 11), 10); len(n.Faults) != 1 {
		t.Errorf("too large: %v", n.Faults)
	}
}

func TestNotesEnd(t *testing.T) {
	var n SourceNotes
	n.Warn(Pos{Line: 2}, "late")
	n.Warn(Pos{Line: 1}, "early")
	p, err := n.Result(&Policy{}, "f")
	if err != nil || p.Warnings[0].Found != "early" {
		t.Errorf("warnings %v, %v", p, err)
	}
	for range FaultsMax + 5 {
		n.Fault(Pos{Line: 9, Column: 9}, "less", "fault")
	}
	p, err = n.Result(&Policy{}, "f")
	if lines := strings.Split(err.Error(), "\n"); p != nil || len(lines) != FaultsMax+1 ||
		!strings.HasPrefix(lines[0], "f: 1000 faults or more") || lines[1] != "f:9:9: fault; expected less" {
		t.Errorf("got %d lines, the first are %q", len(lines), lines[:2])
	}
}

func TestGroups(t *testing.T) {
	var n SourceNotes
	groups := SourceGroups{SourceNotes: &n}
	group := func(mgid string, mtu ib.MTU) MulticastGroup {
		g, err := ib.ParseGID(mgid)
		if err != nil {
			t.Fatal(err)
		}
		return MulticastGroup{MGID: g, MTU: mtu, Rate: 3}
	}
	var a, b Partition
	groups.Add(0, &a, group("ff12:401b::1", 4))
	groups.Add(1, &b, group("ff12:401b::1", 5)) // the same address, another partition
	groups.Add(0, &a, group("ff12::1", 5))      // no IPoIB, so another MTU is fine
	if len(n.Faults) > 0 || len(a.Multicast) != 2 || len(b.Multicast) != 1 {
		t.Fatalf("faults %v", n.Faults)
	}
	groups.Add(0, &a, group("ff12:601b::1", 5)) // unlike the other IPoIB group
	groups.Add(1, &b, group("ff12::1", 5))      // taken by a
	if len(n.Faults) != 2 || len(a.Multicast) != 2 || len(b.Multicast) != 1 {
		t.Errorf("faults %v, want two", n.Faults)
	}
}
