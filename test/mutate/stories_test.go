package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestEveryScriptIsRead: the scripts that ship make several hundred claims.
func TestEveryScriptIsRead(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	sections, err := readSections(root)
	if n := len(claims(sections)); err != nil || len(sections) < 300 || n < 400 {
		t.Errorf("%d sections, %d claims, %v: not read right", len(sections), n, err)
	}
}

// TestSections: where a script says what it shows, and what a run says of it.
func TestSections(t *testing.T) {
	root := writeSmall(t, map[string]string{"scenarios/a.ibs": "fabric demo\nrule XX-01, XX-02 \"both\"\nexpect no drop\n# rule XX-03\nrule XX-01\n"})
	sections, err := readSections(root)
	if err != nil || len(sections) != 2 {
		t.Fatal(sections, err)
	}
	if got := fmt.Sprint(sections[0].expects, sections[1].expects); got != "[3] []" {
		t.Error("expectations on lines", got)
	}
	var all []string
	for _, c := range claims(sections) {
		all = append(all, c.String())
	}
	if got := strings.Join(all, "; "); got != "scenarios/a.ibs:2: XX-01; scenarios/a.ibs:2: XX-02; scenarios/a.ibs:5: XX-01" {
		t.Error(got)
	}
	out := "    holds  line 2    XX-01  x\n        FAILS  line 5    XX-01  y\n  ABORTS  line 77   XX-02  z\n"
	if got := fails.FindAllStringSubmatch(out, -1); len(got) != 2 || got[0][1] != "5" || got[1][1] != "77" {
		t.Error(got)
	}
}
