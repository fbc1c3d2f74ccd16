package umadtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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
	r.bootWith(nil, memory, files, nodes...)
}

// bootWith is boot with more flags.
func (r *rig) bootWith(flags []string, memory int, files map[string]string, nodes ...string) {
	r.Helper()
	need.Program(r, "qemu-system-x86_64")
	words := append([]string{must(binary()), "sim", "guest", "--socket", r.name, "--memory", strconv.Itoa(memory)}, flags...)
	for inside, file := range files {
		words = append(words, "--file", file+":"+inside)
	}
	for _, n := range nodes {
		words = append(words, "--node", n)
	}
	log := r.file("guests-"+nodes[0]+".log", "")
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
		r.shows(host, "cat "+linuxPort+"state", "ACTIVE")
		if got := r.script(host, "cat "+linuxPort+"pkeys/*"); got != key+"\n0x0000\n0x0000\n0x0000\n" {
			t.Errorf("P_Keys of %s: %q", host, got)
		}
	}
	// Answers of several packets, by the RMPP of both kernels; a tenant is shown his own, and the manager.
	if n := strings.Count(r.script("mgmt-1", "saquery -t 20000 NR"), "NodeRecord dump"); n != len(r.topology.Nodes) {
		t.Errorf("%d nodes at the manager, want %d", n, len(r.topology.Nodes))
	}
	if own := r.script("red-1", "saquery -t 20000 NR"); !strings.Contains(own, "red-2") || strings.Contains(own, "blue-") {
		t.Errorf("the nodes that red is shown: %s", own)
	}

	r.script("mgmt-1", "killall -9 ibwarden; "+run)
	isolated(2)
	r.script("mgmt-1", "ifconfig ib0 down; rmmod ib_ipoib && rmmod ib_qib")
	r.shows("mgmt-1", "cat /root/log", "was removed; waiting for port GUID")
	r.script("mgmt-1", "insmod /lib/modules/ib_qib.ko && insmod /lib/modules/ib_ipoib.ko")
	r.shows("mgmt-1", "cat /root/log", "is back")
	r.shows("mgmt-1", "cat "+linuxPort+"state", "ACTIVE")
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

// TestMovesInLinux moves a Linux machine between two tenants while it pings both, and has an RC
// connection to the one that it leaves: once a move is proved nothing comes back from there, the
// connection fails, and soon the other tenant answers. It logs how soon.
func TestMovesInLinux(t *testing.T) {
	soakLinux(t)
	r := newRig(t, "")
	peers := map[string]string{"red": "red-2", "blue": "blue-3"}
	addresses := map[string]string{"red-1": "10.0.0.1", "red-2": "10.0.0.2", "blue-3": "10.0.0.3"}
	policy := func(tenant string) string {
		text := "version: 1\ndefault: none\npartitions:\n"
		for i, name := range []string{"red", "blue"} {
			members := "{port: " + r.port(peers[name]) + "}"
			if name == tenant {
				members += ", {port: " + r.port("red-1") + "}"
			}
			text += fmt.Sprintf("  - {name: %s, pkey: 0x%d0, ipoib: true, members: {full: [%s]}}\n", name, i+1, members)
		}
		return text
	}
	r.boot(128, nil, "red-1", "red-2", "blue-3")
	log := r.file("manager.log", "")
	manager, stop := r.start("", "sh", "-c", `exec "$@" > "$0" 2>&1`, log, must(binary()), "run", "--fabric", "umad",
		"--quarantine", "0s", "--data", r.dir+"/data", "--policy", r.file("tenants.yaml", policy("red")))
	defer stop()
	verdicts := func() int {
		text, _ := os.ReadFile(log) // it is not there at first
		return strings.Count(string(text), "verdict: isolated")
	}
	r.eventually("isolated", func() bool { return verdicts() > 0 })
	for host, address := range addresses {
		r.script(host, "ifconfig ib0 "+address+" netmask 255.255.255.0")
	}
	for tenant, peer := range peers {
		r.script("red-1", "ping "+addresses[peer]+" >/root/"+tenant+" 2>&1 </dev/null &")
	}
	r.shows("red-1", "cat /root/red", "bytes from")
	var waits []time.Duration
	for i := range 100 {
		to, from := "blue", "red"
		if i%2 == 1 {
			to, from = from, to
		}
		r.connect("red-1", peers[from], addresses[peers[from]])
		before := verdicts()
		r.file("tenants.yaml", policy(to))
		if err := manager.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		r.eventually("the move is proved", func() bool { return verdicts() > before })
		proved := time.Now()
		count := "grep -c 'bytes from' /root/" + from
		left := r.run("red-1", "sh", "-c", count).stdout
		r.script("red-1", "until ping -q -c 1 -W 1 "+addresses[peers[to]]+" >/dev/null; do :; done")
		waits = append(waits, time.Since(proved))
		r.shows("red-1", "tail -1 /root/"+to, "bytes from")
		if now := r.run("red-1", "sh", "-c", count).stdout; now != left {
			t.Fatalf("move %d: answers from %s, which it has left: %s, then %s", i, from, left, now)
		}
		r.eventually("the connection has failed at the end that sent last", func() bool {
			return strings.Contains(r.script("red-1", "cat /root/rc")+r.script(peers[from], "cat /root/rc"), "ended with 1")
		})
		for _, host := range []string{"red-1", peers[from]} {
			r.script(host, "killall ibv_rc_pingpong; until grep ended /root/rc; do sleep 0.1; done")
		}
	}
	slices.Sort(waits)
	t.Logf("%d moves, from the proof to an answer: median %v, longest %v", len(waits), waits[len(waits)/2], waits[len(waits)-1])
}

// connect has two machines send messages to and fro over an RC connection, until it fails.
func (r *rig) connect(client, server, address string) {
	r.Helper()
	const endless = "(ibv_rc_pingpong -e -s 512 -n 100000000 %s; echo ended with $?) >/root/rc 2>&1 </dev/null &"
	r.script(server, fmt.Sprintf(endless, "")+" until netstat -ltn | grep -q :18515; do sleep 0.1; done")
	sent := func() int {
		n, err := strconv.Atoi(strings.TrimSpace(r.script(client, "cat "+linuxPort+"counters/port_xmit_packets")))
		if err != nil {
			r.Fatal(err)
		}
		return n
	}
	before := sent()
	r.script(client, fmt.Sprintf(endless, address))
	r.eventually("messages go to and fro", func() bool { return sent() > before+100 })
}

// port is the GUID of a host's port.
func (r *rig) port(host string) string {
	for _, h := range r.hosts() {
		if h.ID == host {
			return h.Ports[1].GUID.String()
		}
	}
	r.Fatalf("no host %s", host)
	return ""
}
