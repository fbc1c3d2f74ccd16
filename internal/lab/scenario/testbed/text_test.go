package testbed

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestLines: what a script is cut into; lines without words are left out, and keep their
// number.
func TestLines(t *testing.T) {
	lines, err := Lines("x.ibs", []byte("send a  b # to all\n\n# only a remark\n  say \"two words\" not#one \"\"\r\n"))
	if err != nil || len(lines) != 2 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if l := lines[0]; l.Number != 1 || len(l.Words) != 3 || l.Words[2] != (ScriptWord{Text: "b", Column: 9}) {
		t.Errorf("line 1 is %+v", l)
	}
	l := lines[1]
	want := []ScriptWord{{"say", 3, false}, {"two words", 7, true}, {"not#one", 19, false}, {"", 27, true}}
	if l.Number != 4 || len(l.Words) != len(want) {
		t.Fatalf("line 4 is %+v", l)
	}
	for i, w := range want {
		if l.Words[i] != w {
			t.Errorf("word %d is %+v, want %+v", i, l.Words[i], w)
		}
	}
}

// TestFaults: each is at its line and column, counted in characters.
func TestFaults(t *testing.T) {
	for script, want := range map[string]string{
		"a\nüb \"open":                       `x.ibs:2:4: no closing quotation mark in this line`,
		"a \x01":                             "x.ibs:1:3: control character 0x01: want text",
		"ok\nü \xff":                         "x.ibs:2:3: want UTF-8",
		"a\n" + strings.Repeat("b", MaxLine): "",
		strings.Repeat("b", MaxLine+1):       "x.ibs:1:1: want up to 20000 lines of up to 4096 bytes",
		strings.Repeat("\n", MaxLines):       "x.ibs:20001:1: want up to 20000 lines of up to 4096 bytes",
		strings.Repeat("b", MaxScript+1):     "x.ibs:1:1: 1048577 bytes: want a script of up to 1048576",
	} {
		_, err := Lines("x.ibs", []byte(script))
		if got := errorText(err); got != want {
			t.Errorf("%.20q: %q, want %q", script, got, want)
		}
		var f *ScriptFault
		if err != nil && !errors.As(err, &f) {
			t.Errorf("%.20q: %T", script, err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func args(t *testing.T, line string) *LineArgs {
	t.Helper()
	lines, err := Lines("x.ibs", []byte(line))
	if err != nil || len(lines) != 1 {
		t.Fatal(lines, err)
	}
	return &LineArgs{Name: "x.ibs", Line: &lines[0], Words: lines[0].Words}
}

// TestArgs takes a line apart.
func TestArgs(t *testing.T) {
	a := args(t, `expect "drop" within 10ms count=3 lid>=5 on`)
	if !a.Keyword("expect") || a.Keyword("drop") || a.Peek() != "" {
		t.Error("a quoted word is taken for a keyword")
	}
	if w, err := a.Next("a text"); err != nil || w.Text != "drop" {
		t.Error(w, err)
	}
	if p, err := a.Pick("for", "within"); p != "within" || err != nil {
		t.Error(p, err)
	}
	if d, err := a.Duration("time"); d != 10*time.Millisecond || err != nil {
		t.Error(d, err)
	}
	if s, err := a.Setting("NAME=VALUE", false); s.Name != "count" || s.Value != "3" || s.Relation != "=" || err != nil {
		t.Error(s, err)
	}
	if s, err := a.Setting("FIELD=VALUE", true); s.Name != "lid" || s.Value != "5" || s.Relation != ">=" || err != nil {
		t.Error(s, err)
	}
	if err := a.Done(); errorText(err) != `x.ibs:1:42: "on": want the end of the line` {
		t.Error(err)
	}
	if _, err := a.Pick("up", "down"); errorText(err) != `x.ibs:1:42: "on": want up or down` {
		t.Error(err)
	}
	if _, err := a.Next("a node"); errorText(err) != "x.ibs:1:44: the line ends: want a node" {
		t.Error(err)
	}
	if a.More() || a.Done() != nil {
		t.Error("something is left")
	}
}

// TestValues: what numbers, times, switches and shares are, and what is none.
func TestValues(t *testing.T) {
	a := args(t, "x")
	w := a.Words[0]
	for text, want := range map[string]int64{"5": 5, "0x1F": 31, "0b101": 5, "65535": 65535, "65536": -1, "010": -1, "-1": -1, "": -1, "five": -1} {
		n, err := a.ToNumber(w, text, "lid", 16)
		if (err != nil) != (want < 0) || err == nil && n != uint64(want) {
			t.Errorf("number %q: %d, %v", text, n, err)
		}
	}
	for text, want := range map[string]time.Duration{"4096ns": 4096, "2s": 2 * time.Second, "8760h": MaxAdvance, "8761h": -1, "-1s": -1, "5": -1} {
		d, err := a.ToDuration(w, text, "time")
		if (err != nil) != (want < 0) || err == nil && d != want {
			t.Errorf("time %q: %v, %v", text, d, err)
		}
	}
	for text, want := range map[string]string{"on": "true", "1": "true", "off": "false", "false": "false", "yes": ""} {
		on, err := a.ToOnOff(w, text, "silent")
		if (err == nil) != (want != "") || err == nil && on != (want == "true") {
			t.Errorf("switch %q: %t, %v", text, on, err)
		}
	}
	for text, want := range map[string]float64{"0": 0, "0.05": 0.05, "1": 1, "1.1": -1, "NaN": -1, "-0.1": -1} {
		p, err := a.ToShare(w, text, "loss")
		if (err != nil) != (want < 0) || err == nil && p != want {
			t.Errorf("share %q: %v, %v", text, p, err)
		}
	}
}

// TestKnobs: only the names that a statement has, each within its width.
func TestKnobs(t *testing.T) {
	k, err := args(t, "sl=15 privileged=on qkey=0x80010000").Knobs("sl", "privileged", "qkey")
	if err != nil || k.Or("sl", 3) != 15 || k.Or("privileged", 0) != 1 || k.Or("qkey", 0) != 0x80010000 || k.Or("vl", 7) != 7 {
		t.Error(k, err)
	}
	for line, want := range map[string]string{
		"sl=16":         `x.ibs:1:1: sl "16": want a number of 4 bits, as 5, 0x1F or 0b101`,
		"vl=1":          `x.ibs:1:1: "vl": want one of sl, privileged`,
		"privileged=no": `x.ibs:1:1: privileged "no": want on or off`,
		"sl":            `x.ibs:1:1: "sl": want sl=, privileged=`,
	} {
		if _, err := args(t, line).Knobs("sl", "privileged"); errorText(err) != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
