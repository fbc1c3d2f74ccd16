package umadtest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// pair is an OpenSM and an ibwarden on one fabric.
type pair struct {
	oursFirst    bool // ibwarden is there before OpenSM is
	ours, theirs int  // priorities
	oursLow      bool // ibwarden's port has the lower GUID
	killed       bool // the master ends by SIGKILL, else as its operator would end it
}

// oursWins says who is master by the rules: the higher priority, on a tie the lower GUID.
func (p pair) oursWins() bool {
	return p.ours > p.theirs || p.ours == p.theirs && p.oursLow
}

func (p pair) String() string {
	first, end := "OpenSM first", "ended"
	if p.oursFirst {
		first = "ibwarden first"
	}
	if p.killed {
		end = "killed"
	}
	guid := "higher"
	if p.oursLow {
		guid = "lower"
	}
	return fmt.Sprintf("%s, ibwarden %d OpenSM %d, GUID of ibwarden %s, master %s", first, p.ours, p.theirs, guid, end)
}

// pairs are all pairs of roles, priorities and ends.
func pairs() (out []pair) {
	for _, first := range []bool{false, true} {
		for _, rank := range []pair{{ours: 7, theirs: 3}, {ours: 3, theirs: 7, oursLow: true}, {ours: 5, theirs: 5, oursLow: true}, {ours: 5, theirs: 5}} {
			for _, killed := range []bool{true, false} {
				rank.oursFirst, rank.killed = first, killed
				out = append(out, rank)
			}
		}
	}
	return out
}

// pairsShare and pairsFirst are which of the pairs, by each interface, CI tries: every so
// many, so that each role, rank, end and interface is among them.
const pairsShare, pairsFirst = 7, 2

// TestPairsWithOpenSM: whoever comes first, whatever the ranks are and however the master
// ends, one manager is master by the rules, `ibwarden show managers` shows both, and the other
// takes over when the master is gone.
func TestPairsWithOpenSM(t *testing.T) {
	need.Long(t, "many pairs of managers")
	needPrograms(t, "opensm", "sminfo", "ibstat")
	tools, err := ibsimtest.FindTools()
	need.Need(t, err)
	all := pairs()
	for i := range 2 * len(all) {
		if i%pairsShare != pairsFirst && !need.Soak() {
			continue
		}
		p, by := all[i%len(all)], i/len(all)
		t.Run(fmt.Sprintf("%v, by %s", p, []string{"devices", "the ibsim protocol"}[by]), func(t *testing.T) {
			r := newRig(t, "fattree,radix=4,levels=2")
			p.try(r, r.doors(tools.Umad2sim)[by], []string{"umad", "ibsim:" + r.name}[by])
		})
	}
}

// try has both managers come by one interface, which ibwarden calls fabric.
func (p pair) try(r *rig, by door, fabric string) {
	r.Helper()
	hosts := r.hosts()
	ours, theirs, watcher := hosts[5], hosts[0], hosts[3]
	if p.oursLow {
		ours, theirs = theirs, ours
	}
	config := r.file("pair.conf", fmt.Sprintf("sm_priority %d\nsminfo_polling_timeout 1000\n", p.theirs))
	log := filepath.Join(r.dir, "pair.log")
	text := "version: 1\ndefault: full\n"
	if p.killed {
		// OpenSM does not know the M_Keys of a manager that could not release them.
		text += "settings:\n  m_key_lease_period: 2\n"
	}
	policy, socket := r.file("all.yaml", text), filepath.Join(r.dir, "service.sock")
	start := map[bool]func() int{
		true: func() int {
			return r.startAt(by, ours, fmt.Sprintf("%s run --fabric %s --policy %s --priority %d --sm-key 1 --trusted-sm %s --quarantine 0s --sweep-interval 2s --socket %s",
				must(binary()), fabric, policy, p.ours, guids([]*topology.Node{theirs}), socket))
		},
		false: func() int {
			return r.startAt(by, theirs, fmt.Sprintf("%s %s -F %s -e -f %s", must(program("opensm")), ibsimtest.LogLimit, config, log))
		},
	}
	at := map[bool]*topology.Node{true: ours, false: theirs}
	pids := map[bool]int{}
	pids[p.oursFirst] = start[p.oursFirst]()
	r.managed("the first manages", watcher, at[p.oursFirst])
	pids[!p.oursFirst] = start[!p.oursFirst]()
	began := time.Now()
	wins := p.oursWins()
	r.eventually("one is master by the rules", func() bool { return r.isPair(watcher, at[wins], at[!wins]) })
	settled := time.Since(began)
	began = time.Now()
	kill := syscall.SIGTERM
	if p.killed {
		kill = syscall.SIGKILL
	} else if wins {
		r.handOver(socket)
	}
	if err := syscall.Kill(pids[wins], kill); err != nil {
		r.Fatal(err)
	}
	r.managed("the other takes over", watcher, at[!wins])
	r.Logf("settled in %v, taken over in %v", settled.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
}

// startAt runs a command line at a host until the test ends, and returns its process.
func (r *rig) startAt(by door, at *topology.Node, line string) (pid int) {
	r.Helper()
	path := filepath.Join(r.dir, fmt.Sprintf("pid-%d", rigs.Add(1)))
	by.start(at.ID, "sh", "-c", "echo $$ > "+path+"; exec "+line)
	r.eventually("it has started", func() bool {
		text, err := os.ReadFile(path)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err == nil
	})
	r.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) }) // it may have ended
	return pid
}

// handOver is what an operator does before the manager of this rig ends: the standby
// does not know its M_Keys.
func (r *rig) handOver(socket string) {
	r.Helper()
	out, err := exec.Command(must(binary()), "handover", "--server", "unix:"+socket).CombinedOutput()
	if err != nil {
		r.Fatalf("handover: %v\n%s", err, out)
	}
}

// isPair reports whether `ibwarden show managers`, which reads the fabric from another host,
// shows two managers: a master and a standby.
func (r *rig) isPair(from, master, standby *topology.Node) bool {
	r.Helper()
	o := r.run(from.ID, must(binary()), "show", "managers", "--fabric", "umad", "--json")
	var d struct {
		Managers []struct{ Port, State string }
	}
	if json.Unmarshal([]byte(o.stdout), &d) != nil || o.status != 0 || len(d.Managers) != 2 {
		return false
	}
	states := map[string]string{}
	for _, m := range d.Managers {
		states[m.Port] = m.State
	}
	return states[guids([]*topology.Node{master})] == "master" && states[guids([]*topology.Node{standby})] == "standby"
}
