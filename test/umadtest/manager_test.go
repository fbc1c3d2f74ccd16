package umadtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// document is what the tests look at of `run --json`.
type document struct {
	Verdict string
	Fabric  map[string]int
	Writes  int
	SMPs    struct {
		ByAttribute []struct {
			Attribute string
			Set       int
		} `json:"by_attribute"`
	}
}

// overIbsim runs ibwarden outside the namespace, over the ibsim protocol, at the last host.
func (r *rig) overIbsim(args ...string) output {
	r.Helper()
	path, err := binary()
	if err != nil {
		r.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append(args, "--fabric", "ibsim:"+r.name)...)
	tame(cmd, r.dir)
	hosts := r.hosts()
	cmd.Env = append(cmd.Env, "SIM_HOST="+hosts[len(hosts)-1].ID)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil || ctx.Err() != nil {
		r.Fatalf("%v: %v", args, err)
	}
	return output{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// file writes a file that only its owner may read.
func (r *rig) file(name, content string) string {
	r.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		r.Fatal(err)
	}
	return path
}

// runOnce is `ibwarden run --once` inside, which has to end with a proof.
func (r *rig) runOnce(args ...string) (d document) {
	r.Helper()
	text := r.ask("", append([]string{"ibwarden", "run", "--once", "--json", "--fabric", "umad"}, args...)...)
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		r.Fatalf("%v\n%s", err, text)
	}
	if d.Verdict != "isolated" {
		r.Fatalf("verdict %q, want isolated", d.Verdict)
	}
	return d
}

// guids lists the port GUIDs of hosts, as partitions.conf has them.
func guids(hosts []*topology.Node) string {
	var out []string
	for _, h := range hosts {
		out = append(out, h.Ports[1].GUID.String())
	}
	return strings.Join(out, ", ")
}

// policy has two tenants and the rest of the hosts in none; the manager's host
// is in none either.
func policy(red, blue []*topology.Node) string {
	return fmt.Sprintf("Default=0x7fff : ALL=limited, SELF=full ;\nRed=0x10, defmember=full : %s ;\nBlue=0x20, defmember=full : %s ;\n", guids(red), guids(blue))
}

// keysOf are the keys of each host's port by GUID, as somebody out here reads
// them, by index.
func (r *rig) keysOf() map[string]string {
	r.Helper()
	// A reading that is not whole says so. On a machine that is busy with the rest of the
	// tests a device may not answer in time: it is read again.
	const readings = 5
	o := r.overIbsim("show", "pkeys", "--json")
	for n := 1; n < readings && o.status == 1 && strings.Contains(o.stderr, "no answer after"); n++ {
		o = r.overIbsim("show", "pkeys", "--json")
	}
	if o.status != 0 {
		r.Fatalf("show pkeys: %d\n%s", o.status, o.stderr)
	}
	var d struct {
		PKeys []struct {
			GUID  string
			PKeys []struct{ PKey string }
		}
	}
	if err := json.Unmarshal([]byte(o.stdout), &d); err != nil {
		r.Fatalf("%v\n%.1000s", err, o.stdout)
	}
	out := map[string]string{}
	for _, p := range d.PKeys {
		var keys []string
		for _, k := range p.PKeys {
			keys = append(keys, k.PKey)
		}
		if p.GUID != "" {
			out[p.GUID] = strings.Join(keys, " ")
		}
	}
	return out
}

