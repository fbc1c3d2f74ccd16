package umadtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/need"
)

// TestKilledClient: what a client leaves behind when it is killed is what the
// kernel would leave: nothing.
func TestKilledClient(t *testing.T) {
	need.Long(t, "many processes, one after the other")
	needPrograms(t, "opensm", "ibping", "sminfo", "smpquery")
	r := newRig(t, "fattree,radix=6,levels=2")
	hosts := r.hosts()
	killed := func(node string, is func() bool, words ...string) {
		t.Helper()
		cmd, stop := r.start(node, words...)
		r.eventually(fmt.Sprintf("%v is at work", words), is)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		stop()
	}
	stop := r.openSM(hosts[0].ID)
	// One that waits for requests: its methods are free for the next.
	far := r.lid(hosts[7])
	for range 2 {
		killed(hosts[7].ID, func() bool { return r.run(hosts[1].ID, "ibping", "-c", "1", "-t", "200", far).status == 0 }, "ibping", "-S")
	}
	// One with a request outstanding that nobody will answer.
	begun := time.Now()
	killed(hosts[1].ID, func() bool { return time.Since(begun) > 300*time.Millisecond }, "ibping", "-t", "60000", far)
	r.ask(hosts[1].ID, "smpquery", "nodedesc", far)
	stop()
	// One that holds issm.
	killed(hosts[0].ID, func() bool { return r.announced() }, "opensm", "-F", os.DevNull, "-f", os.DevNull)
	r.eventually("the port says that there is no manager", func() bool { return !r.announced() })
	if o := r.run(hosts[3].ID, "sminfo", "-t", "200"); o.status == 0 {
		t.Errorf("a manager that was killed answers: %s", o.stdout)
	}
	defer r.openSM(hosts[0].ID)()
	r.want(r.ask(hosts[3].ID, "sminfo"), `SMINFO_MASTER$`)
}

// TestKilledSimulator: clients that wait, for an answer or for anything, get
// errors and end; nothing is left mounted.
func TestKilledSimulator(t *testing.T) {
	needPrograms(t, "ibping", "smpquery", "ibstat")
	r := newRig(t, "fattree,radix=6,levels=2")
	hosts := r.hosts()
	before := mounts(t)
	type result struct {
		what string
		out  string
		err  error
	}
	results := make(chan result)
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	waiting := [][]string{
		{"ibping", "-S"}, // in poll(2)
		{"smpquery", "-t", "60000", "nodeinfo", "9"}, // for an answer
		{"sh", "-c", "cat /dev/infiniband/umad0"},    // in read(2)
		// In open(2), as the second.
		{"sh", "-c", "exec 3</dev/infiniband/issm0; exec 4</dev/infiniband/issm0; echo both"},
		// One that was idle, and tries everything afterwards.
		{"sh", "-c", "echo >ready; while [ -e ready ]; do sleep 0.05; done; cat /sys/class/infiniband_mad/abi_version; ls /dev/infiniband; ibstat"},
	}
	for i, words := range waiting {
		cmd := r.command(ctx, hosts[i].ID, words...)
		go func() {
			out, err := cmd.CombinedOutput()
			results <- result{words[0], string(out), err}
		}()
	}
	r.eventually("all are at work", func() bool {
		_, err := os.Stat(r.dir + "/ready")
		return err == nil && r.announcedAt(3)
	})
	r.kill()
	if err := os.Remove(r.dir + "/ready"); err != nil {
		t.Fatal(err)
	}
	for range waiting {
		select {
		case got := <-results:
			// A server of ibping that cannot read any more ends, and calls that
			// success or not.
			if got.err == nil && got.what != "ibping" || strings.Contains(got.out, "both") {
				t.Errorf("%s ended well after the simulator was killed:\n%s", got.what, got.out)
			}
		case <-ctx.Done():
			t.Fatal("a client hangs after the simulator was killed")
		}
	}
	if after := mounts(t); after != before {
		t.Errorf("mounts are left:\n%s\nbefore:\n%s", after, before)
	}
	o := r.run("", "true")
	if want := fmt.Sprintf("no simulator named %q hands out devices", r.name); o.status == 0 || !strings.Contains(o.stderr, want) {
		t.Errorf("exec without a simulator: %d, %s, want %q", o.status, o.stderr, want)
	}
}

// announcedAt reports whether the port of a host says that a manager is there.
func (r *rig) announcedAt(host int) bool {
	text := r.ask(r.hosts()[host].ID, "cat", "/sys/class/infiniband/sim0/ports/1/cap_mask")
	var mask uint32
	if _, err := fmt.Sscanf(text, "0x%x", &mask); err != nil {
		r.Fatal(err)
	}
	return mask&2 != 0
}

