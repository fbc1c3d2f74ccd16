package ibsimd_test

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// same is what a diagnostic has to print alike on two simulators that OpenSM
// has brought up: everything, or these fields. The rest are properties of the
// devices (table sizes, speeds, revisions), which are not ibsim's here.
var same = []struct {
	command string
	fields  []string // nil for all of the output
}{
	{"smpquery nodedesc 2", nil},
	{"smpquery -D nodeinfo 0,1", []string{"BaseVers", "ClassVers", "NodeType", "NumPorts", "SystemGuid", "Guid", "PortGuid", "DevId", "LocalPort", "VendorId"}},
	{"smpquery -G nodeinfo 0x100003", []string{"NodeType", "NumPorts", "Guid", "PortGuid", "LocalPort"}},
	{"smpquery portinfo 2 0", []string{"Lid", "SMLid", "LMC", "LinkState", "GidPrefix"}},
	{"smpquery portinfo 2 1", []string{"LinkState", "PhysLinkState", "LinkDownDefState", "LinkWidthEnabled", "LinkWidthActive", "LinkSpeedEnabled", "LinkSpeedActive", "OperVLs", "ProtectBits"}},
	{"smpquery portinfo 5 1", []string{"Lid", "SMLid", "LMC", "LinkState", "PhysLinkState", "GidPrefix", "LinkWidthActive", "LinkSpeedActive"}},
	{"smpquery switchinfo 2", []string{"LinearFdbTop", "LifeTime", "StateChange", "PartEnforceCap", "RandomFdbCap"}},
	{"smpquery -D guids 0", nil},
	{"sminfo", nil},
	{"ibportstate -D 0,1 1 query", []string{"LinkState", "PhysLinkState", "Lid", "SMLid", "LMC", "LinkWidthEnabled", "LinkWidthActive", "LinkSpeedEnabled", "LinkSpeedActive"}},
	{"ibroute 2", nil},
	{"ibaddr 3", nil},
	{"ibtracert 3 4", nil},
	{"saquery CPI", nil},
	{"saquery NR 3", []string{"lid", "node_type", "num_ports", "sys_guid", "node_guid", "port_guid"}},
	{"perfquery 2 1", []string{"PortSelect", "SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter", "PortRcvErrors", "PortXmitDiscards", "VL15Dropped"}},
	{"perfquery --rcverr 2 1", nil},
	{"perfquery --xmtdisc 2 1", nil},
}

// changing is what no two runs have in common.
var changing = regexp.MustCompile(`(?m)activity count \d+|^ibwarn:.*\n`)

// The diagnostics print of the same fabric what they print of it on ibsim.
func TestDiagnosticsLikeOnIbsim(t *testing.T) {
	tools := needTools(t)
	l := topologyOf(t, "fattree,radix=4,levels=2")
	theirs, err := ibsimtest.StartSim(tools, workDir(t), l)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Stop()
	s := serve(t, l, ibsimd.Config{Fabric: fabric.DefaultConfig()})
	there := at{TB: t, tools: tools, socket: theirs.Name, dir: workDir(t)}
	here := at{TB: t, tools: tools, socket: s.Name(), dir: workDir(t)}
	there.openSM(partitions, up)
	here.openSM(partitions, up)
	settle(t, s)
	for _, c := range same {
		words := strings.Fields(c.command)
		ours, ourErr := here.try(words[0], words[1:]...)
		reference, err := there.try(words[0], words[1:]...)
		if (ourErr == nil) != (err == nil) {
			t.Errorf("%s: %v here, %v on ibsim", c.command, ourErr, err)
			continue
		}
		if c.fields == nil {
			if ours, reference := changing.ReplaceAllString(ours, ""), changing.ReplaceAllString(reference, ""); ours != reference {
				t.Errorf("%s prints here\n%s\nand on ibsim\n%s", c.command, ours, reference)
			}
			continue
		}
		x, y := dotted(ours), dotted(reference)
		for _, name := range c.fields {
			if y[name] == "" || x[name] != y[name] {
				t.Errorf("%s: %s is %q here, %q on ibsim; of %v", c.command, name, x[name], y[name], slices.Sorted(maps.Keys(y)))
			}
		}
	}
}

var dottedLine = regexp.MustCompile(`(?m)^\s*(\w+):?\.+(.*)$`)

