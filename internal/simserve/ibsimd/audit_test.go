package ibsimd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// auditReport is what `ibwarden audit --json` prints, as far as it is looked at.
type auditReport struct {
	Findings []struct{ Check, Severity, Where, Read, Advice string }
	Passed   []string
	Counts   map[string]int
}

// checks lists the checks with a finding, each once.
func (r *auditReport) checks() []string {
	var out []string
	for _, f := range r.Findings {
		out = append(out, f.Check)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (r *auditReport) has(check, where, read string) bool {
	for _, f := range r.Findings {
		if f.Check == check && f.Severity != "unknown" && strings.Contains(f.Where, where) && strings.Contains(f.Read, read) {
			return true
		}
	}
	return false
}

// audit runs `ibwarden audit` on the server's fabric.
func (a at) audit(args ...string) *auditReport {
	a.Helper()
	path, err := ibwarden()
	if err != nil {
		a.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"audit", "--json", "--fabric", "ibsim:" + a.socket}, args...)...)
	cmd.Env = append(os.Environ(), "SIM_HOST="+a.host)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		a.Fatalf("audit: %v", err)
	}
	var r auditReport
	if err := json.Unmarshal(out, &r); err != nil {
		a.Fatalf("audit --json: %v\n%s", err, out)
	}
	for _, f := range r.Findings {
		if f.Where == "" || f.Read == "" || f.Advice == "" {
			a.Errorf("a finding that does not say all: %+v", f)
		}
	}
	return &r
}

// file writes a file where the program runs.
func (a at) file(name, text string) string {
	a.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		a.Fatal(err)
	}
	return path
}

