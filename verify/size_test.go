package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// linesMost is how long the checker may be, so that somebody can read it in an hour.
const linesMost = 800

func TestReadableInAnHour(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	lines, read := 0, 0
	imports := regexp.MustCompile(`(?m)^(?:import|\t)\s*(?:[a-z]+ )?"([^"]*)"$`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		lines, read = lines+bytes.Count(text, []byte("\n")), read+1
		for _, m := range imports.FindAllSubmatch(text, -1) {
			if strings.Contains(string(m[1]), ".") {
				t.Errorf("%s imports %s, which is not of the standard library", name, m[1])
			}
		}
	}
	if read < 3 || lines > linesMost {
		t.Errorf("%d lines in %d files, want at most %d", lines, read, linesMost)
	}
	module, err := os.ReadFile("go.mod")
	if err != nil || bytes.Contains(module, []byte("require")) {
		t.Errorf("go.mod requires something, or cannot be read: %v", err)
	}
}
