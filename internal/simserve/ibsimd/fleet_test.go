package ibsimd_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

const (
	fleetSeed   = 3   // of the random fabrics in every ordinary run
	randomOnes  = 8   // of those
	soakFabrics = 120 // random fabrics, with IBWARDEN_SOAK
	squadron    = 11  // fabrics at a time: their managers wait most of the time
)

// fixedFabrics are topologies for a manager to bring up.
var fixedFabrics = []string{
	"fattree,radix=4,levels=2",
	"fattree,radix=8,levels=2",
	"fattree,radix=8,levels=2,hosts=9",
	"fattree,radix=4,levels=3",
	"torus,x=3,y=1",
	"torus,x=4,y=3,hosts=2",
	"torus,x=2,y=2,z=2",
	"torus,x=3,y=3,z=3",
	"dragonfly,groups=2",
	"dragonfly,groups=5",
	"dragonfly,groups=4,leafs=3,spines=3,hosts=3",
	"random,seed=5,switches=5,hosts=8,routers=3,ca-ports=3",
	backToBack,
	oddities,
}

// fleet is every fabric that managers and diagnostics are tried on.
func fleet(t *testing.T) []string {
	seed, count := need.Seed(t, fleetSeed), randomOnes
	if need.Soak() {
		count = soakFabrics
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	all := slices.Clone(fixedFabrics)
	for range count {
		all = append(all, fmt.Sprintf("random,seed=%d,switches=%d,hosts=%d,ports=%d,routers=%d,ca-ports=%d",
			rng.Uint32(), 1+rng.IntN(12), 2+rng.IntN(30), 34+rng.IntN(3), rng.IntN(3), 1+rng.IntN(3)))
	}
	if testing.Short() {
		return share(all, 0)
	}
	return all
}

// share is every fourth of a list, from the first one on.
func share[T any](list []T, first int) (out []T) {
	for i := first; i < len(list); i += 4 {
		out = append(out, list[i])
	}
	return out
}

// trial is something that takes its time, begun on one fabric.
type trial struct {
	ready func() bool
	check func(t *testing.T)
}

// inSquadrons begins something on several fabrics at a time, waits until all are
// ready and checks them.
func inSquadrons(t *testing.T, specs []string, begin func(t *testing.T, spec string) trial) {
	for first := 0; first < len(specs); first += squadron {
		some := specs[first:min(first+squadron, len(specs))]
		t.Run(fmt.Sprintf("from %d", first), func(t *testing.T) {
			var trials []trial
			for _, spec := range some {
				trials = append(trials, begin(t, spec))
			}
			done := make([]bool, len(trials))
			waitFor(t, "all managers are done", func() bool {
				for i, x := range trials {
					done[i] = done[i] || x.ready()
				}
				return !slices.Contains(done, false)
			})
			for i, x := range trials {
				if ok := t.Run(fmt.Sprint(first+i), x.check); !ok {
					t.Logf("%d is %s", first+i, some[i])
				}
			}
		})
	}
}

// OpenSM brings up what it brings up on ibsim, with no kind of error that ibsim
// does not cause, gives every port the keys that its policy says, and then is
// quiet. Before that, ibnetdiscover finds the same fabric in both.
func TestOpenSM(t *testing.T) {
	tools := needTools(t)
	inSquadrons(t, fleet(t), func(t *testing.T, spec string) trial {
		l := topologyOf(t, spec)
		theirs, err := ibsimtest.StartSim(tools, workDir(t), l)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(theirs.Stop)
		s := serve(t, topologyOf(t, spec), ibsimd.Config{Fabric: fabric.DefaultConfig()})
		there := at{TB: t, tools: tools, socket: theirs.Name, dir: workDir(t)}
		here := at{TB: t, tools: tools, socket: s.Name(), dir: workDir(t)}
		if ours, reference := discovered(here), discovered(there); ours != reference {
			t.Errorf("ibnetdiscover finds here\n%s\nand in ibsim\n%s", ours, reference)
		}
		reference, manager := there.openSM(partitions, ""), here.openSM(partitions, "")
		quiet := settled(t, s)
		isReady := func() bool { return quiet() && manager.says(up) && reference.says(up) }
		return trial{isReady, func(t *testing.T) {
			reference.TB, manager.TB = t, t
			checkOpenSMKeys(t, s)
			manager.interrupt()
			reference.interrupt()
			log, known := manager.stop(), errorsIn(reference.stop())
			for _, kind := range errorsIn(log) {
				if !slices.Contains(known, kind) {
					t.Errorf("OpenSM logs %s, and not with ibsim:\n%s", kind, log)
				}
			}
		}}
	})
}

// discovered is the fabric that ibnetdiscover finds, in a form to compare.
func discovered(a at) string {
	a.Helper()
	text := a.run("ibnetdiscover")
	seen, _, err := topology.Read([]byte(text), "ibnetdiscover", nil)
	if err != nil {
		a.Fatalf("%v\n%s", err, text)
	}
	return seen.Canonical()
}

// portGUIDs are those that a file may give to ports of its own; in ibsim a port's
// follows from its node's.
var portGUIDs = regexp.MustCompile(`\]\(0x[0-9a-f]{16}\)`)

// `ibwarden sim` and ibsim make the same fabric of files that others wrote.
func TestForeignFiles(t *testing.T) {
	tools := needTools(t)
	files, err := filepath.Glob("../../topology/testdata/*.*")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			l, _, err := topology.Read(text, file, nil)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := ibsimtest.StartSim(tools, workDir(t), l)
			if err != nil {
				t.Fatal(err)
			}
			defer theirs.Stop()
			path, err := filepath.Abs(file)
			if err != nil {
				t.Fatal(err)
			}
			ours := discovered(at{TB: t, tools: tools, socket: simulate(t, path).name, dir: workDir(t)})
			reference := discovered(at{TB: t, tools: tools, socket: theirs.Name, dir: workDir(t)})
			without := func(s string) string { return portGUIDs.ReplaceAllString(s, "]") }
			if without(ours) != without(reference) {
				t.Errorf("ibnetdiscover finds here\n%s\nand in ibsim\n%s", ours, reference)
			}
			given := map[string]bool{}
			for _, n := range l.Nodes {
				for p := range n.Ports {
					given[fmt.Sprintf("](%v)", n.Ports[p].GUID)] = true
				}
			}
			for _, guid := range portGUIDs.FindAllString(ours, -1) {
				if !given[guid] {
					t.Errorf("a port %s, and the file has none", guid[1:])
				}
			}
		})
	}
}

