package simtest

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// keeper drives a manager as a daemon does that keeps its book, and stops giving
// out packets when it is killed.
type keeper struct {
	*engine.Engine
	kept    *[]byte // the book as it is on the disk
	version uint64
	// life is how many more packets of a rotation leave; they count while
	// rotating reports true.
	life     int
	rotating func() bool
	dead     bool
	broken   *error // why the book cannot be kept, if that is not nil
}

func (k *keeper) keep() {
	b := k.Keys()
	if b.Version() == k.version {
		return
	}
	if k.broken != nil && *k.broken != nil {
		k.KeysNotKept(*k.broken)
		return
	}
	if data, err := json.Marshal(b); err == nil {
		*k.kept, k.version = data, b.Version()
		k.KeysKept(k.version)
	}
}

func (k *keeper) Next(now time.Duration, p *mad.SMP) (ib.LID, bool) {
	if k.dead {
		return 0, false
	}
	lid, ok := k.Engine.Next(now, p)
	if ok && k.rotating() {
		if k.life--; k.life == 0 {
			k.dead = true
		}
	}
	return lid, ok
}

func (k *keeper) Receive(now time.Duration, p *mad.SMP, slid ib.LID) {
	if !k.dead {
		k.Engine.Receive(now, p, slid)
		k.keep()
	}
}

func (k *keeper) Lost(now time.Duration, p *mad.SMP) {
	if !k.dead {
		k.Engine.Lost(now, p)
		k.keep()
	}
}

func (k *keeper) Expire(now time.Duration) {
	if !k.dead {
		k.Engine.Expire(now)
		k.keep()
	}
}

// killedRotation renews all keys, kills the manager after every so many packets of
// that, and lets the next one go on with nothing but the book that was kept. It
// gives the number of kills.
func killedRotation(t *testing.T, list *topology.Netlist, every int, y tenancy) (kills int) {
	t.Helper()
	manager := keyed()
	manager.Keys.Keep, manager.Pause = true, time.Second
	var kept []byte
	w := newWorld(t, setup{list: list, policy: y.policy(), manager: manager})
	run := func(life int, until func(*keeper) bool) *keeper {
		keying := false
		k := &keeper{Engine: w.engine, kept: &kept, version: w.engine.Keys().Version(), life: life, rotating: func() bool {
			for _, h := range w.events {
				if p, ok := h.Event.(event.PhaseBegun); ok {
					keying = p.Phase == "M_Keys"
				}
			}
			w.events = w.events[:0]
			return keying
		}}
		end := w.fabric.Now() + limit
		err := w.link.Drive(context.Background(), k, func() bool { return k.dead || until(k) || w.fabric.Now() > end })
		if err != nil || w.fabric.Now() > end {
			t.Fatalf("after %d kills: %v at %v", kills, err, w.fabric.Now())
		}
		return k
	}
	settled := func(k *keeper) bool { return k.Settled() }
	run(0, settled)
	before := w.wantGuarded()
	if n := w.engine.RenewKeys(); n != len(before) {
		t.Fatalf("%d of %d keys are to be renewed", n, len(before))
	}
	w.arrived = nil
	for run(every, settled).dead {
		kills++
		var book mkey.Book
		if err := json.Unmarshal(kept, &book); err != nil {
			t.Fatal(err)
		}
		w.manager.Keys.Book = &book
		w.restart(y.policy())
		w.run(100 * time.Millisecond) // what was under way arrives
		w.wantGuarded()
		w.wantKnown(&book)
	}
	after := w.wantGuarded()
	for at, key := range before {
		if after[at] == key {
			t.Errorf("node %v port %d has the key that it had", at.node, at.num)
		}
	}
	for _, s := range w.engine.Keys().Entries() {
		if s.Next != 0 {
			t.Errorf("node %v is still to be given generation %d", s.ID.Node, s.Next)
		}
	}
	return kills
}

// wantKnown checks that every end port holds a key that the book leads to.
func (w *world) wantKnown(b *mkey.Book) {
	w.t.Helper()
	known := make(map[ib.MKey]bool)
	for _, s := range b.Entries() {
		for _, g := range b.Generations(s, 0) {
			known[w.manager.Keys.Ring.MKey(s.ID, g)] = true
		}
	}
	for _, e := range w.ends() {
		if key := w.info(e.place).MKey; !known[key] {
			w.t.Errorf("%s holds a key that the book does not lead to", e.name)
		}
	}
}

// A rotation of all keys that is killed again and again comes to its end: no port
// is lost on the way, and none is open.
func TestRotationKilled(t *testing.T) {
	for _, every := range []int{1, 3, 7} {
		list := generate(t, "random,seed=5,switches=3,hosts=8")
		y := halves(hosts(list))
		if kills := killedRotation(t, list, every, y); kills < 9/every {
			t.Errorf("killed %d times after every %d packets", kills, every)
		}
	}
}

// The same on a large fabric.
func TestRotationKilledLarge(t *testing.T) {
	if os.Getenv("IBWARDEN_SOAK") == "" {
		t.Skip("IBWARDEN_SOAK is not set")
	}
	list := generate(t, "fattree,radix=24,levels=3")
	y := halves(hosts(list))
	began := time.Now()
	kills := killedRotation(t, list, 100, y)
	t.Logf("%d hosts and %d switches, killed %d times, in %v", len(hosts(list)), len(list.Nodes)-len(hosts(list)), kills, time.Since(began))
}

// What keys cost when a fabric is brought up: packets, simulated time and the time
// of processors, with them and without, and what is read with them afterwards.
func TestCostOfKeys(t *testing.T) {
	if os.Getenv("IBWARDEN_SOAK") == "" {
		t.Skip("IBWARDEN_SOAK is not set")
	}
	list := generate(t, "fattree,radix=24,levels=3")
	y := halves(hosts(list))
	type cost struct {
		packets uint64
		took    time.Duration
		here    time.Duration // of processors
	}
	measure := func(keys bool) (c cost) {
		runtime.GC() // what the one before has left
		manager := keyed()
		if !keys {
			manager.Keys = nil
		}
		w := newWorld(t, setup{list: list, policy: y.policy(), manager: manager})
		w.mum = true
		began, at := processorTime(), w.fabric.Now()
		w.settle()
		return cost{w.engine.Counts().Sent, w.fabric.Now() - at, processorTime() - began}
	}
	for i := range 4 {
		var without, with cost
		if i%2 == 0 {
			without, with = measure(false), measure(true)
		} else {
			with, without = measure(true), measure(false)
		}
		t.Logf("%d hosts: without keys %d packets, %v, %v here; with keys %d packets (%.3f), %v (%.3f), %v here (%.3f)",
			len(hosts(list)), without.packets, without.took, without.here,
			with.packets, float64(with.packets)/float64(without.packets),
			with.took, float64(with.took)/float64(without.took), with.here, float64(with.here)/float64(without.here))
	}
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
