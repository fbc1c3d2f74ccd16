package engine

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// taken are the steps that the tests of this package took.
var taken sync.Map

// Record is an OnStep that ends the test at a step that the table does not have.
func Record(from, on string, allowed bool) {
	if !allowed {
		panic(on + " cannot happen while " + from)
	}
	taken.Store(from+" "+on, true)
}

// TestMain fails when tests passed, all of them were run, and a step of the table was not taken.
// Of the rows that any state has one step is enough.
func TestMain(m *testing.M) {
	code := m.Run()
	if f := flag.Lookup("test.run"); code == 0 && f.Value.String() == "" && flag.Lookup("test.skip").Value.String() == "" && flag.Lookup("test.list").Value.String() == "" {
		for _, text := range untaken() {
			fmt.Println("no test takes the step", text)
			code = 1
		}
	}
	os.Exit(code)
}

// untaken are the steps that were not taken.
func untaken() (out []string) {
	for _, row := range transitions {
		some := false
		for _, from := range row.from {
			_, is := taken.Load(from.String() + " " + row.on.String())
			if some = some || is; !is && len(row.from) < len(working) {
				out = append(out, fmt.Sprintf("%s: %s", from, row.on))
			}
		}
		if !some && len(row.from) >= len(working) {
			out = append(out, fmt.Sprintf("any state: %s", row.on))
		}
	}
	return out
}

// Every state and trigger has a name of its own and is in the table, one row each, and from New
// every state can be reached.
func TestTransitionsAreWhole(t *testing.T) {
	for what, names := range map[string][]string{"state": states[:], "trigger": triggers[:]} {
		seen := make(map[string]bool)
		for i, n := range names {
			if n == "" || seen[n] {
				t.Errorf("%s %d is called %q", what, i, n)
			}
			seen[n] = true
		}
	}
	used := make(map[trigger]bool)
	pairs := make(map[[2]int]bool)
	next := make(map[state][]state)
	for _, row := range transitions {
		used[row.on] = true
		if row.does == "" || len(row.by) == 0 || len(row.from) == 0 {
			t.Errorf("%s: nothing is said of what is done, by whom, or from where", row.on)
		}
		for _, from := range row.from {
			if k := [2]int{int(from), int(row.on)}; pairs[k] {
				t.Errorf("%s while %s is there twice", row.on, from)
			} else {
				pairs[k] = true
			}
			next[from] = append(next[from], row.to)
		}
	}
	for on := range triggerCount {
		if !used[on] {
			t.Errorf("%s is in no row", on)
		}
	}
	reached := map[state]bool{stateNew: true}
	for queue := []state{stateNew}; len(queue) > 0; queue = queue[1:] {
		for _, to := range next[queue[0]] {
			if !reached[to] {
				reached[to] = true
				queue = append(queue, to)
			}
		}
	}
	for s := range stateCount {
		if !reached[s] {
			t.Errorf("%s is reached from nowhere", s)
		}
	}
}

// What the table does not have is refused: the state stays until the engine begins again.
func TestWhatCannotHappenIsRefused(t *testing.T) {
	allowed, refused := 0, 0
	for from := range stateCount {
		for on := range triggerCount {
			var seen []event.Event
			e := New(Config{OnStep: func(_, _ string, ok bool) {
				if ok {
					allowed++
				} else {
					refused++
				}
			}}, &policy.Policy{}, func(ev event.Event) { seen = append(seen, ev) })
			seen, e.phase = nil, phaseIn(from)
			e.step(on, phaseIn(e.leadsTo(on)))
			row := slices.IndexFunc(transitions, func(r transition) bool { return r.on == on && slices.Contains(r.from, from) })
			switch {
			case row >= 0 && (e.state() != transitions[row].to || e.broken || len(seen) > 0):
				t.Errorf("%s while %s leads to %s, %v", on, from, e.state(), seen)
			case row < 0 && (e.state() != from || !e.broken || len(seen) != 1 || !strings.Contains(seen[0].String(), "internal error: "+on.String())):
				t.Errorf("%s while %s, which cannot be, leads to %s, %v", on, from, e.state(), seen)
			}
		}
	}
	if refused == 0 || allowed == 0 {
		t.Errorf("%d steps were allowed, %d refused", allowed, refused)
	}
}

