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
	"ib":                             0,
	"ib/mad":                         1,
	"ib/smp":                         1,
	"ib/sa":                          1,
	"ib/pm":                          1,
	"ib/packet":                      1,
	"ib/internal/vectors":            1,
	"internal/endpoint/connection":   2,
	"internal/netlist":               2,
	"internal/umad/abi":              2,
	"internal/subnet":                2,
	"internal/mkey":                  3,
	"internal/protect":               2,
	"internal/policy":                3,
	"internal/policy/source":         3,
	"internal/policy/policyyaml":     3,
	"internal/policy/partitionsconf": 3,
	"internal/policy/policyfile":     3,
	"internal/partition":             3,
	"internal/lid":                   3,
	"internal/routing":               3,
	"internal/qos":                   3,
	"internal/plan":                  3,
	"internal/preview":               3,
	"internal/change":                3,
	"internal/isolation":             3,
	"internal/snapshot":              3,
	"internal/reach":                 3,
	"internal/audit":                 3,
	"internal/sma":                   3,
	"internal/endpoint":              3,
	"internal/endpoint/gsi":          4,
	"internal/egress":                3,
	"internal/sminfo":                3,
	"internal/transact":              3,
	"internal/rmpp":                  3,
	"internal/umad":                  3,
	"internal/sweep":                 3,
	"internal/cables":                3,
	"internal/apply":                 3,
	"internal/relay":                 3,
	"internal/fabricsim/timeline":    3,
	"internal/fabricsim/directed":    3,
	"internal/fabricsim/profile":     3,
	"internal/fabricsim/fate":        3,
	"internal/fabricsim/endnode":     3,
	"internal/fabricsim/record":      4,
	"internal/group":                 2,
	"internal/mcast":                 3,
	"internal/saserver/view":         3,
	"internal/saserver/record":       3,
	"internal/saserver":              4,
	"internal/fabricsim/wiring":      3,
	"internal/fabricsim/pool":        3,
	"internal/fabricsim/dataplane":   4,
	"internal/fabricsim":             4,
	"internal/sm/bound":              3,
	"internal/sm/facts":              3,
	"internal/sm/keying":             3,
	"internal/sm/traps":              3,
	"internal/sm":                    4,
	"internal/transport":             5,
	"internal/transport/inproc":      5,
	"internal/transport/ibsim":       5,
	"internal/scenario":              5,
	"internal/scenario/text":         3,
	"internal/scenario/attribute":    3,
	"internal/scenario/trait":        4,
	"internal/scenario/report":       0,
	"internal/scenario/stage":        5,
	"internal/scenario/operand":      5,
	"internal/scenario/host":         5,
	"internal/scenario/attack":       3,
	"internal/transport/umad":        5,
	"internal/replica":               5,
	"internal/beside":                5,
	"internal/managed":               5,
	"internal/daemon":                6,
	"internal/cli/completion":        5,
	"internal/cli/about":             5,
	"internal/regular":               5,
	"internal/cli/table":             5,
	"internal/cli/exit":              5,
	"internal/cli/simcmd":            6,
	"internal/cli/progress":          5,
	"internal/cli/way":               5,
	"internal/cli":                   6,
	"cmd/ibwarden":                   7,
	"internal/ibsimtest/bench":       9,
	"internal/ibsimtest/sabench":     9,
	"internal/simtest":               8,
	"internal/fuse":                  5,
	"internal/umadfs":                5,
	"internal/ibsimd":                5,
	"internal/ibsimd/dgram":          5,
	"internal/ibsimd/meter":          5,
	"internal/pma":                   3,
	"internal/archtest":              8,
	"internal/outside":               7,
	"internal/packagetest":           8,
	"internal/ibsimtest":             8,
	"internal/umadtest":              8,
}

