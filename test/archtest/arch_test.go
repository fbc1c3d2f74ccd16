package archtest

import (
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/ibwarden/ibwarden/"

// wing is a prefix of package paths with what its packages may import of the
// house: prefixes of paths. Inside a wing anything may import anything (Go
// forbids cycles). A wing is pure if time, packets and randomness come to it as
// input and it has no goroutine, lock, socket, file or logger.
type wing struct {
	prefix string
	pure   bool
	may    []string
}

// wings places every package. The longest prefix that fits decides.
var wings = []wing{
	{"ib", true, nil},
	{"ib/umad", false, []string{"ib"}},
	{"ib/discover", false, []string{"ib"}},
	{"ib/verbs", false, []string{"ib"}},
	{"simfabric", false, []string{"ib", "internal/topology", "internal/policy", "internal/manager", "internal/sa", "internal/sim", "internal/simserve", "internal/link", "internal/master", "internal/lab/scenario/property"}},
	{"internal/names", true, nil},
	{"internal/topology", true, []string{"ib", "internal/names"}},
	{"internal/observed", true, []string{"ib"}},
	{"internal/policy", true, []string{"ib", "internal/names", "internal/observed"}},
	{"internal/migrate", true, []string{"ib", "internal/observed", "internal/policy", "internal/manager"}},
	{"internal/protocol", true, []string{"ib"}},
	{"internal/judge", true, []string{"ib", "internal/observed"}},
	{"internal/manager", true, []string{"ib", "internal/names", "internal/topology", "internal/observed", "internal/policy", "internal/protocol", "internal/judge"}},
	{"internal/sa", true, []string{"ib", "internal/observed", "internal/policy/protect", "internal/protocol"}},
	{"internal/sim", true, []string{"ib", "internal/topology"}},
	{"internal/perfmgr", true, []string{"ib", "internal/observed"}},
	{"internal/simserve", false, []string{"ib", "internal/names", "internal/topology", "internal/protocol", "internal/sim"}},
	{"internal/simserve/qib", true, []string{"ib"}},
	{"internal/link", false, []string{"ib", "internal/protocol", "internal/sim"}},
	{"internal/metrics", false, []string{"ib", "internal/observed", "internal/perfmgr", "internal/policy", "internal/protocol", "internal/judge", "internal/manager", "internal/sa"}},
	{"internal/master", false, []string{"ib", "internal/observed", "internal/perfmgr", "internal/policy", "internal/protocol", "internal/manager", "internal/sa", "internal/link"}},
	{"internal/lab", false, []string{"ib", "internal/names", "internal/topology", "internal/observed", "internal/policy", "internal/protocol", "internal/judge", "internal/manager", "internal/sa", "internal/sim", "internal/link", "internal/master"}},
	{"internal/resource", true, []string{"ib", "internal/names", "internal/policy"}},
	{"internal/store", false, nil},
	{"internal/service", false, []string{"ib", "internal/observed", "internal/policy", "internal/judge", "internal/manager/preview", "internal/resource", "internal/store"}},
	{"internal/api", false, []string{"ib", "internal/names", "internal/observed", "internal/policy", "internal/judge", "internal/resource", "internal/service", "internal/store"}},
	{"internal/web", false, nil},
	{"internal/app", false, []string{"ib", "internal"}},
	{"cmd", false, []string{"internal/app"}},
	{"examples", false, []string{"ib"}},
	{"kubernetes", false, []string{"internal/api"}},
	{"test", false, []string{"ib", "internal"}},
	{"packaging", false, nil},                        // a module of its own
	{"website", false, []string{"internal/app/cli"}}, // a module of its own
	{"verify", false, nil},                           // a module of its own
}

// exceptions are imports that no wing allows, each with its reason.
var exceptions = map[string]string{}

// never lists imports that a wing would allow. Packages inside one that is named
// here are meant too.
var never = []struct{ from, to, reason string }{
	{"internal/observed", "ib/umad", "the devices of this machine are no value"},
	{"internal/observed", "ib/discover", "it asks by the devices of this machine"},
	{"internal/observed", "ib/verbs", "a client of the simulated fabric, with sockets, is no value"},
	{"internal/manager", "ib/umad", "the devices of this machine are no value"},
	{"internal/manager", "ib/discover", "it asks by the devices of this machine"},
	{"internal/manager", "ib/verbs", "a client of the simulated fabric, with sockets, is no value"},
	{"internal/judge", "ib/umad", "the devices of this machine are no value"},
	{"internal/judge", "ib/discover", "it asks by the devices of this machine"},
	{"internal/judge", "ib/verbs", "a client of the simulated fabric, with sockets, is no value"},
	{"internal/sim", "ib/umad", "the devices of this machine are no value"},
	{"internal/sim", "ib/discover", "it asks by the devices of this machine"},
	{"internal/sim", "ib/verbs", "a client of the simulated fabric, with sockets, is no value"},
	{"internal", "internal/observed/subnettest", "subnets made by hand are for tests"},
	{"internal", "simfabric", "it is made of everything, for programs outside"},
	{"internal/lab/replica", "internal/judge", "what packets do must not come from what was computed"},
	{"internal/judge/reach", "internal/judge/isolation", "two opinions, each its own"},
	{"internal/judge/isolation", "internal/judge/reach", "two opinions, each its own"},
	{"internal/manager/desired/routing", "internal/judge", "what computes routes shares nothing with what judges them"},
	{"internal/judge/routes", "internal/judge/reach", "two opinions, each its own"},
}

// impure lists what a package of a pure wing may not import.
var impure = map[string]string{
	"os": "files and environment", "os/exec": "processes", "net": "sockets", "net/http": "sockets",
	"sync": "locks", "sync/atomic": "locks", "log": "loggers", "log/slog": "loggers",
	"math/rand": "global randomness", "math/rand/v2": "global randomness", "crypto/rand": "global randomness",
	"syscall": "the system", "golang.org/x/sys/unix": "the system", "context": "cancellation belongs to shells",
	"runtime": "the runtime",
}

// seeded are the packages that may hold a generator of their own, made from a
// seed that comes in as input or given to them as such.
var seeded = []string{"internal/topology", "internal/protocol/transact", "internal/sim/fabric", "internal/perfmgr"}

const (
	maxFileLines     = 600
	maxFunctionLines = 70
)

type source struct {
	path  string // of the file, from the root
	pkg   string // its package, from the root
	file  *ast.File
	fset  *token.FileSet
	lines int
}

func sources(t *testing.T) []source {
	t.Helper()
	out, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("found %d source files: looking in the wrong place", len(out))
	}
	return out
}

