package simtest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// alias is the nth alias GUID of these tests.
func alias(n int) ib.PortGUID { return ib.PortGUID(0x0202c90300000000 + uint64(n)) }

// withAliases is a policy that also gives aliases to ports.
func withAliases(p *policy.Policy, list ...policy.PortAliases) *policy.Policy {
	if p.Aliases = list; list == nil {
		p.Aliases = []policy.PortAliases{}
	}
	return p
}

// guids are the entries of a port's table that are not empty, past its own.
func (w *world) guids(at place) map[int]ib.PortGUID {
	out := map[int]ib.PortGUID{}
	for i := 1; ; i++ {
		g, ok := w.agent(at.node).GUID(at.num, i)
		if !ok {
			return out
		}
		if g != 0 {
			out[i] = ib.PortGUID(g)
		}
	}
}

func (w *world) wantGUIDs(at place, want map[int]ib.PortGUID) {
	w.t.Helper()
	got := w.guids(at)
	same := len(got) == len(want)
	for i, g := range want {
		same = same && got[i] == g
	}
	if !same {
		w.t.Errorf("node %v has alias GUIDs %v, want %v", at.node, got, want)
	}
	if own, _ := w.agent(at.node).GUID(at.num, 0); own != uint64(w.agent(at.node).NodeInfo(at.num).PortGUID) {
		w.t.Errorf("entry 0 of node %v is %x", at.node, own)
	}
}

// warned reports whether a warning says all of these words.
func (w *world) warned(words ...string) bool {
	return slices.ContainsFunc(all[event.Warned](w), func(e event.Warned) bool {
		return !slices.ContainsFunc(words, func(s string) bool { return !strings.Contains(e.Text, s) })
	})
}

// oneHolder watches that no two ports of the fabric have an alias at a time, and
// that nobody writes another GUID to entry 0.
func (w *world) oneHolder() {
	w.watch = func(a arrival) {
		if a.Method != mad.MethodSet || a.AttributeID != smp.AttrGUIDInfo {
			return
		}
		var t smp.GUIDInfo
		if t.UnmarshalBinary(a.Data[:]) != nil {
			return
		}
		own := w.agent(a.node).NodeInfo(a.in).PortGUID
		for i, g := range t.GUIDs {
			if a.AttributeModifier == 0 && i == 0 {
				if g != uint64(own) {
					w.t.Errorf("entry 0 of node %v: 0x%x", a.node, g)
				}
				continue
			}
			for _, h := range hosts(w.list) {
				if node, num, ok := w.fabric.EndPort(h); ok && g != 0 && h != own {
					for _, has := range w.guids(place{node, num}) {
						if uint64(has) == g {
							w.t.Errorf("%v is given to %v while %v has it", has, own, h)
						}
					}
				}
			}
		}
	}
}

// datagramTo sends one from one host to another by a GID, in the default
// partition, and reports whether it came in.
func (w *world) datagramTo(from, to place, guid ib.PortGUID) bool {
	w.t.Helper()
	qp := func(at place) *endpoint.QP {
		d, err := w.fabric.Device(at.node)
		if err != nil {
			w.t.Fatal(err)
		}
		q, err := d.CreateQP(endpoint.Kernel, endpoint.QPConfig{Service: endpoint.UD, SendDepth: 4, ReceiveDepth: 4})
		for _, step := range []func() error{
			func() error { return err },
			func() error {
				return q.Modify(endpoint.Kernel, endpoint.StateInit, endpoint.AttrPort|endpoint.AttrPKeyIndex|endpoint.AttrQKey, endpoint.Attr{Port: at.num, QKey: 7})
			},
			func() error { return q.Modify(endpoint.Kernel, endpoint.StateRTR, 0, endpoint.Attr{}) },
			func() error {
				return q.Modify(endpoint.Kernel, endpoint.StateRTS, endpoint.AttrSendPSN, endpoint.Attr{})
			},
			func() error { return q.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, 512)}) },
		} {
			if err := step(); err != nil {
				w.t.Fatal(err)
			}
		}
		return q
	}
	a, b := qp(from), qp(to)
	if err := a.PostSend(endpoint.SendRequest{
		Data: make([]byte, 64), RemoteQP: b.Number(), RemoteQKey: 7,
		To: endpoint.Address{DLID: w.info(to).LID, Global: true, DGID: ib.MakeGID(ib.DefaultGIDPrefix, guid)},
	}); err != nil {
		w.t.Fatal(err)
	}
	w.run(engine.DefaultSweepInterval)
	var done [4]endpoint.Completion
	n := b.Poll(done[:])
	return n == 1 && done[0].Status == endpoint.Success && done[0].Op == endpoint.OpReceive
}

