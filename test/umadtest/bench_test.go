package umadtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// largest has 3,456 hosts on 720 switches.
const largest = "fattree,radix=24,levels=3"

// way is how a manager reaches the fabric.
type way struct {
	name string
	// command prepares the manager; r is nil in process.
	command func(ctx context.Context, r *rig, conf string) *exec.Cmd
	served  bool
	done    func(stdout, log string) bool
}

// took is what one bring-up took: by the clock, and of the processor's time for
// the manager and for the simulator, in s.
type took struct{ wall, manager, simulator float64 }

var ways = []way{
	{"in process", func(ctx context.Context, _ *rig, conf string) *exec.Cmd {
		return exec.CommandContext(ctx, must(binary()), "run", "--once", "--json", "--fabric", "sim:"+largest, "--policy", conf)
	}, false, proved},
	{"ibsim protocol", func(ctx context.Context, r *rig, conf string) *exec.Cmd {
		return exec.CommandContext(ctx, must(binary()), "run", "--once", "--json", "--fabric", "ibsim:"+r.name, "--policy", conf)
	}, true, proved},
	{"umad", func(ctx context.Context, r *rig, conf string) *exec.Cmd {
		return r.command(ctx, "", "ibwarden", "run", "--once", "--json", "--fabric", "umad", "--policy", conf)
	}, true, proved},
	{"OpenSM, umad", func(ctx context.Context, r *rig, conf string) *exec.Cmd {
		return r.command(ctx, "", "opensm", "-F", os.DevNull, "-o", "-P", conf, "-e", "-f", filepath.Join(r.dir, "bench.log"))
	}, true, func(_, log string) bool { return strings.Contains(log, "SUBNET UP") }},
}

func proved(stdout, _ string) bool { return strings.Contains(stdout, `"verdict": "isolated"`) }

// BenchmarkBringUp brings the largest fabric up by each way, and says what each
// costs beside the first.
func BenchmarkBringUp(b *testing.B) {
	needPrograms(b, "opensm")
	sums := make([]took, len(ways))
	for i, w := range ways {
		b.Run(w.name, func(b *testing.B) {
			var sum took
			for b.Loop() {
				sum.add(w.once(b))
			}
			n := float64(b.N)
			b.ReportMetric(sum.wall/n, "wall-s")
			b.ReportMetric(sum.manager/n, "manager-CPU-s")
			b.ReportMetric(sum.simulator/n, "simulator-CPU-s")
			b.ReportMetric(0, "ns/op") // making the fabric is in it
			sums[i] = took{sum.wall / n, sum.manager / n, sum.simulator / n}
			if base := sums[0]; i > 0 && base.wall > 0 {
				b.ReportMetric(sums[i].wall/base.wall, "x-wall")
				b.ReportMetric((sums[i].manager+sums[i].simulator)/base.manager, "x-CPU")
			}
		})
	}
}

func (t *took) add(o took) {
	t.wall += o.wall
	t.manager += o.manager
	t.simulator += o.simulator
}

// once measures one bring-up of a fresh fabric.
func (w *way) once(b *testing.B) (t took) {
	r := newRig(b, largest) // its topology is wanted in any case
	hosts := r.hosts()
	conf := r.file("policy.conf", policy(hosts[1:len(hosts)/2], hosts[len(hosts)/2:]))
	before := r.cpu()
	ctx, cancel := context.WithTimeout(context.Background(), 5*commandTime)
	defer cancel()
	cmd := w.command(ctx, r, conf)
	if cmd.Env == nil {
		tame(cmd, r.dir)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		b.Fatalf("%s: %v\n%s", w.name, err, stderr.String())
	}
	t.wall = time.Since(begin).Seconds()
	t.manager = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if w.served {
		t.simulator = r.cpu() - before
	}
	log, _ := os.ReadFile(filepath.Join(r.dir, "bench.log")) // OpenSM's
	if !w.done(stdout.String(), string(log)) {
		b.Fatalf("%s: the fabric is not up\n%.2000s", w.name, stdout.String())
	}
	r.kill()
	return t
}

// ticksPerSecond is the unit of times in /proc, the same on every Linux machine.
const ticksPerSecond = 100

// cpu is the processor's time that the simulator has had, in s.
func (r *rig) cpu() float64 {
	r.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
	if err != nil {
		r.Fatal(err)
	}
	// The name, in parentheses, may hold anything.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var user, system float64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		r.Fatal(err)
	}
	return (user + system) / ticksPerSecond
}