// mounts are those of FUSE in this namespace.
func mounts(t *testing.T) (out string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "ibwarden") {
			out += line
		}
	}
	return out
}

// TestManyClients: libumad2sim has room for ten clients.
func TestManyClients(t *testing.T) {
	need.Long(t, "ten programs")
	needPrograms(t, "opensm", "ibping", "smpquery", "saquery")
	r := newRig(t, "fattree,radix=6,levels=2")
	hosts := r.hosts()
	defer r.openSM("")()
	var all sync.WaitGroup
	servers := hosts[1:]
	lids := make([]string, len(servers))
	for i, h := range servers {
		r.start(h.ID, "ibping", "-S")
		lids[i] = r.lid(h)
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	for i := range servers {
		// Three at once from each host, among them several at one node.
		for _, words := range [][]string{
			{"sh", "-c", "for i in 1 2 3 4 5 6 7 8; do ibping -c 1 -t 500 " + lids[i] + " && exit 0; done; exit 1"},
			{"smpquery", "nodedesc", lids[i]},
			{"saquery", "NR"},
		} {
			all.Go(func() {
				cmd := exec.CommandContext(ctx, path, append([]string{"sim", "exec", "--socket", r.name, "--node", servers[len(servers)-1-i].ID, "--"}, words...)...)
				tame(cmd, r.dir)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v: %v\n%s", words, err, out)
				}
			})
		}
	}
	all.Wait()
}

// TestExec: what a command has inside, and what goes wrong.
func TestExec(t *testing.T) {
	needPrograms(t, "ibstat")
	r := newRig(t, "")
	if o := r.run("blue-6", "sh", "-c", "exit 7"); o.status != 7 {
		t.Errorf("exit status %d, want the command's, 7", o.status)
	}
	r.want(r.ask("blue-6", "ibstat", "-l"), `^sim0$`)
	if text := r.ask("", "ls", "/dev/infiniband"); text != "issm0\numad0\n" {
		t.Errorf("/dev/infiniband has %q", text)
	}
	// What was in /dev and /sys/class is still there.
	r.ask("", "test", "-c", "/dev/null")
	r.ask("", "test", "-d", "/sys/class/net")
	if _, err := os.Stat("/sys/class/infiniband/sim0"); err == nil {
		t.Error("a process outside the namespace sees the device")
	}
	r.want(r.ask("leaf-1", "ibwarden", "show", "adapters"), `(?s)sim0 .* switch`)
	for _, c := range []struct {
		node  string
		words []string
		want  string
	}{
		{"nobody", []string{"true"}, `the fabric has no node "nobody"`},
		{"", []string{"no-such-program"}, "executable file not found"},
	} {
		if o := r.run(c.node, c.words...); o.status != 2 && o.status != 1 || !strings.Contains(o.stderr, c.want) {
			t.Errorf("exec at %q of %v: %d, %s, want %q", c.node, c.words, o.status, o.stderr, c.want)
		}
	}
	// Who may not mount learns that.
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, must(binary()), "sim", "exec", "--socket", r.name, "--", "true")
	tame(cmd, "/")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if want := "a mount namespace of its own: operation not permitted"; err == nil || !strings.Contains(string(out), want) {
		t.Errorf("user 65534: %v, %s, want %q", err, out, want)
	}
}

// TestExecEndsWithItsParent: a command that was asked to end with who started it does,
// inside too. An OpenSM that outlives a killed test writes its log until the disk is
// full.
func TestExecEndsWithItsParent(t *testing.T) {
	needPrograms(t, "setpriv")
	r := newRig(t, "fattree,radix=4,levels=2")
	for i := range 3 {
		ready := filepath.Join(r.dir, fmt.Sprintf("ready-%d", i))
		inside := must(binary()) + " sim exec --socket " + r.name + " -- sh -c 'echo $$ >" + ready + "; exec sleep 600'"
		cmd := exec.Command("sh", "-c", "setpriv --pdeathsig KILL "+inside+" >/dev/null 2>&1 & while [ ! -s "+ready+" ]; do sleep 0.02; done; cat "+ready)
		tame(cmd, r.dir)
		out, err := cmd.Output()
		pid, notPID := strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil || notPID != nil {
			t.Fatalf("%v: %v, %q", cmd.Args, err, out)
		}
		t.Cleanup(func() {
			if t.Failed() {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended since
			}
		})
		r.eventually("the command has ended with its parent", func() bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return err != nil || strings.Contains(string(stat), ") Z ")
		})
	}
}