// TestManager runs ibwarden inside on several topologies: bring-up, proof, and a
// policy that moves a host. What it wrote is read from outside, by another way.
func TestManager(t *testing.T) {
	for _, spec := range []string{"", "torus,x=3,y=3,hosts=2", "fattree,radix=6,levels=2", "random,seed=7,switches=8,hosts=20"} {
		t.Run(spec, func(t *testing.T) {
			r := newRig(t, spec)
			hosts := r.hosts()
			red, blue, moved := hosts[1:4], hosts[4:8], hosts[3]
			first := r.file("first.conf", policy(red, blue))
			if d := r.runOnce("--policy", first); d.Fabric["nodes"] != len(r.topology.Nodes) || d.Fabric["links"] != len(r.topology.Links()) || d.Writes == 0 {
				t.Errorf("%v with %d writes, want %d nodes and %d links", d.Fabric, d.Writes, len(r.topology.Nodes), len(r.topology.Links()))
			}
			r.wantKeys(red, blue)
			if o := r.overIbsim("prove", "--policy", first); o.status != 0 || !strings.Contains(o.stdout, "verdict: isolated\n") {
				t.Errorf("prove from outside: %d\n%s%s", o.status, o.stdout, o.stderr)
			}
			if text := r.ask("", "ibwarden", "prove", "--fabric", "umad", "--policy", first); !strings.Contains(text, "verdict: isolated\n") {
				t.Errorf("prove from inside:\n%s", text)
			}
			if d := r.runOnce("--policy", first); d.Writes != 0 {
				t.Errorf("a second run writes %d times: %v", d.Writes, d.SMPs)
			}
			// A host goes over to blue.
			red, blue = hosts[1:3], append([]*topology.Node{moved}, blue...)
			second := r.file("second.conf", policy(red, blue))
			d := r.runOnce("--policy", second)
			for _, a := range d.SMPs.ByAttribute {
				if a.Set > 0 && a.Attribute != "PKeyTable" {
					t.Errorf("a host that moves between partitions costs %d Sets of %s", a.Set, a.Attribute)
				}
			}
			if d.Writes == 0 || d.Writes > 8 {
				t.Errorf("a host that moves costs %d writes", d.Writes)
			}
			r.wantKeys(red, blue)
			if o := r.overIbsim("prove", "--policy", first); o.status != 1 {
				t.Errorf("the old policy still holds: %d\n%s", o.status, o.stdout)
			}
			if o := r.overIbsim("prove", "--policy", second); o.status != 0 {
				t.Errorf("prove from outside: %d\n%s%s", o.status, o.stdout, o.stderr)
			}
		})
	}
}

// wantKeys holds the tables of hosts against the partitions.
func (r *rig) wantKeys(red, blue []*topology.Node) {
	r.Helper()
	keys := r.keysOf()
	for i, h := range r.hosts() {
		guid, want := h.Ports[1].GUID.String(), "0x7fff"
		switch {
		case i == 0:
			want = "0xffff" // the manager's
		case contains(red, h):
			want = "0x7fff 0x8010"
		case contains(blue, h):
			want = "0x7fff 0x8020"
		}
		got := strings.Fields(keys[guid])
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			r.Errorf("%s holds %q, want %q", h.Description, keys[guid], want)
		}
	}
}

func contains(some []*topology.Node, n *topology.Node) bool { return slices.Contains(some, n) }