// outcome is what `ibwarden run --once --json` says, as far as it matters here.
type outcome struct {
	Proof struct{ Verdict string }
	SMPs  struct{ Get, Set int }
}

// ibwarden is a manager like any other: what its policy says is so, which it
// proves, and a second run has nothing to write.
func TestIbwarden(t *testing.T) {
	path, err := ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	const conf = "Default=0x7fff : ALL=limited, SELF=full ;\nRed=0x0010 : ALL_CAS=full ;\nBlue=0x0020 : SELF=full, ALL_ROUTERS=limited ;\n"
	for i, spec := range fleet(t) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := serve(t, topologyOf(t, spec), ibsimd.Config{Fabric: fabric.DefaultConfig()})
			verdict := "isolated"
			if s.Topology().Count(ib.NodeSwitch) == 0 {
				verdict = "isolated-by-end-ports" // nothing between them checks keys
			}
			policy := filepath.Join(workDir(t), "partitions.conf")
			if err := os.WriteFile(policy, []byte(conf), 0o600); err != nil {
				t.Fatal(err)
			}
			run := func() (o outcome) {
				cmd := exec.Command(path, "run", "--once", "--json", "--fabric", "ibsim:"+s.Name(), "--policy", policy, "--data", filepath.Join(filepath.Dir(policy), "data"))
				tame(cmd, filepath.Dir(policy))
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%s: ibwarden run: %v\n%s", spec, err, out)
				}
				if err := json.Unmarshal(out, &o); err != nil || o.Proof.Verdict != verdict {
					t.Fatalf("%s: %v, verdict %q:\n%s", spec, err, o.Proof.Verdict, out)
				}
				return o
			}
			if o := run(); o.SMPs.Set == 0 {
				t.Errorf("%s: nothing was written", spec)
			}
			checkKeys(t, s, func(n *topology.Node, self bool) []ib.PKey {
				want := []ib.PKey{0x7FFF}
				if self {
					want = []ib.PKey{0xFFFF, 0x8020}
				}
				switch n.Type {
				case ib.NodeCA:
					want = append(want, 0x8010)
				case ib.NodeRouter:
					want = append(want, 0x0020)
				}
				return want
			})
			if o := run(); o.SMPs.Set != 0 {
				t.Errorf("%s: a second run writes %d times", spec, o.SMPs.Set)
			}
		})
	}
}
