package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/ibwarden/ibwarden/"

// floors places every package; a package imports from lower floors only.
var floors = map[string]int{
	"ib":                                 0,
	"ib/mad":                             1,
	"ib/smp":                             1,
	"ib/sa":                              1,
	"ib/pm":                              1,
	"ib/packet":                          1,
	"ib/internal/vectors":                1,
	"internal/sim/endpoint/connection":   2,
	"internal/topology":                  2,
	"ib/umad":                            2,
	"internal/observed":                  2,
	"internal/manager/mkey":              3,
	"internal/policy/protect":            2,
	"internal/policy":                    3,
	"internal/policy/source":             3,
	"internal/policy/policyyaml":         3,
	"internal/policy/partitionsconf":     3,
	"internal/policy/policyfile":         3,
	"internal/manager/desired/partition": 3,
	"internal/manager/desired/lid":       3,
	"internal/manager/desired/routing":   3,
	"internal/manager/desired/qos":       3,
	"internal/manager/plan":              3,
	"internal/manager/preview":           3,
	"internal/manager/change":            3,
	"internal/judge/isolation":           3,
	"internal/observed/snapshot":         3,
	"internal/judge/reach":               3,
	"internal/judge/audit":               3,
	"internal/sim/sma":                   3,
	"internal/sim/endpoint":              3,
	"internal/sim/endpoint/gsi":          4,
	"internal/sim/egress":                3,
	"internal/manager/election":          3,
	"internal/protocol/transact":         3,
	"internal/protocol/rmpp":             3,
	"internal/simserve/kernel":           3,
	"internal/manager/sweep":             3,
	"internal/manager/cables":            3,
	"internal/manager/apply":             3,
	"internal/sim/relay":                 3,
	"internal/sim/fabric/timeline":       3,
	"internal/sim/fabric/directed":       3,
	"internal/sim/fabric/profile":        3,
	"internal/sim/fabric/fate":           3,
	"internal/sim/fabric/endnode":        3,
	"internal/sim/fabric/record":         4,
	"internal/observed/group":            2,
	"internal/manager/desired/mcast":     3,
	"internal/sa/visibility":             3,
	"internal/sa/query":                  3,
	"internal/sa/server":                 4,
	"internal/sim/fabric/wiring":         3,
	"internal/sim/fabric/pool":           3,
	"internal/sim/fabric/dataplane":      4,
	"internal/sim/fabric":                4,
	"internal/manager/bound":             3,
	"internal/manager/facts":             3,
	"internal/manager/keying":            3,
	"internal/manager/traps":             3,
	"internal/manager/engine":            4,
	"internal/link":                      5,
	"internal/link/inproc":               5,
	"internal/link/ibsim":                5,
	"internal/lab/scenario":              5,
	"internal/lab/scenario/text":         3,
	"internal/lab/scenario/attribute":    3,
	"internal/lab/scenario/trait":        4,
	"internal/lab/scenario/report":       0,
	"internal/lab/scenario/stage":        5,
	"internal/lab/scenario/operand":      5,
	"internal/lab/scenario/host":         5,
	"internal/lab/scenario/attack":       3,
	"internal/link/umad":                 5,
	"internal/lab/replica":               5,
	"internal/lab/compare":               5,
	"internal/master":                    5,
	"internal/app/daemon":                6,
	"internal/app/cli/completion":        5,
	"internal/app/cli/about":             5,
	"internal/app/regular":               5,
	"internal/app/cli/table":             5,
	"internal/app/cli/exit":              5,
	"internal/app/cli/simcmd":            6,
	"internal/app/cli/progress":          5,
	"internal/app/cli/way":               5,
	"internal/app/cli":                   6,
	"cmd/ibwarden":                       7,
	"test/ibsimtest/bench":               9,
	"test/ibsimtest/sabench":             9,
	"test/simtest":                       8,
	"internal/simserve/fuse":             5,
	"internal/simserve/umadfs":           5,
	"internal/simserve/ibsimd":           5,
	"internal/simserve/ibsimd/dgram":     5,
	"internal/simserve/ibsimd/counters":  5,
	"internal/sim/pma":                   3,
	"test/archtest":                      8,
	"test/need":                          7,
	"test/packagetest":                   8,
	"test/ibsimtest":                     8,
	"test/umadtest":                      8,
}

