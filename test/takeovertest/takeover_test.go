package takeovertest

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/inside"
	"github.com/ibwarden/ibwarden/test/need"
)

func TestExamples(t *testing.T) {
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			r := newRig(t, five(t), ibsims)
			h := hosts(r.topology)
			lines := e.lines
			path := ""
			if len(e.files) > 0 {
				path = r.file("partitions.conf", testdata(t, e.files[0]))
				lines += "partition_config_file " + path + "\n"
			}
			o := inside.StartOpenSM(t, r.dir, lines, func(words ...string) { r.start(h[0].ID, words...) })
			r.eventually("OpenSM manages", func() bool { return r.isMaster(h[0]) })
			r.quiet()
			for _, f := range e.files[min(1, len(e.files)):] {
				r.file("partitions.conf", testdata(t, f))
				r.must(o.Signal(syscall.SIGHUP))
				time.Sleep(time.Second)
				r.quiet()
			}
			before := r.read()
			keys := e.of(t, nil)
			for _, n := range h {
				want := fmt.Sprint(keys[n.ID])
				if got := before["host "+n.ID+" port 1: P_KeyTable"]; got != want {
					t.Errorf("%s under OpenSM has %s, want %s", n.ID, got, want)
				}
			}
			r.begin(keys, e.of(t, e.managed))
			r.enter("OpenSM manages", nil)
			time.Sleep(300 * time.Millisecond)
			ours := e.ours
			if ours == "" {
				ours = e.files[len(e.files)-1]
			}
			policy := r.file("ours-"+ours, testdata(t, ours))
			r.enter("takeover", nil)
			w := r.ward(h[4], append([]string{"--policy", policy, "--priority", "7", "--sm-key", "1", "--trusted-sm", h[0].Ports[1].GUID.String()}, e.flags...)...)
			r.eventually("ibwarden manages", func() bool { return strings.Contains(w.said(), "verdict") || strings.Contains(w.said(), "refused") })
			if e.refused != "" {
				t.Log(w.said())
				return
			}
			r.quiet()
			during := r.read()
			for k, n := range before.sorts(during) {
				t.Logf("there: %s: %d", k, n)
			}
			for _, d := range before.differences(during) {
				if strings.Contains(d, "P_KeyTable") || strings.Contains(d, "route to") {
					t.Log(d)
				}
			}
			r.enter("ibwarden manages", nil)
			time.Sleep(300 * time.Millisecond)
			r.enter("return", nil)
			out, err := exec.Command(must(need.Ibwarden()), "handover", "--server", "unix:"+w.socket).CombinedOutput()
			t.Logf("%s %v", out, err)
			r.eventually("OpenSM manages again", func() bool { return r.isMaster(h[0]) })
			r.quiet()
			w.stop()
			r.enter("OpenSM manages again", nil)
			time.Sleep(300 * time.Millisecond)
			after := r.read()
			for k, n := range before.sorts(after) {
				t.Logf("back: %s: %d", k, n)
			}
			for _, d := range before.differences(after) {
				if strings.Contains(d, "P_KeyTable") || strings.Contains(d, "route to") {
					t.Log("back", d)
				}
			}
			r.do(func(f *fabric.Fabric) {
				x := r.traffic
				t.Logf("%d rounds; %+v", x.rounds, x.counted)
				for _, k := range slices.Sorted(keysOf(x.writes)) {
					t.Log(k, x.writes[k])
				}
				for k, n := range x.failures {
					t.Log("FAILURE", k, n)
				}
				for _, w := range x.wrong {
					t.Log("WRONG", w)
				}
			})
			t.Log(w.said())
		})
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

var _ = ib.PKey(0)
var _ *topology.Node
