package umadtest

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// failedOverMost is how long a standby may take: OpenSM as installed asks its master every
// 10 s, and gives it up after 4 times in vain.
const failedOverMost = 3 * time.Minute

// tuned is an OpenSM that looks after its master as often as is sensible: every 0.5 s, and
// gives it up after 2 times in vain.
const tuned = "sminfo_polling_timeout 500\npolling_retry_number 2\n"

// TestFailoverBesideOpenSM prints how long it takes from the kill of a master to the first
// right answer of subnet administration: of a pair of OpenSM as installed, of one that is
// tuned, and of a pair of ibwarden.
func TestFailoverBesideOpenSM(t *testing.T) {
	if !need.Soak() {
		t.Skip("IBWARDEN_SOAK is not set")
	}
	needPrograms(t, "opensm", "saquery", "sminfo")
	tools, err := ibsimtest.FindTools()
	need.Need(t, err)
	for _, size := range []struct {
		spec   string
		rounds map[string]int
	}{
		{"fattree,radix=8,levels=2", map[string]int{"OpenSM as installed": 2, "OpenSM tuned": 5, "ibwarden": 5}},
		{"fattree,radix=36,levels=2", map[string]int{"OpenSM as installed": 1, "OpenSM tuned": 3, "ibwarden": 3}},
	} {
		for _, kind := range []string{"OpenSM as installed", "OpenSM tuned", "ibwarden"} {
			for range size.rounds[kind] {
				t.Run(size.spec+", "+kind, func(t *testing.T) {
					r := newRig(t, size.spec)
					t.Logf("%d hosts, %s: %.2f s", len(r.hosts()), kind, r.failover(kind, tools.Umad2sim).Seconds())
				})
			}
		}
	}
}

// failover kills the master of a pair, and tells when the other one answers.
func (r *rig) failover(kind, umad2sim string) time.Duration {
	r.Helper()
	hosts := r.hosts()
	first, second, watcher := hosts[0], hosts[5], hosts[3]
	answers := func() bool {
		o := r.run(watcher.ID, "saquery", "-t", "100", "NR")
		return o.status == 0 && strings.Count(o.stdout, "NodeRecord dump") == len(r.topology.Nodes)
	}
	standsBy := func() bool {
		return strings.Contains(r.run(watcher.ID, "sminfo", r.lid(second)).stdout, "SMINFO_STANDBY")
	}
	var kill func()
	if kind == "ibwarden" {
		s := newSharers(r, "--policy", r.file("policy.yaml", "version: 1\ndefault: full\n"))
		master := s.manager(first, "--priority", "5")
		r.within(failedOverMost, answers)
		s.manager(second)
		kill = master.kill
	} else {
		start := func(at *topology.Node, priority int) int {
			config := r.file(fmt.Sprintf("opensm-%d.conf", priority), fmt.Sprintf("sm_priority %d\n", priority)+map[bool]string{true: tuned}[kind == "OpenSM tuned"])
			return r.startAt(r.doors(umad2sim)[0], at, fmt.Sprintf("%s %s -F %s -f %s", must(program("opensm")), ibsimtest.LogLimit, config, filepath.Join(r.dir, fmt.Sprintf("opensm-%d.log", priority))))
		}
		pid := start(first, 5)
		r.within(failedOverMost, answers)
		start(second, 3)
		kill = func() { _ = syscall.Kill(pid, syscall.SIGKILL) }
	}
	if !r.within(failedOverMost, standsBy) || !r.within(failedOverMost, answers) {
		r.Fatal("there is no pair, or its master does not answer")
	}
	time.Sleep(3 * time.Second) // the standby has read the subnet
	kill()
	began := time.Now()
	if !r.within(failedOverMost, answers) {
		r.Fatalf("the standby does not answer within %v", failedOverMost)
	}
	return time.Since(began)
}