// A step enters a phase of the state that the table has, and no other.
func TestPhasesFitTheTable(t *testing.T) {
	for from := range stateCount {
		for to := range stateCount {
			e := New(Config{}, &policy.Policy{}, nil)
			for on := range triggerCount {
				e.phase, e.broken = phaseIn(from), false
				if fits := table[from][on] == to+1; fits {
					continue
				}
				if e.step(on, phaseIn(to)); !e.broken || e.state() != from {
					t.Errorf("%s while %s enters %s, broken %v", on, from, to, e.broken)
				}
			}
		}
	}
}

// After a step that was refused the engine drops what is under way, and reads the subnet again.
func TestEngineBeginsAgainAfterARefusedStep(t *testing.T) {
	e := New(Config{OnStep: func(from, on string, allowed bool) {
		if allowed {
			Record(from, on, true)
		}
	}}, &policy.Policy{}, nil)
	e.step(onCarry, phaseIn(stateApplying))
	e.Expire(1)
	if e.broken || e.state() != stateSweeping || e.sweep.counts.Full != 2 {
		t.Errorf("broken %v, %s, %d sweeps", e.broken, e.state(), e.sweep.counts.Full)
	}
}

// The functions that the table names are those that take its steps, and nobody else assigns the
// phase.
func TestTransitionsNameWhoTakesThem(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	triggersByName, found := make(map[string]trigger), make(map[trigger]map[string]bool)
	for on := range triggerCount {
		triggersByName["on"+on.String()], found[on] = on, make(map[string]bool)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Ident:
					if on, is := triggersByName[n.Name]; is {
						found[on][nameOf(f)] = true
					}
				case *ast.AssignStmt:
					for _, to := range n.Lhs {
						if sel, is := to.(*ast.SelectorExpr); is && sel.Sel.Name == "phase" && f.Name.Name != "step" {
							t.Errorf("%s assigns a phase", f.Name.Name)
						}
					}
				}
				return true
			})
		}
	}
	for _, row := range transitions {
		if got := slices.Sorted(maps.Keys(found[row.on])); !slices.Equal(got, row.by) {
			t.Errorf("%s is taken by %q, the table has %q", row.on, got, row.by)
		}
	}
}

// nameOf is the name of a function, after that of its type where that is not Engine.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if p, is := of.(*ast.StarExpr); is {
		of = p.X
	}
	if name := of.(*ast.Ident).Name; name != "Engine" {
		return name + "." + f.Name.Name
	}
	return f.Name.Name
}

// docTable is the table as doc.go has it.
func docTable() string {
	var b strings.Builder
	for _, row := range transitions {
		from := make([]string, len(row.from))
		for i, s := range row.from {
			from[i] = s.String()
		}
		text := strings.Join(from, ", ")
		switch len(row.from) {
		case len(working):
			text = "any but New and Held"
		case len(working) + 1:
			text = "any but New"
		}
		fmt.Fprintf(&b, "//\t%s -> %s (%s)\n//\t    %s\n//\t    from %s\n", row.on, row.to, strings.Join(row.by, ", "), row.does, text)
	}
	return b.String()
}

// The table in doc.go is that of the code; -update writes it.
func TestDocHasTheTable(t *testing.T) {
	const file, begin, end = "doc.go", "// The table of transitions, which is made from the code (transitions.go):\n//\n", "package engine"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	is, _, some := strings.Cut(rest, end)
	if !ok || !some {
		t.Fatalf("%s has no %q before %q", file, begin, end)
	}
	want := docTable()
	if is == want {
		return
	}
	if f := flag.Lookup("update"); f == nil || f.Value.String() != "true" {
		t.Fatalf("%s has another table than the code; -update writes it:\n%s", file, want)
	}
	if err := os.WriteFile(file, []byte(before+begin+want+end+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}
