package umadtest

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// takeovers are how often the subnet goes to ibwarden and back, in CI by each pair of
// doors, and in a soak where both come by the same.
const (
	takeovers     = 1
	takeoversSoak = 50

	// openSMPatience is how long an OpenSM may take to bring the fabric up before it is
	// started again, once; it takes a second or two.
	openSMPatience = time.Minute
)

// TestTakeover: an OpenSM manages, and an ibwarden with default flags but rank,
// SM_Key and trust is handed the subnet; then OpenSM is given the higher rank, and is
// handed it back, whichever way either came. No link goes down, and no port gets
// another LID.
func TestTakeover(t *testing.T) {
	need.Long(t, "OpenSM hands the fabric over and gets it back")
	needPrograms(t, "opensm", "sminfo", "perfquery", "tshark")
	tools, err := ibsimtest.FindTools()
	need.Need(t, err)
	ways := []string{"devices", "the ibsim protocol"}
	for theirs := range ways {
		for ours := range ways {
			t.Run(fmt.Sprintf("OpenSM by %s, ibwarden by %s", ways[theirs], ways[ours]), func(t *testing.T) {
				capture := filepath.Join(t.TempDir(), "capture.pcapng")
				r := newRig(t, "fattree,radix=4,levels=2", "--capture", capture)
				doors := r.doors(tools.Umad2sim)
				times := takeovers
				if need.Soak() && theirs == ours {
					times = takeoversSoak
				}
				takeOver(r, doors[theirs], doors[ours], times)
				r.tell("Quit")
				<-r.ended
				noLinkTaken(t, capture)
			})
		}
	}
}

func takeOver(r *rig, theirs, ours door, times int) {
	r.Helper()
	hosts := r.hosts()
	openSM := startRanked(r, theirs, hosts[0])
	watcher := hosts[3]
	r.Cleanup(func() {
		if r.Failed() {
			r.tellState(watcher) // while the programs still run
		}
	})
	if !r.within(openSMPatience, func() bool { return r.managedBy(watcher, hosts[0]) }) {
		// Seen twice in some hundred runs of everything at once, and not understood: an
		// OpenSM that was up, got the traps of its own bring-up, and wrote no more.
		r.Logf("OpenSM does not manage after %v, and is started again", openSMPatience)
		r.tellState(watcher)
		openSM.Tell()
		_ = openSM.Signal(syscall.SIGKILL) // it may have ended by itself
		r.eventually("its place is free", func() bool { return r.run(hosts[0].ID, "ibstat").status == 0 })
		openSM = startRanked(r, theirs, hosts[0])
	}
	r.managed("OpenSM manages", watcher, hosts[0])
	links := r.links()
	r.ask(watcher.ID, "perfquery") // what the capture has before is the first bring-up
	policy := r.file("all.yaml", "version: 1\ndefault: full\n")
	for i := range times {
		began := time.Now()
		stop := ours.start(hosts[5].ID, "ibwarden", "run", "--fabric", "umad", "--policy", policy,
			"--priority", "7", "--sm-key", "1", "--trusted-sm", guids(hosts[:1]))
		r.managed("ibwarden manages", watcher, hosts[5])
		there := time.Since(began)
		r.sameLinks(links)
		began = time.Now()
		openSM.Rank(15)
		r.managed("OpenSM manages again", watcher, hosts[0])
		back := time.Since(began)
		r.sameLinks(links)
		stop()
		openSM.Rank(0)
		r.sameLinks(links)
		r.Logf("%d: there in %v, back in %v", i, there.Round(time.Millisecond), back.Round(time.Millisecond))
		if r.Failed() {
			r.Fatalf("in round %d of %d", i, times)
		}
	}
	r.neverDown()
}

// noLinkTaken looks for writes that take a link down: a manager's own are no
// failure, and no counter has them.
func noLinkTaken(t *testing.T, capture string) {
	t.Helper()
	const (
		performance = "4" // class, as perfquery sends it

		down     = "1"
		sleeping = "1"
		polling  = "2"
		disabled = "3"
	)
	tshark, _ := program("tshark") // needPrograms found it
	out, err := exec.Command(tshark, "-r", capture, "-Y", "infiniband.mad.mgmtclass == 4 || infiniband.mad.method == 2 && infiniband.mad.attributeid == 0x15", "-T", "fields",
		"-e", "infiniband.mad.mgmtclass", "-e", "infiniband.portinfo.portstate", "-e", "infiniband.portinfo.portphysicalstate", "-e", "frame.number").Output()
	if err != nil {
		t.Fatal(err)
	}
	up, writes := false, 0
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(strings.ReplaceAll(line, "0x0", ""))
		if f[0] == performance {
			up = true // the first bring-up is over
			continue
		}
		if !up {
			continue
		}
		writes++
		if len(f) != 4 || f[1] == down || f[2] == sleeping || f[2] == polling || f[2] == disabled {
			t.Errorf("a Set of PortInfo that takes a link down, or an invalid one: %q", line)
		}
	}
	if writes == 0 {
		t.Error("no Set of PortInfo in the capture")
	}
}

