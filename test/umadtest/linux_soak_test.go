package umadtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/test/need"
)

// soakLinux skips a test that boots several Linux machines, if no soak was asked for.
func soakLinux(t *testing.T) {
	if !need.Soak() {
		t.Skip("IBWARDEN_SOAK is not set") // Linux machines boot, and what they do takes minutes
	}
}

const linuxPort = "/sys/class/infiniband/qib0/ports/1/"

// tables are the P_Keys of every port, in order, as a simulated host reads them; of a switch's the
// partitions: before a limited member ibwarden has the full key, and OpenSM the limited one.
func (r *rig) tables() map[string]string {
	r.Helper()
	var d struct {
		PKeys []struct {
			Node  string
			Port  int
			PKeys []struct{ PKey string }
		} `json:"pkeys"`
	}
	text := r.ask("red-2", must(binary()), "show", "pkeys", "--fabric", "umad", "--json")
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		r.Fatal(err)
	}
	out := map[string]string{}
	for _, t := range d.PKeys {
		var keys []string
		for _, k := range t.PKeys {
			n, err := strconv.ParseUint(k.PKey, 0, 16)
			if err != nil {
				r.Fatal(err)
			}
			key := ib.PKey(n)
			if !strings.Contains(t.Node, "HCA") {
				key = key.Base().Full()
			}
			keys = append(keys, key.String())
		}
		slices.Sort(keys)
		out[fmt.Sprint(t.Node, " ", t.Port)] = fmt.Sprint(keys)
	}
	return out
}

// TestOpenSMInLinux: ibwarden and Debian's OpenSM, each in a Linux machine at the same place, write the
// same P_Keys to all ports, and answer a third machine's saquery with the same nodes.
func TestOpenSMInLinux(t *testing.T) {
	soakLinux(t)
	// Where OpenSM enforces partitions, limited members of the default one cannot ask it.
	const partitions = "Default=0x7fff,ipoib: ALL=full;\nred=0x10,ipoib: %s=full, %s=full;\nblue=0x20: %s=full, %s=limited;\n"
	var want map[string]string
	for _, manager := range []string{
		"cd /root && ./ibwarden run --fabric umad --policy partitions.conf --data data --profile basic --quarantine 0s >>log 2>&1 </dev/null &",
		"opensm -B -e -P /root/partitions.conf -f /root/log >/dev/null 2>&1 </dev/null",
	} {
		r := newRig(t, "")
		policy := r.file("partitions.conf", fmt.Sprintf(partitions, r.port("red-1"), r.port("red-2"), r.port("blue-1"), r.port("blue-2")))
		r.bootWith([]string{"--package", "opensm"}, 512, map[string]string{ownInside: must(binary()), "/root/partitions.conf": policy}, "mgmt-1")
		r.boot(128, nil, "red-1")
		r.script("mgmt-1", manager)
		r.shows("red-1", "cat "+linuxPort+"state", "ACTIVE")
		if want == nil {
			r.shows("mgmt-1", "cat /root/log", "verdict: ")
			if want = r.tables(); len(want) < 38 {
				t.Errorf("P_Keys of %d ports: %v", len(want), want)
			}
		} else if got := want; !r.within(need.Patience, func() bool { got = r.tables(); return maps.Equal(got, want) }) {
			t.Errorf("P_Keys by ibwarden\n%v\nand by OpenSM\n%v", want, got)
		}
		if n := strings.Count(r.shows("red-1", "saquery NR", "NodeRecord dump"), "NodeRecord dump"); n != len(r.topology.Nodes) {
			t.Errorf("saquery has %d nodes, want %d", n, len(r.topology.Nodes))
		}
	}
}

