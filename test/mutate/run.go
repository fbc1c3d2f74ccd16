package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// patience is how long a test may take with a mutant, beside patienceRatio
	// times what it takes without: a mutant that goes round for ever is caught too.
	patience      = 60 * time.Second
	patienceRatio = 10
	// soundTime bounds a test without a mutant.
	soundTime = 10 * time.Minute
	// mostMemory is how much address space a test may use, in KiB: a mutant that
	// allocates for ever shall not take the machine with it.
	mostMemory = 8 << 20
)

// result is what became of a mutant.
type result struct {
	mutant   *mutant
	caughtBy string   // the test; empty when all passed
	overtime bool     // it was caught by not coming to an end
	reached  bool     // a test came to the changed code; not known of constants and types
	unusable []string // tests of the row that say nothing here, and why
	err      error
}

// lab builds tests and runs them.
type lab struct {
	root, dir string
	sources   *sources
	overlay   string         // file for go build -overlay, with all mutants that can be switched
	weight    map[string]int // packages behind the tests of each package

	mu     sync.Mutex
	builds map[string]*binary
	sound  map[string]*soundness
}

// binary is the test program of a package.
type binary struct {
	once sync.Once
	path string
	err  error
}

// soundness is how a test does without a mutant.
type soundness struct {
	once    sync.Once
	pattern string        // for -test.run
	took    time.Duration // how long
	fault   string        // why it says nothing: it fails or is skipped
}

// newLab makes the overlay of the mutants and tries to build what it changes.
func newLab(root, dir string, s *sources, mutants []*mutant) (*lab, error) {
	l := &lab{root: root, dir: dir, sources: s, builds: map[string]*binary{}, sound: map[string]*soundness{}}
	o := newOverlay(s)
	for _, m := range mutants {
		if needsOwnBuild(s, m) {
			continue
		}
		if err := o.add(m); err != nil {
			return nil, err
		}
	}
	var err error
	if l.overlay, err = o.write(l.dir); err != nil {
		return nil, err
	}
	for module, packages := range o.packages() {
		if out, err := goTool(module, append([]string{"build", "-overlay", l.overlay}, packages...)...); err != nil {
			return nil, fmt.Errorf("mutants do not compile:\n%s", out)
		}
	}
	return l, l.weigh()
}

// goTool runs the go command in the directory of a module.
func goTool(module string, args ...string) (string, error) {
	c := exec.Command("go", args...)
	c.Dir = module
	out, err := c.CombinedOutput()
	return string(out), err
}

// weigh counts what stands behind the tests of each package: tests of small
// packages run first.
func (l *lab) weigh() error {
	c := exec.Command("go", "list", "-test", "-f", "{{.ImportPath}} {{len .Deps}}", "./...")
	c.Dir = l.root
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	l.weight = map[string]int{}
	for _, line := range strings.Split(string(out), "\n") {
		name, n, _ := strings.Cut(line, ".test ")
		if pkg, ok := strings.CutPrefix(name, l.sources.module+"/"); ok {
			l.weight[pkg], _ = strconv.Atoi(n) // 0 for lines about packages that are no tests
		}
	}
	return nil
}

// testsOf builds the tests of a package with an overlay, once.
func (l *lab) testsOf(overlay, pkg string) (string, error) {
	l.mu.Lock()
	key := overlay + " " + pkg
	b := l.builds[key]
	if b == nil {
		b = &binary{path: filepath.Join(l.dir, fmt.Sprintf("%d.test", len(l.builds)))}
		l.builds[key] = b
	}
	l.mu.Unlock()
	b.once.Do(func() {
		module, rel := l.sources.moduleOf(pkg)
		if out, err := goTool(module, "test", "-c", "-vet=off", "-overlay", overlay, "-o", b.path, rel); err != nil {
			b.err = fmt.Errorf("tests of %s do not compile:\n%s", pkg, out)
		}
	})
	return b.path, b.err
}

// try runs the tests of the row until one notices the mutant.
func (l *lab) try(m *mutant, tests []test) *result {
	r := &result{mutant: m}
	overlay, err := l.overlayOf(r)
	if err != nil {
		r.err = err
		return r
	}
	tests = slices.Clone(tests)
	slices.SortStableFunc(tests, func(a, b test) int { return l.weight[a.pkg] - l.weight[b.pkg] })
	for _, t := range tests {
		s, err := l.soundness(t)
		if err != nil {
			r.err = err
			return r
		}
		if s.fault != "" {
			r.unusable = append(r.unusable, t.String()+": "+s.fault)
			continue
		}
		if l.notices(r, overlay, t, s); r.err != nil || r.caughtBy != "" {
			return r
		}
	}
	if len(r.unusable) == len(tests) {
		r.err = fmt.Errorf("no test of the row says anything here: %s", strings.Join(r.unusable, "; "))
	}
	return r
}

