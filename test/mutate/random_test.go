package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// A module with a package that has tests, and below it one that has none.
var drawnFrom = map[string]string{
	"go.mod": "module small.test\n\ngo 1.26\n",
	"code/code.go": `package code

import "errors"

func Check(n int, on bool) error {
	if n < 3 && on {
		return errors.New("few")
	}
	return nil
}

func Next(n int) (int, bool) {
	if n == 7 {
		n = 0
	}
	return n + 1, true
}
`,
	"code/below/below.go": "package below\n\nfunc Unseen(n int) bool { return n > 1 }\n",
	"code/code_test.go": `package code

import "testing"

func TestCheck(t *testing.T) {
	for n, want := range []bool{true, true, true, false} {
		if got := Check(n, true) != nil; got != want {
			t.Errorf("%d: %v", n, got)
		}
	}
	if Check(0, false) != nil {
		t.Error("off")
	}
}

func TestNext(t *testing.T) {
	if n, ok := Next(1); n != 2 || !ok {
		t.Error("next")
	}
}
`,
}

// TestPoints: each kind of break is found where it can be.
func TestPoints(t *testing.T) {
	s, err := newSources(writeFiles(t, drawnFrom))
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.drawn([]string{"./code/..."})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range all {
		got = append(got, p.String())
	}
	want := []string{
		"code/code.go:6: condition negated: n < 3 && on",
		"code/code.go:6: early return dropped: n < 3 && on",
		"code/code.go:6: operand of && dropped: n < 3",
		"code/code.go:6: operand of && dropped: on",
		"code/code.go:6: < made <=: n < 3",
		`code/code.go:7: nil returned for an error: errors.New("few")`,
		"code/code.go:13: condition negated: n == 7",
		"code/code.go:14: statement dropped: n = 0",
		"code/code.go:13: == made !=: n == 7",
		"code/code.go:16: false returned: true",
		"code/code.go:16: +1 dropped: n + 1",
		"code/below/below.go:3: > made >=: n > 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, err := s.drawn([]string{"gone"}); err == nil {
		t.Error("a package that is not there is no error")
	}
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	if s, err = newSources(root); err != nil {
		t.Fatal(err)
	}
	if all, err := s.drawn(wings); err != nil || len(all) < 10_000 {
		t.Errorf("%d places to break in this repository, %v", len(all), err)
	}
}

// TestRandomBreaks: what the tests do not look at is not caught, all else is; the same seed
// draws the same, another one in another order; and the tree stays as it is.
func TestRandomBreaks(t *testing.T) {
	need.Long(t, "builds a module for each of many breaks")
	root := writeFiles(t, drawnFrom)
	draw := func(seed uint64) string {
		var out bytes.Buffer
		if err := breakAtRandom(&out, root, 100, seed, []string{"code/..."}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	first := draw(1)
	for _, line := range []string{
		"caught     code/code.go:6: < made <=: n < 3 (code TestCheck)",
		"caught     code/code.go:16: +1 dropped: n + 1 (code TestNext)",
		"NOT CAUGHT code/code.go:14: statement dropped: n = 0",
		"NOT CAUGHT code/below/below.go:3: > made >=: n > 1",
		"10 of 12 are caught",
	} {
		if !strings.Contains(first, line+"\n") {
			t.Errorf("no line %q in\n%s", line, first)
		}
	}
	if again := draw(1); again != first {
		t.Errorf("the same seed draws\n%s\nand before\n%s", again, first)
	}
	if draw(2) == first {
		t.Error("another seed draws the same")
	}
	for name, text := range drawnFrom {
		if now, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name))); err != nil || string(now) != text {
			t.Errorf("%s has changed: %v", name, err)
		}
	}
}