// dotted are the fields that a diagnostic prints, of smpquery or saquery; the
// first of a name counts.
func dotted(text string) map[string]string {
	all := map[string]string{}
	for _, m := range dottedLine.FindAllStringSubmatch(text, -1) {
		if _, ok := all[m[1]]; !ok {
			all[m[1]] = m[2]
		}
	}
	return all
}

// A capture of a whole bring-up by OpenSM, with what follows, is one that tshark
// reads to the last packet.
func TestCaptureOfABringUp(t *testing.T) {
	tools := needTools(t)
	tshark := need.Program(t, "tshark")
	file := filepath.Join(workDir(t), "fabric.pcap")
	sim := simulate(t, "--capture", file, "fattree,radix=4,levels=2")
	a := at{TB: t, tools: tools, socket: sim.name, dir: workDir(t), host: "H3_1"}
	manager := a
	manager.dir, manager.host = workDir(t), "H0_0"
	// With enforcement OpenSM's limited members cannot reach it: it copies limited
	// keys to the switch ports before them.
	o := manager.openSM(partitions, up, "part_enforce off")
	a.run("saquery", "-p")
	a.run("saquery", "PIR")
	a.run("perfquery", "-x")
	if out := a.run("ibqueryerrors"); !strings.Contains(out, " 0 bad nodes found") {
		t.Errorf("after a plain bring-up the counters tell of errors:\n%s", out)
	}
	a.run("sminfo")
	o.stop()
	sim.end(t)
	out, err := exec.Command(tshark, "-r", file, "-T", "fields", "-e", "infiniband.mad.mgmtclass", "-e", "infiniband.mad.attributeid", "-e", "infiniband.mad.method", "-e", "_ws.malformed").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) < 500 {
		t.Errorf("tshark reads %d packets", len(lines))
	}
	classes := map[string]int{}
	for i, line := range lines {
		f := strings.Split(line, "\t")
		if len(f) != 4 || f[0] == "" || f[3] != "" {
			t.Fatalf("packet %d: tshark reads %q", i+1, line)
		}
		classes[f[0]]++
	}
	for _, class := range []string{"0x81", "0x01", "0x03", "0x04"} {
		if classes[class] == 0 {
			t.Errorf("no packet of class %s: %v", class, classes)
		}
	}
}

// writers counts the Sets that agents take, by the client that they come from.
type writers [16]int

// The clients of a server, in the order in which they came.
const (
	firstClient = iota + 1
	secondClient
)

func (w *writers) trace(g fabric.Sighting) {
	if g.What == fabric.SeenByAgent && mad.Method(g.MAD[3]) == mad.MethodSet {
		w[g.MAD[8]>>4]++ // where the server notes its number
	}
}

// count is how often a client has written.
func (w *writers) count(t *testing.T, s *ibsimd.Server, client int) (n int) {
	t.Helper()
	if err := s.Do(func(*fabric.Fabric) { n = w[client] }); err != nil {
		t.Fatal(err)
	}
	return n
}

// While OpenSM is master, ibwarden writes nothing and says why.
func TestNothingIsWrittenWhileOpenSMIsMaster(t *testing.T) {
	need.Long(t, "OpenSM manages for some seconds")
	tools := needTools(t)
	path, err := ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"H3_1", "SP1"} { // a host, and a switch
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			config := fabric.DefaultConfig()
			var w writers
			config.Trace = w.trace
			s := serve(t, topologyOf(t, "fattree,radix=4,levels=2"), ibsimd.Config{Fabric: config})
			a := at{TB: t, tools: tools, socket: s.Name(), dir: workDir(t)}
			a.openSM(partitions, up)
			settle(t, s)
			cmd := exec.Command(path, "run", "--once", "--policy", "none", "--fabric", "ibsim:"+s.Name())
			tame(cmd, workDir(t))
			cmd.Env = append(os.Environ(), "SIM_HOST="+host)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "another manager is master") {
				t.Errorf("ibwarden run: %v\n%s", err, out)
			}
			// It announces itself as a manager, at which OpenSM sweeps.
			settle(t, s)
			checkOpenSMKeys(t, s)
			if w.count(t, s, firstClient) == 0 || w.count(t, s, secondClient) > 0 {
				t.Errorf("OpenSM has written %d times, ibwarden %d times", w.count(t, s, firstClient), w.count(t, s, secondClient))
			}
		})
	}
}
