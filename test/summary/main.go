// Command summary reads the output of `go test -json`, prints what `go test` would have
// printed, and at the end what `go test` does not: the slowest tests, how many long tests
// were left out, and the other skipped tests with their reasons. With CI=true a skip is a
// failure, unless mayBeSkipped has it; a long test may only be left out with -short.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/test/need"
)

// mayBeSkipped are the reasons for which tests may be skipped in CI too.
var mayBeSkipped = []*regexp.Regexp{
	regexp.MustCompile(`^IBWARDEN_SOAK is not set$`),                        // `make soak` runs them
	regexp.MustCompile(`^too strong a storm$`),                              // a fuzz target has others to try
	regexp.MustCompile(`^IBWARDEN_KUBE_APISERVER names no kube-apiserver$`), // `make test-kubernetes` builds one
}

const module = "github.com/ibwarden/ibwarden/"

// lineMax is the longest line of output, in bytes.
const lineMax = 16 << 20

// slowestShown is how many of the slowest tests are listed.
const slowestShown = 10

// event is a line of go test -json (go doc test2json).
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // seconds that a test or a package took
}

// timed is a test and the seconds that it took.
type timed struct {
	name    string
	seconds float64
}

// skip is why tests were skipped.
type skip struct {
	tests    int
	packages map[string]bool
}

// summary is what was read so far.
type summary struct {
	out    io.Writer
	short  bool                   // go test runs with -short: long tests may be left out
	output map[[2]string][]string // by package and test
	skips  map[string]*skip       // by reason
	long   map[string]int         // long tests left out, by package
	took   []timed                // tests that are no subtests
	failed bool
	read   int
}

func newSummary(out io.Writer, short bool) *summary {
	return &summary{out: out, short: short, output: map[[2]string][]string{}, skips: map[string]*skip{}, long: map[string]int{}}
}

func main() {
	short := flag.Bool("short", false, "the tests run with -short, which leaves out the long ones")
	flag.Parse()
	s := newSummary(os.Stdout, *short)
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
	if e.Elapsed > 0 && e.Test != "" && !strings.Contains(e.Test, "/") {
		s.took = append(s.took, timed{strings.TrimPrefix(e.Package, module) + " " + e.Test, e.Elapsed})
	}
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
var where = regexp.MustCompile(`^\s+\S+\.go:\d+: `)

// skipped notes why a test was skipped: what it said last.
func (s *summary) skipped(pkg string, output []string) {
	why := "no reason given"
	for _, line := range output {
		if trimmed := strings.TrimSpace(line); trimmed != "" && !strings.HasPrefix(trimmed, "--- ") && !strings.HasPrefix(trimmed, "=== ") {
			why = strings.TrimSpace(where.ReplaceAllString(strings.TrimRight(line, "\n"), ""))
		}
	}
	if said, is := strings.CutPrefix(why, "> [short] skip '"); is { // a script echoes its line
		why = strings.TrimSuffix(said, "'")
	}
	pkg = strings.TrimPrefix(pkg, module)
	if s.short && strings.HasPrefix(why, need.LongReason) {
		s.long[pkg]++
		return
	}
	if s.skips[why] == nil {
		s.skips[why] = &skip{packages: map[string]bool{}}
	}
	s.skips[why].tests++
	s.skips[why].packages[pkg] = true
}

// slowest lists the tests that took longest. Tests run side by side, so that what a test
// took depends on the others too.
func (s *summary) slowest() {
	slices.SortStableFunc(s.took, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	for i, t := range s.took[:min(len(s.took), slowestShown)] {
		if i == 0 {
			fmt.Fprintln(s.out, "\nThe slowest tests, in seconds:")
		}
		fmt.Fprintf(s.out, "  %7.1f  %s\n", t.seconds, t.name)
	}
}

// leftOut lists how many long tests were left out.
func (s *summary) leftOut() {
	if len(s.long) == 0 {
		return
	}
	var all int
	var each []string
	for _, pkg := range slices.Sorted(maps.Keys(s.long)) {
		all += s.long[pkg]
		each = append(each, fmt.Sprintf("%s %d", pkg, s.long[pkg]))
	}
	fmt.Fprintf(s.out, "\n%s left out, make test-all runs them: %s\n", count(all, "long test"), strings.Join(each, ", "))
}

// count is a number of things, with the plural where it is not one.
func count(n int, of string) string {
	if n != 1 {
		of += "s"
	}
	return fmt.Sprint(n, " ", of)
}

// conclude prints the slowest tests and the skips, and reports whether all is well.
func (s *summary) conclude(ci bool) bool {
	if s.read == 0 {
		fmt.Fprintln(s.out, "FAIL: no test has run")
		return false
	}
	s.slowest()
	s.leftOut()
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
		fmt.Fprintf(s.out, "  %s: %s of %s skipped%s\n", why, count(k.tests, "test"), strings.Join(slices.Sorted(maps.Keys(k.packages)), ", "), note)
	}
	return !s.failed && !refused
}
