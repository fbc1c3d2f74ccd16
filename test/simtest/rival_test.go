package simtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/ibsim"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// arena is a world that is served to managers of other processes. All that
// concerns its fabric happens in turns of the server.
type arena struct {
	*world
	server *ibsimd.Server
	dir    string
	x      *exposure
	moves  int
}

// contestant is a manager that is given one tenancy after the other.
type contestant interface {
	// begin brings the fabric up.
	begin(a *arena, y tenancy)
	// change goes over to another tenancy, and reports when all is done.
	change(a *arena, y tenancy)
}

// arenaTime is how long anything here may take.
const arenaTime = time.Minute

// newArena serves a fabric.
func newArena(t *testing.T, seed, n uint64) *arena {
	t.Helper()
	list := generate(t, fmt.Sprintf("random,seed=%d,switches=%d,hosts=%d,routers=1,ca-ports=%d", seed%1000, 2+n%3, 6+n, 1+n%2))
	a := &arena{world: &world{t: t, list: list}}
	dir, err := os.MkdirTemp("/dev/shm", "ibwarden-test-") // libumad2sim makes a hundred files
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	a.dir = dir
	config := fabric.DefaultConfig()
	config.Seed, config.Trace = seed, a.trace
	a.server, err = ibsimd.Listen(list, ibsimd.Config{Socket: filepath.Base(dir), Fabric: config})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- a.server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the server ended: %v", err)
		}
		a.server.Close()
	})
	node, num, err := list.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	a.self = place{node.GUID, num}
	a.in(func(f *fabric.Fabric) { a.fabric = f })
	return a
}

// in does something in a turn of the server.
func (a *arena) in(call func(*fabric.Fabric)) {
	a.t.Helper()
	if err := a.server.Do(call); err != nil {
		a.t.Fatal(err)
	}
}

// waitFor waits until something about the fabric is true.
func (a *arena) waitFor(what string, done func() bool) {
	a.t.Helper()
	need.Eventually(a.t, arenaTime, what, func() (is bool) {
		a.in(func(*fabric.Fabric) { is = done() })
		return is
	})
}

// holdsAll reports whether every end port, and the switch port before it, holds
// what the tenancy gives it; a switch may hold full keys in place of limited ones.
func (a *arena) holdsAll(y tenancy) bool {
	self := a.selfGUID()
	for _, e := range a.ends() {
		want := y.keys(e.guid, self)
		if !slices.Equal(valid(a.table(e.place)), want) {
			return false
		}
		if p, ok := a.peer(e.place); ok && !e.isSwitch && a.agent(p.node).SwitchInfo() != nil {
			bases := func(keys []ib.PKey) (out []ib.PKeyBase) {
				for _, k := range valid(keys) {
					out = append(out, k.Base())
				}
				slices.Sort(out)
				return out
			}
			if !slices.Equal(bases(a.table(p)), bases(want)) {
				return false
			}
		}
	}
	return true
}

// conf is the tenancy as a partitions.conf.
func (y tenancy) conf() string {
	var b strings.Builder
	everybody := "limited"
	if y.full {
		everybody = "full"
	}
	fmt.Fprintf(&b, "Default=0x7fff : ALL=%s, SELF=full ;\n", everybody)
	for _, x := range y.tenants {
		var members []string
		for _, g := range x.full {
			members = append(members, fmt.Sprintf("%v=full", g))
		}
		for _, g := range x.limited {
			members = append(members, fmt.Sprintf("%v=limited", g))
		}
		if len(members) > 0 { // one a line: OpenSM cuts long lines
			fmt.Fprintf(&b, "T%d=0x%x :\n%s ;\n", x.base, uint16(x.base), strings.Join(members, ",\n"))
		}
	}
	return b.String()
}

// openSM is Debian's, told of a new partitions.conf by SIGHUP.
type openSM struct {
	tools *ibsimtest.Tools
	cmd   *exec.Cmd
}

func (o *openSM) log(a *arena) []byte {
	text, _ := os.ReadFile(filepath.Join(a.dir, "opensm.log")) // it comes to be when OpenSM starts
	return text
}

// ups is how often OpenSM says that it has configured the subnet.
func (o *openSM) ups(a *arena) int { return bytes.Count(o.log(a), []byte("SUBNET UP")) }

func (o *openSM) write(a *arena, y tenancy) string {
	conf := filepath.Join(a.dir, "partitions.conf")
	a.must(os.WriteFile(conf, []byte(y.conf()), 0o600))
	return conf
}

func (o *openSM) begin(a *arena, y tenancy) {
	settings := filepath.Join(a.dir, "opensm.conf")
	a.must(os.WriteFile(settings, []byte("part_enforce both\n"), 0o600))
	o.cmd = exec.Command(o.tools.OpenSM, ibsimtest.LogLimit, "-F", settings, "-P", o.write(a, y), "-e", "-f", filepath.Join(a.dir, "opensm.log"), "-s", "0", "-d2") // -d2: flush the log
	o.cmd.Dir, o.cmd.SysProcAttr = a.dir, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	o.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + a.dir, "IBSIM_SOCKNAME=" + a.server.Name(),
		"LD_PRELOAD=" + o.tools.Umad2sim, "OSM_TMP_DIR=" + a.dir, "OSM_CACHE_DIR=" + a.dir}
	a.must(o.cmd.Start())
	a.t.Cleanup(func() {
		_ = o.cmd.Process.Signal(syscall.SIGTERM)
		_ = o.cmd.Wait() // the log tells how it was
		if a.t.Failed() {
			a.t.Logf("OpenSM:\n%.5000s", o.log(a))
		}
	})
	a.waitFor("OpenSM brings the fabric up", func() bool { return o.ups(a) > 0 && a.holdsAll(y) })
}