// TestMKey: the manager inside guards every port; who has no key reads and
// writes nothing from any way in.
func TestMKey(t *testing.T) {
	need.Long(t, "many processes, one after the other")
	needPrograms(t, "smpquery")
	r := newRig(t, "fattree,radix=6,levels=2")
	hosts := r.hosts()
	conf := r.file("policy.conf", policy(hosts[1:4], hosts[4:8]))
	r.runOnce("--policy", conf, "--profile", "basic")
	if d := r.runOnce("--policy", conf, "--profile", "basic"); d.Writes != 0 {
		t.Errorf("a second run with the keys writes %d times", d.Writes)
	}
	before := r.keysOf()
	other := r.file("other.conf", policy(hosts[4:8], hosts[1:4]))
	if o := r.run("", "ibwarden", "run", "--once", "--fabric", "umad", "--policy", other, "--data", filepath.Join(r.dir, "stranger")); o.status == 0 {
		t.Errorf("a manager without the keys changed tables:\n%s", o.stdout)
	}
	if !maps.Equal(before, r.keysOf()) {
		t.Error("a manager without the keys changed tables")
	}
	// smpquery hides an M_Key unless it is told to show it; of what it then
	// shows, the agent gives the key to its owner alone.
	r.want(r.ask("", "smpquery", "--show_keys", "-D", "portinfo", "0,1", "0"), `^Mkey:\.+0x0000000000000000$`)
	r.ask("", "ibwarden", "keys", "export", "--fabric", "umad", "--format", "opensm", filepath.Join(r.dir, "exported"))
	files, err := os.ReadFile(filepath.Join(r.dir, "exported", "guid2mkey"))
	if err != nil {
		t.Fatal(err)
	}
	leaf := hosts[0].Ports[1].Peer
	m := regexp.MustCompile(fmt.Sprintf(`(?m)^0x0*%x 0x([0-9a-f]{16})$`, uint64(leaf.Ports[0].GUID))).FindSubmatch(files)
	if m == nil {
		t.Fatalf("no key of %s in\n%s", leaf.ID, files)
	}
	r.want(r.ask("", "smpquery", "--show_keys", "-y", "0x"+string(m[1]), "-D", "portinfo", "0,1", "0"), `^Mkey:\.+0x`+string(m[1])+`$`)
}

// announced reports whether the port of the first host says that a manager is
// there; somebody out here asks it.
func (r *rig) announced() bool {
	r.Helper()
	return strings.Contains(r.ask(r.hosts()[1].ID, "smpquery", "portinfo", r.lid(r.hosts()[0])), "IsSM\n")
}

var baseLID = regexp.MustCompile(`Base lid: (\d+)`)

// lid is what a host's sysfs says.
func (r *rig) lid(host *topology.Node) string {
	r.Helper()
	m := baseLID.FindStringSubmatch(r.ask(host.ID, "ibstat"))
	if m == nil {
		r.Fatalf("ibstat of %s tells no LID", host.Description)
	}
	return m[1]
}

// TestMaster: issm while it is master, one manager at a port, news by traps, and
// what is left when it is killed.
func TestMaster(t *testing.T) {
	need.Long(t, "many processes, one after the other")
	needPrograms(t, "opensm", "smpquery", "sminfo")
	r := newRig(t, "fattree,radix=6,levels=2")
	hosts := r.hosts()
	conf := r.file("policy.conf", policy(hosts[1:4], hosts[4:8]))
	// On this machine OpenSM manages a port of the same GUID, of another fabric.
	defer newRig(t, "fattree,radix=6,levels=2").openSM("")()
	verdicts := filepath.Join(r.dir, "verdicts.json")
	master, _ := r.start("", "sh", "-c", "exec "+must(binary())+" run --json --fabric umad --profile basic --policy "+conf+" > "+verdicts)
	passes := func() int {
		text, _ := os.ReadFile(verdicts) // it is not there at first
		return strings.Count(string(text), `"verdict": "isolated"`)
	}
	r.eventually("a first verdict", func() bool { return passes() > 0 })
	if !r.announced() {
		t.Error("the port does not have IsSM set")
	}
	r.want(r.ask(hosts[5].ID, "sminfo"), fmt.Sprintf(`sm guid 0x%x, .* SMINFO_MASTER$`, uint64(hosts[0].Ports[1].GUID)))
	if o := r.run("", "ibwarden", "run", "--once", "--fabric", "umad", "--policy", conf, "--data", filepath.Join(r.dir, "second")); o.status != 1 ||
		!strings.Contains(o.stderr, "sim0 port 1: another program has registered for subnet management at this port") {
		t.Errorf("a second manager at the port: %d\n%s", o.status, o.stderr)
	}
	named := regexp.MustCompile(`at this port: ibwarden run \(process (\d+)\): to change its policy, change its policy file and run kill -HUP (\d+)`)
	o := r.run("", "ibwarden", "apply", "--yes", "--fabric", "umad", "--policy", conf, "--journal", filepath.Join(r.dir, "journal"))
	if m := named.FindStringSubmatch(o.stderr); o.status != 1 || m == nil || m[1] != m[2] {
		t.Errorf("apply during a run: %d\n%s", o.status, o.stderr)
	}
	// Its subnet administration: a long answer to a full member, less to others.
	if got := strings.Count(r.ask("", "saquery", "NR"), "NodeRecord dump"); got != len(r.topology.Nodes) {
		t.Errorf("saquery NR at the manager's host: %d records, want %d", got, len(r.topology.Nodes))
	}
	if got := strings.Count(r.ask(hosts[5].ID, "saquery", "NR"), "NodeRecord dump"); got == 0 || got >= len(r.topology.Nodes) {
		t.Errorf("saquery NR at a tenant's host: %d records, want those of its partitions", got)
	}
	// A cable is pulled and plugged: a switch sends a trap, and the ports are up
	// again long before a sweep would have been due twice.
	r.tell("Unlink \"" + hosts[5].ID + "\"[1]")
	r.eventually("the host has lost its link", func() bool {
		return strings.Contains(r.ask(hosts[5].ID, "ibstat"), "State: Down")
	})
	r.tell("ReLink \"" + hosts[5].ID + "\"[1]")
	r.eventually("the manager has brought the host back", func() bool {
		return strings.Contains(r.ask(hosts[5].ID, "ibstat"), "State: Active")
	})
	r.want(r.ask("", "smpquery", "nodedesc", r.lid(hosts[5])), hosts[5].Description)
	if err := master.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.eventually("the port says that there is no manager", func() bool { return !r.announced() })
	r.runOnce("--policy", conf)
}

