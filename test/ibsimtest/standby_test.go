package ibsimtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

const (
	standbyFabric = "fattree,radix=4,levels=2"
	openSMPolicy  = "Default=0x7fff : ALL=limited, SELF=full ;\nTheirs=0x0666 : 0x100003=full, 0x100005 ;\n"
	ourPolicy     = "Ours=0x0777 : ALL_CAS=full ;\n"
	// openSMWait is how long OpenSM may take to find its place.
	openSMWait = 15 * time.Second
)

// startOpenSM runs an OpenSM at the named node until the test ends.
func (r *rig) startOpenSM(host string, args ...string) {
	r.Helper()
	const flushLog = "2" // a debug option: every message reaches the file at once
	cmd := r.sim.OpenSM(r.Context(), host, r.file("opensm.conf", openSMPolicy), append([]string{"-d", flushLog}, args...)...)
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait() // killed
	})
}

// portAt is the GUID of a host's first port, or that of a switch.
func portAt(t testing.TB, l *topology.Netlist, id string) string {
	t.Helper()
	for _, n := range l.Nodes {
		if n.ID == id {
			if n.Type == ib.NodeSwitch {
				return n.Ports[0].GUID.String()
			}
			return n.Ports[1].GUID.String()
		}
	}
	t.Fatalf("no node %q", id)
	return ""
}

// waitFor waits until OpenSM's log has the text.
func (r *rig) waitFor(text string) {
	r.Helper()
	for end := time.Now().Add(openSMWait); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if strings.Contains(r.openSMLog(), text) {
			return
		}
	}
	r.Fatalf("opensm did not come to %q:\n%s", text, r.openSMLog())
}

// openSMLog is what OpenSM has written by now; the file comes to be when it
// starts.
func (r *rig) openSMLog() string {
	log, _ := os.ReadFile(r.sim.OpenSMLog())
	return string(log)
}

// An OpenSM of the highest priority that nobody named, as a tenant could start one:
// ibwarden keeps managing, shows it no SM_Key, and puts right what it writes. The
// same OpenSM has its way where ibwarden has gone.
func TestOpenSMOfATenant(t *testing.T) {
	need.Long(t, "OpenSM beside ibwarden, which takes its seconds")
	for _, stays := range []bool{false, true} {
		t.Run(fmt.Sprintf("ibwarden stays %v", stays), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, topologyOf(t, standbyFabric), "H0_0")
			ours := r.file("ours.conf", ourPolicy)
			if !stays {
				r.runOnce("--policy", ours)
				before := r.read(true)
				r.startOpenSM("H3_1", "-p", "15")
				r.waitFor("SUBNET UP")
				if reflect.DeepEqual(keysOf(before), keysOf(r.read(true))) {
					t.Error("OpenSM changes nothing: not an attack")
				}
				return
			}
			// What it has for OpenSMs that are named, it does not show to another.
			d := r.start("--policy", ours, "--sweep-interval", "200ms", "--drift-period", "1s", "--sm-key", "1")
			d.next()
			before := r.read(true)
			r.startOpenSM("H3_1", "-p", "15")
			go func() { // it prints a document for each pass
				for x := new(document); d.decoder.Decode(x) == nil; {
				}
			}()
			r.waitFor("non-matching sm_key") // it takes the fabric for its own
			for end := time.Now().Add(openSMWait); ; time.Sleep(100 * time.Millisecond) {
				if reflect.DeepEqual(keysOf(before), keysOf(r.read(true))) && strings.Contains(r.openSMLog(), "SUBNET UP") {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("ibwarden has not put right what OpenSM wrote:\n%v\nwas\n%v", keysOf(r.read(true)), keysOf(before))
				}
			}
			if err := d.end(); err != nil {
				t.Errorf("interrupted, it ended with %v", err)
			}
		})
	}
}

// keysOf is what of a reading keeps tenants apart, whatever the indexes.
func keysOf(r *reading) map[*endPort][2]string {
	out := map[*endPort][2]string{}
	for e := range r.keys {
		out[e] = [2]string{keysText(keySet(r.keys[e])), keysText(keySet(r.guard[e]))}
	}
	return out
}

// A manager that comes to a fabric for the first time leaves it to a master that
// nobody named, says who that is and what to do, and ends; one that was told to
// take over does, and so does one that has managed the fabric before.
func TestNewcomerLeavesTheMasterAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, topologyOf(t, standbyFabric), "H0_0")
	policy, state := r.file("ours.conf", ourPolicy), filepath.Join(r.sim.Dir, "state")
	run := func(args ...string) output {
		return r.runOnce(append([]string{"--policy", policy, "--profile", "tenant", "--state", state}, args...)...)
	}
	r.startOpenSM("H3_1")
	r.waitFor("SUBNET UP")
	before := r.read(true)
	o := run()
	guid := portAt(t, topologyOf(t, standbyFabric), "H3_1")
	for _, want := range []string{"H3_1", guid, "--take-over", "--trusted-sm " + guid} {
		if o.status != 1 || !strings.Contains(o.stderr, want) {
			t.Errorf("exit status %d, want 1 and %q in\n%s", o.status, want, o.stderr)
		}
	}
	if after := r.read(true); !reflect.DeepEqual(before, after) {
		t.Errorf("smpquery reads\n%+v\nbefore\n%+v", after, before)
	}
	for _, args := range [][]string{{"--take-over"}, nil} {
		if o := run(args...); !strings.Contains(o.stdout, "\"verdict\"") || !strings.Contains(o.stderr, "ALARM") {
			t.Errorf("%v: exit status %d\n%s%s", args, o.status, o.stdout, o.stderr)
		}
	}
}