// TestFaults: what goes wrong in practice is said in words, of files that are
// there.
func TestFaults(t *testing.T) {
	needPrograms(t, "opensm")
	r := newRig(t, "fattree,radix=6,levels=2")
	hosts := r.hosts()
	conf := r.file("policy.conf", policy(hosts[1:4], hosts[4:8]))
	self := must(binary())
	r.tell("Unlink \"" + hosts[8].ID + "\"[1]")
	r.eventually("the cable is out", func() bool {
		return strings.HasPrefix(r.ask(hosts[8].ID, "cat", "/sys/class/infiniband/sim0/ports/1/state"), "1:")
	})
	run := self + " run --once --fabric umad --policy " + conf
	for _, c := range []struct{ node, command, want string }{
		{hosts[1].ID, "setpriv --reuid=65534 --regid=65534 --clear-groups " + self + " show nodes --fabric umad",
			"/dev/infiniband/umad0: no permission: run as root"},
		{hosts[8].ID, self + " show nodes --fabric umad", "sim0 port 1 is down (physical state Polling): is there a cable"},
		{hosts[1].ID, "exec 3</dev/infiniband/issm0; " + run, "/dev/infiniband/issm0: another subnet manager holds it on this port"},
		{hosts[1].ID, self + " show nodes --fabric umad:mlx5_0", "no device mlx5_0; there are sim0/1"},
		{hosts[1].ID, self + " show nodes --fabric umad:sim0/2", "no device sim0, port 2; there are sim0/1"},
		{hosts[1].ID, "umount /sys/class/infiniband_mad; " + self + " show nodes --fabric umad", "the kernel module ib_umad is not loaded (modprobe ib_umad)"},
		{hosts[1].ID, "umount /dev/infiniband; " + self + " show nodes --fabric umad", "the kernel has this device but /dev has not"},
		{hosts[1].ID, "umount /sys/class/infiniband; " + self + " devices", "no InfiniBand device: no adapter, or its driver is not loaded"},
	} {
		if o := r.run(c.node, "sh", "-c", c.command); o.status != 1 && o.status != 2 || !strings.Contains(o.stderr, c.want) {
			t.Errorf("%s at %s: %d, %s, want %q", c.command, c.node, o.status, o.stderr, c.want)
		}
	}
	defer r.openSM(hosts[2].ID)()
	want := regexp.MustCompile(`sim0 port 1: another program has registered for subnet management at this port: opensm \(process \d+\): stop it first`)
	if o := r.run(hosts[2].ID, "sh", "-c", run); o.status != 1 || !want.MatchString(o.stderr) {
		t.Errorf("with OpenSM at the same port: %d, %s, want %q", o.status, o.stderr, want)
	}
}

// TestPorts: an adapter with two ports has two pairs of files, a switch one for
// its port 0; a manager can be at each.
func TestPorts(t *testing.T) {
	needPrograms(t, "opensm", "smpquery", "ibstat")
	r := newRig(t, "Switch 8 \"S1\"\n[1] \"H1\"[1]\n[2] \"H1\"[2]\n[3] \"H2\"[1]\n\n"+
		"Hca 2 \"H1\"\n[1] \"S1\"[1]\n[2] \"S1\"[2]\n\nHca 1 \"H2\"\n[1] \"S1\"[3]\n")
	if text := r.ask("H1", "ls", "/dev/infiniband"); text != "issm0\nissm1\numad0\numad1\n" {
		t.Errorf("/dev/infiniband has %q", text)
	}
	guids := strings.Fields(r.ask("H1", "ibstat", "-p"))
	if host := r.hosts()[0]; len(guids) != 2 || guids[0] != host.Ports[1].GUID.String() || guids[1] != host.Ports[2].GUID.String() {
		t.Fatalf("ibstat -p: %v", guids)
	}
	r.want(r.ask("H1", "smpquery", "-P", "2", "-D", "nodedesc", "0,2"), `\.S1$`)
	r.want(r.ask("S1", "smpquery", "-D", "nodedesc", "0,3"), `\.H2$`)
	r.openSM("S1")()
	r.openSM("H1", "-g", guids[1])()
	r.openSM("H2")()
	for _, fabric := range []string{"umad:sim0/2", "umad"} {
		r.want(r.ask("H1", "ibwarden", "run", "--once", "--fabric", fabric), `^verdict: isolated$`)
	}
	r.want(r.ask("S1", "ibwarden", "run", "--once", "--fabric", "umad"), `^verdict: isolated$`)
	r.want(r.ask("S1", "ibstat"), `State: Active`)
}
