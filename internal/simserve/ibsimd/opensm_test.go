package ibsimd_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// Topologies that no generator makes.
const (
	backToBack = `Hca 2 "A"
[1] "B"[1]

Hca 1 "B"
[1] "A"[1]
`
	oddities = `Switch 12 "S1" # "one; of, two: #1" enhanced port 0 lid 3 lmc 0
[1] "A"[1]
[2] "A"[2]
[3] "B"[1] # lid 3 lmc 0 "B" lid 3 4xQDR
[5] "S1"[6]
[6] "S1"[5]
[11] "S2"[1]
[12] "S2"[2]

Switch 3 "S2" # "two" base port 0 lid 900 lmc 0
[1] "S1"[11]
[2] "S1"[12]
[3] "C"[3]

Hca 2 "A" # "host with = marks"
[1] "S1"[1] # lid 900 lmc 0 "S1" lid 3 4xSDR
[2] "S1"[2] # lid 900 lmc 0 "S1" lid 3 4xSDR

Hca 1 "B"
[1] "S1"[3] # lid 3 lmc 0 "S1" lid 3 4xSDR

Hca 3 "C"
[3] "S2"[3]
[1] "far"[1]

Switch 4 "far"
[1] "C"[1]
[2] "D"[1]

Hca 1 "D"
[1] "far"[2]
`
)

// topologyOf is the netlist of a generator or of a netfile.
func topologyOf(t testing.TB, spec string) *topology.Netlist {
	t.Helper()
	if strings.Contains(spec, "\n") {
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
	return l
}

// workDir is a directory of the test's own: in memory where there is room for
// that, since libumad2sim makes and removes a hundred files for every program.
func workDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "ibwarden-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// openSM is a running OpenSM.
type openSM struct {
	at
	process   *os.Process
	interrupt func() // asks it to end
	ended     func() // waits for that
}

// stop ends it and returns its log. It may be called again.
func (o openSM) stop() string {
	o.Helper()
	o.interrupt()
	o.ended()
	text, err := os.ReadFile(o.logFile())
	if err != nil {
		o.Fatal(err)
	}
	return string(text)
}

func (a at) logFile() string { return filepath.Join(a.dir, "opensm.log") }

// openSM starts an OpenSM, which sweeps every second, and waits until the log
// says something.
func (a at) openSM(policy string, until string, options ...string) openSM {
	a.Helper()
	conf, settings := filepath.Join(a.dir, "partitions.conf"), filepath.Join(a.dir, "opensm.conf")
	for path, text := range map[string]string{conf: policy, settings: strings.Join(options, "\n") + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			a.Fatal(err)
		}
	}
	ctx, interrupt := context.WithCancel(context.Background())
	cmd := a.command(ctx, "opensm", ibsimtest.LogLimit, "-F", settings, "-P", conf, "-e", "-f", a.logFile(), "-s", "1", "-d2") // -d2: flush the log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		a.Fatal(err)
	}
	o := openSM{at: a, process: cmd.Process, interrupt: interrupt, ended: sync.OnceFunc(func() { _ = cmd.Wait() })} // the log tells how it was
	a.Cleanup(func() {
		interrupt()
		o.ended()
		if text, err := os.ReadFile(a.logFile()); a.Failed() && err == nil {
			a.Logf("OpenSM on %s:\n%.5000s", a.socket, text)
		}
	})
	a.waitForLog(until)
	return o
}

// waitForLog waits until OpenSM says something.
func (a at) waitForLog(what string) {
	a.Helper()
	a.waitFor("OpenSM says "+what, func() bool { return a.says(what) })
}

// says reports whether OpenSM's log has something in it.
func (a at) says(what string) bool { return strings.Contains(a.text(), what) }

// text is OpenSM's log so far.
func (a at) text() string {
	text, _ := os.ReadFile(a.logFile()) // it comes to be when OpenSM starts
	return string(text)
}

// waitFor waits until something is true.
func (a at) waitFor(what string, done func() bool) { waitFor(a, what, done) }

func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	need.Eventually(t, commandTime, what, done)
}

var errorLine = regexp.MustCompile(`ERR [0-9A-F]{4}`)

// outstanding is what OpenSM logs of each request that is not answered yet when it ends.
const outstanding = "clear_madw: ERR 5401: evicting entry"