// The manager gives ports further GUIDs, and takes them away again.
func TestAliasGUIDs(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	y.full = true
	one, two := guidOf(list, "red-1"), guidOf(list, "red-2")
	nine := []ib.PortGUID{alias(1), 0, alias(3), 0, 0, 0, 0, 0, alias(9)}
	w := newWorld(t, setup{list: list, policy: withAliases(y.policy(), policy.PortAliases{Port: one, GUIDs: nine})})
	w.oneHolder()
	w.settle()
	first, second := w.host("red-1"), w.host("red-2")
	w.checkUp(y)
	t.Run("GI-03 GI-11 written block by block", func(t *testing.T) {
		w.wantGUIDs(first, map[int]ib.PortGUID{1: alias(1), 3: alias(3), 9: alias(9)})
		if n := len(w.sets(smp.AttrGUIDInfo)); n != 2 {
			t.Errorf("%d Sets of GUIDInfo, want one for each of two blocks", n)
		}
	})
	t.Run("GI-03 a GID of the port", func(t *testing.T) {
		for _, c := range []struct {
			to   place
			guid ib.PortGUID
			want bool
		}{{first, one, true}, {first, alias(1), true}, {first, alias(9), true}, {first, alias(2), false}, {second, alias(1), false}} {
			if got := w.datagramTo(w.host("blue-1"), c.to, c.guid); got != c.want {
				t.Errorf("a packet to GID of %v at node %v received: %v, want %v", c.guid, c.to.node, got, c.want)
			}
		}
	})
	t.Run("GI-06 kept, and nothing else written", func(t *testing.T) {
		w.forget()
		w.run(2 * engine.DefaultDriftPeriod)
		if n := len(w.sets()); n != 0 {
			t.Errorf("%d Sets with nothing to change", n)
		}
	})
	t.Run("GI-03 moved to another port", func(t *testing.T) {
		w.forget()
		w.change(withAliases(y.policy(), policy.PortAliases{Port: one, GUIDs: []ib.PortGUID{0, alias(3)}}, policy.PortAliases{Port: two, GUIDs: []ib.PortGUID{alias(1)}}))
		w.wantGUIDs(first, map[int]ib.PortGUID{2: alias(3)})
		w.wantGUIDs(second, map[int]ib.PortGUID{1: alias(1)})
		if w.datagramTo(w.host("blue-1"), first, alias(1)) || !w.datagramTo(w.host("blue-1"), second, alias(1)) {
			t.Error("the packet did not follow the alias")
		}
	})
	t.Run("GI-06 put right", func(t *testing.T) {
		w.forget()
		w.agentSet(second, smp.AttrGUIDInfo, 0, func(data *[mad.DataSize]byte) {
			w.encode(&smp.GUIDInfo{GUIDs: [8]uint64{0, uint64(alias(3)), uint64(alias(7))}}, data)
		})
		w.run(2 * engine.DefaultDriftPeriod)
		w.wantGUIDs(second, map[int]ib.PortGUID{1: alias(1)})
		if !slices.ContainsFunc(all[event.Drifted](w), func(e event.Drifted) bool { return e.Op.Attribute == smp.AttrGUIDInfo }) {
			t.Error("nobody said that it was changed")
		}
	})
	t.Run("GI-06 taken away when the policy ceases to speak of them", func(t *testing.T) {
		w.change(y.policy())
		w.wantGUIDs(first, nil)
		w.wantGUIDs(second, nil)
	})
	if !w.result().Proof.Verdict.Holds() {
		t.Error(w.result().Proof)
	}
}