// parsed reads the sources once for all tests, which do not change them.
var parsed = sync.OnceValues(func() (out []source, err error) {
	root := filepath.Join("..", "..")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".." && path != root) {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		out = append(out, source{
			path: filepath.ToSlash(rel), pkg: filepath.ToSlash(filepath.Dir(rel)),
			file: f, fset: fset, lines: fset.Position(f.End()).Line,
		})
		return nil
	})
	return out, err
})

func importsOf(s source) []string {
	var out []string
	for _, i := range s.file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		out = append(out, p)
	}
	return out
}

// wingOf returns the wing of a package, and nil if it has none.
func wingOf(pkg string) *wing {
	var best *wing
	for i := range wings {
		if w := &wings[i]; inside(pkg, w.prefix) && (best == nil || len(w.prefix) > len(best.prefix)) {
			best = w
		}
	}
	return best
}

// inside reports whether a package is another, or lies inside it.
func inside(pkg, outer string) bool { return pkg == outer || strings.HasPrefix(pkg, outer+"/") }

func TestEveryPackageHasAWing(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		w := wingOf(s.pkg)
		if w == nil {
			t.Errorf("%s is in no wing: add the wing here and to ARCHITECTURE.md, or move the package", s.pkg)
			continue
		}
		used[w.prefix] = true
	}
	for _, w := range wings {
		if !used[w.prefix] {
			t.Errorf("wing %s has no package", w.prefix)
		}
	}
}

var update = flag.Bool("update", false, "write the tables in ARCHITECTURE.md and docs/dev/capabilities.md again")

