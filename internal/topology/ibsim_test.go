package topology

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/test/need"
)

// simulation is a running ibsim of our own.
type simulation struct {
	socket string
	dir    string // where tools run; they leave files behind
}

var simulations atomic.Int64

// needTool skips the test where a program is missing, but fails it in CI.
func needTool(t *testing.T, names ...string) {
	t.Helper()
	// The path of an ordinary user does not lead to all of them.
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	for _, name := range names {
		need.Program(t, name)
	}
}

// startIbsim runs ibsim on a netfile and waits until it listens.
func startIbsim(t *testing.T, netfile string) *simulation {
	t.Helper()
	sim := &simulation{
		socket: fmt.Sprintf("netlist-%d-%d", os.Getpid(), simulations.Add(1)),
		dir:    t.TempDir(),
	}
	path := filepath.Join(sim.dir, "netfile")
	if err := os.WriteFile(path, []byte(netfile), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(sim.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("ibsim", "-s", "-n", path)
	cmd.Dir, cmd.Stdout, cmd.Stderr = sim.dir, log, log
	cmd.Env = append(os.Environ(), "IBSIM_SOCKNAME="+sim.socket)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	exited := false
	t.Cleanup(func() {
		if !exited {
			_ = cmd.Process.Kill()
			<-ended
		}
	})
	deadline := time.After(20 * time.Second)
	for !listens(sim.socket) {
		select {
		case err := <-ended:
			exited = true
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("ibsim ended: %v\n%s\nof:\n%s", err, said, netfile)
		case <-deadline:
			t.Fatal("ibsim does not listen")
		case <-time.After(5 * time.Millisecond):
		}
	}
	return sim
}

// listens reports whether an ibsim has opened its last socket.
func listens(socket string) bool {
	sockets, _ := os.ReadFile("/proc/net/unix")
	return bytes.Contains(sockets, []byte("@"+socket+":out9"))
}

// run runs a tool attached to a node, or to the default one.
func (s *simulation) run(t *testing.T, host string, tool ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ibsim-run", tool...)
	var out, said bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, &out, &said
	cmd.Env = append(os.Environ(), "IBSIM_SOCKNAME="+s.socket, "SIM_HOST="+host)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", tool, err, said.String())
	}
	return out.String()
}

// checkIbsim runs ibsim on netfile and compares what ibnetdiscover finds there
// with want.
func checkIbsim(t *testing.T, netfile string, want *Netlist) {
	t.Helper()
	needTool(t, "ibsim", "ibsim-run", "ibnetdiscover")
	sim := startIbsim(t, netfile)
	text := sim.run(t, "", "ibnetdiscover")
	found, warnings, err := Read([]byte(text), "ibnetdiscover", nil)
	if err != nil || len(warnings) != 0 {
		t.Fatalf("read ibnetdiscover's output: %v %v\n%s", err, warnings, text)
	}
	conform(want)
	if diff := cmp.Diff(want.Canonical(), found.Canonical()); diff != "" {
		t.Errorf("ibsim has another fabric:\n%s\nof:\n%s", diff, netfile)
	}
	node, port, err := want.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	initiated := fmt.Sprintf("# Initiated from node %016x port %016x\n", uint64(node.GUID), uint64(node.Ports[port].GUID))
	if !strings.Contains(text, initiated) {
		t.Errorf("not %q but:\n%s", initiated, text)
	}
	// What it wrote is what we write, but for the order of nodes and the date.
	ours := plainLines(written(t, want.WriteIbnetdiscover))
	if diff := cmp.Diff(plainLines(text), ours); diff != "" {
		t.Errorf("we write it differently:\n%s", diff)
	}
}

// conform gives n the port GUIDs that ibsim always gives.
func conform(n *Netlist) {
	for _, node := range n.Nodes {
		for p := range node.Ports {
			if node.IsEndPort(p) {
				node.Ports[p].GUID = node.defaultPortGUID(p)
			}
		}
	}
}

func TestIbsimGenerated(t *testing.T) {
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			n := mustGenerate(t, spec)
			checkIbsim(t, written(t, n.WriteIbsim), n)
		})
	}
	t.Run("demo", func(t *testing.T) {
		n := Demo()
		checkIbsim(t, written(t, n.WriteIbsim), n)
	})
}