// A manager that comes later knows that the tables are its own to keep; one
// that never gave an alias leaves them alone.
func TestAliasGUIDsOfAnEarlierRun(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: withAliases(y.policy(), policy.PortAliases{Port: guidOf(list, "red-1"), GUIDs: []ib.PortGUID{alias(1)}})})
	known := w.engine.Assigned()
	w.restart(y.policy())
	w.settle()
	w.wantGUIDs(w.host("red-1"), map[int]ib.PortGUID{1: alias(1)})
	if n := len(w.packets(mad.MethodGet, smp.AttrGUIDInfo)); n != 0 {
		t.Errorf("%d reads of tables that nobody asked about", n)
	}
	w.manager.Known = known
	w.restart(y.policy())
	w.settle()
	w.wantGUIDs(w.host("red-1"), nil)
}

// A manager under way that gets a policy with aliases first reads what stands.
func TestAliasGUIDsComeLater(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := bringUp(t, setup{list: list, policy: y.policy()})
	w.oneHolder()
	w.agentSet(w.host("blue-1"), smp.AttrGUIDInfo, 1, func(data *[mad.DataSize]byte) {
		w.encode(&smp.GUIDInfo{GUIDs: [8]uint64{3: uint64(alias(1))}}, data)
	})
	w.change(withAliases(y.policy(), policy.PortAliases{Port: guidOf(list, "red-1"), GUIDs: []ib.PortGUID{alias(1)}}))
	w.wantGUIDs(w.host("red-1"), map[int]ib.PortGUID{1: alias(1)})
	w.wantGUIDs(w.host("blue-1"), nil)
}

// A member named by an alias GUID is the port that the policy gives it to,
// whatever a device claims.
func TestMemberByAlias(t *testing.T) {
	list := topology.Demo()
	for _, n := range list.Nodes { // claims the alias of another as its own GUID
		if n.ID == "blue-2" {
			n.Ports[1].GUID = alias(1)
		}
	}
	one := guidOf(list, "red-1")
	y := tenancy{tenants: []tenant{{base: 0x10, full: []ib.PortGUID{alias(1)}}}}
	p := withAliases(y.policy(), policy.PortAliases{Port: one, GUIDs: []ib.PortGUID{alias(1), alias(2)}})
	w := bringUp(t, setup{list: list, policy: p})
	t.Run("GI-03 a member by alias", func(t *testing.T) {
		if got := valid(w.table(w.host("red-1"))); !slices.Contains(got, 0x8010) {
			t.Errorf("red-1 holds %v, want 0x8010 among them", got)
		}
		if got := valid(w.table(w.host("blue-2"))); slices.Contains(got, 0x8010) {
			t.Errorf("blue-2, which claims the GUID, holds %v", got)
		}
	})
	t.Run("GI-03 a GUID claimed twice is given to nobody", func(t *testing.T) {
		w.wantGUIDs(w.host("red-1"), map[int]ib.PortGUID{2: alias(2)})
		if !w.warned(alias(1).String(), one.String(), "is the GUID of a port") {
			t.Errorf("no warning: %v", all[event.Warned](w))
		}
	})
}

// Aliases past GUIDCap are reported, the others given, and no block past the
// table is touched.
func TestAliasGUIDsWithinGUIDCap(t *testing.T) {
	list := topology.Demo()
	s := setup{list: list}
	s.fabric.Profile = func(n *topology.Node, c *sma.Config) {
		for i := range c.Ports {
			c.Ports[i].GUIDCap = map[string]uint8{"red-1": 3, "red-2": 1}[n.ID]
			if c.Ports[i].GUIDCap == 0 {
				c.Ports[i].GUIDCap = 9
			}
		}
	}
	y := halves(hosts(list))
	s.policy = withAliases(y.policy(),
		policy.PortAliases{Port: guidOf(list, "red-1"), GUIDs: []ib.PortGUID{alias(1), alias(2), alias(3)}},
		policy.PortAliases{Port: guidOf(list, "red-2"), GUIDs: []ib.PortGUID{alias(4)}})
	w := bringUp(t, s)
	w.checkUp(y)
	w.wantGUIDs(w.host("red-1"), map[int]ib.PortGUID{1: alias(1), 2: alias(2)})
	w.wantGUIDs(w.host("red-2"), nil)
	if !w.warned(alias(3).String(), "GUIDCap is 3") || !w.warned(alias(4).String(), "GUIDCap is 1") {
		t.Errorf("warnings: %v", all[event.Warned](w))
	}
	for _, a := range slices.Concat(w.packets(mad.MethodGet, smp.AttrGUIDInfo), w.sets(smp.AttrGUIDInfo)) {
		at := place{a.node, a.in}
		if w.agent(a.node).SwitchInfo() != nil {
			at.num = 0
		}
		if cap := int(w.info(at).GUIDCap); int(a.AttributeModifier)*smp.GUIDsPerBlock >= cap || cap == 1 {
			t.Errorf("%v(GUIDInfo) block %d of a table of %d", a.Method, a.AttributeModifier, cap)
		}
	}
}

