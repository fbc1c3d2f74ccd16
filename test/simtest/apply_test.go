package simtest

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// applyWorld is the demonstration fabric with two halves, and the tenancy in
// which the second host has gone over.
func applyWorld(t *testing.T) (z *zero, next tenancy, moved place) {
	t.Helper()
	list := generate(t, "demo")
	all := hosts(list)
	y := halves(all)
	w := bringUp(t, setup{list: list, policy: y.policy()})
	w.calm()
	w.stop()
	z = &zero{world: w, r: rand.New(rand.NewPCG(1, 2)), now: y}
	z.x = newExposure(w)
	node, num, ok := w.fabric.EndPort(all[1])
	if !ok {
		t.Fatal("no second host")
	}
	return z, y.move(all[1], 0x10, 0x20), place{node, num}
}

// applied runs apply once, with before called when it has been approved.
func (z *zero) applied(d daemon.Direction, p *policy.Policy, looked bool, before func()) (*daemon.Applied, error) {
	z.t.Helper()
	link, err := inproc.New(z.fabric, z.self.node, z.self.num, false)
	if err != nil {
		z.t.Fatal(err)
	}
	defer link.Close()
	config, err := daemon.HeldConfig(engine.Config{Routing: routing.UpDown}, &z.journal)
	if err != nil {
		z.t.Fatal(err)
	}
	if p == nil {
		p = &policy.Policy{Default: policy.Limited}
	}
	return daemon.Apply(z.t.Context(), daemon.NewRunner(link, config, server.Config{}, p, silent{}), daemon.ApplyOptions{
		Direction: d, Policy: p, Journal: &z.journal,
		Approve: func(*daemon.Proposal) (bool, error) {
			if before != nil {
				before()
			}
			return looked, nil
		},
	})
}

// A write that is lost stops the change: what stands is said, nobody gains
// anything, and the next start can go either way.
func TestApplyStops(t *testing.T) {
	for _, direction := range []daemon.Direction{daemon.Resume, daemon.Rollback} {
		t.Run(direction.String(), func(t *testing.T) {
			z, next, moved := applyWorld(t)
			z.x.rule(z.now, next)
			out, err := z.applied(daemon.Forward, next.policy(), false, func() {
				z.must(z.fabric.SetFault(moved.node, fabric.Fault{Mute: true}))
			})
			if !errors.Is(err, daemon.ErrStopped) || out == nil || len(out.Failures) != 1 {
				t.Fatalf("%+v, %v: want a stop with one failure", out, err)
			}
			if out.Standing.Between != 1 || len(out.Standing.Elsewhere) != 1 {
				t.Errorf("stands %+v, want the switch port between and the host not known", out.Standing)
			}
			if _, err := z.applied(daemon.Forward, next.policy(), false, nil); !errors.Is(err, daemon.ErrUnfinished) {
				t.Errorf("another change: %v", err)
			}
			if _, err := z.applied(direction, nil, false, nil); !errors.Is(err, daemon.ErrElsewhere) {
				t.Errorf("going on while the host is silent: %v", err)
			}
			z.must(z.fabric.SetFault(moved.node, fabric.Fault{}))
			out, err = z.applied(direction, nil, false, nil)
			if err != nil || !out.Proof.Verdict.Holds() {
				t.Fatalf("%+v, %v", out, err)
			}
			want, place := next, plan.AtNew
			if direction == daemon.Rollback {
				want, place = z.now, plan.AtOld
			}
			if out.Standing.Position != place {
				t.Errorf("stands %v, want %v", out.Standing.Position, place)
			}
			z.checkKeysIn(want)
			z.x.check(t)
		})
	}
}

// Who has written a table meanwhile makes the next start stop, and say where.
func TestApplyNeverGuesses(t *testing.T) {
	z, next, moved := applyWorld(t)
	_, err := z.applied(daemon.Forward, next.policy(), false, func() {
		z.must(z.fabric.SetFault(moved.node, fabric.Fault{Mute: true}))
	})
	if !errors.Is(err, daemon.ErrStopped) {
		t.Fatal(err)
	}
	z.must(z.fabric.SetFault(moved.node, fabric.Fault{}))
	z.agentSet(moved, smp.AttrPKeyTable, 0, func(data *[mad.DataSize]byte) {
		var keys smp.PKeyTable
		copy(keys.Keys[:], z.table(moved))
		keys.Keys[1] = 0x8077
		z.encode(&keys, data)
	})
	before := z.isolating()
	for _, d := range []daemon.Direction{daemon.Resume, daemon.Rollback} {
		_, err := z.applied(d, nil, false, nil)
		if !errors.Is(err, daemon.ErrElsewhere) || !strings.Contains(err.Error(), "0x8077") {
			t.Errorf("%v: %v", d, err)
		}
	}
	if s := firstDifference(before, z.isolating()); s != "" {
		t.Errorf("something was written: %s", s)
	}
}

// What changes while somebody thinks about the answer is seen before the first
// write.
func TestApplyLooksAgain(t *testing.T) {
	z, next, moved := applyWorld(t)
	before := z.isolating()
	_, err := z.applied(daemon.Forward, next.policy(), true, func() {
		z.must(z.fabric.SetFault(moved.node, fabric.Fault{Mute: true}))
	})
	if !errors.Is(err, daemon.ErrChanged) || z.journal.entry != nil {
		t.Errorf("%v, journal %v", err, z.journal.entry)
	}
	if s := firstDifference(before, z.isolating()); s != "" {
		t.Errorf("something was written: %s", s)
	}
	z.must(z.fabric.SetFault(moved.node, fabric.Fault{}))
	z.forget()
	if out, err := z.applied(daemon.Forward, next.policy(), true, nil); err != nil || out.Writes != 3 {
		t.Errorf("%+v, %v: want 3 writes", out, err)
	}
	z.checkKeysIn(next)
}
