package simtest

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/test/need"
)

// stormLength is the length of a storm in the soak, for a shorter one: as 10m.
const stormLength = "STORM_LENGTH"

// One cable in a hundred goes down and up all the time. Each flow that takes none of them
// arrives whenever it is looked at, between writes too; the manager looks behind links no
// more often than it may, keeps no more memory for that, and all flows arrive in the end. The
// soak has 3,456 hosts, of which some send.
func TestStorm(t *testing.T) {
	seed := need.Seed(t, 1)
	length := time.Duration(need.Rounds(60, 3600)) * time.Second
	if text := os.Getenv(stormLength); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", stormLength, err)
		}
	}
	spec, every := "fattree,radix=8,levels=3", 1
	if need.Soak() {
		spec, every = "fattree,radix=24,levels=3", 128
	}
	rng := rand.New(rand.NewPCG(seed, 19))
	w := bringUp(t, setup{list: generate(t, spec), policy: &policy.Policy{Default: policy.Full}, manager: engine.Config{Routing: routing.FatTree}})
	w.calm()
	var cables [][2]place
	for _, n := range w.list.Nodes {
		for num := 1; n.Type == ib.NodeSwitch && num < len(n.Ports); num++ {
			at := place{n.GUID, ib.PortNum(num)}
			if far, ok := w.peer(at); ok && w.agent(far.node).SwitchInfo() != nil && at.node < far.node {
				cables = append(cables, [2]place{at, far})
			}
		}
	}
	rng.Shuffle(len(cables), func(i, j int) { cables[i], cables[j] = cables[j], cables[i] })
	flapping := cables[:max(1, len(cables)/100)]
	shaky := map[place]bool{}
	for _, c := range flapping {
		shaky[c[0]], shaky[c[1]] = true, true
	}
	intact, before := w.flowsFrom(every), map[flow][]place{}
	steady := func(ways map[flow][]place, f flow) bool {
		for _, at := range ways[f] {
			if shaky[at] {
				return false
			}
		}
		return true
	}
	for f := range intact {
		if steady(intact, f) {
			before[f] = intact[f]
		}
	}
	looked, sets, changes, behind := 0, 0, 0, 0
	look := func() {
		looked++
		now := w.flowsFrom(every)
		for f := range before {
			if now[f] == nil {
				t.Fatalf("at %v packets from %v to %v are lost, which take no cable that goes down", w.fabric.Now(), f.from, f.to)
			}
		}
	}
	const often = 199 // writes of forwarding tables between two looks
	w.watch = func(a arrival) {
		w.arrived = nil
		if a.Method == mad.MethodSet && a.AttributeID == smp.AttrLinearForwardingTable {
			if sets++; sets%often == 0 {
				look()
			}
		}
	}
	up := make([]bool, len(flapping))
	for i := range up {
		up[i] = true
	}
	var flap func(i int)
	flap = func(i int) {
		c := flapping[i]
		if changes++; up[i] {
			w.must(w.fabric.Unlink(c[0].node, c[0].num))
		} else {
			w.must(w.fabric.Link(c[0].node, c[0].num, c[1].node, c[1].num))
		}
		up[i] = !up[i]
		w.fabric.At(w.fabric.Now()+time.Duration(rng.IntN(4000))*time.Millisecond, func() { flap(i) })
	}
	stop := w.fabric.Now() + length
	for i := range flapping {
		flap(i)
	}
	heap := heapInUse()
	for w.fabric.Now() < stop {
		w.run(10 * time.Second)
		look()
		behind += len(resweeps(w))
		w.events = nil
	}
	if now := heapInUse(); now > heap+heap/2+64<<20 {
		t.Errorf("%d MB are in use after the storm, %d MB before", now>>20, heap>>20)
	}
	if most := len(flapping) * (looksAtOnce + int(length/looksApart) + 1); behind > most {
		t.Errorf("%d looks behind links that changed, want %d at most", behind, most)
	}
	w.watch = nil
	flap = func(int) {}
	for i, c := range flapping {
		if !up[i] {
			w.must(w.fabric.Link(c[0].node, c[0].num, c[1].node, c[1].num))
		}
	}
	w.run(2 * time.Minute)
	w.settle()
	if now := w.flowsFrom(every); len(now) != len(intact) {
		t.Errorf("%d of %d flows arrive in the end", len(now), len(intact))
	}
	t.Logf("%d looks behind links", behind)
	t.Logf("%d of %d cables went down or up %d times in %v; %d writes of forwarding tables, %d flows looked at %d times", len(flapping), len(cables), changes, length, sets, len(before), looked)
	if changes < 10 || sets == 0 || looked < 5 {
		t.Error("too little happened")
	}
}

// A link may change looksAtOnce times before it is looked behind once in looksApart
// (docs/routing.md).
const (
	looksAtOnce = 4
	looksApart  = 30 * time.Second
)

// resweeps are the looks behind links that the manager has told of.
func resweeps(w *world) (out []event.Resweeping) {
	for _, e := range all[event.Resweeping](w) {
		if e.Links > 0 {
			out = append(out, e)
		}
	}
	return out
}
