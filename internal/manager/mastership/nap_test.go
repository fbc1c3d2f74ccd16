package mastership

import (
	"math/rand/v2"
	"testing"
	"time"
)

// What ends the doubt of a master that did not run: a round of questions that was begun after
// it ran again, in which no other manager was master, and the word of whoever keeps the policy.
func TestWhatEndsTheDoubt(t *testing.T) {
	const at = time.Hour
	type step func(*Nap)
	alone, another := step(func(n *Nap) { n.ToldOfMasters(true) }), step(func(n *Nap) { n.ToldOfMasters(false) })
	confirmed, replaced := step(func(n *Nap) { n.Confirm(false) }), step(func(n *Nap) { n.Confirm(true) })
	policy := step((*Nap).ToldOfPolicy)
	for _, x := range []struct {
		name           string
		confirms       bool
		ends           int // rounds until one counts
		steps          []step
		lasts, changed bool
	}{
		{"nothing is known", false, 1, nil, true, false},
		{"a round has ended", false, 1, []step{alone}, false, false},
		{"only the round of before has ended", false, 2, []step{alone}, true, false},
		{"the round of before, and one more", false, 2, []step{alone, alone}, false, false},
		{"no round was under way", false, 0, []step{alone}, false, false},
		{"another is master", false, 1, []step{another}, true, true},
		{"another is master, then none", false, 1, []step{another, alone}, false, true},
		{"none is master, then another", false, 2, []step{alone, another}, true, true},
		{"another is master after the round that counts", false, 1, []step{alone, another}, true, true},
		{"the policy is not confirmed", true, 1, []step{alone}, true, false},
		{"the policy alone is confirmed", true, 1, []step{confirmed}, true, false},
		{"confirmed after the round", true, 1, []step{alone, confirmed}, false, false},
		{"confirmed before the round", true, 1, []step{confirmed, alone}, false, false},
		{"confirmed, with the round of before", true, 2, []step{confirmed, alone}, true, false},
		{"another policy is in force", true, 1, []step{alone, replaced}, false, true},
		{"another policy is in force, said twice", true, 1, []step{alone, replaced, confirmed}, false, true},
		{"a policy came, and is confirmed", true, 1, []step{policy, alone, confirmed}, false, true},
		{"a policy came", true, 1, []step{alone, policy}, true, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			n := Nap{Confirms: x.confirms}
			n.Begin(at, x.ends)
			for _, s := range x.steps {
				s(&n)
			}
			due := n.Due(at)
			lasts, ask := n.Lasts(at, true)
			if lasts != x.lasts || n.On() != x.lasts || ask || n.Changed() != x.changed {
				t.Errorf("lasts %v, on %v, asks %v, changed %v; want lasts %v, asks nothing yet, changed %v", lasts, n.On(), ask, n.Changed(), x.lasts, x.changed)
			}
			if want := at + rounds; lasts && due != want || !lasts && due != at {
				t.Errorf("due %v; want %v while it lasts, and now when it is over", due, want)
			}
		})
	}
}

// While it lasts, a round is asked for every so often; after most it ends by itself, and at
// once for a manager that is not master any more.
func TestTheDoubtIsBounded(t *testing.T) {
	n := Nap{Confirms: true}
	const at = time.Minute
	n.Begin(at, 1)
	n.ToldOfMasters(false)
	asked := 0
	for now := at; now < at+most; now = n.Due(now) {
		lasts, ask := n.Lasts(now, true)
		if want := now > at; !lasts || ask != want {
			t.Fatalf("after %v: lasts %v, asks %v, want true, %v", now-at, lasts, ask, want)
		}
		if ask {
			asked++
		}
		if again, ask := n.Lasts(now, true); !again || ask {
			t.Fatalf("after %v: asks twice", now-at)
		}
	}
	if want := int(most/rounds) - 1; asked != want {
		t.Errorf("%d rounds, want %d", asked, want)
	}
	if lasts, ask := n.Lasts(at+most, true); lasts || ask || !n.Changed() {
		t.Errorf("after %v: lasts %v, asks %v, changed %v", most, lasts, ask, n.Changed())
	}

	n.Begin(at, 1)
	if n.Changed() || !n.On() {
		t.Error("another nap begins with what the one before had found")
	}
	if lasts, ask := n.Lasts(at, true); !lasts || ask {
		t.Errorf("confirmed by the nap before: lasts %v, asks %v", lasts, ask)
	}
	if lasts, ask := n.Lasts(at+rounds, false); lasts || ask {
		t.Errorf("not master any more: lasts %v, asks %v", lasts, ask)
	}
	if lasts, _ := n.Lasts(at+rounds, true); lasts {
		t.Error("it is there again once the manager is master again")
	}

	for _, again := range []func(){func() { n.Confirm(false) }, func() { n.ToldOfMasters(true) }} {
		n.Begin(at, 1)
		n.Confirm(false)
		n.ToldOfMasters(true)
		n.Begin(at, 1) // asleep once more, before it could look at that
		if again(); !n.On() || n.over() {
			t.Error("what ended the nap before counts for this one")
		}
	}
}

// Without a nap nothing that is heard begins one, or is remembered for the next.
func TestWithoutANap(t *testing.T) {
	n := Nap{Confirms: true}
	n.Confirm(true)
	n.ToldOfMasters(false)
	n.ToldOfMasters(true)
	n.ToldOfPolicy()
	if lasts, ask := n.Lasts(0, true); lasts || ask || n.On() || n.Changed() {
		t.Errorf("lasts %v, asks %v, on %v, changed %v", lasts, ask, n.On(), n.Changed())
	}
	n.Begin(0, 1)
	if lasts, _ := n.Lasts(0, true); !lasts || n.Changed() {
		t.Errorf("lasts %v, changed %v: it counts what came before", lasts, n.Changed())
	}
}

// Whatever comes in whatever order, the doubt ends before its time only after a round that
// counts and a word on the policy, and what another manager did is not forgotten.
func TestAnyOrder(t *testing.T) {
	const seed, runs, steps = 27, 2000, 12
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	ended := 0
	for run := range runs {
		n := Nap{Confirms: r.IntN(2) == 0}
		ends := r.IntN(3)
		n.Begin(0, ends)
		told, alone, word, changed := 0, false, !n.Confirms, false
		for now := range time.Duration(steps) {
			switch r.IntN(4) {
			case 0:
				alone = r.IntN(4) > 0
				n.ToldOfMasters(alone)
				told, changed = told+1, changed || !alone
			case 1:
				other := r.IntN(4) == 0
				n.Confirm(other)
				word, changed = true, changed || other
			case 2:
				if r.IntN(8) == 0 {
					n.ToldOfPolicy()
					changed = true
				}
			}
			lasts, _ := n.Lasts(now, true)
			if want := !(alone && told > 0 && told >= ends && word); lasts != want || n.Changed() != changed {
				t.Fatalf("run %d, step %d: lasts %v, changed %v; want %v, %v", run, now, lasts, n.Changed(), want, changed)
			}
			if !lasts {
				ended++
				break
			}
		}
	}
	if ended < runs/4 || ended == runs {
		t.Errorf("%d of %d ended: the test shows nothing", ended, runs)
	}
}
