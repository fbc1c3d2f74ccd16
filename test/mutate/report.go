package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The score stands between these lines of the page.
const (
	scoreBegin = "<!-- the score: made by make mutate -->"
	scoreEnd   = "<!-- end of the score -->"
)

// survivorsTitle stands before the list of mutants that are not caught.
const survivorsTitle = "Not caught:"

// score is what a group of rules comes to.
type score struct {
	rules, broken, caught int // rules; those with a mutant; those all of whose mutants are caught
	mutants, survivors    int
}

// scores are those of the groups, in the order of the rows.
func scores(rows []row, results []*result) (groups []string, by map[string]*score) {
	by = map[string]*score{}
	tried, survived := map[string]bool{}, map[string]bool{}
	for _, r := range results {
		tried[r.mutant.rule] = true
		survived[r.mutant.rule] = survived[r.mutant.rule] || r.caughtBy == ""
	}
	for _, r := range rows {
		s := by[group(r.rule)]
		if s == nil {
			s = &score{}
			by[group(r.rule)] = s
			groups = append(groups, group(r.rule))
		}
		s.rules++
		if tried[r.rule] {
			s.broken++
			if !survived[r.rule] {
				s.caught++
			}
		}
	}
	for _, r := range results {
		s := by[group(r.mutant.rule)]
		s.mutants++
		if r.caughtBy == "" {
			s.survivors++
		}
	}
	return groups, by
}

// previous is the page's content on groups that were not tried now.
type previous struct {
	scores    map[string]*score
	survivors []string // lines
}

// readPrevious reads an earlier page, except the groups that were tried now.
func readPrevious(old string, results []*result) previous {
	st := previous{scores: map[string]*score{}}
	tried := map[string]bool{}
	for _, r := range results {
		tried[group(r.mutant.rule)] = true
	}
	_, listed, _ := strings.Cut(old, survivorsTitle+"\n\n")
	for _, line := range strings.Split(listed, "\n") {
		text, item := strings.CutPrefix(line, "- ")
		if !item {
			break
		}
		if !tried[group(text)] {
			st.survivors = append(st.survivors, text)
		}
	}
	for _, line := range strings.Split(old, "\n") {
		var (
			g      string
			s      score
			caught int
		)
		n, _ := fmt.Sscanf(line, "| %s | %d | %d | %d | %d | %d |", &g, &s.rules, &s.broken, &s.caught, &s.mutants, &caught) // others lines are no rows
		if s.survivors = s.mutants - caught; n == 6 && !tried[g] {
			st.scores[g] = &s
		}
	}
	return st
}

// page is the score as it stands on the page of rules: of groups that were tried
// now, and of the others as it stands there already.
func page(rows []row, c *catalogue, results []*result, old string) string {
	var b strings.Builder
	b.WriteString("| group | rules | with a break | all caught | breaks | caught |\n|---|---|---|---|---|---|\n")
	before := readPrevious(old, results)
	groups, by := scores(rows, results)
	var sum score
	for _, g := range groups {
		s := by[g]
		if was := before.scores[g]; was != nil {
			s = was
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d |\n", g, s.rules, s.broken, s.caught, s.mutants, s.mutants-s.survivors)
		sum.rules, sum.broken, sum.caught = sum.rules+s.rules, sum.broken+s.broken, sum.caught+s.caught
		sum.mutants, sum.survivors = sum.mutants+s.mutants, sum.survivors+s.survivors
	}
	fmt.Fprintf(&b, "| all | %d | %d | %d | %d | %d |\n\n", sum.rules, sum.broken, sum.caught, sum.mutants, sum.mutants-sum.survivors)
	list := func(title, none string, lines []string) {
		if len(lines) == 0 {
			b.WriteString(none + "\n")
			return
		}
		b.WriteString(title + "\n\n- " + strings.Join(lines, "\n- ") + "\n")
	}
	survivors, without := before.survivors, []string(nil)
	for _, r := range results {
		if r.caughtBy == "" {
			survivors = append(survivors, r.mutant.name+": "+r.mutant.what)
		}
	}
	tried := map[string]bool{}
	for _, m := range c.mutants {
		tried[m.rule] = true
	}
	unwritten := map[string][]string{}
	for _, r := range rows {
		switch why := c.without[r.rule]; {
		case tried[r.rule]:
		case why == "":
			unwritten[group(r.rule)] = append(unwritten[group(r.rule)], r.rule)
		default:
			without = append(without, r.rule+": "+why)
		}
	}
	for _, g := range groups {
		if ids := unwritten[g]; len(ids) > 0 {
			without = append(without, "nobody has written one yet: "+strings.Join(ids, ", "))
		}
	}
	list(survivorsTitle, "Every break is caught.", survivors)
	b.WriteString("\n")
	list("Rules without a break:", "Every rule has a break.", without)
	return b.String()
}

// knownSurvivors are the mutants that the page lists as not caught.
func knownSurvivors(root string) (map[string]bool, error) {
	text, err := os.ReadFile(filepath.Join(root, conformance))
	if err != nil {
		return nil, err
	}
	_, scored, _ := strings.Cut(string(text), scoreBegin)
	_, listed, _ := strings.Cut(scored, survivorsTitle+"\n\n")
	out := map[string]bool{}
	for _, line := range strings.Split(listed, "\n") {
		name, _, item := strings.Cut(line, ": ")
		if !item || !strings.HasPrefix(name, "- ") {
			break
		}
		out[strings.TrimPrefix(name, "- ")] = true
	}
	return out, nil
}

// writePage puts the score, made of the one that was there, between its two lines.
func writePage(root string, text func(old string) string) error {
	path := filepath.Join(root, conformance)
	all, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, begins := strings.Cut(string(all), scoreBegin+"\n")
	old, tail, ends := strings.Cut(rest, scoreEnd+"\n")
	if !begins || !ends {
		return fmt.Errorf("%s: want the lines %q and %q", path, scoreBegin, scoreEnd)
	}
	return os.WriteFile(path, []byte(head+scoreBegin+"\n"+text(old)+scoreEnd+"\n"+tail), 0o644)
}
