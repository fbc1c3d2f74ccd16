// Command summary reads the output of `go test -json`, prints what `go test` would have
// printed, and lists the skipped tests with their reasons at the end, which `go test`
// does not. With CI=true a skip is a failure, unless mayBeSkipped has it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// mayBeSkipped are the reasons for which tests may be skipped in CI too.
var mayBeSkipped = []*regexp.Regexp{
	regexp.MustCompile(`^IBWARDEN_SOAK is not set$`),                        // `make soak` runs them
	regexp.MustCompile(`^too strong a storm$`),                              // a fuzz target has others to try
	regexp.MustCompile(`^IBWARDEN_KUBE_APISERVER names no kube-apiserver$`), // `make test-kubernetes` builds one
}

const module = "github.com/ibwarden/ibwarden/"

// lineMax is the longest line of output, in octets.
const lineMax = 16 << 20

// event is a line of go test -json (go doc test2json).
type event struct {
	Action, Package, ImportPath, Test, Output string
}

// skip is why tests were skipped.
type skip struct {
	tests    int
	packages map[string]bool
}

// summary is what was read so far.
type summary struct {
	out    io.Writer
	output map[[2]string][]string // by package and test
	skips  map[string]*skip
	failed bool
	read   int
}

func main() {
	s := &summary{out: os.Stdout, output: map[[2]string][]string{}, skips: map[string]*skip{}}
	if err := s.consume(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "summary:", err)
		os.Exit(1)
	}
	if !s.conclude(os.Getenv("CI") == "true") {
		os.Exit(1)
	}
}

func (s *summary) consume(from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, lineMax)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(s.out, lines.Text()) // go itself complains
			s.failed = true
			continue
		}
		s.read++
		s.take(&e)
	}
	return lines.Err()
}

func (s *summary) take(e *event) {
	at := [2]string{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(s.out, e.Output)
	case "build-fail":
		s.failed = true
	case "output":
		s.output[at] = append(s.output[at], e.Output)
	case "skip":
		if e.Test != "" {
			s.skipped(e.Package, s.output[at])
		}
		s.end(e, false)
	case "pass":
		s.end(e, false)
	case "fail":
		s.failed = true
		s.end(e, true)
	}
}

// end prints what is to be said of a test or of a whole package.
func (s *summary) end(e *event, failed bool) {
	at := [2]string{e.Package, e.Test}
	if e.Test == "" && failed {
		// What tests said that did not come to an end.
		for _, key := range slices.SortedFunc(maps.Keys(s.output), func(a, b [2]string) int { return strings.Compare(a[1], b[1]) }) {
			if key[0] == e.Package && key[1] != "" {
				s.print(s.output[key], true)
				delete(s.output, key)
			}
		}
	}
	s.print(s.output[at], failed)
	delete(s.output, at)
}

// print prints an output: all of it but the names of tests that run, or only what go
// test prints of a package that passes.
func (s *summary) print(output []string, all bool) {
	for _, line := range output {
		progress := strings.HasPrefix(line, "=== ") || line == "PASS\n"
		if all && !progress || strings.HasPrefix(line, "ok  \t") {
			fmt.Fprint(s.out, line)
		}
	}
}

// where is the place in a source file before a reason.
var where = regexp.MustCompile(`^\s+\S+_test\.go:\d+: |^\s+need\.go:\d+: `)

// skipped notes why a test was skipped: what it said last.
func (s *summary) skipped(pkg string, output []string) {
	why := "no reason given"
	for _, line := range output {
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "--- ") && !strings.HasPrefix(trimmed, "=== ") {
			why = strings.TrimSpace(where.ReplaceAllString(strings.TrimRight(line, "\n"), ""))
		}
	}
	if s.skips[why] == nil {
		s.skips[why] = &skip{packages: map[string]bool{}}
	}
	s.skips[why].tests++
	s.skips[why].packages[strings.TrimPrefix(pkg, module)] = true
}

// conclude prints the skips and reports whether all is well.
func (s *summary) conclude(ci bool) bool {
	if s.read == 0 {
		fmt.Fprintln(s.out, "FAIL: no test has run")
		return false
	}
	refused := false
	for i, why := range slices.Sorted(maps.Keys(s.skips)) {
		if i == 0 {
			fmt.Fprintln(s.out, "\nNot tested here:")
		}
		note := ""
		if ci && !slices.ContainsFunc(mayBeSkipped, func(re *regexp.Regexp) bool { return re.MatchString(why) }) {
			refused, note = true, " (CI has to have it)"
		}
		k := s.skips[why]
		tests := "tests"
		if k.tests == 1 {
			tests = "test"
		}
		fmt.Fprintf(s.out, "  %s: %d %s of %s skipped%s\n", why, k.tests, tests, strings.Join(slices.Sorted(maps.Keys(k.packages)), ", "), note)
	}
	return !s.failed && !refused
}
