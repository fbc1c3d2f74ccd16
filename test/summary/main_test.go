package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// A module of its own with a test of each kind, as go test -json tells of it.
func TestSummary(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example.com/x\n\ngo 1.26\n",
		"a/a_test.go":     "package a\nimport \"testing\"\nfunc TestGood(t *testing.T) { t.Log(\"hidden\") }\nfunc TestSkip(t *testing.T) { t.Skip(\"sim exec needs root\") }\nfunc TestSoak(t *testing.T) { t.Run(\"x\", func(t *testing.T) { t.Skip(\"IBWARDEN_SOAK is not set\") }) }\n",
		"b/b_test.go":     "package b\nimport \"testing\"\nfunc TestSkip(t *testing.T) { t.Skip(\"sim exec needs root\") }\nfunc TestMute(t *testing.T) { t.SkipNow() }\n",
		"long/l_test.go":  "package long\nimport \"testing\"\nfunc TestLong(t *testing.T) { t.Run(\"x\", func(t *testing.T) { t.Skip(\"" + need.LongReason + "an hour\") }) }\nfunc TestLast(t *testing.T) { t.Skip(\"" + need.LongReason + "a day\") }\nfunc TestScript(t *testing.T) { t.Log(\"> [short] skip '" + need.LongReason + "a year'\"); t.SkipNow() }\n",
		"slow/s_test.go":  "package slow\nimport (\"testing\"; \"time\")\nfunc TestSlow(t *testing.T) { time.Sleep(200*time.Millisecond) }\n",
		"bad/bad_test.go": "package bad\nimport \"testing\"\nfunc TestBad(t *testing.T) { t.Error(\"seen\") }\n",
		"die/d_test.go":   "package die\nimport \"testing\"\nfunc TestDie(t *testing.T) { panic(\"the end\") }\n",
		"no/no_test.go":   "package no\nfunc x() { y() }\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(ci, short bool, packages ...string) (string, bool) {
		c := exec.Command("go", append([]string{"test", "-json"}, packages...)...)
		c.Dir = dir
		text, _ := c.Output() // its status says that tests failed
		var b bytes.Buffer
		s := newSummary(&b, short)
		if err := s.consume(bytes.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		good := s.conclude(ci)
		return b.String(), good
	}
	text, good := read(false, false, "./a", "./b")
	for _, want := range []string{
		"ok  \texample.com/x/a", "\nNot tested here:\n",
		"  IBWARDEN_SOAK is not set: 1 test of example.com/x/a skipped\n",
		"  no reason given: 1 test of example.com/x/b skipped\n",
		"  sim exec needs root: 2 tests of example.com/x/a, example.com/x/b skipped\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if !good || strings.Contains(text, "hidden") {
		t.Errorf("good %v:\n%s", good, text)
	}
	if text, good = read(true, true, "./a"); good || !strings.Contains(text, "sim exec needs root: 1 test of example.com/x/a skipped (CI has to have it)") || strings.Contains(text, "not set: 1 test of example.com/x/a skipped (") {
		t.Errorf("in CI: good %v:\n%s", good, text)
	}
	if text, good = read(true, true, "./long", "./slow"); !good ||
		!strings.Contains(text, "\n3 long tests left out, make test-all runs them: example.com/x/long 3\n") || strings.Contains(text, "Not tested here") ||
		!regexp.MustCompile(`\nThe slowest tests, in seconds:\n +\d+\.\d  example\.com/x/slow TestSlow\n`).MatchString(text) {
		t.Errorf("with -short: good %v:\n%s", good, text)
	}
	if text, good = read(true, false, "./long"); good || !strings.Contains(text, "long: an hour: 1 test of example.com/x/long skipped (CI has to have it)") {
		t.Errorf("a long test left out where all are wanted: good %v:\n%s", good, text)
	}
	for pkg, want := range map[string]string{"./bad": "bad_test.go:3: seen", "./die": "panic: the end", "./no": "undefined: y"} {
		if text, good = read(false, true, "./a", pkg); good || !strings.Contains(text, want) || !strings.Contains(text, "FAIL") {
			t.Errorf("%s: good %v:\n%s", pkg, good, text)
		}
	}
	if text, good = read(false, true); good {
		t.Errorf("nothing was tested, and that is good:\n%s", text)
	}
}
