package umadtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// register is what a host's programs do: join a group, register a service, and subscribe to
// traps. It returns how much of that is accepted.
func register([]string) (n int, err error) {
	for _, do := range []func([]string) (int, error){saJoin, saService, saSubscribe} {
		k, err := do([]string{ib.PortGUID(ownGID().PortGUID()).String()})
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

func saSubscribe([]string) (int, error) {
	r := &sa.InformInfo{LIDRangeBegin: 0xFFFF, IsGeneric: 1, Subscribe: 1, Type: 0xFFFF, TrapNumber: 64, Producer: 0xFFFFFF, RespTimeValue: 19}
	return accepted(mad.MethodSet, 0, r)
}

// sharers are managers of one secret and one store in etcd, each with a data directory of
// its own.
type sharers struct {
	*rig
	flags  []string
	secret string
}

func newSharers(r *rig, flags ...string) *sharers {
	cluster := storetest.StartEtcd(r.TB)
	secret := r.file("secret", strings.Repeat("5a", 32)+"\n")
	return &sharers{rig: r, secret: secret, flags: append([]string{"--fabric", "umad", "--store", "etcd:" + strings.Join(cluster.Endpoints(), ","), "--secret-file", secret}, flags...)}
}

// manager is a running ibwarden at a host.
type manager struct {
	*rig
	at       *topology.Node
	dir, pid string
}

// start starts a manager at a host, of a data directory that is made or was there.
func (s *sharers) manager(at *topology.Node, flags ...string) *manager {
	s.Helper()
	m := &manager{rig: s.rig, at: at, dir: filepath.Join(s.dir, "data-"+strings.Fields(at.ID)[0])}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		s.Fatal(err)
	}
	m.pid = filepath.Join(m.dir, "pid")
	_ = os.Remove(m.pid) // of the run before
	line := fmt.Sprintf("echo $$ > %s; exec %s run --data %s %s >> %s/log 2>&1", m.pid, must(binary()), m.dir, strings.Join(append(s.flags, flags...), " "), m.dir)
	s.start(at.ID, "sh", "-c", line)
	s.Cleanup(func() {
		if s.Failed() {
			text := m.log()
			s.Logf("the manager at %s:\n%s", at.ID, text[max(0, len(text)-6000):])
		}
		m.kill()
	})
	return m
}

func (m *manager) log() string {
	text, _ := os.ReadFile(filepath.Join(m.dir, "log")) // it is not there at first
	return string(text)
}

// kill ends it without a word.
func (m *manager) kill() {
	text, _ := os.ReadFile(m.pid) // it may not have started
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
}

// command asks the service of the manager.
func (m *manager) command(words ...string) string {
	m.Helper()
	cmd := exec.Command(must(binary()), append(words, "--server", "unix:"+filepath.Join(m.dir, "ibwarden.sock"))...)
	tame(cmd, m.rig.dir)
	out, _ := cmd.CombinedOutput() // what it says reports whether it failed
	return string(out)
}

// hostPorts are the LID, the LID of the master and the state of every host's port, as the host
// sees them: who has no key reads nothing from outside.
func (r *rig) hostPorts() (out [][3]string) {
	r.Helper()
	for _, h := range r.hosts() {
		const at = "/sys/class/infiniband/sim0/ports/1/"
		f := strings.Fields(r.ask(h.ID, "cat", at+"lid", at+"sm_lid", at+"state"))
		if len(f) < 3 {
			r.Fatalf("%s: %q", h.ID, f)
		}
		out = append(out, [3]string{f[0], f[1], f[2]})
	}
	return out
}

// led waits until a manager is master, and every host's port was told of it.
func (r *rig) led(what string, watcher, by *topology.Node) {
	r.Helper()
	i := slices.Index(r.hosts(), by)
	r.eventually(what, func() bool {
		all := r.hostPorts()
		return r.masterIs(watcher, by) && !slices.ContainsFunc(all, func(p [3]string) bool { return p[1] != all[i][0] || p[2] != "4:" })
	})
}

// registrations are what subnet administration shows a host of groups, members, services and
// subscriptions.
func (r *rig) registrations(at *topology.Node) string {
	r.Helper()
	var out []string
	for _, what := range []string{"MCMR", "SR", "IIR"} {
		out = append(out, r.ask(at.ID, "saquery", what))
	}
	return strings.Join(out, "\n")
}

// generations are of `keys show` what each port has.
var generations = regexp.MustCompile(`(?m)^(0x\w+  0x\w+)  .*  (\d+  +\S+)$`)

func generationsIn(text string) (out []string) {
	for _, m := range generations.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1]+" "+m[2])
	}
	slices.Sort(out)
	return out
}

