package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// wings are the packages that random breaks are drawn from when none are named: those of
// docs/dev/service-rules.md.
var wings = []string{
	"internal/api/...", "internal/resource", "internal/service", "internal/store/...", "internal/master", "internal/manager/...",
	"internal/judge/routes", "internal/migrate/...", "internal/app/...", "internal/simserve/...", "internal/web", "internal/metrics",
	"kubernetes/controller", "kubernetes/admission",
}

const (
	// randomPatience bounds the tests of a package with a break, beside randomRatio times
	// what they take without.
	randomPatience = 30 * time.Second
	randomRatio    = 3
)

// tests of a package, as they do without a break.
type suite struct {
	pkgs  []string
	took  time.Duration
	fault string
}

// breakAtRandom draws breaks until n of them compile, and prints what the tests of their
// packages make of each.
func breakAtRandom(w io.Writer, root string, n int, seed uint64, patterns []string) error {
	s, err := newSources(root)
	if err != nil {
		return err
	}
	if len(patterns) == 0 {
		patterns = wings
	}
	all, err := s.drawn(patterns)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	fmt.Fprintf(w, "%d places to break, -seed %d\n", len(all), seed)
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := &lab{root: root, dir: dir, sources: s}
	suites, tried, caught := map[string]*suite{}, map[string]int{}, map[string]int{}
	total, sum := 0, 0
	for _, p := range all {
		if total == n {
			break
		}
		pkg := path.Dir(p.file.rel)
		if suites[pkg] == nil {
			if suites[pkg] = l.suiteOf(pkg); suites[pkg].fault != "" {
				fmt.Fprintf(w, "%s: %s\n", pkg, suites[pkg].fault)
			}
		}
		by, compiles, err := l.attempt(p, suites[pkg])
		if err != nil {
			return err
		}
		if !compiles {
			continue
		}
		total++
		tried[wing(pkg)]++
		if by == "" {
			fmt.Fprintf(w, "NOT CAUGHT %v\n", p)
			continue
		}
		sum++
		caught[wing(pkg)]++
		fmt.Fprintf(w, "caught     %v (%s)\n", p, by)
	}
	for _, name := range slices.Sorted(maps.Keys(tried)) {
		fmt.Fprintf(w, "%-28s %d of %d\n", name, caught[name], tried[name])
	}
	fmt.Fprintf(w, "%d of %d are caught\n", sum, total)
	return nil
}

// wing is the first two or three parts of a package's path.
func wing(pkg string) string {
	parts := strings.Split(pkg, "/")
	n := 2
	if len(parts) > 2 && (parts[1] == "manager" || parts[1] == "judge") {
		n = 3
	}
	return strings.Join(parts[:min(n, len(parts))], "/")
}