// TestArchitectureTable checks that the table of packages in ARCHITECTURE.md has
// every package with the first sentence of its comment.
func TestArchitectureTable(t *testing.T) {
	file := filepath.Join("..", "..", "ARCHITECTURE.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), "<!-- packages -->\n")
	_, after, ends := strings.Cut(rest, "<!-- end of packages -->")
	if !ok || !ends {
		t.Fatal("ARCHITECTURE.md has no table of packages between its two marks")
	}
	says := map[string]string{}
	for _, s := range sources(t) {
		if s.file.Doc != nil {
			says[s.pkg] = new(doc.Package).Synopsis(s.file.Doc.Text())
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s<!-- packages -->\n%d packages; %d prefixes say what they may import, with %d exceptions.\n\n", before, len(says), len(wings), len(exceptions))
	b.WriteString("| package | what it is |\n|---|---|\n")
	for _, pkg := range slices.Sorted(maps.Keys(says)) {
		text := strings.TrimPrefix(says[pkg], "Package "+path.Base(pkg)+" ")
		b.WriteString("| `" + pkg + "` | " + text + " |\n")
	}
	b.WriteString("<!-- end of packages -->" + after)
	if b.String() == string(page) {
		return
	}
	if !*update {
		t.Fatal("the table of packages in ARCHITECTURE.md is not what the packages say: go test ./test/archtest -update")
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestImportsStayInTheirWings(t *testing.T) {
	excused := map[string]bool{}
	for _, s := range sources(t) {
		w := wingOf(s.pkg)
		if w == nil {
			continue // TestEveryPackageHasAWing says so
		}
		for _, path := range importsOf(s) {
			to, own := strings.CutPrefix(path, module)
			if !own {
				continue
			}
			for _, n := range never {
				if inside(s.pkg, n.from) && inside(to, n.to) {
					t.Errorf("%s imports %s: %s", s.path, to, n.reason)
				}
			}
			if inside(to, w.prefix) || slices.ContainsFunc(w.may, func(p string) bool { return inside(to, p) }) {
				continue
			}
			edge := s.pkg + " -> " + to
			if exceptions[edge] == "" {
				t.Errorf("%s imports %s: packages of %s may import %s", s.path, to, w.prefix, strings.Join(w.may, ", "))
			}
			excused[edge] = true
		}
	}
	for edge := range exceptions {
		if !excused[edge] {
			t.Errorf("exception %q is not needed any more", edge)
		}
	}
}

func TestPureWings(t *testing.T) {
	for _, s := range sources(t) {
		if w := wingOf(s.pkg); w == nil || !w.pure {
			continue
		}
		for _, path := range importsOf(s) {
			if what, bad := impure[path]; bad && !(strings.HasPrefix(path, "math/rand") && slices.Contains(seeded, s.pkg)) {
				t.Errorf("%s imports %s: %s do not belong in a pure wing", s.path, path, what)
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: starts a goroutine in a pure wing", s.fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "NewTimer", "Tick"}, n.Sel.Name) {
					t.Errorf("%s: time.%s: time comes in as input", s.fset.Position(n.Pos()), n.Sel.Name)
				}
				if ok && x.Name == "rand" && !slices.Contains([]string{"New", "NewPCG", "Rand", "NewChaCha8", "ChaCha8"}, n.Sel.Name) {
					t.Errorf("%s: rand.%s: randomness comes from a seed", s.fset.Position(n.Pos()), n.Sel.Name)
				}
			}
			return true
		})
	}
}

func TestSizes(t *testing.T) {
	for _, s := range sources(t) {
		if s.lines > maxFileLines {
			t.Errorf("%s has %d lines, at most %d: look for the second idea in it", s.path, s.lines, maxFileLines)
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := s.fset.Position(f.End()).Line - s.fset.Position(f.Pos()).Line + 1; n > maxFunctionLines {
				t.Errorf("%s: %s has %d lines, at most %d", s.fset.Position(f.Pos()), f.Name.Name, n, maxFunctionLines)
			}
		}
	}
}

func TestEveryPackageHasAContract(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		if s.file.Doc != nil {
			documented[s.pkg] = true
		} else if _, ok := documented[s.pkg]; !ok {
			documented[s.pkg] = false
		}
	}
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment: doc.go is the contract", pkg)
		}
	}
}

func TestNamesSayWhatTheyAre(t *testing.T) {
	vague := []string{"Manager", "Helper", "Util", "Utils", "Common", "Data"}
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok && slices.Contains(vague, ts.Name.Name) {
					t.Errorf("%s: type %s says nothing", s.fset.Position(ts.Pos()), ts.Name.Name)
				}
			}
		}
		if base := s.file.Name.Name; slices.Contains([]string{"util", "utils", "common", "helpers"}, base) {
			t.Errorf("%s: package %s says nothing", s.path, base)
		}
	}
}
