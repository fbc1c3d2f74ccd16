package scaletest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/test/need"
)

// sizes are fat trees, by their hosts. A tenant has 64 hosts.
var sizes = []struct {
	name string
	order
}{
	{"648", order{Topology: "fattree,radix=36", Tenants: 10}},
	{"3456", order{Topology: "fattree,radix=24,levels=3", Tenants: 54}},
	{"11664", order{Topology: "fattree,radix=36,levels=3", Tenants: 182}},
	{"27648", order{Topology: "fattree,radix=48,levels=3", Tenants: 432}},
	{"40960", order{Topology: "fattree,radix=64,levels=3,pods=40", Tenants: 640}},
}

// runTime bounds one process.
const runTime = 10 * time.Minute

// take has a process of its own measure.
func (o order) take(b *testing.B) (f figures) {
	b.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), runTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), orderVariable+"="+string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &f)
	}
	if err != nil {
		b.Fatalf("%s: %v\n%.2000s", o.Topology, err, stderr.String())
	}
	if f.Verdict != "isolated" {
		b.Fatalf("%s: verdict %s", o.Topology, f.Verdict)
	}
	return f
}

const mega = 1e6

// BenchmarkEmbedded brings fabrics up in one process with their manager.
func BenchmarkEmbedded(b *testing.B) {
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			for b.Loop() {
				f := size.take(b)
				b.ReportMetric(f.Whole.Wall, "wall-s")
				b.ReportMetric(f.Whole.CPU, "CPU-s")
				b.ReportMetric(f.Phases[event.PhaseDiscover].CPU, "discover-CPU-s")
				b.ReportMetric(f.Phases["forwarding tables"].CPU, "tables-CPU-s")
				b.ReportMetric(f.Routing.Wall, "routing-s")
				b.ReportMetric(f.Routing.CPU, "routing-CPU-s")
				b.ReportMetric(f.Judge.Wall, "judge-s")
				b.ReportMetric(f.Judge.CPU, "judge-CPU-s")
				b.ReportMetric(float64(f.Requests), "requests")
				b.ReportMetric(overLeast(f.Packets), "packets/least")
				b.ReportMetric(float64(f.Allocated)/mega, "allocated-MB")
				b.ReportMetric(float64(f.Allocations)/float64(f.Requests), "allocations/request")
				b.Log(packets(f.Packets))
				b.ReportMetric(float64(f.Manager)/mega, "manager-MB")
				b.ReportMetric(float64(f.Fabric+f.Topology)/mega, "fabric-MB")
				b.ReportMetric(float64(f.Peak)/mega, "peak-MB")
			}
			b.ReportMetric(0, "ns/op") // making the topology is in it
		})
	}
}

// BenchmarkMemory tells what single things take of memory, of the manager and of the
// simulated fabric: by pairs of fabrics of which one has more of them, and as much of all
// else as can be. What comes with them is known from the pairs before, and left out.
func BenchmarkMemory(b *testing.B) {
	b.Run("parts", func(b *testing.B) {
		for b.Loop() {
			base := order{Topology: "fattree,radix=24,levels=3,hosts=1728", Tenants: 27}
			few := base.take(b)
			lids, keys, hosts, ports := base, base, base, base
			lids.LMC, keys.Keys = 2, 32
			hosts.Topology, hosts.Tenants = "fattree,radix=24,levels=3", 27
			ports.Topology = "fattree,radix=28,levels=3,hosts=1728"
			manager := func(f figures) float64 { return float64(f.Manager) }
			fabric := func(f figures) float64 { return float64(f.Fabric + f.Topology) }
			for who, of := range map[string]func(figures) float64{"manager": manager, "fabric": fabric} {
				more := lids.take(b)
				entry := (of(more) - of(few)) / float64(more.LFT-few.LFT)
				b.ReportMetric(entry, who+"-B/LFT-entry")
				more = keys.take(b)
				key := (of(more) - of(few)) / float64(more.PKeys-few.PKeys)
				b.ReportMetric(key, who+"-B/P_Key")
				rest := func(f figures) float64 {
					return of(f) - of(few) - entry*float64(f.LFT-few.LFT) - key*float64(f.PKeys-few.PKeys)
				}
				more = hosts.take(b)
				b.ReportMetric(rest(more)/float64(more.Hosts-few.Hosts), who+"-B/host")
				more = ports.take(b)
				b.ReportMetric(rest(more)/float64(more.Ports-few.Ports), who+"-B/switch-port")
			}
		}
		b.ReportMetric(0, "ns/op")
	})
}

// BenchmarkOverIbsim brings fabrics up that another process serves.
func BenchmarkOverIbsim(b *testing.B) {
	program, err := need.Ibwarden()
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range sizes {
		b.Run(size.name, func(b *testing.B) {
			for b.Loop() {
				served(b, program, size.order)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// served measures a server and a manager.
func served(b *testing.B, program string, o order) {
	b.Helper()
	dir := b.TempDir()
	conf := filepath.Join(dir, "partitions.conf")
	text, err := o.conf()
	if err == nil {
		err = os.WriteFile(conf, text, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), runTime)
	defer cancel()
	name := fmt.Sprintf("scaletest%d", os.Getpid())
	server := exec.CommandContext(ctx, program, "sim", o.Topology, "--socket", name, "--no-console")
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	ready, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		b.Fatalf("the server does not begin: %v", err)
	}
	manager := exec.CommandContext(ctx, program, "run", "--once", "--json", "--quarantine", "0s", "--routing", "ftree", "--fabric", "ibsim:"+name, "--policy", conf, "--data", filepath.Join(dir, "data"))
	manager.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	began := time.Now()
	var stderr bytes.Buffer
	manager.Stderr = &stderr
	out, err := manager.Output()
	wall := time.Since(began)
	_ = server.Process.Signal(os.Interrupt)
	_ = server.Wait() // it was interrupted
	if err != nil || !strings.Contains(string(out), `"verdict": "isolated"`) {
		b.Fatalf("%v\n%.2000s\n%.2000s", err, out, stderr.String())
	}
	b.ReportMetric(wall.Seconds(), "wall-s")
	for who, cmd := range map[string]*exec.Cmd{"manager": manager, "server": server} {
		s := cmd.ProcessState
		b.ReportMetric((s.UserTime() + s.SystemTime()).Seconds(), who+"-CPU-s")
		b.ReportMetric(float64(s.SysUsage().(*syscall.Rusage).Maxrss)*1024/mega, who+"-peak-MB")
	}
}
