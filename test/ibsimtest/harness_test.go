package ibsimtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	_ "github.com/ibwarden/ibwarden/internal/app/cli" // the program that is built: go test keeps no result of another one
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// commandTime bounds every program that a test runs.
const commandTime = time.Minute

func TestMain(m *testing.M) {
	os.Exit(need.Main(m))
}

// binary is ibwarden, built once for all tests.
var binary = need.Ibwarden

// baseSeed is what random runs start from: the same in every ordinary run,
// another one in every soak unless SOAK_SEED repeats one.
var baseSeed = sync.OnceValue(func() uint64 {
	if s := os.Getenv("SOAK_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			panic("SOAK_SEED: " + err.Error())
		}
		return seed
	}
	if need.Soak() {
		return uint64(time.Now().UnixNano())
	}
	return 1
})

// needTools finds the programs; without them the test skips, and fails in CI.
func needTools(t testing.TB) *Tools {
	t.Helper()
	tools, err := FindTools()
	need.Need(t, err)
	return tools
}

// rig is one simulator and what a test does with it.
type rig struct {
	testing.TB
	tools *Tools
	sim   *Sim
	host  string // node that clients attach to; empty for the first
	model *reachable
}

// newRig starts a simulator, with options of ibsim, which ends with the test.
func newRig(t testing.TB, l *topology.Netlist, host string, options ...string) *rig {
	t.Helper()
	tools := needTools(t)
	sim, err := StartSim(tools, workDir(t), l, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !sim.Alive() {
			t.Error("ibsim died in the course of the test")
		}
		sim.Stop()
	})
	return &rig{TB: t, tools: tools, sim: sim, host: host, model: explore(t, l, host)}
}

// routerGUIDs is where the GUIDs of routers begin: ibsim begins at 0, and OpenSM
// leaves a node with GUID 0 alone.
const routerGUIDs = 0x300000

// workDir is a directory of the test's own: in memory where there is room for
// that, since libumad2sim makes and removes a hundred files for every program.
func workDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "ibwarden-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func isNetfile(spec string) bool { return strings.Contains(spec, "\n") }

// topologyOf is the netlist of a specification, or of a netfile.
func topologyOf(t testing.TB, spec string) *topology.Netlist {
	t.Helper()
	if isNetfile(spec) {
		l, _, err := topology.Read([]byte(spec), "fabric.net", nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l, err := topology.Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range l.Nodes {
		if n.Type != ib.NodeRouter || n.GUID >= routerGUIDs {
			continue
		}
		n.GUID += routerGUIDs
		n.SystemImageGUID = uint64(n.GUID)
		for p := 1; p < len(n.Ports); p++ {
			n.Ports[p].GUID = ib.PortGUID(n.GUID) + ib.PortGUID(p)
		}
	}
	return l
}

// file writes a file into the simulator's directory and returns its path.
func (r *rig) file(name, content string) string {
	r.Helper()
	path := filepath.Join(r.sim.Dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		r.Fatal(err)
	}
	return path
}

// output is what a program left behind.
type output struct {
	stdout, stderr string
	status         int
}

// do runs a program to its end, however it ends.
func do(cmd *exec.Cmd) (output, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	o := output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%v: %w\n%s", cmd.Args, err, o.stderr)
	}
	return o, err
}

// umadTries bounds how often a question is asked that nobody answered: on a
// machine with much to do a second may pass before ibsim gets its turn.
const umadTries = 3

// umad runs a program that uses libibumad and has to succeed.
func (r *rig) umad(program string, args ...string) (stdout string, err error) {
	for range umadTries {
		ctx, cancel := context.WithTimeout(context.Background(), commandTime)
		cmd := r.sim.UmadCommand(ctx, r.host, program, args...)
		var o output
		o, err = do(cmd)
		cancel()
		if err == nil && o.status != 0 {
			err = fmt.Errorf("%v: exit status %d\n%s", cmd.Args, o.status, o.stderr)
		}
		if !strings.Contains(o.stderr, "Connection timed out") {
			return o.stdout, err
		}
	}
	return "", err
}

// warden runs ibwarden.
func (r *rig) warden(args ...string) output {
	r.Helper()
	path, err := binary()
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	o, err := do(r.sim.Command(ctx, r.host, path, args...))
	if err != nil {
		r.Fatal(err)
	}
	return o
}

// runOnce is `ibwarden run --once --json` on the simulator.
func (r *rig) runOnce(args ...string) output {
	r.Helper()
	return r.warden(append([]string{"run", "--once", "--json", "--quarantine", "0s", "--fabric", "ibsim:" + r.sim.Name}, args...)...)
}

// bringUp is runOnce that has to succeed.
func (r *rig) bringUp(policy string, args ...string) *document {
	r.Helper()
	o := r.runOnce(append([]string{"--policy", policy}, args...)...)
	if o.status != 0 {
		r.Fatalf("run: exit status %d\n%s", o.status, o.stderr)
	}
	var d document
	if err := json.Unmarshal([]byte(o.stdout), &d); err != nil {
		r.Fatalf("run --json printed no document: %v\n%s", err, o.stdout)
	}
	return &d
}

// show is `ibwarden show VIEW --json`, into rows.
func show[Row any](r *rig, view string, fabric ...string) []Row {
	r.Helper()
	from := "ibsim:" + r.sim.Name
	if len(fabric) > 0 {
		from = fabric[0]
	}
	o := r.warden("show", view, "--json", "--fabric", from)
	if o.status != 0 {
		r.Fatalf("show %s: exit status %d\n%s", view, o.status, o.stderr)
	}
	var d map[string][]Row
	if err := json.Unmarshal([]byte(o.stdout), &d); err != nil {
		r.Fatalf("show %s --json: %v\n%s", view, err, o.stdout)
	}
	rows, ok := d[view]
	if !ok || len(d) != 1 {
		r.Fatalf("show %s --json: %d members, want only %q", view, len(d), view)
	}
	return rows
}

// snapshot is everything that `ibwarden show` says of tables and states.
func (r *rig) snapshot() map[string]string {
	r.Helper()
	all := map[string]string{}
	for _, view := range []string{"pkeys", "ports", "lids", "routes"} {
		o := r.warden("show", view, "--json", "--fabric", "ibsim:"+r.sim.Name)
		if o.status != 0 {
			r.Fatalf("show %s: exit status %d\n%s", view, o.status, o.stderr)
		}
		all[view] = o.stdout
	}
	return all
}

// document is what `run --json` promises, and what the tests look at of it.
type document struct {
	Fabric     map[string]int
	Partitions []struct {
		Name          string
		PKey          string
		Full, Limited int
	}
	SMPs struct {
		Get, Set    int
		ByAttribute []struct {
			Attribute string
			Get, Set  int
		} `json:"by_attribute"`
	}
	Phases []struct {
		Name    string
		Seconds float64
	}
	Proof struct {
		Verdict string
		Pairs   []struct{ A, B, Verdict string }
		Reasons []string
	}
	Writes int
}

// sets counts the SubnSet by attribute.
func (d *document) sets() map[string]int {
	sets := map[string]int{}
	for _, a := range d.SMPs.ByAttribute {
		if a.Set > 0 {
			sets[a.Attribute] = a.Set
		}
	}
	return sets
}
