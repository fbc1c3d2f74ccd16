package ibsimtest

import (
	"encoding/json"
	"io"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/need"
)

// sizes are fabrics that differ in size; a change costs the same on each.
var sizes = []string{"fattree,radix=4,levels=2", "fattree,radix=14,levels=2"}

// maxChange bounds the SMPs that change one member, and as many read back:
// each is a single digit.
const maxChange = 9

// memberChanges are policies that differ from the first in one member of one
// partition; ports 0x100003 to 0x100009 are those of the second to fifth host.
const (
	changeBase = "Blue=0x20 : 0x100003=full, 0x100005=full, 0x100007=limited ;\nGreen=0x30 : 0x100009=full, 0x10000b=full ;\n"
	movedPort  = "0x100007"
)

var memberChanges = []struct{ name, text, port string }{
	{"one more", strings.Replace(changeBase, "0x100009=full,", "0x100009=full, 0x10000d=limited,", 1), "0x10000d"},
	{"one less", strings.Replace(changeBase, ", 0x100007=limited", "", 1), movedPort},
	{"limited becomes full", strings.Replace(changeBase, "0x100007=limited", "0x100007=full", 1), movedPort},
	{"full becomes limited", strings.Replace(changeBase, "0x100005=full", "0x100005=limited", 1), "0x100005"},
}

// stateFile is what one run leaves to the next. Without it a new process tries
// again to write the settings that ibsim takes and forgets.
const stateFile = "state.json"

// A change of one member writes the tables of that member and of its switch
// port, and nothing else, on a fabric of any size.
func TestMinimalChange(t *testing.T) {
	for i, spec := range sizes {
		t.Run(spec, func(t *testing.T) {
			if i > 0 {
				need.Long(t, "larger fabrics")
			}
			t.Parallel()
			r := newRig(t, topologyOf(t, spec), "")
			base := r.file("base.conf", changeBase)
			r.bringUp(base, "--state", stateFile)
			for _, change := range memberChanges {
				d := r.bringUp(r.file("changed.conf", change.text), "--state", stateFile)
				checkFew(t, change.name, d.sets(), d.Writes)
				r.checkTaken(badPolicy{name: change.name, text: change.text}, output{})
				d = r.bringUp(base, "--state", stateFile)
				checkFew(t, change.name+", and back", d.sets(), d.Writes)
			}
		})
	}
}

// checkFew checks the Sets that a change of one member took.
func checkFew(t *testing.T, name string, sets map[string]int, writes int) {
	t.Helper()
	sum := 0
	for attribute, n := range sets {
		if sum += n; attribute != "PKeyTable" && attribute != "PortInfo" {
			t.Errorf("%s: %d Sets of %s", name, n, attribute)
		}
	}
	if sum == 0 || sum > maxChange || writes != sum {
		t.Errorf("%s: %d Sets (%v) and %d writes, want 1 to %d", name, sum, sets, writes, maxChange)
	}
}

// A manager that runs and is told to read its policy again sends no more than
// the change and its read-back: it does not sweep.
func TestMinimalChangeWhileRunning(t *testing.T) {
	for _, spec := range sizes {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, topologyOf(t, spec), "")
			policy := r.file("policy.conf", changeBase)
			d := r.start("--policy", policy, "--sweep-interval", "1h", "--drift-period", "1h", "--guard-period", "1h")
			last := d.next()
			for _, change := range memberChanges {
				r.file("policy.conf", change.text)
				d.reload()
				now := d.next()
				sets := now.sets()
				for attribute, n := range last.sets() {
					if sets[attribute] -= n; sets[attribute] == 0 {
						delete(sets, attribute)
					}
				}
				checkFew(t, change.name, sets, now.Writes)
				if gets := now.SMPs.Get - last.SMPs.Get; gets > maxChange {
					t.Errorf("%s: %d Gets, want at most %d", change.name, gets, maxChange)
				}
				r.file("policy.conf", changeBase)
				d.reload()
				last = d.next()
			}
			before := r.snapshot()
			r.file("policy.conf", changeBase+"X=0x50 : 0xZZZ ;\n")
			d.reload()
			time.Sleep(settleTime)
			if after := r.snapshot(); !reflect.DeepEqual(before, after) {
				t.Errorf("a policy with a fault, read again, changed the fabric from\n%v\nto\n%v", before, after)
			}
			if err := d.end(); err != nil {
				t.Errorf("interrupted, it ended with %v", err)
			}
		})
	}
}

