package ibsimd_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/fabricsim"
	"github.com/ibwarden/ibwarden/internal/ibsimd"
	"github.com/ibwarden/ibwarden/internal/ibsimtest"
	"github.com/ibwarden/ibwarden/internal/netlist"
)

// bringUps are topologies for a manager to bring up.
var bringUps = []string{
	"fattree,radix=6,levels=2",
	"torus,x=2,y=2,z=2",
	"dragonfly,groups=3",
	"random,seed=7,switches=6,hosts=9,ca-ports=2,extra=6",
	backToBack,
	oddities,
}

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
func topologyOf(t testing.TB, spec string) *netlist.Netlist {
	t.Helper()
	if strings.Contains(spec, "\n") {
		l, _, err := netlist.Read([]byte(spec), "fabric.net", nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l, err := netlist.Generate(spec)
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

// openSM runs an OpenSM, which sweeps every second, until it is stopped. It waits
// until the log says something.
func (a at) openSM(policy string, until string, options ...string) (stop func() (log string)) {
	a.Helper()
	conf, log := filepath.Join(a.dir, "partitions.conf"), filepath.Join(a.dir, "opensm.log")
	if err := os.WriteFile(conf, []byte(policy), 0o600); err != nil {
		a.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	settings := filepath.Join(a.dir, "opensm.conf")
	if err := os.WriteFile(settings, []byte(strings.Join(options, "\n")+"\n"), 0o600); err != nil {
		a.Fatal(err)
	}
	cmd := a.command(ctx, "opensm", "-F", settings, "-P", conf, "-e", "-f", log, "-s", "1", "-d2") // -d2: flush the log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		a.Fatal(err)
	}
	stopped := false
	stop = func() string {
		if !stopped {
			stopped = true
			cancel()
			_ = cmd.Wait() // the log tells how it was
		}
		text, err := os.ReadFile(log)
		if err != nil {
			a.Fatal(err)
		}
		return string(text)
	}
	a.Cleanup(func() { stop() })
	a.Cleanup(func() {
		if text, err := os.ReadFile(log); a.Failed() && err == nil {
			a.Logf("OpenSM on %s:\n%.5000s", a.socket, text)
		}
	})
	a.waitForLog(until)
	return stop
}

// waitForLog waits until OpenSM says something.
func (a at) waitForLog(what string) {
	a.Helper()
	a.waitFor("OpenSM says "+what, func() bool {
		text, _ := os.ReadFile(filepath.Join(a.dir, "opensm.log"))
		return strings.Contains(string(text), what)
	})
}

// waitFor waits until something is true.
func (a at) waitFor(what string, done func() bool) { waitFor(a, what, done) }

func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(commandTime); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain: %s", commandTime, what)
		}
	}
}

var errorLine = regexp.MustCompile(`ERR [0-9A-F]{4}`)

// errorsIn lists the kinds of errors in a log.
func errorsIn(log string) []string {
	kinds := errorLine.FindAllString(log, -1)
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// up is what OpenSM says of a fabric that is up.
const up = "SUBNET UP"

const partitions = `Default=0x7fff, ipoib : ALL=limited, ALL_SWITCHES=full, SELF=full ;
Red=0x0010 : ALL=full ;
Blue=0x8020 : ALL_CAS=limited, SELF=full ;
`

// OpenSM brings up what it brings up on ibsim, with no error that ibsim does
// not cause, gives every port the keys that its policy says, and then is quiet.
func TestOpenSM(t *testing.T) {
	tools := needTools(t)
	for i, spec := range bringUps {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			l := topologyOf(t, spec)
			theirs, err := ibsimtest.StartSim(tools, workDir(t), l)
			if err != nil {
				t.Fatal(err)
			}
			defer theirs.Stop()
			reference := at{TB: t, tools: tools, socket: theirs.Name, dir: workDir(t)}.openSM(partitions, up)

			s := serve(t, l, ibsimd.Config{Fabric: fabricsim.DefaultConfig()})
			a := at{TB: t, tools: tools, socket: s.Name(), dir: workDir(t)}
			stop := a.openSM(partitions, up)
			settle(t, s)
			checkOpenSMKeys(t, s)
			log, known := stop(), errorsIn(reference())
			for _, kind := range errorsIn(log) {
				if !slices.Contains(known, kind) {
					t.Errorf("OpenSM logs %s, and not with ibsim:\n%s", kind, log)
				}
			}
		})
	}
}

// settle waits until sweeps go by in which nothing is written.
func settle(t *testing.T, s *ibsimd.Server) {
	t.Helper()
	var sets, gets uint64
	quiet := 0
	waitFor(t, "sweeps in which nothing is written", func() bool {
		var set, get uint64
		if err := s.Do(func(f *fabricsim.Fabric) {
			for _, k := range f.ReceivedKinds() {
				switch k.Method {
				case mad.MethodSet:
					set += f.Received(k.Method, k.Attribute)
				case mad.MethodGet:
					get += f.Received(k.Method, k.Attribute)
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		switch {
		case set != sets:
			sets, gets, quiet = set, get, 0
		case get != gets:
			gets = get
			quiet++
		}
		return quiet >= 3
	})
}

// checkOpenSMKeys checks that the ports which OpenSM reached have the keys of
// partitions.
func checkOpenSMKeys(t *testing.T, s *ibsimd.Server) {
	t.Helper()
	l := s.Topology()
	self, selfPort, err := l.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	if err := s.Do(func(f *fabricsim.Fabric) {
		for _, n := range l.Nodes {
			for p := range n.Ports {
				agent, num := f.Agent(n.GUID), ib.PortNum(p)
				if !n.IsEndPort(p) || agent.Port(num).MasterSMLID == 0 {
					continue // on a base port 0 and where no manager came, nothing
				}
				checked++
				want := []ib.PKey{0x7FFF, 0x8010}
				switch {
				case n == self && num == selfPort:
					want = []ib.PKey{0xFFFF, 0x8010, 0x8020}
				case n.Type == ib.NodeSwitch:
					want[0] = 0xFFFF
				default:
					want = append(want, 0x0020)
				}
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
	if checked < 2 {
		t.Errorf("OpenSM reached %d ports", checked)
	}
}

// Of two managers one waits, and takes over when the other has died.
func TestTwoManagers(t *testing.T) {
	tools := needTools(t)
	l := topologyOf(t, "fattree,radix=4,levels=2")
	s := serve(t, l, ibsimd.Config{Fabric: fabricsim.DefaultConfig()})
	at := func(host string) at { return at{TB: t, tools: tools, socket: s.Name(), dir: workDir(t), host: host} }
	impatient := []string{"sminfo_polling_timeout 200", "polling_retry_number 2"}
	var hosts []string
	for _, n := range l.Nodes {
		if n.Type == ib.NodeCA {
			hosts = append(hosts, n.ID)
		}
	}
	first, second := at(hosts[0]), at(hosts[len(hosts)-1])
	stop := first.openSM(partitions, up, impatient...)
	defer second.openSM(partitions, "Entering STANDBY state", impatient...)()
	if text := second.run("sminfo"); !strings.Contains(text, "SMINFO_MASTER") {
		t.Errorf("sminfo: %s", text)
	}
	stop()
	second.waitForLog("Entering MASTER state")
	second.waitForLog(up)
}