// drawn are the points of the packages that patterns name: directories, or with /... those
// below too.
func (s *sources) drawn(patterns []string) ([]point, error) {
	var out []point
	for _, pattern := range patterns {
		dir, below := strings.CutSuffix(strings.TrimPrefix(pattern, "./"), "/...")
		dirs := []string{dir}
		if below {
			dirs = nil
			err := filepath.WalkDir(filepath.Join(s.root, filepath.FromSlash(dir)), func(at string, e os.DirEntry, err error) error {
				if err != nil || !e.IsDir() {
					return err
				}
				if e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") {
					return filepath.SkipDir
				}
				rel, err := filepath.Rel(s.root, at)
				dirs = append(dirs, filepath.ToSlash(rel))
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		had := len(out)
		for _, d := range dirs {
			files, err := s.files(d)
			if err != nil {
				return nil, err
			}
			for _, f := range files {
				out = append(out, f.points()...)
			}
		}
		if len(out) == had {
			return nil, fmt.Errorf("%s: nothing to break: want a directory of the repository that has code, with /... for all below it", pattern)
		}
	}
	return out, nil
}

// suiteOf finds the tests of a package: its own; where it has none, those of the nearest
// package above; where there are none either, those of the packages beside it that use it.
func (l *lab) suiteOf(pkg string) *suite {
	x := &suite{}
	for at := pkg; at != "." && len(x.pkgs) == 0; at = path.Dir(at) {
		if l.hasTests(at) {
			x.pkgs = []string{at}
		}
	}
	if len(x.pkgs) == 0 {
		beside, _ := filepath.Glob(filepath.Join(l.root, filepath.FromSlash(path.Dir(pkg)), "*", "*.go")) // the pattern is well-formed
		for _, f := range beside {
			rel, err := filepath.Rel(l.root, filepath.Dir(f))
			text, err2 := os.ReadFile(f)
			if at := filepath.ToSlash(rel); errors.Join(err, err2) == nil && !slices.Contains(x.pkgs, at) && l.hasTests(at) &&
				bytes.Contains(text, []byte(`"`+l.sources.module+"/"+pkg+`"`)) {
				x.pkgs = append(x.pkgs, at)
			}
		}
	}
	if len(x.pkgs) == 0 {
		x.fault = "no tests"
		return x
	}
	begin := time.Now()
	if by, _, err := l.fails(x, "", soundTime); err != nil {
		x.fault = err.Error()
	} else if by != "" {
		x.fault = "the tests fail without a break: " + by
	}
	x.took = time.Since(begin)
	return x
}

func (l *lab) hasTests(pkg string) bool {
	files, _ := filepath.Glob(filepath.Join(l.root, filepath.FromSlash(pkg), "*_test.go")) // the pattern is well-formed
	return len(files) > 0
}

// attempt tries one break: caught by a test, by not coming to an end, or by nothing. One that
// does not compile is none, nor is one whose tests fail as it is.
func (l *lab) attempt(p point, x *suite) (by string, compiles bool, err error) {
	if x.fault != "" && x.fault != "no tests" {
		return "", false, nil
	}
	dir, err := os.MkdirTemp(l.dir, "own")
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(dir)
	o := newOverlay(l.sources)
	o.edit(p.file, p.from, p.to, p.text)
	overlay, err := o.write(dir)
	if err != nil {
		return "", false, err
	}
	module, rel := l.sources.moduleOf(path.Dir(p.file.rel))
	if _, err := goTool(module, "build", "-overlay", overlay, "-o", os.DevNull, rel); err != nil {
		return "", false, nil
	}
	by, overtime, err := l.fails(x, overlay, randomPatience+randomRatio*x.took)
	if overtime {
		by = "without an end: " + by
	}
	return by, true, err
}

// fails runs the tests of a suite; by is the first that fails, or the package in which none
// comes to an end in time.
func (l *lab) fails(x *suite, overlay string, most time.Duration) (by string, overtime bool, err error) {
	binary := filepath.Join(l.dir, "random.test")
	for _, pkg := range x.pkgs {
		module, rel := l.sources.moduleOf(pkg)
		args := []string{"test", "-c", "-vet=off", "-o", binary}
		if overlay != "" {
			args = append(args, "-overlay", overlay)
		}
		if out, err := goTool(module, append(args, rel)...); err != nil {
			return "", false, fmt.Errorf("tests of %s do not compile:\n%s", pkg, out)
		}
		out, overtime, err := l.run(binary, pkg, most, nil, "-test.failfast")
		var exit *exec.ExitError
		switch {
		case err == nil:
		case overtime:
			return pkg, true, nil
		case errors.As(err, &exit):
			return firstFailed(pkg, out), false, nil
		default:
			return "", false, fmt.Errorf("tests of %s: %w", pkg, err)
		}
	}
	return "", false, nil
}

// firstFailed is the first test in the output that fails.
func firstFailed(pkg, out string) string {
	for _, line := range strings.Split(out, "\n") {
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " ")
			return pkg + " " + name
		}
	}
	return pkg
}