// While OpenSM is master, ibwarden writes nothing and says so, on whichever
// side of it its GUID is.
func TestStandbyForOpenSM(t *testing.T) {
	need.Long(t, "OpenSM beside ibwarden, which takes its seconds")
	for _, at := range []struct{ name, openSM, ours string }{
		{"higher GUID", "H0_0", "H3_1"},
		{"lower GUID", "H3_1", "H0_0"},
		{"on a switch", "H0_0", "SP1"},
	} {
		t.Run(at.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, topologyOf(t, standbyFabric), at.ours)
			r.startOpenSM(at.openSM)
			r.waitFor("SUBNET UP")
			before := r.read(true)
			o := r.runOnce("--policy", r.file("ours.conf", ourPolicy), "--trusted-sm", portAt(t, topologyOf(t, standbyFabric), at.openSM))
			if o.status != 1 || !strings.Contains(o.stderr, "another manager is master") {
				t.Errorf("exit status %d, want 1; message\n%s%s", o.status, o.stdout, o.stderr)
			}
			if after := r.read(true); !reflect.DeepEqual(before, after) {
				t.Errorf("smpquery reads\n%+v\nbefore\n%+v", after, before)
			}
		})
	}
}

// An OpenSM that comes while ibwarden is master stands by, and the fabric
// keeps ibwarden's tables.
func TestOpenSMStandsBy(t *testing.T) {
	need.Long(t, "OpenSM beside ibwarden, which takes its seconds")
	r := newRig(t, topologyOf(t, standbyFabric), "H0_0")
	// An OpenSM as installed has SM_Key 1 and ignores managers with another.
	d := r.start("--policy", r.file("ours.conf", ourPolicy), "--sm-key", "1", "--profile", "tenant",
		"--trusted-sm", portAt(t, topologyOf(t, standbyFabric), "H3_1"))
	d.next()
	before := r.read(true)
	r.startOpenSM("H3_1")
	r.waitFor("Entering STANDBY")
	if after := r.read(true); !reflect.DeepEqual(before, after) {
		t.Errorf("smpquery reads\n%+v\nbefore\n%+v", after, before)
	}
	if err := d.end(); err != nil {
		t.Errorf("interrupted, it ended with %v", err)
	}
}

// After OpenSM has left, ibwarden takes the fabric over: the policy is its
// own, and the addresses stay.
func TestTakeOverFromOpenSM(t *testing.T) {
	need.Long(t, "OpenSM beside ibwarden, which takes its seconds")
	r := newRig(t, topologyOf(t, standbyFabric), "")
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	o, err := do(r.sim.OpenSM(ctx, "", r.file("opensm.conf", openSMPolicy), "-o"))
	if err != nil || o.status != 0 {
		t.Fatalf("opensm: status %d, %v\n%s", o.status, err, o.stderr)
	}
	before := r.read(true)
	d := r.bringUp(r.file("ours.conf", ourPolicy))
	after, meant := r.read(true), evaluate(mustRead(t, ourPolicy), r.model)
	for _, e := range r.model.ends {
		if before.ports[e].lid != after.ports[e].lid {
			t.Errorf("port %v had LID %d and has %d", e, before.ports[e].lid, after.ports[e].lid)
		}
		for _, table := range [][]uint16{after.keys[e], after.guard[e]} {
			if want := keySet(meant.table(e)); table != nil && !slices.Equal(keySet(table), want) {
				t.Errorf("port %v, or the switch port that faces it, has %s, want %s", e, keysText(table), keysText(want))
			}
		}
	}
	if d.Proof.Verdict != "isolated-by-end-ports" {
		t.Errorf("verdict %q", d.Proof.Verdict)
	}
}

// A listed OpenSM of higher rank that comes while ibwarden is master is handed the
// subnet: without M_Keys, and with them, which ports give up first. It goes no
// further here: it has told ibwarden of its rank by a trap, and does nothing until it
// is repressed, which ibsim does not pass on (test/umadtest TestTakeover has the rest).
func TestListedOpenSMOutranks(t *testing.T) {
	need.Long(t, "OpenSM beside ibwarden, which takes its seconds")
	for _, keys := range []bool{false, true} {
		t.Run(fmt.Sprintf("keys %v", keys), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, topologyOf(t, standbyFabric), "H0_0")
			args := []string{"--policy", r.file("ours.conf", ourPolicy), "--sm-key", "1", "--trusted-sm", portAt(t, topologyOf(t, standbyFabric), "H3_1")}
			if keys {
				args = append(args, "--data", filepath.Join(r.sim.Dir, "data"))
			}
			d := r.start(args...)
			d.next()
			before := r.read(true)
			r.startOpenSM("H3_1", "-p", "15")
			r.waitFor("Entering MASTER state")
			if after := r.read(true); !reflect.DeepEqual(before, after) {
				t.Errorf("smpquery reads\n%+v\nbefore\n%+v", after, before)
			}
			// Its first verdict stands: what ibsim forgets of M_Keys is in it.
			if err := d.end(); err != nil && !keys {
				t.Errorf("interrupted, it ended with %v", err)
			}
		})
	}
}