// settleTime is long for a manager that would do something, and has nothing
// to do.
const settleTime = 500 * time.Millisecond

// running is an ibwarden that keeps running.
type running struct {
	*rig
	process *os.Process
	decoder *json.Decoder
	ended   chan error
}

// start runs ibwarden until the test ends.
func (r *rig) start(args ...string) *running {
	r.Helper()
	path, err := binary()
	if err != nil {
		r.Fatal(err)
	}
	cmd := r.sim.Command(r.Context(), r.host, path,
		append([]string{"run", "--json", "--fabric", "ibsim:" + r.sim.Name}, args...)...)
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, io.Discard
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	d := &running{rig: r, process: cmd.Process, decoder: json.NewDecoder(out), ended: make(chan error, 1)}
	go func() {
		d.ended <- cmd.Wait()
		in.Close()
	}()
	r.Cleanup(func() { out.Close(); cmd.Process.Kill() })
	return d
}

// next waits for the next document.
func (d *running) next() *document {
	d.Helper()
	var doc document
	late := time.AfterFunc(commandTime, func() { d.process.Kill() })
	defer late.Stop()
	if err := d.decoder.Decode(&doc); err != nil {
		d.Fatalf("no document from a running ibwarden: %v", err)
	}
	return &doc
}

func (d *running) reload() {
	d.Helper()
	if err := d.process.Signal(syscall.SIGHUP); err != nil {
		d.Fatal(err)
	}
}

// end interrupts it and waits for its end.
func (d *running) end() error {
	if err := d.process.Signal(os.Interrupt); err != nil {
		return err
	}
	late := time.AfterFunc(commandTime, func() { d.process.Kill() })
	defer late.Stop()
	return <-d.ended
}

// A second run finds everything as it should be: it gives no port another LID
// and writes nothing, but for settings that it does not know to be forgotten.
func TestRestartKeepsLIDs(t *testing.T) {
	const spec = "random,seed=3,switches=5,hosts=14,ca-ports=2,routers=2"
	l := topologyOf(t, spec)
	for _, lmc := range []string{"0", "2"} {
		t.Run("LMC "+lmc, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, l, "")
			policy := r.file("partitions.conf", "A=0x10 : ALL_CAS=full ;\nB : ALL_ROUTERS=full, ALL_CAS ;\n")
			r.bringUp(policy, "--lmc", lmc, "--state", stateFile)
			before, tables := r.read(true), r.snapshot()
			for run := range 2 {
				d := r.bringUp(policy, "--lmc", lmc, "--state", stateFile)
				if d.Writes != 0 || d.SMPs.Set != 0 {
					t.Errorf("run %d: %d writes, Sets %v; want none", run+2, d.Writes, d.sets())
				}
			}
			// Without its state it keeps to what it finds.
			for attribute, n := range r.bringUp(policy, "--lmc", lmc).sets() {
				if attribute != "PortInfo" {
					t.Errorf("without its state: %d Sets of %s", n, attribute)
				}
			}
			if after := r.read(true); !reflect.DeepEqual(before, after) {
				t.Errorf("smpquery reads after the restart\n%+v\nbefore\n%+v", after, before)
			}
			if after := r.snapshot(); !reflect.DeepEqual(tables, after) {
				t.Errorf("show has after the restart\n%v\nbefore\n%v", after, tables)
			}
			// From another place the addresses stay too, though the manager's changes.
			other := *r
			other.host = "H7"
			other.model = explore(t, l, other.host)
			other.bringUp(policy, "--lmc", lmc)
			moved := other.read(true)
			for _, e := range other.model.ends {
				for was, state := range before.ports {
					if was.guid == e.guid && state.lid != moved.ports[e].lid {
						t.Errorf("port %v had LID %d, and has %d with the manager elsewhere", e, state.lid, moved.ports[e].lid)
					}
				}
			}
		})
	}
}