func must(path string, err error) string {
	if err != nil {
		panic(err) // it was built before
	}
	return path
}

// TestCapture counts what the manager says that it sent in the simulator's
// capture, as tshark reads it.
func TestCapture(t *testing.T) {
	needPrograms(t, "tshark", "sminfo", "perfquery")
	file := filepath.Join(t.TempDir(), "capture.pcapng")
	r := newRig(t, "fattree,radix=6,levels=2", "--capture", file)
	hosts := r.hosts()
	d := r.runOnce("--policy", r.file("policy.conf", policy(hosts[1:4], hosts[4:8])))
	r.ask("", "perfquery", r.lid(hosts[0]), "1")
	r.tell("Quit")
	<-r.ended
	tshark, _ := program("tshark") // need found it
	out, err := exec.Command(tshark, "-r", file, "-Y", "infiniband.mad", "-T", "fields",
		"-e", "infiniband.mad.mgmtclass", "-e", "infiniband.mad.method", "-e", "infiniband.mad.attributeid", "-e", "infiniband.bth.p_key").Output()
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(out)) {
		count[strings.Join(strings.Fields(line), " ")]++
	}
	numbers := map[string]string{
		"NodeDescription": "0x0010", "NodeInfo": "0x0011", "SwitchInfo": "0x0012", "PortInfo": "0x0015", "PKeyTable": "0x0016", "LinearForwardingTable": "0x0019",
	}
	for _, a := range d.SMPs.ByAttribute {
		// By directed route or, once there are LIDs, without.
		sent := func(method string) int {
			return count["0x81 "+method+" "+numbers[a.Attribute]+" 65535"] + count["0x01 "+method+" "+numbers[a.Attribute]+" 65535"]
		}
		if got := sent("0x02"); got != a.Set || numbers[a.Attribute] == "" {
			t.Errorf("%d Sets of %s in the capture, want %d", got, a.Attribute, a.Set)
		}
		if requests, answers := sent("0x01")+sent("0x02"), sent("0x81"); requests == 0 || requests != answers {
			t.Errorf("%d requests of %s and %d answers in the capture", requests, a.Attribute, answers)
		}
	}
	if got := count["0x04 0x01 0x0012 65535"]; got != 1 {
		t.Errorf("%d requests of PortCounters in the capture, want 1: %v", got, count)
	}
}