// sameFloor lists the edges inside one floor, each with its reason.
var sameFloor = map[string]string{
	"ib/smp -> ib/mad": "attributes travel in MADs and name their ids and status in its types",
	"ib/sa -> ib/mad":  "records travel in MADs",
	"ib/sa -> ib/smp":  "many records are a subnet-management attribute with an address in front",
	"ib/pm -> ib/mad":  "counters travel in MADs",
	"internal/manager/desired/partition -> internal/policy":         "tables are compiled from a resolved policy",
	"internal/policy/source -> internal/policy":                     "faults carry its places",
	"internal/policy/policyyaml -> internal/policy":                 "a format of policies",
	"internal/policy/policyyaml -> internal/policy/source":          "what both readers share",
	"internal/policy/partitionsconf -> internal/policy":             "a format of policies",
	"internal/policy/partitionsconf -> internal/policy/source":      "what both readers share",
	"internal/policy/policyfile -> internal/policy":                 "picks the format",
	"internal/policy/policyfile -> internal/policy/policyyaml":      "picks the format",
	"internal/policy/policyfile -> internal/policy/partitionsconf":  "picks the format",
	"internal/judge/audit -> internal/judge/isolation":              "who can reach whom is one opinion, the proof's; an audit asks it",
	"internal/simserve/kernel -> internal/protocol/rmpp":            "the kernel cuts and joins long messages",
	"internal/manager/facts -> internal/manager/cables":             "the names of devices are those of the list of cables",
	"internal/manager/sweep -> internal/manager/cables":             "what it finds is held against the list of cables",
	"internal/manager/sweep -> internal/protocol/transact":          "discovery asks through the request window",
	"internal/manager/preview -> internal/manager/plan":             "it says what a plan does",
	"internal/manager/change -> internal/manager/plan":              "it is made from a plan, and cut into plans",
	"internal/manager/apply -> internal/protocol/transact":          "writes go through the request window",
	"internal/manager/keying -> internal/manager/mkey":              "what it decides by is in a book of keys",
	"internal/manager/facts -> internal/judge/isolation":            "groups are those of partitions that a proof is told of",
	"internal/manager/keying -> internal/manager/cables":            "who belongs where is on the list",
	"internal/manager/keying -> internal/manager/plan":              "keys are written by a plan",
	"internal/manager/keying -> internal/manager/apply":             "it judges what became of the plan",
	"internal/manager/keying -> internal/manager/sweep":             "it says which keys a sweep may show",
	"internal/manager/apply -> internal/manager/plan":               "it carries out plans",
	"internal/link/inproc -> internal/link":                         "one of the links that transport describes",
	"internal/link/ibsim -> internal/link":                          "one of the links that transport describes",
	"internal/simserve/ibsimd -> internal/simserve/ibsimd/dgram":    "the sockets that it serves",
	"internal/simserve/ibsimd -> internal/simserve/ibsimd/counters": "the counters of what it serves",
	"internal/sim/relay -> internal/sim/sma":                        "a relay decides by the tables of its agent",
	"internal/sim/fabric/profile -> internal/sim/sma":               "what a device is capable of is told in the agent's terms",
	"internal/sim/fabric/fate -> internal/sim/relay":                "one list out of what these say",
	"internal/sim/fabric/fate -> internal/sim/egress":               "one list out of what these say",
	"internal/sim/fabric/fate -> internal/sim/pma":                  "each end of a packet moves counters",
	"internal/sim/fabric/record -> internal/sim/fabric":             "is told of every packet of a fabric",
	"internal/sim/fabric/endnode -> internal/sim/sma":               "joins an agent to an end node",
	"internal/sim/fabric/endnode -> internal/sim/endpoint":          "joins an agent to an end node",
	"internal/sim/fabric/endnode -> internal/sim/pma":               "joins a performance agent to QP1",
	"internal/sim/fabric/endnode -> internal/sim/fabric/wiring":     "an end port is one of a node's",
	"internal/sim/fabric/wiring -> internal/sim/sma":                "every device has its agent",
	"internal/sim/fabric -> internal/sim/fabric/dataplane":          "the fabric around its data path",
	"internal/simserve/umadfs -> internal/simserve/fuse":            "its files are served over FUSE",
	"internal/manager/bound -> internal/policy":                     "bounds are on what a policy comes to",
	"internal/manager/facts -> internal/policy":                     "ports in the terms of a policy",
	"internal/manager/facts -> internal/manager/desired/partition":  "ports in the terms of its compiler",
	"internal/lab/scenario -> internal/lab/scenario/stage":          "a story acts on a stage",
	"internal/lab/scenario/stage -> internal/link/inproc":           "managers are driven as in a process of their own",
	"internal/lab/scenario/stage -> internal/link":                  "what a manager is to those who drive it",
	"internal/lab/scenario -> internal/lab/scenario/operand":        "what its statements are about",
	"internal/lab/scenario/attack -> internal/lab/scenario/text":    "it reads the lines that are about a whole script",
	"internal/lab/scenario -> internal/lab/scenario/host":           "what a host's root can do in a story",
	"internal/lab/scenario/host -> internal/lab/scenario/operand":   "what its statements are about",
	"internal/lab/scenario/host -> internal/lab/scenario/stage":     "it acts on a stage",
	"internal/lab/scenario/operand -> internal/lab/scenario/stage":  "values that are known only on the stage",
	"internal/lab/scenario/stage -> internal/master":                "the project's own manager is what the daemon runs",
	"internal/master -> internal/link":                              "an engine that links drive",
	"internal/sa/query -> internal/sa/visibility":                   "records are looked up in the index, as far as it lets an asker see",
	"internal/link/umad -> internal/link":                           "one of the links that transport describes",
	"internal/lab/compare -> internal/lab/replica":                  "it holds packets beside what was computed of them",
	"internal/app/cli -> internal/app/cli/simcmd":                   "a command of its own",
	"internal/app/cli/way -> internal/lab/compare":                  "it shows a packet beside its trace",
	"internal/app/cli/way -> internal/app/cli/table":                "its rows are those of the commands",
	"internal/app/cli -> internal/app/daemon":                       "commands start the daemon",
}

