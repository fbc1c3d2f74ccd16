package umadtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// soakLinux skips a test that boots several Linux machines, if no soak was asked for.
func soakLinux(t *testing.T) {
	if !need.Soak() {
		t.Skip("IBWARDEN_SOAK is not set") // Linux machines boot, and what they do takes minutes
	}
}

const linuxPort = "/sys/class/infiniband/qib0/ports/1/"

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
	r.bootWith([]string{"--package", "qperf"}, 192, nil, hosts...)
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
		{"ibv_rc_pingpong -c -n 10", "ibv_rc_pingpong -c -n 10 %s", "10 iters in"},
		{"ibv_ud_pingpong -c -s 1000 -n 10", "ibv_ud_pingpong -c -s 1000 -n 10 %s", "10 iters in"},
		{"ibv_srq_pingpong -c -q 2 -n 10", "ibv_srq_pingpong -c -q 2 -n 10 %s", "10 iters in"},
		{"qperf", "qperf -t 1 %s rc_lat ud_lat tcp_lat", "tcp_lat"},
	} {
		// blue-1 is asked over storage, by TCP: the queue pairs are of the key at index 0, blue's.
		for server, reached := range map[string]bool{"red-2": true, "blue-1": false} {
			address := map[bool]string{true: "10.0.0.2", false: "10.3.0.3"}[reached]
			if strings.HasPrefix(p.server, "rping") && !reached {
				address = "10.0.0.3" // RDMA CM takes the key of the interface
			}
			r.script(server, "killall rping qperf ibv_rc_pingpong ibv_ud_pingpong ibv_srq_pingpong; "+p.server+" >/root/served 2>&1 </dev/null & sleep 1")
			o := r.run("red-1", "timeout", map[bool]string{true: "60", false: "15"}[reached], "sh", "-c", fmt.Sprintf(p.client, address)+" 2>&1")
			if strings.Contains(o.stdout, p.says) != reached {
				t.Errorf("%s at %s, %s: %s, want that it ends well: %v", p.server, server, p.client, o.stdout, reached)
			}
		}
	}
}
