package simtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/test/need"
)

// longestLag is how long an agent may keep a packet: a little less than what a
// manager reckons with, so that a packet and its answer are under way for no
// longer than the quarantine.
const longestLag = 900 * time.Millisecond

// lag lets some agents take their time, others than before every so often, so
// that copies of a write are sent and lie about for long, while the next process
// is at work.
func (z *zero) lag(turn int) {
	if z.flutters != turn {
		return
	}
	for _, n := range z.list.Nodes {
		late := time.Duration(0)
		if z.r.IntN(3) == 0 {
			late = time.Duration(z.r.Int64N(int64(longestLag)))
		}
		z.must(z.fabric.SetFault(n.GUID, fabric.Fault{Late: late}))
	}
	after := lateMax * time.Microsecond / 10
	if z.fabric.InFlight() == 0 {
		after = idleFlutter
	}
	z.fabric.At(z.fabric.Now()+after, func() { z.lag(turn) })
}

// forgetful makes a change with a journal that begins and ends with this
// process, which waits for pause first and is killed after n SMPs, 0 for never.
func (z *zero) forgetful(y tenancy, pause time.Duration, n int) error {
	link, err := inproc.New(z.fabric, z.self.node, z.self.num, false)
	if err != nil {
		return err
	}
	defer link.Close()
	var journal memory
	config, err := daemon.HeldConfig(engine.Config{Routing: routing.UpDown, Pause: pause}, &journal)
	if err != nil {
		return err
	}
	ctx, end := z.killAfter(n)
	defer end()
	p := y.policy()
	out, err := daemon.Apply(ctx, daemon.NewRunner(link, config, server.Config{}, p, silent{}), daemon.ApplyOptions{
		Policy: p, Journal: &journal, Approve: func(*daemon.Proposal) (bool, error) { return false, nil },
	})
	if err == nil && !out.Proof.Verdict.Holds() {
		err = fmt.Errorf("ended as %s", out.Proof.Verdict)
	}
	return err
}

// wrong counts the end ports that do not hold what a tenancy gives them.
func (z *zero) wrong(y tenancy) (n int) {
	self := z.selfGUID()
	for _, e := range z.ends() {
		if !slices.Equal(valid(z.table(e.place)), y.keys(e.guid, self)) {
			n++
		}
	}
	return n
}

// successions lets a manager be killed in the middle of a change, and another
// one, who knows nothing of it, make another change, again and again. It returns how often
// what the second had proved was undone.
func (z *zero) successions(rounds int, pause time.Duration) (undone int) {
	z.t.Helper()
	for range rounds {
		z.arrivedForget()
		z.flutters++
		z.lag(z.flutters)
		old := z.now
		z.now = z.next()
		first := z.now
		z.x.rule(old, first)
		if err := z.forgetful(first, pause, 1+z.r.IntN(12)); err != nil && !errors.Is(err, context.Canceled) {
			z.stops++
		}
		z.quieten() // for what is sent from now on
		z.now = z.next()
		z.x.rule(old, first, z.now)
		for tries := 0; ; tries++ {
			err := z.forgetful(z.now, pause, 0)
			if err == nil {
				break
			}
			if z.stops++; tries == attemptsMax {
				z.t.Fatalf("does not end: %v", err)
			}
		}
		z.x.rule(z.now)
		z.fabric.AdvanceTo(z.fabric.Now() + 2*daemon.Quarantine()) // everything lands
		z.x.settle()
		undone += min(z.wrong(z.now), 1)
		for z.wrong(z.now) > 0 { // put right for the next round
			z.must(z.forgetful(z.now, daemon.Quarantine(), 0))
		}
		z.changes++
	}
	return undone
}

// A manager that knows nothing of one that was killed before it waits until what
// that one sent must have landed: nothing that it has proved is undone by a
// late copy, and nobody is exposed.
func TestRestartWithoutJournal(t *testing.T) {
	seed, soak := soakSeed(t)
	rounds := need.Share(4, 12)
	if soak {
		rounds = 600
	}
	t.Logf("SOAK_SEED=%d", seed)
	for n := range uint64(4) {
		t.Run(fmt.Sprintf("world %d", n), func(t *testing.T) {
			t.Parallel()
			z := newZero(t, seed+n, 4*(n%2)+n)
			if undone := z.successions(rounds, daemon.Quarantine()); undone > 0 {
				t.Errorf("%d of %d changes were undone by what a killed manager had sent", undone, rounds)
			}
			z.x.check(t)
			t.Logf("%d successions, %d kills, %d stops; %d SMPs, %d exposed", z.changes, z.kills, z.stops, z.x.smps, z.x.exposed)
		})
	}
}

// The harness sees what happens without the wait.
func TestLateCopiesAreSeen(t *testing.T) {
	need.Long(t, "96 successions, one by one")
	undone, exposed := 0, 0
	for n := range uint64(4) {
		z := newZero(t, 1+n, 4*(n%2)+n)
		undone += z.successions(24, 0)
		z.x.settle()
		exposed += z.x.exposed
	}
	t.Logf("%d of 96 changes undone, %d packets exposed", undone, exposed)
	if undone == 0 && exposed == 0 {
		t.Error("late copies did nothing: the test above shows nothing")
	}
}