// sameFloor lists the edges inside one floor, each with its reason.
var sameFloor = map[string]string{
	"ib/smp -> ib/mad":                                             "attributes travel in MADs and name their ids and status in its types",
	"ib/sa -> ib/mad":                                              "records travel in MADs",
	"ib/sa -> ib/smp":                                              "many records are a subnet-management attribute with an address in front",
	"ib/pm -> ib/mad":                                              "counters travel in MADs",
	"internal/partition -> internal/policy":                        "tables are compiled from a resolved policy",
	"internal/policy/source -> internal/policy":                    "faults carry its places",
	"internal/policy/policyyaml -> internal/policy":                "a format of policies",
	"internal/policy/policyyaml -> internal/policy/source":         "what both readers share",
	"internal/policy/partitionsconf -> internal/policy":            "a format of policies",
	"internal/policy/partitionsconf -> internal/policy/source":     "what both readers share",
	"internal/policy/policyfile -> internal/policy":                "picks the format",
	"internal/policy/policyfile -> internal/policy/policyyaml":     "picks the format",
	"internal/policy/policyfile -> internal/policy/partitionsconf": "picks the format",
	"internal/audit -> internal/isolation":                         "who can reach whom is one opinion, the proof's; an audit asks it",
	"internal/umad -> internal/rmpp":                               "the kernel cuts and joins long messages",
	"internal/sm/facts -> internal/cables":                         "the names of devices are those of the list of cables",
	"internal/sweep -> internal/cables":                            "what it finds is held against the list of cables",
	"internal/sweep -> internal/transact":                          "discovery asks through the request window",
	"internal/preview -> internal/plan":                            "it says what a plan does",
	"internal/change -> internal/plan":                             "it is made from a plan, and cut into plans",
	"internal/apply -> internal/transact":                          "writes go through the request window",
	"internal/sm/keying -> internal/mkey":                          "what it decides by is in a book of keys",
	"internal/sm/facts -> internal/isolation":                      "groups are those of partitions that a proof is told of",
	"internal/sm/keying -> internal/cables":                        "who belongs where is on the list",
	"internal/sm/keying -> internal/plan":                          "keys are written by a plan",
	"internal/sm/keying -> internal/apply":                         "it judges what became of the plan",
	"internal/sm/keying -> internal/sweep":                         "it says which keys a sweep may show",
	"internal/apply -> internal/plan":                              "it carries out plans",
	"internal/transport/inproc -> internal/transport":              "one of the links that transport describes",
	"internal/transport/ibsim -> internal/transport":               "one of the links that transport describes",
	"internal/ibsimd -> internal/ibsimd/dgram":                     "the sockets that it serves",
	"internal/ibsimd -> internal/ibsimd/meter":                     "the counters of what it serves",
	"internal/relay -> internal/sma":                               "a relay decides by the tables of its agent",
	"internal/fabricsim/profile -> internal/sma":                   "what a device is capable of is told in the agent's terms",
	"internal/fabricsim/fate -> internal/relay":                    "one list out of what these say",
	"internal/fabricsim/fate -> internal/egress":                   "one list out of what these say",
	"internal/fabricsim/fate -> internal/pma":                      "each end of a packet moves counters",
	"internal/fabricsim/record -> internal/fabricsim":              "is told of every packet of a fabric",
	"internal/fabricsim/endnode -> internal/sma":                   "joins an agent to an end node",
	"internal/fabricsim/endnode -> internal/endpoint":              "joins an agent to an end node",
	"internal/fabricsim/endnode -> internal/pma":                   "joins a performance agent to QP1",
	"internal/fabricsim/endnode -> internal/fabricsim/wiring":      "an end port is one of a node's",
	"internal/fabricsim/wiring -> internal/sma":                    "every device has its agent",
	"internal/fabricsim -> internal/fabricsim/dataplane":           "the fabric around its data path",
	"internal/umadfs -> internal/fuse":                             "its files are served over FUSE",
	"internal/sm/bound -> internal/policy":                         "bounds are on what a policy comes to",
	"internal/sm/facts -> internal/policy":                         "ports in the terms of a policy",
	"internal/sm/facts -> internal/partition":                      "ports in the terms of its compiler",
	"internal/scenario -> internal/scenario/stage":                 "a story acts on a stage",
	"internal/scenario/stage -> internal/transport/inproc":         "managers are driven as in a process of their own",
	"internal/scenario/stage -> internal/transport":                "what a manager is to those who drive it",
	"internal/scenario -> internal/scenario/operand":               "what its statements are about",
	"internal/scenario/attack -> internal/scenario/text":           "it reads the lines that are about a whole script",
	"internal/scenario -> internal/scenario/host":                  "what a host's root can do in a story",
	"internal/scenario/host -> internal/scenario/operand":          "what its statements are about",
	"internal/scenario/host -> internal/scenario/stage":            "it acts on a stage",
	"internal/scenario/operand -> internal/scenario/stage":         "values that are known only on the stage",
	"internal/scenario/stage -> internal/managed":                  "the project's own manager is what the daemon runs",
	"internal/managed -> internal/transport":                       "an engine that links drive",
	"internal/saserver/record -> internal/saserver/view":           "records are looked up in the index, as far as it lets an asker see",
	"internal/transport/umad -> internal/transport":                "one of the links that transport describes",
	"internal/beside -> internal/replica":                          "it holds packets beside what was computed of them",
	"internal/cli -> internal/cli/simcmd":                          "a command of its own",
	"internal/cli/way -> internal/beside":                          "it shows a packet beside its trace",
	"internal/cli/way -> internal/cli/table":                       "its rows are those of the commands",
	"internal/cli -> internal/daemon":                              "commands start the daemon",
}