// TestStandbyHasItAll kills a master. Its standby, on another machine with files of its own,
// knows from the store what hosts registered, and the M_Keys of all ports, from which no
// other way leads to them: saquery shows every host the same, no LID changes, and no host is
// asked to register again.
func TestStandbyHasItAll(t *testing.T) {
	need.Long(t, "a cluster of etcd, and a failover")
	needPrograms(t, "saquery", "sminfo", "perfquery", "tshark")
	capture := filepath.Join(t.TempDir(), "capture.pcapng")
	r := newRig(t, "fattree,radix=4,levels=2", "--capture", capture)
	hosts := r.hosts()
	s := newSharers(r, "--policy", r.file("policy.yaml", "version: 1\ndefault: full\n"), "--quarantine", "300ms", "--sweep-interval", "1s", "--drift-period", "2s")
	first := s.manager(hosts[0], "--priority", "5")
	watcher := hosts[3]
	r.led("the first manages", watcher, hosts[0])
	second := s.manager(hosts[5])
	r.eventually("the second stands by", func() bool {
		return strings.Contains(second.log(), "another manager is master") || strings.Contains(second.log(), "is master")
	})
	users := []*topology.Node{hosts[2], hosts[3], hosts[6]}
	for _, h := range users {
		self := must(os.Executable())
		if got := r.ask(h.ID, self, attackWord, "register"); !strings.Contains(got, "reached: 3") {
			t.Fatalf("%s registers: %s", h.ID, got)
		}
	}
	before := map[string]string{}
	for _, h := range users {
		before[h.ID] = r.registrations(h)
		for _, want := range []string{"ff12:a01c", "ServiceID", "InformInfoRecord dump"} {
			if !strings.Contains(before[h.ID], want) {
				t.Errorf("before the end of the master %s sees no %s:\n%s", h.ID, want, before[h.ID])
			}
		}
	}
	ports := r.hostPorts()
	keys := r.ask("", "ibwarden", "keys", "show", "--data", first.dir, "--secret-file", s.secret)
	r.ask(watcher.ID, "perfquery") // what the capture has before is the first bring-up
	first.kill()
	r.led("the second takes over", watcher, hosts[5])
	for _, h := range users {
		if after := r.registrations(h); after != before[h.ID] {
			t.Errorf("after the takeover %s sees\n%s\nand before it saw\n%s", h.ID, after, before[h.ID])
		}
	}
	r.eventually("the second has proved", func() bool { return strings.Contains(second.log(), "verdict: isolated") })
	for i, p := range r.hostPorts() {
		if p[0] != ports[i][0] || p[2] != ports[i][2] {
			t.Errorf("%s has LID %s and is %s, and had %s and was %s", hosts[i].ID, p[0], p[2], ports[i][0], ports[i][2])
		}
	}
	got := r.ask("", "ibwarden", "keys", "show", "--data", second.dir, "--secret-file", s.secret)
	if a, b := generationsIn(keys), generationsIn(got); !slices.Equal(a, b) || len(a) < len(hosts) {
		t.Errorf("the standby has these keys:\n%s\nand the master had\n%s", got, keys)
	}
	if out := second.command("prove"); !strings.Contains(out, "verdict: open") {
		t.Errorf("prove: %s", out)
	}
	r.tell("Quit")
	<-r.ended
	noLinkTaken(t, capture)
	noReregistration(t, capture)
}

// noReregistration looks for a host that was asked to register again, after the first
// perfquery in a capture.
func noReregistration(t *testing.T, capture string) {
	t.Helper()
	tshark, _ := program("tshark") // needPrograms found it
	out, err := exec.Command(tshark, "-r", capture, "-Y", "infiniband.mad.mgmtclass == 4 || infiniband.mad.method == 2 && infiniband.mad.attributeid == 0x15", "-T", "fields",
		"-e", "infiniband.mad.mgmtclass", "-e", "infiniband.portinfo.clientreregister").Output()
	if err != nil {
		t.Fatal(err)
	}
	after, asked, writes := false, 0, 0
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		switch {
		case f[0] == "0x04":
			after = true
		case len(f) < 2:
			t.Fatalf("a Set of PortInfo without ClientReregister: %q", line)
		case after:
			if writes++; f[1] != "0x00" {
				asked++
			}
		}
	}
	if asked > 0 || writes == 0 {
		t.Errorf("%d hosts are asked to register again after the kill, in %d Sets of PortInfo", asked, writes)
	}
}
