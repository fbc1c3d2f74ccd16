package ibsimd_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// proved is what `ibwarden prove --json` says, as far as this test looks.
type proved struct {
	Verdict    string           `json:"verdict"`
	Violations []struct{}       `json:"violations"`
	Packets    map[string]int64 `json:"packets"`
	SMPs       struct{ Get, Set int }
}

// tryJSON runs ibwarden, which may end with status 1, and reads what it prints.
func (a at) tryJSON(v any, args ...string) {
	a.Helper()
	path, err := ibwarden()
	if err != nil {
		a.Fatal(err)
	}
	out, err := a.try(path, args...)
	if bad := json.Unmarshal([]byte(out), v); bad != nil {
		a.Fatalf("%q: %v, %v\n%s", args, bad, err, out)
	}
}

// A fabric that OpenSM brought up, on ibsim and on the simulated fabric, is
// proved, audited, kept in a file and traced with reads alone. That is looked up
// outside: on the simulated fabric its agents count what reaches them, and ibsim
// writes down what it takes in.
func TestOpenSMIsOnlyRead(t *testing.T) {
	need.Long(t, "programs that wait for their time-outs")
	tools := needTools(t)
	l := topologyOf(t, "fattree,radix=6,levels=2")
	theirs, err := ibsimtest.StartSim(tools, workDir(t), l, ibsimtest.Record)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Stop()
	s := serve(t, l, ibsimd.Config{Fabric: fabric.DefaultConfig()})
	for _, x := range []struct {
		socket, want string
		settle       func()
		count        func() (gets, sets uint64)
	}{
		// ibsim does not keep enforcement bits.
		{theirs.Name, "isolated-by-end-ports", func() {}, func() (gets, sets uint64) {
			n, err := theirs.Requests()
			if err != nil {
				t.Fatal(err)
			}
			return uint64(n[mad.MethodGet]), uint64(n[mad.MethodSet])
		}},
		{s.Name(), "isolated-unguarded", func() { settle(t, s) }, func() (gets, sets uint64) {
			return sent(t, s, mad.MethodGet), sent(t, s, mad.MethodSet)
		}},
	} {
		a := at{TB: t, tools: tools, socket: x.socket, dir: workDir(t)}
		manager := a.openSM(partitions, up)
		x.settle()
		manager.stop()
		getsBefore, setsBefore := x.count()
		if setsBefore == 0 {
			t.Errorf("%s: OpenSM brought it up without a Set: nothing is counted", x.socket)
		}
		policy, file := filepath.Join(a.dir, "partitions.conf"), filepath.Join(a.dir, "now.snap")
		fabric := "ibsim:" + x.socket
		var live, kept proved
		a.tryJSON(&live, "prove", "--fabric", fabric, "--policy", policy, "--json")
		var any map[string]any
		a.tryJSON(&any, "snapshot", "--fabric", fabric, "-o", file, "--json")
		a.tryJSON(&any, "trace", "--fabric", fabric, "1", "2", "--json")
		audit := a.audit("--policy", policy, "--profile", "strict")
		a.tryJSON(&kept, "prove", "--snapshot", file, "--policy", policy, "--json")
		if live.Verdict != x.want || kept.Verdict != x.want || len(live.Violations) > 0 || live.Packets["delivered"] == 0 {
			t.Errorf("%s: live %+v, from the file %+v; want %s", fabric, live, kept, x.want)
		}
		if live.SMPs.Get == 0 || live.SMPs.Set != 0 {
			t.Errorf("%s: ibwarden counts %+v", fabric, live.SMPs)
		}
		if len(audit.Findings) == 0 {
			t.Errorf("%s: the audit found nothing", fabric)
		}
		gets, sets := x.count()
		if gets < getsBefore+400 || sets != setsBefore {
			t.Errorf("%s: devices got %d Gets and %d Sets from four readings", fabric, gets-getsBefore, sets-setsBefore)
		}
	}
}