// never lists edges that no floor allows. Packages inside one that is named here
// are meant too.
var never = []struct{ from, to, reason string }{
	{"internal/sm", "internal/fabricsim", "manager and fabric meet as octets only"},
	{"internal/fabricsim", "internal/sm", "manager and fabric meet as octets only"},
	{"internal/saserver", "internal/policy", "subnet administration is told the partitions as plain sets"},
	{"internal/saserver", "internal/sm", "the process joins manager and administration"},
	{"internal/isolation", "internal/partition", "the proof must not believe the compiler"},
	{"internal/isolation", "internal/plan", "the proof must not believe the planner"},
	{"internal/isolation", "internal/policy", "the proof is told what is allowed as plain sets"},
	{"internal/reach", "internal/partition", "what becomes of a packet must not believe the compiler"},
	{"internal/reach", "internal/plan", "what becomes of a packet must not believe the planner"},
	{"internal/reach", "internal/policy", "what becomes of a packet follows from tables alone"},
	{"internal/reach", "internal/sma", "an opinion of its own, beside that of the simulated fabric"},
	{"internal/fabricsim", "internal/reach", "the fabric is an opinion of its own"},
	{"internal/replica", "internal/reach", "what packets do must not come from what was computed"},
	{"internal/replica", "internal/isolation", "what packets do must not come from what was computed"},
	{"internal/audit", "internal/partition", "the audit must not believe the compiler"},
	{"internal/audit", "internal/plan", "the audit must not believe the planner"},
	{"internal/audit", "internal/policy", "the audit is told what is intended as plain values"},
	{"internal/audit", "internal/sm", "the audit judges managers"},
	{"internal/fabricsim", "internal/partition", "the fabric is an opinion of its own"},
	{"internal/fabricsim", "internal/isolation", "the fabric is an opinion of its own"},
	{"internal/fabricsim", "internal/subnet", "the fabric is an opinion of its own"},
	{"internal/relay", "internal/partition", "the relay is an opinion of its own"},
	{"internal/relay", "internal/isolation", "the relay is an opinion of its own"},
	{"internal/relay", "internal/subnet", "the relay is an opinion of its own"},
	{"internal/endpoint", "internal/partition", "the end node is an opinion of its own"},
	{"internal/endpoint", "internal/isolation", "the end node is an opinion of its own"},
	{"internal/endpoint", "internal/subnet", "the end node is an opinion of its own"},
	{"internal/endpoint", "internal/policy", "the end node is an opinion of its own"},
	{"internal/sma", "internal/partition", "the agent is an opinion of its own"},
	{"internal/sma", "internal/isolation", "the agent is an opinion of its own"},
	{"internal/sma", "internal/subnet", "the agent is an opinion of its own"},
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
var seeded = []string{"internal/netlist", "internal/transact", "internal/fabricsim", "internal/fabricsim/dataplane"}

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
	"internal/sm": 5400,
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
