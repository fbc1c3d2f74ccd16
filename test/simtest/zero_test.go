package simtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/test/need"
)

// memory is a journal that outlives the managers of a test.
type memory struct{ entry *daemon.Entry }

func (m *memory) Load() (*daemon.Entry, error) { return m.entry, nil }

func (m *memory) Begin(e *daemon.Entry) error {
	m.entry = e
	return nil
}

func (m *memory) Note(n daemon.Note) error {
	m.entry.Notes = append(m.entry.Notes, n)
	return nil
}

// silent watches a runner and says nothing.
type silent struct{}

func (silent) Event(event.Event)       {}
func (silent) Progress(string, uint64) {}

// zero is the harness: a fabric whose policy is changed again and again, by
// managers that are killed, with hostile hosts.
type zero struct {
	*world
	r         *rand.Rand
	x         *exposure
	now       tenancy
	journal   memory
	moves     int
	changes   int
	kills     int
	stops     int
	rollbacks int
	flutters  int
	profile   protect.Profile
	deal      func() tenancy // in place of next, when set
}

// killAfter lets a context end after so many Sets and answers to them.
func (z *zero) killAfter(n int) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	sets, left := false, n
	z.watch = func(a arrival) {
		z.x.arrived(a)
		sets = sets || a.Method == mad.MethodSet
		if sets && n > 0 {
			if left--; left == 0 {
				z.kills++
				cancel()
			}
		}
	}
	return ctx, func() {
		cancel()
		z.watch = z.x.arrived
	}
}

// attempt runs apply once; it is killed after n SMPs from its first Set on, 0
// for never.
func (z *zero) attempt(d daemon.Direction, p *policy.Policy, n int) (*daemon.Applied, error) {
	link, err := inproc.New(z.fabric, z.self.node, z.self.num, false)
	if err != nil {
		return nil, err
	}
	defer link.Close()
	config, err := daemon.HeldConfig(engine.Config{Routing: routing.UpDown, Profile: z.profile}, &z.journal)
	if err != nil {
		return nil, err
	}
	ctx, end := z.killAfter(n)
	defer end()
	if p == nil {
		p = &policy.Policy{Default: policy.Limited}
	}
	return daemon.Apply(ctx, daemon.NewRunner(link, config, server.Config{}, p, silent{}), daemon.ApplyOptions{
		Direction: d, Policy: p, Batch: z.r.IntN(3), Journal: &z.journal,
		Approve: func(*daemon.Proposal) (bool, error) { return z.r.IntN(2) == 0, nil },
	})
}

// attemptsMax bounds how often one change may be killed.
const attemptsMax = 30

// change goes over to another tenancy, come what may; or back.
func (z *zero) change(next tenancy) {
	z.t.Helper()
	old := z.now
	z.x.rule(old, next)
	z.changes++
	z.moves += moved(z.ends(), z.selfGUID(), old, next)
	kill := 0
	if z.r.IntN(3) > 0 {
		kill = 1 + z.r.IntN(8)
	}
	direction, p := daemon.Forward, next.policy()
	z.now = next
	for tries := 0; ; tries++ {
		if tries == attemptsMax { // somebody cannot be reached: let it go
			kill = 0
			z.quieten()
		}
		out, err := z.attempt(direction, p, kill)
		if err == nil && out.Proof.Verdict.Holds() {
			break
		}
		if tries > attemptsMax {
			z.t.Fatalf("%s does not end: %v", direction, err)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			z.stops++
		}
		if z.journal.entry == nil || z.journal.entry.Finished() {
			if direction != daemon.Forward {
				break // killed when all was done
			}
			continue // nothing was written yet, or all was
		}
		if direction != daemon.Rollback && z.r.IntN(4) == 0 {
			direction, p, z.now = daemon.Rollback, nil, old
			z.rollbacks++
		} else if direction == daemon.Forward {
			direction, p = daemon.Resume, nil
		}
	}
	z.x.rule(z.now)
}

// moved counts the end ports whose part in any partition changes.
func moved(ends []end, self ib.PortGUID, a, b tenancy) (n int) {
	for _, e := range ends {
		if !slices.Equal(a.keys(e.guid, self), b.keys(e.guid, self)) {
			n++
		}
	}
	return n
}