// TestFailoverInLinux kills the master in a Linux machine, and a standby in another takes over, and kills
// that, and one on a host of the simulator does: two machines of a tenant keep keys, LIDs and what
// they send each other.
func TestFailoverInLinux(t *testing.T) {
	soakLinux(t)
	r := newRig(t, "")
	managers := []string{"mgmt-1", "blue-6", "storage-2"}
	var members []string
	for _, n := range append([]string{"red-1", "red-2"}, managers...) {
		members = append(members, "{port: "+r.port(n)+"}")
	}
	policy := r.file("tenants.yaml", fmt.Sprintf("version: 1\ndefault: none\npartitions:\n  - {name: red, pkey: 0x10, ipoib: true, members: {full: [%s]}}\n", strings.Join(members, ", ")))
	secret := r.file("secret", strings.Repeat("5a", 32))
	if err := os.Chmod(secret, 0o600); err != nil {
		t.Fatal(err)
	}
	r.boot(384, map[string]string{ownInside: must(binary()), "/root/tenants.yaml": policy, "/root/secret": secret}, "mgmt-1", "blue-6")
	r.boot(128, nil, "red-1", "red-2")
	run := func(i int) string {
		dir, program := "/root", ownInside
		if i == 2 {
			dir, program = r.dir, must(binary())
		}
		r.script(managers[i], fmt.Sprintf("cd %s && chmod 600 secret && %s run --fabric umad --policy tenants.yaml --data data --secret-file secret --priority %d --trusted-sm %s,%s,%s --master-timeout 20s --quarantine 0s >>log 2>&1 </dev/null & echo $! > %s/pid",
			dir, program, 9-i, r.port(managers[0]), r.port(managers[1]), r.port(managers[2]), dir))
		r.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s: %s", managers[i], r.run(managers[i], "tail", "-40", dir+"/log").stdout)
			}
			r.run(managers[i], "sh", "-c", "kill -9 $(cat "+dir+"/pid)")
		})
		return dir
	}
	dir := run(0)
	r.shows(managers[0], "cat "+dir+"/log", "verdict: isolated")
	hosts := []string{"red-1", "red-2"}
	held := func() (out []string) {
		for _, h := range hosts {
			out = append(out, r.script(h, "cat "+linuxPort+"pkeys/* "+linuxPort+"lid "+linuxPort+"state"))
		}
		return out
	}
	for i, h := range hosts {
		r.shows(h, "cat "+linuxPort+"state", "ACTIVE")
		r.script(h, fmt.Sprintf("ifconfig ib0 10.0.0.%d netmask 255.255.255.0; until grep -q 1 /sys/class/net/ib0/carrier; do sleep 1; done", i+1))
	}
	r.script("red-1", "ping 10.0.0.2 >/root/ping 2>&1 </dev/null &")
	before := held()
	answers := func() int {
		n, _ := strconv.Atoi(strings.TrimSpace(r.run("red-1", "sh", "-c", "grep -c 'bytes from' /root/ping").stdout))
		return n
	}
	r.eventually("red answers red", func() bool { return answers() > 2 })
	for i := range managers[1:] {
		was, pid := managers[i], dir+"/pid"
		dir = run(i + 1)
		r.shows(managers[i+1], "cat "+dir+"/log", "standing by")
		r.script(was, "kill -9 $(cat "+pid+")")
		killed := time.Now()
		r.shows(managers[i+1], "cat "+dir+"/log", "verdict: isolated")
		t.Logf("%s takes over from %s: proved after %v", managers[i+1], was, time.Since(killed))
		n := answers()
		r.eventually("red answers red as before", func() bool { return answers() > n+10 })
		if now := held(); !slices.Equal(now, before) {
			t.Errorf("%s takes over: hosts had %q, and have %q", managers[i+1], before, now)
		}
	}
	t.Log(r.script("red-1", "killall -INT ping; sleep 1; tail -2 /root/ping")) // IPoIB joins again, and waits for that
}