func (o *openSM) change(a *arena, y tenancy) {
	before := o.ups(a)
	o.write(a, y)
	a.must(o.cmd.Process.Signal(syscall.SIGHUP))
	a.waitFor("OpenSM goes over to another partitions.conf", func() bool { return o.ups(a) > before && a.holdsAll(y) })
}

// warden is ibwarden, by its own client of the protocol.
type warden struct{ journal memory }

func (o *warden) dial(a *arena) *ibsim.Link {
	link, err := ibsim.Dial(ibsim.Environment{SockName: a.server.Name()})
	a.must(err)
	return link
}

func (o *warden) runner(a *arena, link *ibsim.Link, p *policy.Policy, hold bool) *daemon.Runner {
	return daemon.NewRunner(link, engine.Config{Routing: routing.UpDown, Hold: hold}, server.Config{}, p, silent{})
}

func (o *warden) begin(a *arena, y tenancy) {
	link := o.dial(a)
	defer link.Close()
	engine := o.runner(a, link, y.policy(), false).Engine()
	a.must(link.SetIsSM(true))
	a.must(link.Drive(a.t.Context(), engine, func() bool { return engine.Settled() && engine.Idle() }))
	a.must(link.SetIsSM(false))
	a.waitFor("ibwarden brings the fabric up", func() bool { return a.holdsAll(y) })
}

func (o *warden) change(a *arena, y tenancy) {
	direction := daemon.Forward
	for tries := 0; ; tries++ {
		err := o.attempt(a, y, direction)
		if err == nil {
			break
		}
		// A busy machine can keep an answer back for longer than any retry.
		if tries == attemptsMax || !errors.Is(err, daemon.ErrStopped) {
			a.t.Fatal(err)
		}
		direction = daemon.Resume
	}
	a.waitFor("ibwarden goes over to another policy", func() bool { return a.holdsAll(y) })
}

func (o *warden) attempt(a *arena, y tenancy, direction daemon.Direction) error {
	link := o.dial(a)
	defer link.Close()
	config, err := daemon.HeldConfig(engine.Config{Routing: routing.UpDown}, &o.journal)
	a.must(err)
	runner := daemon.NewRunner(link, config, server.Config{}, y.policy(), silent{})
	_, err = daemon.Apply(a.t.Context(), runner, daemon.ApplyOptions{
		Direction: direction, Policy: y.policy(), Journal: &o.journal,
		Approve: func(*daemon.Proposal) (bool, error) { return false, nil },
	})
	return err
}

// How many moves each of the arenas sees.
const (
	arenas         = 4
	arenaMoves     = 60
	arenaMovesSoak = 2_500
)

// contest lets a contestant go through the tenancies of a seed.
func contest(t *testing.T, seed, n uint64, moves int, c contestant) *arena {
	t.Helper()
	a := newArena(t, seed, n)
	z := &zero{world: a.world, r: rand.New(rand.NewPCG(seed, 9))}
	z.now = randomTenancy(z.r, ends(a.list), 4)
	c.begin(a, z.now)
	a.in(func(*fabric.Fabric) {
		a.x = newExposure(a.world)
		a.x.rule(z.now)
		a.arrived = nil
	})
	for a.moves < moves {
		old := z.now
		z.now = z.next()
		a.in(func(*fabric.Fabric) {
			a.x.rule(old, z.now)
			a.moves += moved(a.x.ends, a.x.self, old, z.now)
		})
		c.change(a, z.now)
		a.in(func(*fabric.Fabric) {
			a.x.rule(z.now)
			a.arrived = nil
		})
	}
	return a
}

// OpenSM and ibwarden go through the same moves on the same fabrics, with
// nothing lost and nobody killed, and between every two SMPs every packet of
// every host is tried, as in TestZeroExposure. ibwarden lets none through that
// neither policy lets; how many OpenSM does is printed beside it.
func TestExposureUnderOpenSM(t *testing.T) {
	need.Long(t, "seconds of processor time")
	tools, err := ibsimtest.FindTools()
	need.Need(t, err)
	seed, soak := soakSeed(t)
	moves := arenaMoves
	if soak {
		moves = arenaMovesSoak
	}
	t.Logf("SOAK_SEED=%d", seed)
	var of [2][arenas]*arena
	t.Run("arenas", func(t *testing.T) {
		for n := range uint64(arenas) {
			for k, c := range []contestant{&openSM{tools: tools}, &warden{}} {
				t.Run(fmt.Sprintf("%d %T", n, c), func(t *testing.T) {
					t.Parallel()
					of[k][n] = contest(t, seed+n, n, moves, c)
				})
			}
		}
	})
	if t.Failed() {
		return
	}
	for k, name := range []string{"OpenSM", "ibwarden"} {
		sum := &exposure{}
		done := 0
		for _, a := range of[k] {
			if a == nil {
				return // not all were asked for
			}
			done += a.moves
			sum.smps += a.x.smps
			sum.packets += a.x.packets
			sum.exposed += a.x.exposed
			sum.atOnce += a.x.atOnce
			if sum.first == "" {
				sum.first = a.x.first
			}
		}
		t.Logf("%-8s %d moves, %d SMPs, %d packets tried: %d got through that neither policy lets, %d of them between hosts that forge nothing",
			name, done, sum.smps, sum.packets, sum.exposed, sum.atOnce)
		if sum.exposed > 0 {
			t.Logf("         the first: %s", sum.first)
		}
		if name == "ibwarden" && sum.exposed > 0 {
			t.Error("ibwarden let packets through that neither policy lets")
		}
		if sum.smps == 0 || sum.packets == 0 || done < arenas*moves {
			t.Errorf("%s: %d moves, %d SMPs, %d packets: not what was to be seen", name, done, sum.smps, sum.packets)
		}
	}
}
