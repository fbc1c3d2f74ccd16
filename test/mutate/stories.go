package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// storiesDir has the scripts that rows name, from the root of the repository.
const storiesDir = "scenarios"

// section is a rule line of a script: what is expected below it shows the rules that it names.
type section struct {
	script string // its file name
	line   int
	rules  []string
	// expects are the lines of its expectations.
	expects []int
}

var (
	ruleLine = regexp.MustCompile(`^rule ((?:[A-Z]{2}-[0-9]{2,3},? ?)+)`)
	// fails is what a report says of a section in which something did not hold.
	fails = regexp.MustCompile(`(?m)^\s*(?:FAILS|ABORTS) +line (\d+) `)
	// failed is what a report says of an expectation that did not hold.
	failed = regexp.MustCompile(`(?m)^\s*[\w-]+\.ibs:(\d+): expect `)
	// reported is in every report: a run without one broke off, or did not end.
	reported = regexp.MustCompile(`(?m)^\s*(?:holds|FAILS|ABORTS|not run) +line \d+ `)
)

// readSections reads the rule lines of every script.
func readSections(root string) ([]section, error) {
	files, err := filepath.Glob(filepath.Join(root, storiesDir, "*.ibs"))
	if err != nil {
		return nil, err
	}
	var out []section
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		first := len(out)
		for i, line := range strings.Split(string(text), "\n") {
			if m := ruleLine.FindStringSubmatch(line); m != nil {
				out = append(out, section{script: filepath.Base(f), line: i + 1, rules: strings.Fields(strings.ReplaceAll(m[1], ",", " "))})
			} else if strings.HasPrefix(line, "expect ") && len(out) > first {
				s := &out[len(out)-1]
				s.expects = append(s.expects, i+1)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no rule line in %s: not read right", storiesDir)
	}
	return out, nil
}

// claim is that a section of a script shows a rule.
type claim struct {
	section
	rule string
}

func (c claim) String() string {
	return fmt.Sprintf("%s/%s:%d: %s", storiesDir, c.script, c.line, c.rule)
}

// shownHere tries each claim: of the breaks of its rule one at least has to fail in the
// section that is to show it. It returns the claims that hold whatever is broken.
func shownHere(l *lab, mutants []*mutant, sections []section, o options) (empty []claim, tried int, err error) {
	breaks := map[string][]*mutant{}
	for _, m := range mutants {
		breaks[m.rule] = append(breaks[m.rule], m)
	}
	var (
		wg     sync.WaitGroup
		free   = make(chan struct{}, max(o.workers, 1))
		mu     sync.Mutex
		faults []error
		seen   = map[string]bool{} // expectations that a break broke, by script and line
	)
	for _, c := range claims(sections) {
		if len(breaks[c.rule]) == 0 {
			continue
		}
		tried++
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			by, broken, err := l.showing(c, breaks[c.rule], o.lines)
			mu.Lock()
			defer mu.Unlock()
			for _, line := range broken {
				seen[fmt.Sprint(c.script, ":", line)] = true
			}
			switch {
			case err != nil:
				faults = append(faults, fmt.Errorf("%v: %w", c, err))
			case by == nil:
				empty = append(empty, c)
				fmt.Printf("%v: holds whichever of the %d breaks of the rule is made\n", c, len(breaks[c.rule]))
			case o.verbose:
				fmt.Printf("%v: fails with %s: %s\n", c, by.name, by.what)
			}
		})
	}
	wg.Wait()
	if o.lines {
		sayUnbroken(sections, seen)
	}
	return empty, tried, errors.Join(faults...)
}

// sayUnbroken lists the expectations that no break of the rules of their section breaks.
func sayUnbroken(sections []section, seen map[string]bool) {
	all, unbroken := 0, 0
	for _, s := range sections {
		for _, line := range s.expects {
			all++
			if at := fmt.Sprint(s.script, ":", line); !seen[at] {
				unbroken++
				fmt.Printf("%s/%s: no break of %s breaks this\n", storiesDir, at, strings.Join(s.rules, ", "))
			}
		}
	}
	fmt.Printf("%d of %d expectations fail with a break of a rule of their section\n", all-unbroken, all)
}

// claims lists what sections claim, each once.
func claims(sections []section) (out []claim) {
	for _, s := range sections {
		for _, rule := range slices.Compact(slices.Sorted(slices.Values(s.rules))) {
			out = append(out, claim{s, rule})
		}
	}
	return out
}

// showing is a break with which the section fails, nil for none; with all of them made, also the
// lines of the section's expectations that fail with one.
func (l *lab) showing(c claim, breaks []*mutant, all bool) (by *mutant, broken []int, err error) {
	t := stories
	t.part = c.script
	// Those that need a build of their own come last.
	own := func(m *mutant) int { return map[bool]int{true: 1}[needsOwnBuild(l.sources, m)] }
	breaks = slices.SortedStableFunc(slices.Values(breaks), func(a, b *mutant) int { return own(a) - own(b) })
	for _, m := range breaks {
		r := &result{mutant: m}
		overlay, err := l.overlayOf(r)
		if err != nil {
			return nil, nil, err
		}
		s, err := l.soundness(t)
		if err == nil && s.fault != "" {
			err = errors.New(s.fault)
		}
		if err != nil {
			return nil, nil, err
		}
		out := l.notices(r, overlay, t, s)
		if r.err != nil {
			return nil, nil, r.err
		}
		// A run that breaks off, or does not end, has not shown the rule either. One that fails in
		// what stands above the section has not come to it, or has shown that it holds.
		here := slices.ContainsFunc(fails.FindAllStringSubmatch(out, -1), func(m []string) bool { return m[1] == fmt.Sprint(c.line) })
		if by == nil && r.caughtBy != "" && (here || !reported.MatchString(out)) {
			by = m
		}
		if by != nil && !all {
			break
		}
		for _, f := range failed.FindAllStringSubmatch(out, -1) {
			if line, err := strconv.Atoi(f[1]); err == nil && slices.Contains(c.expects, line) {
				broken = append(broken, line)
			}
		}
	}
	return by, broken, nil
}

// shareOfSections is every nth script, from seed on.
func shareOfSections(all []section, n, seed int) []section {
	if n <= 1 {
		return all
	}
	names := map[string]bool{}
	for _, s := range all {
		names[s.script] = true
	}
	order := slices.Sorted(maps.Keys(names))
	return slices.DeleteFunc(slices.Clone(all), func(s section) bool { return slices.Index(order, s.script)%n != max(seed, 0)%n })
}

// tryStories tries the claims of the scripts about the rules of these mutants.
func tryStories(l *lab, mutants []*mutant, o options) error {
	sections, err := readSections(l.root)
	if err != nil {
		return err
	}
	if only := flag.Args(); len(only) > 0 {
		sections = slices.DeleteFunc(sections, func(s section) bool { return !slices.Contains(only, s.script) })
	}
	empty, tried, err := shownHere(l, mutants, shareOfSections(sections, o.every, o.seed), o)
	if err != nil {
		return err
	}
	fmt.Printf("%d of %d claims of scripts fail with a break of their rule\n", tried-len(empty), tried)
	if len(empty) == 0 {
		return nil
	}
	names := make([]string, len(empty))
	for i, c := range empty {
		names[i] = c.String()
	}
	return fmt.Errorf("%d claims show nothing: strengthen the expectations below these rule lines, break the side of the rule that they are about, or take the rule off:\n%s",
		len(empty), strings.Join(names, "\n"))
}