// While an alias cannot be taken from one port it is given to no other; the
// fabric is isolated all the same.
func TestAliasGUIDsNotTaken(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	one, two := guidOf(list, "red-1"), guidOf(list, "red-2")
	w := bringUp(t, setup{list: list, policy: withAliases(y.policy(), policy.PortAliases{Port: one, GUIDs: []ib.PortGUID{alias(1)}})})
	w.oneHolder()
	if err := w.fabric.SetFault(w.host("red-1").node, losesSets(smp.AttrGUIDInfo)); err != nil {
		t.Fatal(err)
	}
	w.forget()
	w.change(withAliases(y.policy(), policy.PortAliases{Port: two, GUIDs: []ib.PortGUID{alias(1)}}))
	w.wantGUIDs(w.host("red-1"), map[int]ib.PortGUID{1: alias(1)})
	w.wantGUIDs(w.host("red-2"), nil)
	if w.result().Failures != 2 || w.result().Reached() || w.result().Inactive != 0 || !w.result().Proof.Verdict.Holds() {
		t.Errorf("%+v: want two failures, and the fabric up", w.result())
	}
	if err := w.fabric.SetFault(w.host("red-1").node, fabric.Fault{}); err != nil {
		t.Fatal(err)
	}
	w.run(2 * engine.DefaultDriftPeriod)
	w.wantGUIDs(w.host("red-1"), nil)
	w.wantGUIDs(w.host("red-2"), map[int]ib.PortGUID{1: alias(1)})
}

// losesSets is a fault that loses every Set of an attribute.
func losesSets(a mad.AttributeID) fabric.Fault {
	return fabric.Fault{Drop: func(_ time.Duration, _ ib.PortNum, m *[mad.Size]byte) bool {
		var p mad.SMP
		return p.UnmarshalBinary(m[:]) == nil && p.Method == mad.MethodSet && p.AttributeID == a
	}}
}

// plan and apply carry aliases as anything else: after a stop the change can be
// finished or undone.
func TestApplyAliases(t *testing.T) {
	for _, direction := range []daemon.Direction{daemon.Resume, daemon.Rollback} {
		t.Run(direction.String(), func(t *testing.T) {
			z, _, from := applyWorld(t)
			all := hosts(z.list)
			node, num, _ := z.fabric.EndPort(all[2])
			to := place{node, num}
			old := withAliases(z.now.policy(), policy.PortAliases{Port: all[1], GUIDs: []ib.PortGUID{0, alias(1)}})
			if out, err := z.applied(daemon.Forward, old, false, nil); err != nil || out.Standing.Position != plan.AtNew {
				t.Fatalf("%+v, %v", out, err)
			}
			z.wantGUIDs(from, map[int]ib.PortGUID{2: alias(1)})
			next := withAliases(z.now.policy(), policy.PortAliases{Port: all[2], GUIDs: []ib.PortGUID{alias(1)}})
			_, err := z.applied(daemon.Forward, next, false, func() {
				z.must(z.fabric.SetFault(to.node, losesSets(smp.AttrGUIDInfo)))
			})
			if !errors.Is(err, daemon.ErrStopped) {
				t.Fatal(err)
			}
			z.wantGUIDs(from, nil)
			z.must(z.fabric.SetFault(to.node, fabric.Fault{}))
			out, err := z.applied(direction, nil, false, nil)
			if err != nil || !out.Proof.Verdict.Holds() {
				t.Fatalf("%+v, %v", out, err)
			}
			if direction == daemon.Resume {
				z.wantGUIDs(from, nil)
				z.wantGUIDs(to, map[int]ib.PortGUID{1: alias(1)})
			} else {
				z.wantGUIDs(from, map[int]ib.PortGUID{2: alias(1)})
				z.wantGUIDs(to, nil)
			}
		})
	}
}
