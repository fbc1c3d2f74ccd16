package takeovertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	_ "github.com/ibwarden/ibwarden/internal/app/cli" // the program that is built: go test keeps no result of another one
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/simserve/umadfs"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

func TestMain(m *testing.M) { os.Exit(need.Main(m)) }

var rigs atomic.Uint32

// rig is a fabric that is served as `ibwarden sim --devices` serves it, by this process,
// so that packets of hosts can be sent and judged between any two of the managers'.
type rig struct {
	*testing.T
	name, dir string
	topology  *topology.Netlist
	server    *ibsimd.Server
	traffic   *traffic
}

// newRig serves a fabric; capacity says how large the tables of its devices are.
func newRig(t *testing.T, l *topology.Netlist, capacity func(*topology.Node, *sma.Config)) *rig {
	t.Helper()
	ibsimtest.Need(t, "opensm", "sminfo")
	r := &rig{T: t, name: fmt.Sprintf("takeover-%d-%d", os.Getpid(), rigs.Add(1)), dir: ibsimtest.Dir(t), topology: l, traffic: newTraffic(l)}
	c := fabric.DefaultConfig()
	c.Profile = capacity
	c.Drop, c.DataTrace = r.traffic.leaves, r.traffic.seen
	var err error
	if r.server, err = ibsimd.Listen(l, ibsimd.Config{Socket: r.name, Fabric: c}); err != nil {
		t.Fatal(err)
	}
	devices, err := umadfs.Listen(r.name, r.server)
	if err != nil {
		r.server.Close()
		t.Fatal(err)
	}
	r.server.Accompany(devices)
	r.server.Accompany(r.traffic)
	ctx, end := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = devices.Serve(ctx) }) // it ends with the context
	all.Go(func() { _ = r.server.Serve(ctx) })
	t.Cleanup(func() {
		end()
		all.Wait()
		r.server.Close()
	})
	r.do(func(f *fabric.Fabric) { r.traffic.fabric = f })
	return r
}

// do uses the fabric.
func (r *rig) do(call func(*fabric.Fabric)) {
	r.Helper()
	if err := r.server.Do(call); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) command(ctx context.Context, node string, words ...string) *exec.Cmd {
	cmd, err := ibsimtest.Command(ctx, r.name, r.dir, node, words...)
	if err != nil {
		r.Fatal(err)
	}
	return cmd
}

// run runs a program at a host to its end.
func (r *rig) run(node string, words ...string) ibsimtest.Output {
	r.Helper()
	return ibsimtest.Finish(r, words, func(ctx context.Context) *exec.Cmd { return r.command(ctx, node, words...) })
}

// start runs a program at a host until stop is called, or the test ends.
func (r *rig) start(node string, words ...string) (stop func()) {
	r.Helper()
	_, stop = ibsimtest.Background(r, words, func(ctx context.Context) *exec.Cmd { return r.command(ctx, node, words...) })
	return stop
}

// file writes a file into the directory of the test.
func (r *rig) file(name, content string) string {
	r.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		r.Fatal(err)
	}
	return path
}

func (r *rig) eventually(what string, is func() bool) {
	r.Helper()
	if !ibsimtest.Within(patience, is) {
		r.Fatalf("after %v still not: %s", patience, what)
	}
}

// hosts are the CAs of the topology, in its order.
func hosts(l *topology.Netlist) (out []*topology.Node) {
	for _, n := range l.Nodes {
		if n.Type == ib.NodeCA {
			out = append(out, n)
		}
	}
	return out
}

// isMaster reports whether the manager at a host is master, as the program sminfo
// there says, and every end port was told of it.
func (r *rig) isMaster(at *topology.Node) bool {
	r.Helper()
	told := true
	r.do(func(f *fabric.Fabric) {
		lid := f.Agent(at.GUID).Port(1).LID
		for _, n := range r.topology.Nodes {
			num := ib.PortNum(1)
			if n.Type == ib.NodeSwitch {
				num = 0
			}
			told = told && lid != 0 && f.Agent(n.GUID).Port(num).MasterSMLID == lid
		}
	})
	if !told {
		return false
	}
	return regexp.MustCompile(fmt.Sprintf(`sm guid 0x%x, .* SMINFO_MASTER`, uint64(at.Ports[1].GUID))).MatchString(r.run(at.ID, "sminfo").Stdout)
}

// patience is how long a test waits for something to become true.
const patience = time.Minute

// calm is how long nobody has to have sent a Set for a manager to be done.
const calm = 400 * time.Millisecond

// quiet waits until no device was sent a Set for a while.
func (r *rig) quiet() {
	r.Helper()
	last, since := uint64(0), time.Now()
	r.eventually("no Set is sent any more", func() bool {
		var sets uint64
		r.do(func(*fabric.Fabric) { sets = r.traffic.sets })
		if sets != last {
			last, since = sets, time.Now()
		}
		return time.Since(since) > calm
	})
}

// warden is an ibwarden that runs.
type warden struct {
	r           *rig
	stop        func()
	out, socket string
}

// ward starts an ibwarden at a host, whose output is kept.
func (r *rig) ward(at *topology.Node, flags ...string) *warden {
	r.Helper()
	w := &warden{r: r, out: filepath.Join(r.dir, fmt.Sprintf("ibwarden-%d.out", rigs.Add(1))), socket: filepath.Join(r.dir, "service.sock")}
	path, err := need.Ibwarden()
	if err != nil {
		r.Fatal(err)
	}
	words := append([]string{path, "run", "--fabric", "umad", "--data", filepath.Join(r.dir, "data"), "--socket", w.socket}, flags...)
	for i := range words {
		words[i] = "'" + words[i] + "'"
	}
	// The signal that ends it goes to the shell, which tells it.
	w.stop = r.start(at.ID, "sh", "-c", fmt.Sprintf("%s > %s 2>&1 & trap \"kill $!\" TERM; wait $!; wait $!; printf %%s '%s' >> %s", strings.Join(words, " "), w.out, ended, w.out))
	r.Cleanup(func() {
		if r.Failed() {
			r.Logf("ibwarden:\n%s", w.said())
		}
	})
	return w
}

func (w *warden) said() string {
	text, _ := os.ReadFile(w.out) // it may not have started
	return string(text)
}

// ended reports whether it has ended by itself.
func (w *warden) ended() bool { return strings.HasSuffix(w.said(), ended) }

// ended is what is written behind the output of an ibwarden that has ended.
const ended = "the shell: ibwarden has ended\n"