// A process that has never seen who is behind a link that carries data gives
// nobody what that one may use: not by apply, which refuses, and not by run,
// which says so and gives it once it has an answer.
func TestNothingIsGivenNextToASilentDevice(t *testing.T) {
	z, next, moved := applyWorld(t) // all[1] goes over to 0x20
	all := hosts(z.list)
	last, _, _ := z.fabric.EndPort(all[len(all)-1]) // is in 0x20
	z.must(z.fabric.SetFault(last, fabric.Fault{Mute: true}))
	z.x.rule(z.now, next)
	before := z.fabric.Received(mad.MethodSet, smp.AttrPKeyTable)
	if _, err := z.applied(daemon.Forward, next.policy(), false, nil); !errors.Is(err, daemon.ErrUnread) {
		t.Errorf("apply beside a silent device: %v, want %v", err, daemon.ErrUnread)
	}
	if n := z.fabric.Received(mad.MethodSet, smp.AttrPKeyTable); n != before {
		t.Errorf("%d tables were written", n-before)
	}
	z.start(next.policy())
	z.settle()
	if k := ib.PKeyBase(0x20); slices.ContainsFunc(z.table(moved), func(e ib.PKey) bool { return e.Base() == k }) {
		t.Errorf("%v was given while somebody unknown may use it: %v", k, z.table(moved))
	}
	if z.result().Failures == 0 {
		t.Error("nothing is said of it")
	}
	z.must(z.fabric.SetFault(last, fabric.Fault{}))
	z.run(3 * engine.DefaultDriftPeriod)
	z.settle()
	if n := z.wrong(next); n > 0 {
		t.Errorf("%d end ports do not hold what they should once everybody answers", n)
	}
	z.x.check(t)
}

// A manager with a quarantine writes nothing and reads no table before it is over, and
// reads afterwards whatever a manager writes, even if it had read it before. Meanwhile it
// finds out who is there.
func TestQuarantine(t *testing.T) {
	pause := daemon.Quarantine()
	list := generate(t, "demo")
	for name, profile := range map[string]protect.Profile{"one M_Key, or none": protect.None, "M_Keys of their own": protect.Tenant} {
		t.Run(name, func(t *testing.T) {
			y := halves(hosts(list))
			w := newWorld(t, setup{list: list, policy: y.policy(), manager: engine.Config{Profile: profile}})
			w.settle()
			w.manager.Pause = pause
			began := w.fabric.Now()
			w.restart(y.policy())
			w.settle()
			if w.result() == nil {
				t.Fatal("no result")
			}
			early, late := map[mad.AttributeID]int{}, map[place]bool{}
			for _, a := range w.arrived {
				after := a.at >= began+pause
				if a.Method == mad.MethodSet && !after {
					t.Errorf("%v after its start: a Set of %s", a.at-began, smp.AttributeName(a.AttributeID))
				}
				if a.Method != mad.MethodGet || a.AttributeID == smp.AttrSMInfo {
					continue
				}
				if !after {
					early[a.AttributeID]++
				} else if a.AttributeID == smp.AttrPortInfo {
					num := ib.PortNum(a.AttributeModifier)
					if num == 0 {
						num = a.in
					}
					late[place{a.node, num}] = true
				}
			}
			for _, x := range []mad.AttributeID{smp.AttrNodeInfo, smp.AttrPortInfo, smp.AttrSwitchInfo} {
				if early[x] == 0 {
					t.Errorf("%s is not read meanwhile", smp.AttributeName(x))
				}
			}
			for x := range early {
				if x != smp.AttrNodeInfo && x != smp.AttrNodeDescription && x != smp.AttrPortInfo && x != smp.AttrSwitchInfo {
					t.Errorf("%s is read too early", smp.AttributeName(x))
				}
			}
			for _, n := range w.engine.Fabric().Nodes {
				for i := range n.Ports {
					if p := &n.Ports[i]; p.Reached && p.Num != 0 && !late[place{p.Node.GUID(), p.Num}] {
						t.Errorf("PortInfo of %s is not read again", p)
					}
				}
			}
		})
	}
	t.Run("nobody has managed it", func(t *testing.T) {
		w := newWorld(t, setup{list: list, manager: engine.Config{Pause: pause}, policy: halves(hosts(list)).policy()})
		w.settle()
		if w.result() == nil || w.fabric.Now() >= pause {
			t.Errorf("the verdict came at %v, want before %v", w.fabric.Now(), pause)
		}
	})
}

// A subnet counts as managed, and the quarantine is kept, from the first thing on that a
// manager leaves there, whichever that is.
func TestQuarantineAfterALittle(t *testing.T) {
	need.Long(t, "seconds of processor time")
	pause := daemon.Quarantine()
	list := generate(t, "demo")
	y := halves(hosts(list))
	sets := func(w *world) (n int) { return len(w.sets()) }
	all := bringUp(t, setup{list: list, policy: y.policy()})
	total := sets(all)
	if total == 0 {
		t.Fatal("no Sets")
	}
	for n := 1; n <= total; n += 1 + total/40 {
		w := newWorld(t, setup{list: list, policy: y.policy()})
		w.until("some Sets", func() bool { return sets(w) >= n })
		gives := slices.ContainsFunc(w.sets(smp.AttrPKeyTable), func(a arrival) bool {
			var k smp.PKeyTable
			return k.UnmarshalBinary(a.Data[:]) == nil && len(valid(k.Keys[:])) > 1
		})
		w.manager.Pause = pause
		w.restart(y.policy())
		began := w.fabric.Now()
		w.settle()
		if gives && w.fabric.Now() < began+pause {
			t.Errorf("after %d of %d Sets, some of which gave keys, it did not wait", n, total)
		}
	}
}
