package golden

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the files below testdata again")

// Story is a row of steps. The zero value has none.
type Story struct{ steps []step }

type step struct{ what, follows string }

// sumLength is how many bytes of the sum of what followed a file has for each step: a file of
// all that followed would be too long to read, and too long to keep.
const sumLength = 4

// line is what a file has of a step.
func (s step) line() string {
	sum := sha256.Sum256([]byte(s.follows))
	return fmt.Sprintf("%x %s", sum[:sumLength], strings.ReplaceAll(s.what, "\n", " "))
}

// Add adds a step: what happened, and all that can be seen of what followed from it.
func (s *Story) Add(what, follows string) { s.steps = append(s.steps, step{what, follows}) }

// Check fails a test unless the steps are those of a file below testdata, by name. It shows the
// first step that differs, and in full what follows from it now: what followed before, the same
// test shows on the code before with a line of the file changed. With -update it writes the
// file instead.
func (s *Story) Check(t testing.TB, name string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := s.write(file); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: -update writes it", err)
	}
	if fault := s.differs(string(data)); fault != "" {
		t.Errorf("%s:%s", file, fault)
	}
}

func (s *Story) write(file string) error {
	var text strings.Builder
	for _, x := range s.steps {
		text.WriteString(x.line() + "\n")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text.String()), 0o644)
}

// differs is the first difference to the text of a file, in words; "" for none.
func (s *Story) differs(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" {
		lines = nil
	}
	for i, x := range s.steps {
		switch {
		case i >= len(lines):
			return fmt.Sprintf("%d: the file ends before the step %q", i+1, x.what)
		case lines[i] != x.line():
			return fmt.Sprintf("%d: the file has %q, the step is %q, from which follows\n%s", i+1, lines[i], x.line(), x.follows)
		}
	}
	if len(lines) > len(s.steps) {
		return fmt.Sprintf("%d: the file has %q, and there is no such step", len(s.steps)+1, lines[len(s.steps)])
	}
	return ""
}
