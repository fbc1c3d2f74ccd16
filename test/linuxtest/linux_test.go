//go:build linux

package linuxtest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

var update = flag.Bool("update", false, "write what Linux answers, and docs/dev/linux-rules.md")

const (
	recorded    = "testdata/linux.json"
	page        = "../../docs/dev/linux-rules.md"
	conformance = "../../docs/dev/conformance.md"
	again       = "go test ./test/linuxtest -update, where Linux machines can run, writes it again"
)

// answers are what a subject said to each question.
type answers [][]string

func ask(t *testing.T, s subject) (all answers) {
	a := &asked{TB: t, subject: s}
	for _, p := range probes {
		a.reset()
		a.said, a.global = nil, false
		p.ask(a)
		all = append(all, a.said)
	}
	return all
}

// TestLinux asks a Linux machine, and compares what it answers with what it answered when the page was made.
func TestLinux(t *testing.T) {
	need.Long(t, "a Linux machine boots")
	got := ask(t, boot(t))
	if *update {
		b, err := json.MarshalIndent(got, "", " ")
		if err == nil {
			err = os.WriteFile(recorded, b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	want := recording(t)
	for i, p := range probes {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("%s (%s): Linux answers\n%s\nand before\n%s\n%s", p.asks, p.rows, strings.Join(got[i], "\n"), strings.Join(want[i], "\n"), again)
		}
	}
}

func recording(t *testing.T) (all answers) {
	b, err := os.ReadFile(recorded)
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(probes) {
		t.Fatalf("%s has answers to %d questions, want %d: %s", recorded, len(all), len(probes), again)
	}
	return all
}

// TestPage: the page has what our end node answers now, what Linux did, and who is right.
func TestPage(t *testing.T) {
	ours, theirs := ask(t, simulate(t)), recording(t)
	want := []byte(written(t, ours, theirs))
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(page); err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s (%v) is not what is measured: go test ./test/linuxtest -run TestPage -update writes it again", page, err)
	}
	for i, p := range probes {
		if same := slices.Equal(ours[i], theirs[i]); same != (p.differs == "") {
			t.Errorf("%s (%s): the same: %v; who is right: %q\nours\n%s\nLinux\n%s", p.asks, p.rows, same, p.differs, strings.Join(ours[i], "\n"), strings.Join(theirs[i], "\n"))
		}
	}
}

// TestEveryRow: each row of conformance.md is asked, or has a reason why not.
func TestEveryRow(t *testing.T) {
	b, err := os.ReadFile(conformance)
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([A-Z]{2}-[0-9]{2,3}) \|`).FindAllSubmatch(b, -1) {
		has[string(m[1])] = 0
	}
	if len(has) < 400 {
		t.Fatalf("%d rows in %s", len(has), conformance)
	}
	count := func(rows string) {
		for _, r := range strings.Fields(rows) {
			if n, ok := has[r]; !ok && !strings.HasSuffix(r, "-*") {
				t.Errorf("%s has no row %s", conformance, r)
			} else {
				has[r] = n + 1
			}
		}
	}
	asked := map[string]bool{}
	for _, p := range probes {
		for _, r := range strings.Fields(p.rows) {
			if !asked[r] {
				count(r)
			}
			asked[r] = true
		}
	}
	for _, r := range slices.Concat(unasked, others) {
		count(r.rows)
	}
	for r, n := range has {
		group, _, _ := strings.Cut(r, "-")
		if n == 0 && has[group+"-*"] == 0 || n > 1 {
			t.Errorf("row %s is named %d times: want it asked, or one reason why not", r, n)
		}
	}
}

// written is the page.
func written(t *testing.T, ours, theirs answers) string {
	var table strings.Builder
	agree := 0
	for i, p := range probes {
		own, linux, verdict := strings.Join(ours[i], "; "), "the same", "agrees"
		if !slices.Equal(ours[i], theirs[i]) {
			own, linux = differences(ours[i], theirs[i])
			verdict = "differs: " + p.differs
		} else {
			agree++
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s |\n", p.rows, p.asks, own, linux, verdict)
	}
	list := func(reasons []reason) (out string) {
		for _, r := range reasons {
			out += "- " + r.rows + ": " + r.why + "\n"
		}
		return strings.ReplaceAll(out, "*", "\\*")
	}
	b, err := os.ReadFile("testdata/page.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("{questions}", fmt.Sprint(len(probes)), "{agree}", fmt.Sprint(agree), "{differ}", fmt.Sprint(len(probes)-agree),
		"{table}\n", table.String(), "{unasked}\n", list(unasked), "{others}\n", list(others)).Replace(string(b))
}

// differences are the parts of two answers that are not the same, where both have as many.
func differences(a, b []string) (string, string) {
	if len(a) == len(b) {
		var x, y []string
		for i := range a {
			if a[i] != b[i] {
				x, y = append(x, a[i]), append(y, b[i])
			}
		}
		a, b = x, y
	}
	return strings.Join(a, "; "), strings.Join(b, "; ")
}
