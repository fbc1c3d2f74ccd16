package umadtest

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// TestLongAnswersOverIbsim: a manager that is attached by the protocol of ibsim gives a program
// inside the whole of a long answer, of hundreds of segments.
func TestLongAnswersOverIbsim(t *testing.T) {
	need.Long(t, "answers of hundreds of segments")
	needPrograms(t, "saquery")
	r := newRig(t, "fattree,radix=12,levels=2")
	out := filepath.Join(r.dir, "run.log")
	policy := r.file("policy.yaml", "version: 1\ndefault: full\n") // who sees all asks for much
	words := []string{"sh", "-c", "exec " + must(binary()) + " run --fabric ibsim:" + r.name + " --profile basic --policy " + policy + " > " + out + " 2>&1"}
	_, stop := r.background(words, func(ctx context.Context) *exec.Cmd {
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		tame(cmd, r.dir)
		return cmd
	})
	defer stop()
	hosts := r.hosts()
	at := hosts[len(hosts)-1].ID
	r.eventually("the fabric is up", func() bool {
		return strings.HasPrefix(r.ask(at, "cat", "/sys/class/infiniband/sim0/ports/1/state"), "4:")
	})
	for _, x := range []struct{ query, record string }{{"NR", "NodeRecord dump"}, {"PIR", "PortInfoRecord dump"}} {
		want := len(r.topology.Nodes)
		if x.query == "PIR" {
			want = 0
			for _, n := range r.topology.Nodes {
				if want += len(n.Ports) - 1; n.IsEndPort(0) {
					want++ // port 0
				}
			}
		}
		o := r.run(at, "saquery", x.query)
		if got := strings.Count(o.stdout, x.record); got != want || o.status != 0 {
			t.Errorf("saquery %s: %d records, want %d; status %d, %s", x.query, got, want, o.status, o.stderr)
		}
	}
}
