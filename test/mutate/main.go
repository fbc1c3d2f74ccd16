package main

import (
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// options are the flags.
type options struct {
	rules   string
	write   bool
	check   bool
	every   int
	random  int
	seed    int
	workers int
	stories bool
	lines   bool
	verbose bool
}

func main() {
	var o options
	flag.StringVar(&o.rules, "rule", "", "only `these` rules or groups, with commas between: PK-09,QP")
	flag.BoolVar(&o.write, "write", false, "write the score into "+conformance+" (of all rules, or of whole groups)")
	flag.BoolVar(&o.stories, "stories", false, "try of each rule line of the scripts whether what is below it fails with a break of each rule that it names; -every n takes every nth script, arguments name some")
	flag.BoolVar(&o.lines, "lines", false, "with -stories: make every break, and list the expectations that no break of the rules of their section breaks")
	flag.BoolVar(&o.check, "check", false, "look whether all mutants apply and compile, and run nothing")
	flag.IntVar(&o.every, "every", 1, "only every `n`th rule that has a mutant")
	flag.IntVar(&o.random, "random", 0, "try `n` breaks at random in the packages named (docs/dev/service-rules.md's when none are), by -seed")
	flag.IntVar(&o.seed, "seed", -1, "which of them -every begins with, by the code that is broken when negative; or the breaks of -random")
	flag.IntVar(&o.workers, "workers", 2, "how many tests run at a time")
	flag.BoolVar(&o.verbose, "v", false, "say of every mutant by which test it is caught")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// run does what the flags ask for; survivors that the page does not list are an
// error.
func run(o options) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	if o.random > 0 {
		return breakAtRandom(os.Stdout, root, o.random, uint64(o.seed), flag.Args())
	}
	c, err := readCatalogue(root)
	if err != nil {
		return err
	}
	rows, err := readRows(root)
	if err != nil {
		return err
	}
	s, err := newSources(root)
	if err != nil {
		return err
	}
	if faults := check(s, c, rows); len(faults) > 0 {
		return errors.Join(faults...)
	}
	chosen := choose(c, o.rules)
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant of %s", o.rules)
	}
	if o.write && (o.every > 1 || strings.Contains(o.rules, "-")) {
		return errors.New("-write is for whole groups, or all")
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	begin := time.Now()
	l, err := newLab(root, dir, s, chosen)
	if err != nil {
		return err
	}
	if o.check {
		fmt.Printf("%d mutants apply and compile\n", len(chosen))
		return nil
	}
	if o.stories {
		return tryStories(l, chosen, o)
	}
	chosen = share(s, chosen, o.every, o.seed)
	results := tryAll(l, chosen, rows, o)
	if err := count(results, begin); err != nil {
		return err
	}
	if o.write {
		return writePage(root, func(old string) string { return page(rows, c, results, old) })
	}
	return judge(root, results)
}

// count says how many mutants are caught; all have to have been tried.
func count(results []*result, begin time.Time) error {
	faults, survivors := 0, 0
	for _, r := range results {
		switch {
		case r.err != nil:
			faults++
		case r.caughtBy == "":
			survivors++
		}
	}
	fmt.Printf("%d of %d mutants are caught, in %d s\n", len(results)-survivors-faults, len(results), int(time.Since(begin).Seconds()))
	if faults > 0 {
		return fmt.Errorf("%d mutants could not be tried", faults)
	}
	return nil
}

// judge holds survivors against the page: those that it does not list are an error.
func judge(root string, results []*result) error {
	known, err := knownSurvivors(root)
	if err != nil {
		return err
	}
	unknown := 0
	for _, r := range results {
		if r.caughtBy == "" && !known[r.mutant.name] {
			unknown++
		}
	}
	if unknown > 0 {
		return fmt.Errorf("%d mutants are not caught and not listed in %s: strengthen the tests of their rows", unknown, conformance)
	}
	return nil
}

// findRoot is the directory of the module.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no go.mod at or above %s", dir)
		}
	}
}

// choose takes the mutants of rules or groups; of all when there are none.
func choose(c *catalogue, rules string) []*mutant {
	if rules == "" {
		return c.mutants
	}
	var out []*mutant
	for _, want := range strings.Split(rules, ",") {
		for _, m := range c.mutants {
			if m.rule == want || group(m.rule) == want || m.name == want {
				out = append(out, m)
			}
		}
	}
	return out
}

// share takes the mutants of every nth rule. Where it begins follows from the code
// that the mutants break, so that in time every rule has its turn.
func share(s *sources, all []*mutant, n, seed int) []*mutant {
	if n <= 1 {
		return all
	}
	var rules []string
	sum := crc32.NewIEEE()
	for _, m := range all {
		if !slices.Contains(rules, m.rule) {
			rules = append(rules, m.rule)
		}
		for _, p := range m.places {
			d, _ := s.find(p.pkg, p.decl) // all mutants apply
			_, _ = sum.Write([]byte(d.file.at(d.from, d.to)))
		}
	}
	if seed < 0 {
		seed = int(sum.Sum32() % uint32(n))
	}
	fmt.Printf("every rule of %d, -seed %d\n", n, seed)
	return slices.DeleteFunc(slices.Clone(all), func(m *mutant) bool { return slices.Index(rules, m.rule)%n != seed%n })
}

// tryAll tries mutants, some at a time, and says what becomes of them.
func tryAll(l *lab, mutants []*mutant, rows []row, o options) []*result {
	tests := map[string][]test{}
	for _, r := range rows {
		tests[r.rule] = r.tests
	}
	results := make([]*result, len(mutants))
	var (
		wg   sync.WaitGroup
		free = make(chan struct{}, max(o.workers, 1))
		say  sync.Mutex
	)
	for i, m := range mutants {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			results[i] = l.try(m, tests[m.rule])
			say.Lock()
			defer say.Unlock()
			results[i].say(o.verbose)
		})
	}
	wg.Wait()
	return results
}

// say prints what became of a mutant, where that is worth a line.
func (r *result) say(verbose bool) {
	m := r.mutant
	switch {
	case r.err != nil:
		fmt.Printf("%-8s ERROR: %v\n", m.name, r.err)
	case r.caughtBy == "" && !r.reached:
		fmt.Printf("%-8s not caught, no test came there: %s (%s:%d)\n", m.name, m.what, m.file, m.line)
	case r.caughtBy == "":
		fmt.Printf("%-8s not caught: %s (%s:%d)\n", m.name, m.what, m.file, m.line)
	case verbose && r.overtime:
		fmt.Printf("%-8s caught, without an end: %s\n", m.name, r.caughtBy)
	case verbose:
		fmt.Printf("%-8s caught: %s\n", m.name, r.caughtBy)
	}
	for _, u := range r.unusable {
		fmt.Printf("%-8s   says nothing: %s\n", m.name, u)
	}
}