// sent counts the requests of a method that the fabric's devices got.
func sent(t *testing.T, s *ibsimd.Server, m mad.Method) (n uint64) {
	t.Helper()
	if err := s.Do(func(f *fabric.Fabric) {
		for _, k := range f.ReceivedKinds() {
			if k.Method == m {
				n += f.Received(k.Method, k.Attribute)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

// Port GUIDs of the demonstration fabric.
const (
	guidRed1  = "0x0000000000100009"
	guidRed2  = "0x000000000010000b"
	guidBlue1 = "0x0000000000100015"
)

// keysFor are definitions of n partitions for one port.
func keysFor(n int, port string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "K%d=0x%x : %s=full ;\n", i, 0x100+i, port)
	}
	return b.String()
}

// openSMFindings are policies, as given to OpenSM, and what an audit of the
// fabric that it leaves has to find besides what every such fabric has.
var openSMFindings = []struct {
	name, policy string
	options      []string // of OpenSM
	intended     string   // what the owner meant, for --policy; empty for none
	want         [][3]string
}{
	{"nothing wrong", "A=0x10 : " + guidRed1 + "=full, " + guidRed2 + "=full ;\n", nil,
		"A=0x10 : " + guidRed1 + "=full, " + guidRed2 + "=full ;\n", nil},
	{"a typing error opens the fabric", "A=0x10 : " + guidRed1 + "=full ;\nB=0x20 : 0xZZZ=full ;\n", nil, "", [][3]string{
		{"failed-open", "the fabric", "0xffff"},
		{"default-full", "red-1", "0xffff"}, {"default-members", "red-1", "0xffff"}, {"default-members", "spine", "0xffff"}}},
	{"the default partition is full for all", "Default=0x7fff : ALL=full ;\nA=0x10 : " + guidRed1 + "=full ;\n", nil, "", [][3]string{
		{"default-full", "red-1", "0xffff"}, {"default-full", "blue-1", "0xffff"}, {"default-members", "blue-1", "0xffff"}}},
	{"keys that fill the switch port turn enforcement off", keysFor(63, guidRed1), nil, "", [][3]string{
		{"enforcement-off", "leaf", "red-1"}, {"enforcement-overflow", "leaf", "64 keys"}}},
	{"more keys than the switch port holds", keysFor(70, guidRed1), nil, "", [][3]string{
		{"enforcement-off", "leaf", "red-1"}, {"enforcement-overflow", "leaf", "71 keys"}}},
	{"more keys than the host holds", keysFor(130, guidRed1), nil, keysFor(130, guidRed1), [][3]string{
		{"keys-do-not-fit", "red-1", "131 partitions"}, {"policy-drift", "red-1", "no 0x"}}},
	{"an automatic key joins tenants", "P1 : " + guidRed1 + "=full ;\nFix=0x1 : " + guidBlue1 + "=full ;\n", nil,
		"P1=0x2 : " + guidRed1 + "=full ;\nFix=0x1 : " + guidBlue1 + "=full ;\n", [][3]string{
			{"tenants-joined", guidRed1, "0x8001"}, {"policy-drift", "red-1", "0x8001"}}},
	{"both memberships empty index 0", "X=0x44 : " + guidRed1 + "=both ;\n", []string{"allow_both_pkeys TRUE"}, "", [][3]string{
		{"index-zero", "red-1", "0x0000"}, {"both-memberships", "red-1", "0x0044"}}},
}

// everyOpenSM is what an audit finds in every fabric that OpenSM brought up
// with its own settings.
var everyOpenSM = []string{"mkey-zero", "sm-key-default"}

// findingsShort is how many of openSMFindings are tried with -short, from the first on.
const findingsShort = 2

// What OpenSM is known to leave behind is found, by reading alone.
func TestAuditOfOpenSM(t *testing.T) {
	tools := needTools(t)
	for i, x := range openSMFindings {
		t.Run(x.name, func(t *testing.T) {
			if i >= findingsShort {
				need.Long(t, "OpenSM with each of many policies")
			}
			t.Parallel()
			config := fabric.DefaultConfig()
			var w writers
			config.Trace = w.trace
			s := serve(t, topology.Demo(), ibsimd.Config{Fabric: config})
			a := at{TB: t, tools: tools, socket: s.Name(), dir: workDir(t)}
			o := a.openSM(x.policy, up, x.options...)
			settle(t, s)
			var args []string
			if x.intended != "" {
				args = []string{"--policy", a.file("intended.conf", x.intended)}
			}
			gets := sent(t, s, mad.MethodGet)
			r := a.audit(args...)
			// OpenSM, which runs on, may write meanwhile.
			if n := w.count(t, s, secondClient); n != 0 || w.count(t, s, firstClient) == 0 || sent(t, s, mad.MethodGet) == gets {
				t.Errorf("%d Sets of the audit's reached devices", n)
			}
			for _, check := range everyOpenSM {
				if !slices.Contains(r.checks(), check) {
					t.Errorf("%s found nothing", check)
				}
			}
			for _, want := range x.want {
				if !r.has(want[0], want[1], want[2]) {
					t.Errorf("no %s at %q with %q", want[0], want[1], want[2])
				}
			}
			for _, check := range r.checks() {
				if x.want == nil && !slices.Contains(everyOpenSM, check) {
					t.Errorf("%s found something", check)
				}
			}
			if t.Failed() {
				for _, f := range r.Findings[:min(len(r.Findings), 60)] {
					t.Logf("%+v", f)
				}
				t.Logf("OpenSM:\n%.3000s", o.stop())
			}
		})
	}
}

// ibwarden's own fabric, in profile strict, audits clean while the manager runs, by
// whichever profile it is held against.
func TestAuditOfOwnFabric(t *testing.T) {
	s := serve(t, topology.Demo(), ibsimd.Config{Fabric: fabric.DefaultConfig()})
	a := at{TB: t, socket: s.Name(), dir: workDir(t)}
	policy, err := os.ReadFile(filepath.Join("..", "..", "app", "daemon", "demo.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	conf, data := a.file("demo.yaml", string(policy)), filepath.Join(a.dir, "data")
	path, err := ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "run", "--fabric", "ibsim:"+s.Name(), "--policy", conf, "--data", data, "--profile", "strict", "--sweep-interval", "200ms")
	tame(cmd, a.dir)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("ibwarden run: %v\n%s", err, said.Bytes())
		}
	}()
	settle(t, s)
	sets := sent(t, s, mad.MethodSet)
	for _, profile := range []string{"basic", "tenant", "strict"} {
		r := a.audit("--policy", conf, "--data", data, "--profile", profile)
		if got := r.checks(); len(got) > 0 {
			t.Errorf("%s: findings of %v, want none", profile, got)
			for _, f := range r.Findings[:min(len(r.Findings), 40)] {
				t.Logf("%+v", f)
			}
		}
	}
	if n := sent(t, s, mad.MethodSet) - sets; n != 0 {
		t.Errorf("%d Sets reached devices while the fabric was audited", n)
	}
}

// Routes that cannot deadlock audit clean on topologies with circles; shortest
// ones around a torus do not.
func TestAuditOfRoutes(t *testing.T) {
	path, err := ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		spec, routing string
		loop          bool
	}{
		{"torus,x=5,y=5", "updn", false},
		{"torus,x=5,y=5", "minhop", true},
		{"dragonfly,groups=4", "updn", false},
		{"random,seed=9,switches=12,hosts=14,ports=9,extra=20", "updn", false},
		{"fattree,radix=8,levels=3", "minhop", false},
	} {
		t.Run(x.spec+" "+x.routing, func(t *testing.T) {
			t.Parallel()
			s := serve(t, topologyOf(t, x.spec), ibsimd.Config{Fabric: fabric.DefaultConfig()})
			a := at{TB: t, socket: s.Name(), dir: workDir(t)}
			a.run(path, "run", "--once", "--fabric", "ibsim:"+s.Name(), "--routing", x.routing)
			found := a.audit().checks()
			if slices.Contains(found, "credit-loop") != x.loop || slices.Contains(found, "route-broken") {
				t.Errorf("findings of %v; credit-loop wanted: %v", found, x.loop)
			}
		})
	}
}
