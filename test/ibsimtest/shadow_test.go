package ibsimtest

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/judge/shadow"
	"github.com/ibwarden/ibwarden/test/need"
)

// TestShadowBesideOpenSM: a run that only reads tells when OpenSM joined two hosts that its policy
// keeps apart, and when it parted them, and sends nothing but SubnGet.
func TestShadowBesideOpenSM(t *testing.T) {
	need.Long(t, "OpenSM brings a fabric up twice; simtest has the same beside a manager of ours")
	r := newRig(t, topologyOf(t, standbyFabric), "", Record)
	const (
		joined = "Default=0x7fff : ALL=limited, SELF=full ;\nA=0x10 : 0x100003=full, 0x100005=full ;\n"
		apart  = "Default=0x7fff : ALL=limited, SELF=full ;\nA=0x10 : 0x100003=full ;\nB=0x20 : 0x100005=full ;\n"
	)
	r.openSMTakes(joined)
	sets := r.sets()
	dir, policy := filepath.Join(r.sim.Dir, "kept"), r.file("policy.conf", apart)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := r.sim.Command(t.Context(), "", path, "run", "--read-only", "--fabric", "ibsim:"+r.sim.Name, "--policy", policy, "--data", dir, "--sweep-interval", "100ms", "--drift-period", "200ms")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var d shadow.Summary
	report := func() bool {
		o := r.warden("show", "shadow", "--data", dir, "--json")
		return o.status == 0 && json.Unmarshal([]byte(o.stdout), &d) == nil
	}
	exposure := func() (found []shadow.Span) {
		for _, s := range d.Spans {
			if s.Kind == shadow.Exposure {
				found = append(found, s)
			}
		}
		return found
	}
	need.Eventually(t, time.Minute, "three readings", func() bool { return report() && d.Rounds > 2 })
	if now := r.sets(); now != sets {
		t.Errorf("%d SubnSet were sent, want none", now-sets)
	}
	if x := exposure(); len(x) != 1 || x[0].A.GUID != 0x100003 || x[0].B.GUID != 0x100005 || !x[0].Ended.IsZero() || d.Incomplete != 0 || d.Writes == nil || d.Writes.Blocks == 0 {
		t.Fatalf("want one exposure, of 0x100003 and 0x100005, and writes: %+v", d)
	}
	r.openSMTakes(apart)
	need.Eventually(t, time.Minute, "the exposure is over", func() bool { return report() && !exposure()[0].Ended.IsZero() })
	if x := exposure(); len(x) != 1 {
		t.Errorf("want one exposure: %+v", x)
	}
}

// sets is how many SubnSet ibsim has seen.
func (r *rig) sets() int {
	r.Helper()
	seen, err := r.sim.Requests()
	if err != nil {
		r.Fatal(err)
	}
	if seen[mad.MethodGet] == 0 {
		r.Fatal("the simulator recorded no SubnGet")
	}
	return seen[mad.MethodSet]
}