// overlayOf is the overlay of the build in which a mutant is: that of all, or one of its own,
// of which it is not known whether a test comes there.
func (l *lab) overlayOf(r *result) (string, error) {
	if !needsOwnBuild(l.sources, r.mutant) {
		return l.overlay, nil
	}
	r.reached = true
	dir, err := os.MkdirTemp(l.dir, "own")
	if err != nil {
		return "", err
	}
	o := newOverlay(l.sources)
	if err := o.change(r.mutant); err != nil {
		return "", err
	}
	return o.write(dir)
}

// notices runs one test with the mutant, and returns what it printed.
func (l *lab) notices(r *result, overlay string, t test, s *soundness) string {
	path, err := l.testsOf(overlay, t.pkg)
	if err != nil {
		r.err = fmt.Errorf("%s: %w", r.mutant.name, err)
		return ""
	}
	mark := filepath.Join(l.dir, "reached-"+r.mutant.ident())
	out, overtime, err := l.run(path, t.pkg, patience+patienceRatio*s.took,
		[]string{mutantVariable + "=" + r.mutant.name, reachedVariable + "=" + mark}, "-test.run", s.pattern)
	if _, missing := os.Stat(mark); missing == nil {
		r.reached = true
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
	case overtime:
		r.caughtBy, r.overtime = t.String(), true
	case errors.As(err, &exit):
		r.caughtBy = t.String()
	default:
		r.err = fmt.Errorf("%s: %w\n%s", t, err, out)
	}
	return out
}

// soundness runs a test without a mutant, once: it has to pass. The part of a test
// may be a subtest, one of a subtest, or no subtest at all; then the whole test runs.
func (l *lab) soundness(t test) (*soundness, error) {
	l.mu.Lock()
	s := l.sound[t.String()]
	if s == nil {
		s = &soundness{}
		l.sound[t.String()] = s
	}
	l.mu.Unlock()
	path, err := l.testsOf(l.overlay, t.pkg)
	if err != nil {
		return nil, err
	}
	s.once.Do(func() {
		for _, pattern := range t.patterns() {
			begin := time.Now()
			out, _, err := l.run(path, t.pkg, soundTime, nil, "-test.v", "-test.run", pattern)
			s.took, s.pattern = time.Since(begin), pattern
			ran, skipped := t.ran(out, pattern)
			if err != nil {
				s.fault = "it fails without a mutant"
			} else if ran && skipped {
				s.fault = "it is skipped here"
			} else if !ran {
				s.fault = "there is no such test"
				continue
			} else {
				s.fault = ""
			}
			return
		}
	})
	return s, nil
}

// run runs a test binary in the directory of its package.
func (l *lab) run(path, pkg string, most time.Duration, env []string, args ...string) (string, bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -v ` + strconv.Itoa(mostMemory) + ` 2>/dev/null; exec "$@"`, "sh", path, "-test.timeout=0"},
		append(args, l.steady(pkg)...)...)...)
	c.Dir = filepath.Join(l.root, filepath.FromSlash(pkg))
	c.Env = append(os.Environ(), env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.String(), ctx.Err() != nil, err
}

// steady are flags that make random tests of a package take the same way each
// time, and leave no files behind.
func (l *lab) steady(pkg string) []string {
	files, _ := filepath.Glob(filepath.Join(l.root, filepath.FromSlash(pkg), "*_test.go")) // the pattern is well-formed
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && bytes.Contains(text, []byte(`"pgregory.net/rapid"`)) {
			return []string{"-rapid.nofailfile", "-rapid.seed=1"}
		}
	}
	return nil
}

// patterns are those for -test.run that may select the test, best first.
func (t test) patterns() []string {
	name := "^" + t.name + "$"
	if t.part == "" {
		return []string{name}
	}
	var parts []string
	for _, p := range strings.Split(t.part, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(strings.ReplaceAll(p, " ", "_"))+"($|[^0-9A-Za-z])")
	}
	part := strings.Join(parts, "/")
	return []string{name + "/" + part, name + "/./" + part, name}
}

// ran reports whether the output has verdicts on what a pattern selects, and
// whether all of that was skipped.
func (t test) ran(out, pattern string) (ran, skipped bool) {
	passed := false
	for _, line := range strings.Split(out, "\n") {
		verdict, name, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || !strings.HasPrefix(verdict, "--- ") || strings.Count(name, "/") < strings.Count(pattern, "/") {
			continue
		}
		ran = true
		passed = passed || verdict == "--- PASS"
	}
	return ran, !passed
}