// startRanked starts an OpenSM as it is installed at a host.
func startRanked(r *rig, by door, at *topology.Node) *ibsimtest.InsideOpenSM {
	r.Helper()
	return ibsimtest.StartOpenSM(r, r.dir, "", func(words ...string) { by.start(at.ID, words...) })
}

// managedBy reports whether the master is at a host, as the watcher sees it, and the
// hosts between know it.
func (r *rig) managedBy(watcher, at *topology.Node) bool {
	r.Helper()
	return r.masterIs(watcher, at) && r.obeys(at)
}

// managed waits until a host is managedBy.
func (r *rig) managed(what string, watcher, at *topology.Node) {
	r.Helper()
	r.eventually(what, func() bool { return r.managedBy(watcher, at) })
}

// tellState logs how the fabric stands.
func (r *rig) tellState(watcher *topology.Node) {
	r.Helper()
	r.Logf("sminfo at %q: %+v", watcher.ID, r.run(watcher.ID, "sminfo"))
	for _, h := range r.hosts() {
		r.Logf("ibstat at %q: %+v", h.ID, r.run(h.ID, "ibstat"))
	}
	r.Logf("ports: %+v", r.links())
}

// masterIs reports whether the manager that a host's port was told of is master, and
// at the given host.
func (r *rig) masterIs(asked, at *topology.Node) bool {
	r.Helper()
	return regexp.MustCompile(fmt.Sprintf(`sm guid 0x%x, .* SMINFO_MASTER`, uint64(at.Ports[1].GUID))).
		MatchString(r.run(asked.ID, "sminfo").stdout)
}

// obeys reports whether the hosts between the managers were told that the manager is
// at the given one.
func (r *rig) obeys(at *topology.Node) bool {
	r.Helper()
	lid := 0
	for _, l := range r.links() {
		if l.Node == at.Description && l.Port == 1 {
			lid = l.LID
		}
	}
	for _, h := range r.hosts()[1:5] {
		if m := masterLID.FindStringSubmatch(r.ask(h.ID, "ibstat")); m == nil || m[1] != strconv.Itoa(lid) {
			return false
		}
	}
	return true
}

var masterLID = regexp.MustCompile(`SM lid: (\d+)`)

// linkState is what of a port may not change while managers do.
type linkState struct {
	Node, State string
	Physical    string `json:"physical_state"`
	Port, LID   int
	Width       string
}

func (r *rig) links() []linkState {
	r.Helper()
	o := r.overIbsim("show", "ports", "--json")
	var d struct{ Ports []linkState }
	if err := json.Unmarshal([]byte(o.stdout), &d); err != nil || len(d.Ports) == 0 {
		r.Fatalf("show ports: %d, %v\n%s%s", o.status, err, o.stdout, o.stderr)
	}
	return d.Ports
}

// sameLinks holds links against what they were: all up, each port with its LID.
func (r *rig) sameLinks(want []linkState) {
	r.Helper()
	got := r.links()
	if len(got) != len(want) {
		r.Errorf("%d ports, were %d", len(got), len(want))
		return
	}
	for i := range got {
		if got[i] != want[i] || got[i].State != "Active" {
			r.Errorf("%+v, was %+v", got[i], want[i])
		}
	}
}

var linkDowned = regexp.MustCompile(`(?m)^LinkDownedCounter:\.+(\d+)$`)

// neverDown reads the counter that every port keeps of how often its link went down.
func (r *rig) neverDown() {
	r.Helper()
	asked := 0
	lids := map[string]string{}
	for _, l := range r.links() {
		if l.LID != 0 {
			lids[l.Node] = strconv.Itoa(l.LID)
		}
	}
	for _, l := range r.links() {
		if l.Port == 0 {
			continue
		}
		m := linkDowned.FindStringSubmatch(r.ask(r.hosts()[3].ID, "perfquery", lids[l.Node], strconv.Itoa(l.Port)))
		if m == nil || m[1] != "0" {
			r.Errorf("%s port %d: LinkDownedCounter %v, want 0", l.Node, l.Port, m)
		}
		asked++
	}
	if asked < 2*len(r.topology.Links()) {
		r.Errorf("%d ports were asked, of %d links", asked, len(r.topology.Links()))
	}
}
