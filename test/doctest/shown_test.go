package doctest

import (
	"path/filepath"
	"strings"
	"testing"
)

// shown are the blocks without a language and without commands that pages have, and what
// checks them, since nothing runs them here.
var shown = map[string]struct {
	blocks int
	by     string
}{
	"election.md":  {1, "commands that take minutes, and print only whether they pass"},
	"logs.md":      {3, "lines of the log: the tests of internal/app/telemetry"},
	"policy.md":    {1, "internal/app/cli/testdata/script/absent.txtar"},
	"scenarios.md": {1, "a part of a script that the commands below it run"},
	"verbs.md":     {19, "the examples of ib/verbs, which write them"},
}

// TestTranscriptsAreRun: a block that looks like what a program prints has the command
// that prints it, or stands in the list above.
func TestTranscriptsAreRun(t *testing.T) {
	for _, p := range pages(t) {
		bare, inside, plain, commands := 0, false, false, 0
		for _, line := range p.lines {
			switch {
			case strings.HasPrefix(line, fence) && !inside:
				inside, plain, commands = true, line == fence, 0
			case strings.HasPrefix(line, fence):
				if inside = false; plain && commands == 0 {
					bare++
				}
			case strings.HasPrefix(line, prompt):
				commands++
			}
		}
		if name := filepath.Base(p.name); bare != shown[name].blocks {
			t.Errorf("%s: %d blocks show something that no command on the page prints, want %d", p.name, bare, shown[name].blocks)
		}
	}
}