// next makes another tenancy of the present one: all new, a few moves, or the
// same partitions with their keys dealt again.
func (z *zero) next() tenancy {
	all := ends(z.list)
	switch z.r.IntN(4) {
	case 0:
		return randomTenancy(z.r, all, 1+z.r.IntN(5))
	case 1: // keys are recycled
		y := tenancy{full: z.now.full}
		for _, i := range z.r.Perm(len(z.now.tenants)) {
			t := z.now.tenants[i]
			t.base = z.now.tenants[len(y.tenants)].base
			y.tenants = append(y.tenants, t)
		}
		return y
	}
	y := z.now
	for range 1 + z.r.IntN(3) {
		if len(y.tenants) < 2 {
			return randomTenancy(z.r, all, 4)
		}
		from, to := y.tenants[z.r.IntN(len(y.tenants))], y.tenants[z.r.IntN(len(y.tenants))]
		if len(from.full) > 0 && from.base != to.base {
			g := from.full[z.r.IntN(len(from.full))]
			y = y.move(g, from.base, to.base).without(g, to.base)
		}
	}
	return y
}

// without leaves a port in a partition once, as a full member.
func (y tenancy) without(g ib.PortGUID, base ib.PKeyBase) tenancy {
	for i := range y.tenants {
		x := &y.tenants[i]
		if x.base != base {
			continue
		}
		other := func(h ib.PortGUID) bool { return h == g }
		x.limited = slices.DeleteFunc(slices.Clone(x.limited), other)
		x.full = append(slices.DeleteFunc(slices.Clone(x.full), other), g)
	}
	return y
}

// zeroMoves is how many moves one of the worlds makes: together 100,000 in a
// long run, and a share of it else.
const (
	zeroWorlds    = 8
	zeroMovesSoak = 12_500
	zeroMoves     = 320
)

// soakSeed gives long runs another seed each time, unless one is asked for.
func soakSeed(t *testing.T) (seed uint64, soak bool) {
	if os.Getenv("IBWARDEN_SOAK") == "" {
		return 1, false
	}
	if s := os.Getenv("SOAK_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatalf("SOAK_SEED: %v", err)
		}
		return n, true
	}
	return rand.Uint64(), true
}

// While policies are applied one after another, with loss and delays, by
// managers that are killed and followed by others, no packet gets through that
// neither policy lets, not even between hosts that forge their tables.
func TestZeroExposure(t *testing.T) {
	seed, soak := soakSeed(t)
	want := need.Share(zeroMoves/4, zeroMoves)
	if soak {
		want = zeroMovesSoak
	}
	t.Logf("SOAK_SEED=%d", seed)
	for n := range uint64(zeroWorlds) {
		t.Run(fmt.Sprintf("world %d", n), func(t *testing.T) {
			t.Parallel()
			z := newZero(t, seed+n, n)
			for z.moves < want && !t.Failed() {
				z.disturb()
				z.change(z.next())
				z.checkKeysIn(z.now)
				z.x.check(t)
			}
			t.Logf("%d moves in %d changes, %d kills, %d stops, %d rolled back; %d SMPs, %d packets tried, %d exposed",
				z.moves, z.changes, z.kills, z.stops, z.rollbacks, z.x.smps, z.x.packets, z.x.exposed)
		})
	}
}

func newZero(t *testing.T, seed, n uint64) *zero {
	t.Helper()
	list := generate(t, fmt.Sprintf("random,seed=%d,switches=%d,hosts=%d,routers=1,ca-ports=%d", seed%1000, 2+n%3, 6+n, 1+n%2))
	r := rand.New(rand.NewPCG(seed, 6))
	y := randomTenancy(r, ends(list), 4)
	s := setup{list: list, policy: y.policy()}
	s.fabric.Seed = seed
	if n%4 == 3 {
		s.fabric.Profile = mixed(seed, 256)
	}
	w := bringUp(t, s)
	w.calm()
	w.stop()
	z := &zero{world: w, r: r, now: y}
	z.x = newExposure(w)
	z.x.rule(y)
	return z
}

