package ibsimd_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/door"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// netfile writes a topology to a file.
func netfile(t testing.TB, l *topology.Netlist) string {
	t.Helper()
	path := filepath.Join(workDir(t), "fabric.net")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := l.WriteIbsim(f); err != nil {
		t.Fatal(err)
	}
	return path
}

var fieldLine = regexp.MustCompile(`(?m)^([A-Z]\w*):\.+(.*)$`)

func fields(text string) map[string]string {
	all := map[string]string{}
	for _, m := range fieldLine.FindAllStringSubmatch(text, -1) {
		all[m[1]] = m[2]
	}
	return all
}

// routes finds a directed route to every node that the first one reaches.
func routes(l *topology.Netlist) map[*topology.Node]string {
	first := l.Nodes[0]
	paths := map[*topology.Node]string{first: "0"}
	for waiting := []*topology.Node{first}; len(waiting) > 0; waiting = waiting[1:] {
		n := waiting[0]
		if n != first && n.Type != ib.NodeSwitch {
			continue
		}
		for p, port := range n.Ports {
			if port.Peer != nil && paths[port.Peer] == "" && (n.Type == ib.NodeSwitch || p == 1) {
				paths[port.Peer] = paths[n] + "," + strconv.Itoa(p)
				waiting = append(waiting, port.Peer)
			}
		}
	}
	return paths
}

// smpquery reads of every node what the topology says.
func TestSmpquery(t *testing.T) {
	tools := needTools(t)
	l := topologyOf(t, oddities)
	sim := simulate(t, netfile(t, l))
	a := at{TB: t, tools: tools, socket: sim.name, dir: workDir(t)}
	paths := routes(l)
	if len(paths) < 5 {
		t.Fatalf("%d nodes in reach", len(paths))
	}
	for n, path := range paths {
		info := fields(a.run("smpquery", "-D", "nodeinfo", path))
		kind := map[ib.NodeType]string{ib.NodeCA: "Channel Adapter", ib.NodeSwitch: "Switch", ib.NodeRouter: "Router"}[n.Type]
		if info["Guid"] != n.GUID.String() || info["NodeType"] != kind || info["NumPorts"] != strconv.Itoa(n.NumPorts()) {
			t.Errorf("%s: NodeInfo %v", n.ID, info)
		}
		if text := a.run("smpquery", "-D", "nodedesc", path); !strings.HasSuffix(strings.TrimSpace(text), "."+n.Description) {
			t.Errorf("%s: description %s, want %q", n.ID, text, n.Description)
		}
		for p := range n.Ports {
			if p == 0 && !n.IsEndPort(0) {
				continue
			}
			state := fields(a.run("smpquery", "-D", "portinfo", path, strconv.Itoa(p)))["LinkState"]
			want := "Down"
			switch {
			case n.Ports[p].Peer != nil, n.EnhancedPort0 && p == 0:
				want = "Initialize"
			case p == 0:
				want = "Active"
			}
			if state != want {
				t.Errorf("%s[%d]: %s, want %s", n.ID, p, state, want)
			}
		}
		if keys := a.run("smpquery", "-D", "pkeys", path, "1"); n.Type != ib.NodeSwitch && !strings.Contains(keys, "0: 0xffff 0x0000") {
			t.Errorf("%s: keys %s", n.ID, keys)
		}
		if n.Type == ib.NodeSwitch {
			if info := fields(a.run("smpquery", "-D", "switchinfo", path)); info["LinearFdbCap"] == "" || info["LinearFdbCap"] == "0" {
				t.Errorf("%s: SwitchInfo %v", n.ID, info)
			}
		}
	}
}