// never lists edges that no floor allows. Packages inside one that is named here
// are meant too.
var never = []struct{ from, to, reason string }{
	{"internal/manager/engine", "internal/sim/fabric", "manager and fabric meet as octets only"},
	{"internal/sim/fabric", "internal/manager/engine", "manager and fabric meet as octets only"},
	{"internal/sa/server", "internal/policy", "subnet administration is told the partitions as plain sets"},
	{"internal/sa/server", "internal/manager/engine", "the process joins manager and administration"},
	{"internal/judge/isolation", "internal/manager/desired/partition", "the proof must not believe the compiler"},
	{"internal/judge/isolation", "internal/manager/plan", "the proof must not believe the planner"},
	{"internal/judge/isolation", "internal/policy", "the proof is told what is allowed as plain sets"},
	{"internal/judge/reach", "internal/manager/desired/partition", "what becomes of a packet must not believe the compiler"},
	{"internal/judge/reach", "internal/manager/plan", "what becomes of a packet must not believe the planner"},
	{"internal/judge/reach", "internal/policy", "what becomes of a packet follows from tables alone"},
	{"internal/judge/reach", "internal/sim/sma", "an opinion of its own, beside that of the simulated fabric"},
	{"internal/sim/fabric", "internal/judge/reach", "the fabric is an opinion of its own"},
	{"internal/lab/replica", "internal/judge/reach", "what packets do must not come from what was computed"},
	{"internal/lab/replica", "internal/judge/isolation", "what packets do must not come from what was computed"},
	{"internal/judge/audit", "internal/manager/desired/partition", "the audit must not believe the compiler"},
	{"internal/judge/audit", "internal/manager/plan", "the audit must not believe the planner"},
	{"internal/judge/audit", "internal/policy", "the audit is told what is intended as plain values"},
	{"internal/judge/audit", "internal/manager/engine", "the audit judges managers"},
	{"internal/sim/fabric", "internal/manager/desired/partition", "the fabric is an opinion of its own"},
	{"internal/sim/fabric", "internal/judge/isolation", "the fabric is an opinion of its own"},
	{"internal/sim/fabric", "internal/observed", "the fabric is an opinion of its own"},
	{"internal/sim/relay", "internal/manager/desired/partition", "the relay is an opinion of its own"},
	{"internal/sim/relay", "internal/judge/isolation", "the relay is an opinion of its own"},
	{"internal/sim/relay", "internal/observed", "the relay is an opinion of its own"},
	{"internal/sim/endpoint", "internal/manager/desired/partition", "the end node is an opinion of its own"},
	{"internal/sim/endpoint", "internal/judge/isolation", "the end node is an opinion of its own"},
	{"internal/sim/endpoint", "internal/observed", "the end node is an opinion of its own"},
	{"internal/sim/endpoint", "internal/policy", "the end node is an opinion of its own"},
	{"internal/sim/sma", "internal/manager/desired/partition", "the agent is an opinion of its own"},
	{"internal/sim/sma", "internal/judge/isolation", "the agent is an opinion of its own"},
	{"internal/sim/sma", "internal/observed", "the agent is an opinion of its own"},
}

// pureFloors are those whose packages take time and randomness as input.
const pureFloors = 4