// disturb sets loss and delays for the next change.
func (z *zero) disturb() {
	z.arrivedForget()
	z.must(z.fabric.SetLoss([]float64{0, 0.01, 0.05}[z.r.IntN(3)]))
	z.flutters++
	z.flutter(z.flutters)
}

// flutter lets the delays of devices change every so often, so that packets
// overtake each other, until somebody else does.
func (z *zero) flutter(turn int) {
	if z.flutters != turn {
		return
	}
	for _, n := range z.list.Nodes {
		late := time.Duration(0)
		if z.r.IntN(6) == 0 {
			late = time.Duration(z.r.IntN(lateMax)) * time.Microsecond
		}
		z.must(z.fabric.SetFault(n.GUID, fabric.Fault{Late: late}))
	}
	after := lateMax * time.Microsecond / 4
	if z.fabric.InFlight() == 0 {
		after = idleFlutter
	}
	z.fabric.At(z.fabric.Now()+after, func() { z.flutter(turn) })
}

// lateMax, in microseconds, is several of the time-outs that a manager of this
// fabric begins with.
const lateMax = 300

// idleFlutter is how often delays change while no packet is under way.
const idleFlutter = 20 * time.Millisecond

// quieten ends loss and delays.
func (z *zero) quieten() {
	z.flutters++
	z.must(z.fabric.SetLoss(0))
	for _, n := range z.list.Nodes {
		z.must(z.fabric.SetFault(n.GUID, fabric.Fault{}))
	}
}

func (z *zero) arrivedForget() { z.arrived = z.arrived[:0] }

// checkKeysIn: every end port holds what the tenancy gives it.
func (z *zero) checkKeysIn(y tenancy) {
	z.t.Helper()
	self := z.selfGUID()
	for _, e := range z.ends() {
		if got, want := valid(z.table(e.place)), y.keys(e.guid, self); !slices.Equal(got, want) {
			z.t.Fatalf("after %d changes %s holds %v, want %v", z.changes, e.name, got, want)
		}
	}
}

// The harness sees what a careless manager does: one that gives before it
// takes away.
func TestExposureIsSeen(t *testing.T) {
	list := generate(t, "demo")
	all := hosts(list)
	y := halves(all)
	w := bringUp(t, setup{list: list, policy: y.policy()})
	w.calm()
	w.stop()
	z := &zero{world: w, r: rand.New(rand.NewPCG(1, 1)), now: y}
	z.x = newExposure(w)
	next := y.move(all[1], 0x10, 0x20).move(all[len(all)-1], 0x20, 0x10)
	z.x.rule(y, next)
	careless, err := inproc.New(w.fabric, w.self.node, w.self.num, false)
	if err != nil {
		t.Fatal(err)
	}
	runner := daemon.NewRunner(careless, engine.Config{Routing: routing.UpDown, Hold: true}, server.Config{}, next.policy(), silent{})
	engine := runner.Engine()
	rest := func() bool { return engine.Settled() && engine.Idle() }
	if err := careless.Drive(t.Context(), engine, rest); err != nil {
		t.Fatal(err)
	}
	s, err := engine.Predict(next.policy())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range engine.Fabric().EndPorts() { // what is to come beside what is
		for _, q := range []*observed.Port{p, p.Peer} {
			if want := s.Tables.Port(q); want.PKeys != nil {
				want.PKeys = append(slices.Clone(q.PKeys[:8]), want.PKeys...)
			}
			if p.IsEnd() && p.Peer == nil {
				break
			}
		}
	}
	if err := engine.Carry(s.Tables); err != nil {
		t.Fatal(err)
	}
	if err := careless.Drive(t.Context(), engine, rest); err != nil {
		t.Fatal(err)
	}
	z.x.settle()
	if z.x.exposed == 0 || z.x.atOnce == 0 {
		t.Errorf("%d packets exposed, %d without forging: want some of both", z.x.exposed, z.x.atOnce)
	}
	t.Logf("%d packets exposed, the first: %s", z.x.exposed, z.x.first)
}