// TestIbsimDecorated presets all there is.
func TestIbsimDecorated(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			n := mustGenerate(t, fmt.Sprintf("random,switches=5,hosts=8,ports=12,routers=2,ca-ports=2,extra=6,seed=%d", seed))
			decorate(n, rand.New(rand.NewPCG(seed, 2)))
			checkIbsim(t, written(t, n.WriteIbsim), n)
		})
	}
}

// TestIbsimReadsTheSame gives the same files to ibsim and to Read.
func TestIbsimReadsTheSame(t *testing.T) {
	files := map[string]string{"modules": modules, "pair": pair}
	for _, name := range topologies {
		files[name] = string(readFile(t, name))
	}
	files["settings"] = `vendid=0x2c9
devid=4099
sysimgguid=0x77
caguid=0x500
Ca 2 "a" # plain description lid 4
[1] "c"[1] w=3 s=7
[2] "c"[2] # lid 5 lmc 1 "c" lid 9 1xSDR

switchguid=0x600(602)	# Spine 1
width=3
speed=7
Switch 010 "c" enhanced port 0 lid 0x9 lmc 1
# a comment
[1] "a"
[2] "a"[2]
[3] "e"
[4] "d"[2] e=3 # "d" lid 0 12xEDR
[8]"g"[1]

Switch 2 "d" # "quoted # lid 3" base port 0 lid 8
[2] "c"[4] w=9, e=7

hcaguids+0x20
devid=0
Hca 1 "e" # ""
[1] "c"[3]
rtguid=0777
vendid=1
Rt 2 "g"
[1] "c"[8]

do Verbose 0
`
	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			n, warnings := mustRead(t, text)
			if len(warnings) != 0 {
				t.Errorf("warnings %v", warnings)
			}
			checkIbsim(t, text, n)
		})
	}
}

// TestIbsimAttach compares the port at which a tool enters.
func TestIbsimAttach(t *testing.T) {
	needTool(t, "ibsim", "ibsim-run", "smpquery")
	n := mustGenerate(t, "random,switches=3,hosts=3,routers=1,ca-ports=2,seed=5")
	n.Nodes[1].Description = "a host"
	sim := startIbsim(t, written(t, n.WriteIbsim))
	for _, name := range []string{"", "H0", "S1", "R0", "a host"} {
		node, port, err := n.Attach(name)
		if err != nil {
			t.Fatal(err)
		}
		text := sim.run(t, name, "smpquery", "nodeinfo", "-D", "0")
		for _, want := range []string{
			fmt.Sprintf("\nGuid:............................%v\n", node.GUID),
			fmt.Sprintf("\nPortGuid:........................%v\n", node.Ports[port].GUID),
			fmt.Sprintf("\nLocalPort:.......................%d\n", port),
			fmt.Sprintf("\nNumPorts:........................%d\n", node.NumPorts()),
		} {
			if !strings.Contains(text, want) {
				t.Errorf("attach to %q: no %q in:\n%s", name, want, text)
			}
		}
		if node.Type == ib.NodeRouter && !strings.Contains(text, "Router") {
			t.Errorf("attach to %q: not a router:\n%s", name, text)
		}
	}
}

// TestIbsimRefuses checks that what we call a fault ibsim does not accept either.
func TestIbsimRefuses(t *testing.T) {
	needTool(t, "ibsim")
	for name, text := range map[string]string{
		"one end":     "Ca 1 \"H\"\n[1] \"S\"[2]\n\nSwitch 4 \"S\"\n[1] \"H\"[1]\n",
		"rates":       strings.Replace(pair, `"S"[2]`, `"S"[2] w=1`, 1),
		"id twice":    pair + "\nCa 1 \"H\"\n",
		"GUID twice":  pair + "\nswitchguid=0x100000\nSwitch 1 \"T\"\n",
		"port number": strings.Replace(pair, "[1] \"S\"[2]", "[2] \"S\"[2]", 1),
		"remote port": strings.ReplaceAll(pair, "[2]", "[5]"),
		"no such id":  strings.Replace(pair, `"S"[2]`, `"T"[2]`, 1),
		"empty":       "",
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := Read([]byte(text), "net", nil); err == nil {
				t.Fatal("Read accepts it")
			}
			dir := t.TempDir()
			path := filepath.Join(dir, "netfile")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, "ibsim", "-s", "-n", path)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), fmt.Sprintf("IBSIM_SOCKNAME=netlist-%d-%d", os.Getpid(), simulations.Add(1)))
			if said, err := cmd.CombinedOutput(); ctx.Err() != nil {
				t.Errorf("ibsim accepts it: %v\n%s", err, said)
			}
		})
	}
}