// impure lists what a package on a pure floor may not import.
var impure = map[string]string{
	"os": "files and environment", "os/exec": "processes", "net": "sockets", "net/http": "sockets",
	"sync": "locks", "sync/atomic": "locks", "log": "loggers", "log/slog": "loggers",
	"math/rand": "global randomness", "math/rand/v2": "global randomness", "crypto/rand": "global randomness",
	"syscall": "the system", "golang.org/x/sys/unix": "the system", "context": "cancellation belongs to shells",
	"runtime": "the runtime",
}

// seeded are the packages that may hold a generator of their own, made from a
// seed that comes in as input or given to them as such.
var seeded = []string{"internal/topology", "internal/protocol/transact", "internal/sim/fabric", "internal/sim/fabric/dataplane"}

const (
	maxFileLines     = 600
	maxFunctionLines = 70
	maxPackageLines  = 4000
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

func TestEveryPackageHasAFloor(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if !seen[s.pkg] {
			seen[s.pkg] = true
			if _, ok := floors[s.pkg]; !ok {
				t.Errorf("%s stands on no floor: add it to floors and to ARCHITECTURE.md", s.pkg)
			}
		}
	}
	for pkg := range floors {
		if !seen[pkg] {
			t.Errorf("%s has a floor and is no package", pkg)
		}
	}
	if !seen["ib"] || !seen["cmd/ibwarden"] {
		t.Error("ib or cmd/ibwarden was not found")
	}
}

// inside reports whether a package is another, or lies inside it.
func inside(pkg, outer string) bool { return pkg == outer || strings.HasPrefix(pkg, outer+"/") }

// tableRow is a row of the table of floors.
var tableRow = regexp.MustCompile(`^\| (\d) \| (.*) \| (.*) \|$`)

// TestArchitectureTable checks that the table of floors has every package once, on
// its floor, by its path or by its name in the row of the package around it, and
// no others.
func TestArchitectureTable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{}     // path to floor
	inner := map[string]string{} // path to the words of its row
	for _, line := range strings.Split(string(page), "\n") {
		m := tableRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, span := range codeSpan.FindAllStringSubmatch(m[2], -1) {
			if _, twice := rows[span[1]]; twice {
				t.Errorf("ARCHITECTURE.md has %s twice", span[1])
			}
			rows[span[1]], _ = strconv.Atoi(m[1])
			inner[span[1]] = m[3]
			if _, known := floors[span[1]]; !known {
				t.Errorf("ARCHITECTURE.md has %s, which is no package", span[1])
			}
		}
	}
	for pkg, floor := range floors {
		outer, name := path.Split(pkg)
		if at, ok := rows[pkg]; ok && at != floor {
			t.Errorf("ARCHITECTURE.md has %s on floor %d, want %d", pkg, at, floor)
		} else if !ok && !strings.Contains(inner[strings.TrimSuffix(outer, "/")], "`"+name+"`") {
			t.Errorf("ARCHITECTURE.md does not have %s", pkg)
		}
	}
}

func TestImportsGoDown(t *testing.T) {
	for _, s := range sources(t) {
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
			from, low := floors[s.pkg], floors[to]
			edge := s.pkg + " -> " + to
			switch {
			case low < from:
			case low == from && sameFloor[edge] != "":
			case low == from:
				t.Errorf("%s imports %s on its own floor %d: list the edge with its reason, or move a wall", s.path, to, from)
			default:
				t.Errorf("%s on floor %d imports %s on floor %d: imports go down", s.path, from, to, low)
			}
		}
	}
}

func TestPureFloors(t *testing.T) {
	for _, s := range sources(t) {
		if floors[s.pkg] > pureFloors {
			continue
		}
		for _, path := range importsOf(s) {
			if what, bad := impure[path]; bad && !(strings.HasPrefix(path, "math/rand") && slices.Contains(seeded, s.pkg)) {
				t.Errorf("%s imports %s: %s do not belong on floor %d", s.path, path, what, floors[s.pkg])
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: starts a goroutine on a pure floor", s.fset.Position(n.Pos()))
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

// largePackages have more lines than others may.
var largePackages = map[string]int{
	// What the engine does beside its passes (look.go, traps.go, guardwatch.go,
	// narrow.go, swept.go) came in one piece with what it has to know of them, and
	// is the next to become a package of its own.
	"internal/manager/engine": 5400,
}

func TestSizes(t *testing.T) {
	total := map[string]int{}
	for _, s := range sources(t) {
		total[s.pkg] += s.lines
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
	for pkg, n := range total {
		most := maxPackageLines
		if own, ok := largePackages[pkg]; ok {
			most = own
		}
		if n > most {
			t.Errorf("%s has %d lines, at most %d", pkg, n, most)
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