// The other diagnostics work on a fabric that OpenSM has brought up.
func TestDiagnostics(t *testing.T) {
	tools := needTools(t)
	l := topologyOf(t, "fattree,radix=4,levels=2")
	s := serve(t, l, ibsimd.Config{Fabric: fabric.DefaultConfig()})
	a := at{TB: t, tools: tools, socket: s.Name(), dir: workDir(t), host: l.Nodes[0].ID}
	a.openSM(partitions, up, "part_enforce off") // with it, its limited members cannot reach it
	settle(t, s)
	if text := a.run("sminfo"); !strings.Contains(text, "SMINFO_MASTER") || !strings.Contains(text, "sm guid 0x") {
		t.Errorf("sminfo: %s", text)
	}
	far := a
	for _, n := range l.Nodes {
		if n.Type == ib.NodeCA {
			far.host = n.ID // the last one
		}
	}
	far.dir = workDir(t)
	if text := far.run("sminfo"); !strings.Contains(text, "SMINFO_MASTER") {
		t.Errorf("sminfo from elsewhere: %s", text)
	}
	if text := far.run("saquery", "NR"); !strings.Contains(text, "NodeRecord dump") {
		t.Errorf("saquery: %s", text)
	}
	if f := fields(far.run("perfquery")); f["PortXmitPkts"] == "0" || f["PortXmitPkts"] == "" || f["PortXmitPkts"] != f["PortRcvPkts"] {
		t.Errorf("perfquery: %v", f)
	}
	lids := map[ib.NodeType]string{}
	if err := s.Do(func(f *fabric.Fabric) {
		for _, n := range l.Nodes {
			port := ib.PortNum(1)
			if n.Type == ib.NodeSwitch {
				port = 0
			}
			lids[n.Type] = fmt.Sprint(f.Agent(n.GUID).Port(port).LID)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if f := fields(far.run("perfquery", "-x", lids[ib.NodeSwitch], "1")); f["PortXmitPkts"] == "0" || f["PortUnicastRcvPkts"] == "" {
		t.Errorf("perfquery -x of a switch: %v", f)
	}
	far.run("perfquery", "-R", lids[ib.NodeSwitch], "1")
	if f := fields(far.run("perfquery", "-a", lids[ib.NodeCA])); f["PortSelect"] != "255" {
		t.Errorf("perfquery -a: %v", f)
	}
	if f := fields(a.run("smpquery", "-L", "nodeinfo", lids[ib.NodeCA])); f["Guid"] == "" {
		t.Errorf("smpquery by LID: %v", f)
	}
	if f := fields(a.run("ibportstate", lids[ib.NodeSwitch], "1", "query")); f["LinkState"] != "Active" || f["PhysLinkState"] != "LinkUp" {
		t.Errorf("ibportstate: %v", f)
	}
	// What ibsim never recovers from: disabled and enabled again.
	a.run("ibportstate", "-D", "0,1", "2", "disable")
	a.run("ibportstate", "-D", "0,1", "2", "enable")
	a.waitFor("the port is up again", func() bool {
		return fields(a.run("ibportstate", "-D", "0,1", "2", "query"))["LinkState"] == "Active"
	})
}

// The console takes commands on standard input, and Quit ends the program.
func TestConsoleOfTheProgram(t *testing.T) {
	sim := simulate(t, netfile(t, small(t)))
	fmt.Fprintf(sim.stdin, "dump \"sw\"\nNonsense\nquit\n")
	rest, err := io.ReadAll(sim.out)
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if text := string(rest); !strings.Contains(text, `[2] "two"[1]`) || !strings.Contains(text, `no command "nonsense"`) {
		t.Errorf("printed:\n%s", text)
	}
}

// A capture is one that tshark reads, with every question and answer in it.
func TestCapture(t *testing.T) {
	tools := needTools(t)
	tshark := need.Program(t, "tshark")
	file := filepath.Join(workDir(t), "fabric.pcap")
	sim := simulate(t, "--capture", file)
	a := at{TB: t, tools: tools, socket: sim.name, dir: workDir(t)}
	a.run("smpquery", "-D", "nodeinfo", "0")
	a.run("smpquery", "-D", "portinfo", "0,1", "1")
	sim.end(t)
	cmd := exec.Command(tshark, "-r", file, "-T", "fields", "-e", "infiniband.mad.attributeid", "-e", "infiniband.mad.method", "-e", "_ws.malformed")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "0x0011\t0x01\t\n0x0011\t0x81\t\n0x0015\t0x01\t\n0x0015\t0x81\t\n"
	if got := string(out); !strings.HasSuffix(got, want) || strings.Contains(got, "alformed") {
		t.Errorf("tshark reads\n%s\nwant at its end\n%s", got, want)
	}
}

// A server that is reached by UDP is as good.
func TestUDP(t *testing.T) {
	tools := needTools(t)
	s := serve(t, small(t), ibsimd.Config{UDP: "127.0.0.1:17170", Users: door.Users{Any: true}, Fabric: fabric.DefaultConfig()})
	a := at{TB: t, tools: tools, dir: workDir(t), environment: s.Environment()}
	if f := fields(a.run("smpquery", "-D", "nodeinfo", "0,1")); f["NodeType"] != "Switch" {
		t.Error(f)
	}
	if text := a.run("ibnetdiscover"); strings.Count(text, "guid=") != 8 {
		t.Error(text)
	}
}