// TestTenantsInLinux: unmodified programs of Linux machines, in the partition of their tenant and in
// one for storage that is an IPoIB child interface, and nothing of it across tenants.
func TestTenantsInLinux(t *testing.T) {
	soakLinux(t)
	r := newRig(t, "")
	hosts := []string{"red-1", "red-2", "blue-1"}
	policy := fmt.Sprintf(`version: 1
default: none
partitions:
  - {name: red, pkey: 0x10, ipoib: true, members: {full: [{port: %[1]s}, {port: %[2]s}]}}
  - {name: blue, pkey: 0x20, ipoib: true, members: {full: [{port: %[3]s}]}}
  - {name: storage, pkey: 0x30, ipoib: true, members: {full: [{port: %[1]s}], limited: [{port: %[2]s}, {port: %[3]s}]}}
`, r.port(hosts[0]), r.port(hosts[1]), r.port(hosts[2]))
	r.bootWith([]string{"--package", "qperf", "--package", "perftest"}, 192, nil, hosts...)
	_, stop := r.start("", must(binary()), "run", "--fabric", "umad", "--quarantine", "0s", "--data", r.dir+"/data", "--policy", r.file("tenants.yaml", policy))
	defer stop()
	for i, h := range hosts {
		r.shows(h, "cat "+linuxPort+"state", "ACTIVE")
		r.script(h, fmt.Sprintf("echo 0x8030 >/sys/class/net/ib0/create_child; ifconfig ib0 10.0.0.%[1]d netmask 255.255.255.0; ifconfig ib0.8030 10.3.0.%[1]d netmask 255.255.255.0; "+
			"for i in ib0 ib0.8030; do until grep -q 1 /sys/class/net/$i/carrier; do sleep 1; done; done", i+1))
	}
	reaches := func(want bool, from, to string) {
		t.Helper()
		if o := r.run(from, "ping", "-q", "-c", "3", "-W", "2", to); strings.Contains(o.stdout, " 0% packet loss") != want {
			t.Errorf("%s pings %s: %s, want that it is answered: %v", from, to, o.stdout, want)
		}
	}
	reaches(true, "red-1", "10.0.0.2")
	reaches(false, "red-1", "10.0.0.3")
	reaches(true, "red-1", "10.3.0.2")
	reaches(true, "red-1", "10.3.0.3")
	reaches(false, "red-2", "10.3.0.3") // both are limited members
	for _, p := range []struct{ server, client, says string }{
		{"rping -s -a 0.0.0.0 -C 3", "rping -c -a %s -C 3 -v -V", "rdma-ping-2"},
		{"ibv_rc_pingpong -c -m 4096 -s 12345 -n 10", "ibv_rc_pingpong -c -m 4096 -s 12345 -n 10 %s", "10 iters in"},
		{"ibv_uc_pingpong -c -m 2048 -n 10", "ibv_uc_pingpong -c -m 2048 -n 10 %s", "10 iters in"},
		{"ibv_ud_pingpong -c -s 1000 -n 10", "ibv_ud_pingpong -c -s 1000 -n 10 %s", "10 iters in"},
		{"ibv_srq_pingpong -c -q 2 -n 10", "ibv_srq_pingpong -c -q 2 -n 10 %s", "10 iters in"},
		{"ib_send_lat -F -n 50", "ib_send_lat -F -n 50 %s", "\n 2       50  "},
		{"ib_write_bw -F -s 4096 -n 20", "ib_write_bw -F -s 4096 -n 20 %s", "\n 4096       20  "},
		{"qperf", "qperf -t 1 %s rc_lat ud_lat tcp_lat", "tcp_lat"},
	} {
		// blue-1 is asked over storage, by TCP: the queue pairs are of the key at index 0, blue's.
		for server, reached := range map[string]bool{"red-2": true, "blue-1": false} {
			address := map[bool]string{true: "10.0.0.2", false: "10.3.0.3"}[reached]
			if strings.HasPrefix(p.server, "rping") && !reached {
				address = "10.0.0.3" // RDMA CM takes the key of the interface
			}
			r.script(server, "[ -f /root/pid ] && kill $(cat /root/pid); "+p.server+" >/root/served 2>&1 </dev/null & echo $! >/root/pid; sleep 1")
			o := r.run("red-1", "timeout", map[bool]string{true: "60", false: "15"}[reached], "sh", "-c", fmt.Sprintf(p.client, address)+" 2>&1")
			if strings.Contains(o.stdout, p.says) != reached {
				t.Errorf("%s at %s, %s: %s, want that it ends well: %v", p.server, server, p.client, o.stdout, reached)
			}
		}
	}
}

// TestManagerOf648: a manager in a Linux machine brings up 648 hosts, with an M_Key for each.
func TestManagerOf648(t *testing.T) {
	soakLinux(t)
	r := newRig(t, "fattree,radix=36,levels=2")
	hosts := r.hosts()
	own := hosts[0].ID
	var of [2][]string
	for i, h := range hosts[1:] {
		of[i%2] = append(of[i%2], fmt.Sprintf("{port: %v}", h.Ports[1].GUID))
	}
	policy := fmt.Sprintf("version: 1\ndefault: none\npartitions:\n  - {name: red, pkey: 0x10, members: {full: [%s]}}\n  - {name: blue, pkey: 0x20, members: {full: [%s]}}\n",
		strings.Join(of[0], ", "), strings.Join(of[1], ", "))
	r.boot(768, map[string]string{ownInside: must(binary()), "/root/tenants.yaml": r.file("tenants.yaml", policy)}, own)
	r.script(own, "cd /root && "+ownInside+" run --fabric umad --policy tenants.yaml --data data --quarantine 0s >>log 2>&1 </dev/null &")
	begun := time.Now()
	need.Eventually(t, 20*time.Minute, "the manager brings up 648 hosts", func() bool {
		time.Sleep(10 * time.Second) // each look takes processor time from the manager
		return strings.Contains(r.run(own, "tail", "-5", "/root/log").stdout, "verdict: isolated")
	})
	t.Logf("isolated after %v", time.Since(begun).Round(time.Second))
}
