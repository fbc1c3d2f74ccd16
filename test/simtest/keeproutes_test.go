package simtest

import (
	"errors"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// keepingRoutes runs apply --keep-routes.
func (z *zero) keepingRoutes(p *policy.Policy) (*daemon.Applied, error) {
	z.t.Helper()
	link, err := inproc.New(z.fabric, z.self.node, z.self.num, false)
	if err != nil {
		z.t.Fatal(err)
	}
	defer link.Close()
	config, err := daemon.HeldConfig(engine.Config{Routing: routing.UpDown, KeepRoutes: true}, &z.journal)
	if err != nil {
		z.t.Fatal(err)
	}
	return daemon.Apply(z.t.Context(), daemon.NewRunner(link, config, server.Config{}, p, silent{}), daemon.ApplyOptions{
		Direction: daemon.Forward, Policy: p, Journal: &z.journal,
		Approve: func(*daemon.Proposal) (bool, error) { return false, nil },
	})
}

var forwarding = []mad.AttributeID{smp.AttrLinearForwardingTable, smp.AttrRandomForwardingTable}

// One host moves, with all that is exposed on the way tried by packets, and forwarding
// tables are neither read nor written: not even one that somebody has spoilt, which apply
// without --keep-routes repairs.
func TestApplyKeepsRoutes(t *testing.T) {
	z, next, _ := applyWorld(t)
	z.x.rule(z.now, next)
	leaf := place{z.node("leaf-2").GUID, 0}
	spoilt := smp.LinearForwardingTable{Ports: smp.LinearBlock(nil, 0)}
	z.agentSet(leaf, smp.AttrLinearForwardingTable, 0, func(data *[mad.DataSize]byte) { z.encode(&spoilt, data) })
	exit := func() (ib.PortNum, bool) { return z.agent(leaf.node).UnicastExit(1, z.info(z.self).LID) }
	if out, ok := exit(); ok {
		t.Fatalf("the spoilt table leads to port %d", out)
	}
	z.forget()
	out, err := z.keepingRoutes(next.policy())
	if err != nil || !out.Proof.Verdict.Holds() {
		t.Fatalf("%+v, %v", out, err)
	}
	few := len(z.packets(mad.MethodGet)) - out.Writes // each is read back
	if n := len(z.packets(mad.MethodGet, forwarding...)) + len(z.sets(forwarding...)); n != 0 {
		t.Errorf("%d requests about forwarding tables, want none", n)
	}
	z.checkKeysIn(next)
	z.x.check(t)
	if _, ok := exit(); ok {
		t.Error("the spoilt table was written")
	}
	z.forget()
	z.x.rule(z.now, next)
	out, err = z.applied(daemon.Forward, next.policy(), false, nil)
	if err != nil || !out.Proof.Verdict.Holds() || out.Nothing {
		t.Fatalf("with routes: %+v, %v: want the table repaired", out, err)
	}
	if _, ok := exit(); !ok {
		t.Error("the spoilt table was not repaired")
	}
	if all := len(z.packets(mad.MethodGet)); all-len(z.packets(mad.MethodGet, forwarding...)) != few {
		t.Errorf("%d Gets with routes, %d of them of forwarding tables, %d without", all, len(z.packets(mad.MethodGet, forwarding...)), few)
	}
}

// Where routes would have to change for it, nothing is written.
func TestKeepRoutesRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*zero, *policy.Policy)
	}{
		{"another LID", func(z *zero, _ *policy.Policy) {
			z.setPortInfo(z.host("red-2"), func(p *smp.PortInfo) { p.LID = 0x1234 })
		}},
		{"another LMC", func(z *zero, _ *policy.Policy) {
			z.setPortInfo(z.host("red-2"), func(p *smp.PortInfo) { p.LMC = 1 })
		}},
		{"a table that was emptied", func(z *zero, _ *policy.Policy) {
			z.setSwitchInfo("leaf-2", func(s *smp.SwitchInfo) { s.LinearFDBTop = 0 })
		}},
		{"a switch to drain", func(_ *zero, p *policy.Policy) {
			p.Drained = []policy.Drained{{At: policy.Place{Name: "spine-2"}}}
		}},
		{"a LID that moves with the master", func(_ *zero, p *policy.Policy) {
			own := policy.DefaultSettings()
			own.MasterSMLID = 40
			p.Settings = &own
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			z, next, _ := applyWorld(t)
			p := next.policy()
			c.change(z, p)
			z.forget()
			if _, err := z.keepingRoutes(p); !errors.Is(err, desired.ErrRoutes) || !errors.Is(err, daemon.ErrRefused) {
				t.Errorf("%v, want %v", err, desired.ErrRoutes)
			}
			if sets := z.sets(); len(sets) != 0 {
				t.Errorf("%d Sets, want none: %v", len(sets), sets[0])
			}
		})
	}
}
