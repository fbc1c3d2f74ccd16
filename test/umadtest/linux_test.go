package umadtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// Where a Linux machine has what a test gives it.
const (
	attacksInside = "/root/attacks"  // this test program
	ownInside     = "/root/ibwarden" // the program that is tested
)

// boot puts Linux machines in the places of hosts, with files that they boot with, and waits until
// they have booted. Programs at these nodes run in them from then on.
func (r *rig) boot(memory int, files map[string]string, nodes ...string) {
	r.Helper()
	if _, err := need.Find("qemu-system-x86_64"); err != nil {
		need.Need(r.TB.(*testing.T), err)
	}
	words := []string{must(binary()), "sim", "guest", "--socket", r.name, "--memory", strconv.Itoa(memory)}
	for inside, file := range files {
		words = append(words, "--file", file+":"+inside)
	}
	for _, n := range nodes {
		words = append(words, "--node", n)
	}
	log := r.file("guests.log", "")
	_, stop := r.background(words, func(ctx context.Context) *exec.Cmd {
		c := exec.CommandContext(ctx, "sh", append([]string{"-c", `exec "$@" >"$0" 2>&1`, log}, words...)...)
		tame(c, r.dir)
		return c
	})
	r.Cleanup(stop)
	r.eventually(fmt.Sprint(nodes, " have booted"), func() bool {
		text, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(text), "ready: ")
	})
	for _, n := range nodes {
		r.linux[n] = true
	}
}

// script runs a script at a node, which has to succeed, and gives its output.
func (r *rig) script(node, script string) string {
	r.Helper()
	return r.ask(node, "sh", "-c", script)
}

// shows waits until a script at a node prints a text.
func (r *rig) shows(node, script, text string) (out string) {
	r.Helper()
	r.eventually(fmt.Sprintf("%s: %s prints %q", node, script, text), func() bool {
		out = r.run(node, "sh", "-c", script).stdout
		return strings.Contains(out, text)
	})
	return out
}

// TestAttackProgramsInLinux runs the programs of the catalogue as root of a Linux machine: a kernel and
// a driver that are not ours stand between them and the fabric.
func TestAttackProgramsInLinux(t *testing.T) {
	need.Long(t, "a Linux machine boots")
	a := newAttacked(t)
	a.boot(192, map[string]string{attacksInside: must(os.Executable())}, "red-1")
	stop := a.manager("tenant")
	defer stop()
	a.up()
	for i := range attacks {
		x := &attacks[i]
		if n := a.attack(x); (n == 0) != (x.because == "") {
			t.Errorf("%s reaches %d; to be stopped: %v", x.name, n, x.because == "")
		}
	}
	a.unchanged()
}

// TestManagerInLinux runs ibwarden on a Linux kernel, which has the manager's QPs, agents and RMPP, and
// manages others: is up and proves, is killed, loses its driver, and answers.
func TestManagerInLinux(t *testing.T) {
	need.Long(t, "Linux machines boot")
	r := newRig(t, "")
	policy := r.file("tenants.yaml", tenantsYAML(r.hosts()))
	r.boot(512, map[string]string{ownInside: must(binary()), "/root/tenants.yaml": policy}, "mgmt-1")
	r.boot(128, nil, "red-1", "blue-1")
	const run = "cd /root && ./ibwarden run --fabric umad --policy tenants.yaml --data data --quarantine 0s >>log 2>&1 </dev/null &"
	isolated := func(times int) {
		t.Helper()
		r.eventually(fmt.Sprint("isolated, ", times, " times"), func() bool {
			return strings.Count(r.run("mgmt-1", "cat", "/root/log").stdout, "verdict: isolated") >= times
		})
	}
	defer func() {
		if t.Failed() {
			t.Logf("the manager: %s", r.run("mgmt-1", "tail", "-40", "/root/log").stdout)
		}
	}()
	r.script("mgmt-1", run)
	isolated(1)
	for host, key := range map[string]string{"red-1": "0x8010", "blue-1": "0x8020"} {
		r.shows(host, "cat /sys/class/infiniband/qib0/ports/1/state", "ACTIVE")
		if got := r.script(host, "cat /sys/class/infiniband/qib0/ports/1/pkeys/*"); got != key+"\n0x0000\n0x0000\n0x0000\n" {
			t.Errorf("P_Keys of %s: %q", host, got)
		}
	}
	// Answers of several packets, by the RMPP of both kernels; a tenant is shown his own, and the manager.
	if n := strings.Count(r.script("mgmt-1", "saquery NR"), "NodeRecord dump"); n != len(r.topology.Nodes) {
		t.Errorf("%d nodes at the manager, want %d", n, len(r.topology.Nodes))
	}
	if own := r.script("red-1", "saquery NR"); !strings.Contains(own, "red-2") || strings.Contains(own, "blue-") {
		t.Errorf("the nodes that red is shown: %s", own)
	}

	r.script("mgmt-1", "killall -9 ibwarden; "+run)
	isolated(2)
	r.script("mgmt-1", "ifconfig ib0 down; rmmod ib_ipoib && rmmod ib_qib")
	r.shows("mgmt-1", "cat /root/log", "was removed; waiting for port GUID")
	r.script("mgmt-1", "insmod /lib/modules/ib_qib.ko && insmod /lib/modules/ib_ipoib.ko")
	r.shows("mgmt-1", "cat /root/log", "is back")
	r.shows("mgmt-1", "cat /sys/class/infiniband/qib0/ports/1/state", "ACTIVE")
	if log := r.script("mgmt-1", "cat /root/log"); strings.Contains(log, "panic") || strings.Contains(log, "violated") {
		t.Error("the manager's log")
	}
}

// inLinux prepares a program in a Linux machine.
func (r *rig) inLinux(ctx context.Context, node string, words ...string) *exec.Cmd {
	r.Helper()
	if words[0] == must(os.Executable()) {
		words[0] = attacksInside
	}
	c := exec.CommandContext(ctx, must(binary()), append([]string{"sim", "guest", "exec", "--socket", r.name, "--node", node, "--"}, words...)...)
	tame(c, r.dir)
	return c
}