// errorsIn lists the kinds of errors in a log, but for what was outstanding when OpenSM had been told to
// exit: it sweeps every ten seconds, and on a busy machine an answer may be on its way then.
func errorsIn(log string) []string {
	log, exits, _ := strings.Cut(log, "Exiting SM")
	kinds := errorLine.FindAllString(log+strings.ReplaceAll(exits, outstanding, ""), -1)
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func TestErrorsIn(t *testing.T) {
	log := outstanding + " 1\nERR 3111: one\nExiting SM\n" + outstanding + " 2\nERR 0F04: two\n"
	if got := errorsIn(log); !slices.Equal(got, []string{"ERR 0F04", "ERR 3111", "ERR 5401"}) {
		t.Error(got)
	}
	if got := errorsIn("Exiting SM\n" + outstanding + " 2\n"); len(got) > 0 {
		t.Error(got)
	}
}

// up is what OpenSM says of a fabric that is up.
const up = "SUBNET UP"

const partitions = `Default=0x7fff, ipoib : ALL=limited, ALL_SWITCHES=full, SELF=full ;
Red=0x0010 : ALL=full ;
Blue=0x8020 : ALL_CAS=limited, SELF=full ;
`

// quietSweeps are the sweeps that have to go by without a write.
const quietSweeps = 2

// settle waits until sweeps go by in which nothing is written.
func settle(t testing.TB, s *ibsimd.Server) {
	t.Helper()
	waitFor(t, "sweeps in which nothing is written", settled(t, s))
}

// settled tells, when it is asked again and again, whether sweeps have gone by
// in which nothing was written. A light sweep of OpenSM's asks every switch for
// its SwitchInfo, and without switches both nodes for what they are.
func settled(t testing.TB, s *ibsimd.Server) func() bool {
	each, attribute := uint64(0), mad.AttributeID(smp.AttrSwitchInfo)
	for n := range routes(s.Topology()) {
		if n.Type == ib.NodeSwitch {
			each++
		}
	}
	if each == 0 {
		each, attribute = 2, smp.AttrNodeInfo
	}
	var lastSets, since uint64
	return func() bool {
		t.Helper()
		var sets, asked uint64
		if err := s.Do(func(f *fabric.Fabric) {
			for _, k := range f.ReceivedKinds() {
				if k.Method == mad.MethodSet {
					sets += f.Received(k.Method, k.Attribute)
				}
			}
			asked = f.Received(mad.MethodGet, attribute)
		}); err != nil {
			t.Fatal(err)
		}
		if sets != lastSets {
			lastSets, since = sets, asked
		}
		return sets > 0 && asked-since >= (quietSweeps+1)*each // the first has begun before
	}
}

// checkOpenSMKeys checks that ports have the keys of partitions.
func checkOpenSMKeys(t testing.TB, s *ibsimd.Server) {
	t.Helper()
	checkKeys(t, s, func(n *topology.Node, self bool) []ib.PKey {
		switch {
		case self:
			return []ib.PKey{0xFFFF, 0x8010, 0x8020}
		case n.Type == ib.NodeSwitch:
			return []ib.PKey{0xFFFF, 0x8010}
		case n.Type == ib.NodeCA:
			return []ib.PKey{0x7FFF, 0x8010, 0x0020}
		}
		return []ib.PKey{0x7FFF, 0x8010}
	})
}

// checkKeys checks that the ports which a manager reached, at least one of every
// node in reach, have exactly the keys that they should have.
func checkKeys(t testing.TB, s *ibsimd.Server, want func(n *topology.Node, self bool) []ib.PKey) {
	t.Helper()
	l := s.Topology()
	self, selfPort, err := l.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	inReach, reached := routes(l), map[*topology.Node]bool{}
	if err := s.Do(func(f *fabric.Fabric) {
		for _, n := range l.Nodes {
			for p := range n.Ports {
				agent, num := f.Agent(n.GUID), ib.PortNum(p)
				if !n.IsEndPort(p) || agent.Port(num).MasterSMLID == 0 {
					continue
				}
				reached[n] = true
				want := want(n, n == self && num == selfPort)
				got := slices.DeleteFunc(slices.Clone(agent.PKeys(num)), func(k ib.PKey) bool { return k == 0 })
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("%s[%d] has keys %v, want %v", n.ID, p, got, want)
				}
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	for n := range inReach {
		if !reached[n] {
			t.Errorf("the manager did not reach %s", n.ID)
		}
	}
}

// Of two managers one waits, and takes over when the other has died.
func TestTwoManagers(t *testing.T) {
	tools := needTools(t)
	l := topologyOf(t, "fattree,radix=4,levels=2")
	s := serve(t, l, ibsimd.Config{Fabric: fabric.DefaultConfig()})
	at := func(host string) at { return at{TB: t, tools: tools, socket: s.Name(), dir: workDir(t), host: host} }
	impatient := []string{"sminfo_polling_timeout 200", "polling_retry_number 2"}
	var hosts []string
	for _, n := range l.Nodes {
		if n.Type == ib.NodeCA {
			hosts = append(hosts, n.ID)
		}
	}
	first, second := at(hosts[0]), at(hosts[len(hosts)-1])
	master := first.openSM(partitions, up, impatient...)
	second.openSM(partitions, "Entering STANDBY state", impatient...)
	if text := second.run("sminfo"); !strings.Contains(text, "SMINFO_MASTER") {
		t.Errorf("sminfo: %s", text)
	}
	master.stop()
	second.waitForLog("Entering MASTER state")
	second.waitForLog(up)
}
