package audit

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// required is a row of testdata/catalogue.txt.
type required struct {
	number          int
	severity, where string
}

func readRequired(t *testing.T) (rows []required) {
	t.Helper()
	f, err := os.Open("testdata/catalogue.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var r required
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		if _, err := fmt.Sscan(s.Text(), &r.number, &r.severity, &r.where); err != nil {
			t.Fatalf("%q: %v", s.Text(), err)
		}
		rows = append(rows, r)
	}
	return rows
}

// Every check that was asked for is there with its severity. What can be read
// over the wire is checked: the good fabric passes it, and a fixture fails it.
// The rest is checked all the same, or listed with the reason.
func TestRequiredCatalogue(t *testing.T) {
	rows, all := readRequired(t), Catalogue()
	if len(rows) != len(all) {
		t.Fatalf("%d checks are asked for, there are %d", len(rows), len(all))
	}
	good := newSite()
	report := Audit(good.f, good.intent, good.options)
	severities := map[string]Severity{"C": Critical, "H": High, "M": Medium, "L": Low}
	for i, r := range rows {
		e := all[i]
		if e.Number != r.number || e.Severity != severities[r.severity] {
			t.Errorf("check %d, %s: number %d, severity %s", r.number, r.severity, e.Number, e.Severity)
		}
		listed := slices.ContainsFunc(report.NotCheckable, func(n NotCheckable) bool { return n.Number == r.number && n.Reason != "" })
		switch {
		case !e.Checkable && r.where == "wire":
			t.Errorf("check %d, %s, can be read over the wire and is not checked", r.number, e.Check)
		case !e.Checkable && !listed:
			t.Errorf("check %d, %s, is neither made nor listed with a reason", r.number, e.Check)
		case e.Checkable && (!slices.Contains(report.Passed, e.Check) || len(fixtures[e.Check]) == 0):
			t.Errorf("check %d, %s: the good fabric passes it: %v; %d fixtures fail it", r.number, e.Check,
				slices.Contains(report.Passed, e.Check), len(fixtures[e.Check]))
		}
	}
}

// A report fails by its worst finding, from the severity on that was asked for;
// one that does not know something fails always.
func TestFails(t *testing.T) {
	all := []Severity{Low, Medium, High, Critical}
	for i, found := range all {
		r := Report{}
		*map[Severity]*int{Low: &r.Counts.Low, Medium: &r.Counts.Medium, High: &r.Counts.High, Critical: &r.Counts.Critical}[found] = 1
		for j, from := range all {
			if got, want := r.Fails(from), i >= j; got != want {
				t.Errorf("a %s finding, --fail-on %s: fails %v", found, from, got)
			}
		}
	}
	for _, from := range all {
		if unknown := (&Report{Counts: Counts{Unknown: 1}}); !unknown.Fails(from) || (&Report{}).Fails(from) {
			t.Errorf("--fail-on %s: nothing found fails, or unknown does not", from)
		}
	}
}
