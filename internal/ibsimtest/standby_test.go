package ibsimtest

import (
	"bytes"
	"context"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	standbyFabric = "fattree,radix=4,levels=2"
	openSMPolicy  = "Default=0x7fff : ALL=limited, SELF=full ;\nTheirs=0x0666 : 0x100003=full, 0x100005 ;\n"
	ourPolicy     = "Ours=0x0777 : ALL_CAS=full ;\n"
	// openSMWait is how long OpenSM may take to find its place.
	openSMWait = 15 * time.Second
)

// startOpenSM runs an OpenSM at the named node until the test ends.
func (r *rig) startOpenSM(host string) {
	r.Helper()
	const flushLog = "2" // a debug option: every message reaches the file at once
	cmd := r.sim.OpenSM(r.Context(), host, r.file("opensm.conf", openSMPolicy), "-d", flushLog)
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait() // killed
	})
}

// waitFor waits until OpenSM's log has the text.
func (r *rig) waitFor(text string) {
	r.Helper()
	var log []byte
	for end := time.Now().Add(openSMWait); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		log, _ = os.ReadFile(r.sim.OpenSMLog()) // it comes to be when OpenSM starts
		if bytes.Contains(log, []byte(text)) {
			return
		}
	}
	r.Fatalf("opensm did not come to %q:\n%s", text, log)
}

// While OpenSM is master, ibwarden writes nothing and says so, on whichever
// side of it its GUID is.
func TestStandbyForOpenSM(t *testing.T) {
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
			o := r.runOnce("--policy", r.file("ours.conf", ourPolicy))
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
	r := newRig(t, topologyOf(t, standbyFabric), "H0_0")
	// An OpenSM as installed has SM_Key 1 and ignores managers with another.
	d := r.start("--policy", r.file("ours.conf", ourPolicy), "--sm-key", "1")
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
