package simtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Moving one member between partitions costs the same few packets on any size
// of fabric, read-back included.
func TestMinimalChange(t *testing.T) {
	const singleDigits = 9
	sizes := []string{"demo", "fattree,radix=16,levels=2", "fattree,radix=36,levels=2"}
	counts := make([]int, len(sizes))
	t.Run("sizes", func(t *testing.T) {
		for i, spec := range sizes {
			t.Run(spec, func(t *testing.T) {
				t.Parallel()
				list := generate(t, spec)
				all := hosts(list)
				t.Logf("%d hosts", len(all))
				y := halves(all)
				w := bringUp(t, setup{list: list, policy: y.policy()})
				before := w.dump()
				moved := all[1]
				y = y.move(moved, 0x10, 0x20)
				w.forget()
				w.change(y.policy())
				w.checkKeys(y)
				w.checkGuards()
				counts[i] = w.requests()
				if counts[i] == 0 || counts[i] > singleDigits {
					t.Errorf("%d SMPs, want 1 to %d", counts[i], singleDigits)
				}
				for _, a := range append(w.sets(), w.packets(mad.MethodGet)...) {
					if a.AttributeID != smp.AttrPKeyTable {
						t.Errorf("%v(%s) to node %v", a.Method, smp.AttributeName(a.AttributeID), a.node)
					}
				}
				if changed := changedLines(before, w.dump()); len(changed) != 2 {
					t.Errorf("changed: %q, want the host and its switch port", changed)
				}
			})
		}
	})
	t.Logf("SMPs of a change: %v", counts)
	if len(slices.Compact(slices.Clone(counts))) != 1 {
		t.Errorf("SMPs of a change: %v, want the same on every size", counts)
	}
}

// changedLines are the beginnings of the lines in which two dumps differ.
func changedLines(a, b string) []string {
	var out []string
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			out = append(out, strings.SplitN(x[i], " ", 2)[0])
		}
	}
	return out
}

// Random changes of policy, one after another, each come to what the model
// says; keys that stay keep their index, and nothing else is written.
func TestRandomChanges(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			list := generate(t, fmt.Sprintf("random,seed=%d,switches=5,hosts=12,routers=1,ca-ports=2", seed))
			r := rand.New(rand.NewPCG(seed, 3))
			y := randomTenancy(r, ends(list), 6)
			s := setup{list: list, policy: y.policy()}
			s.fabric.Profile = mixed(seed, 256)
			w := bringUp(t, s)
			for range 8 {
				old := w.tables()
				y = randomTenancy(r, ends(list), 1+r.IntN(8))
				w.forget()
				w.change(y.policy())
				w.checkUp(y)
				w.checkResult()
				w.checkIndexes(old)
				for _, a := range w.sets() {
					if a.AttributeID != smp.AttrPKeyTable && a.AttributeID != smp.AttrPortInfo {
						t.Errorf("Set(%s)", smp.AttributeName(a.AttributeID))
					}
				}
			}
		})
	}
}

// tables are the P_Key tables of all end ports.
func (w *world) tables() map[place][]ib.PKey {
	out := map[place][]ib.PKey{}
	for _, e := range w.ends() {
		out[e.place] = slices.Clone(w.table(e.place))
	}
	return out
}

// checkIndexes: a key that was in a table and still is has its index.
func (w *world) checkIndexes(old map[place][]ib.PKey) {
	w.t.Helper()
	for at, before := range old {
		now := w.table(at)
		for i, k := range before {
			if k.IsValid() && slices.Contains(now, k) && slices.Index(now, k) != i {
				w.t.Errorf("node %v port %d: %v was at index %d and is at %d", at.node, at.num, k, i, slices.Index(now, k))
			}
		}
	}
}

// A policy that does not fit is refused whole: the event names the port and its
// size, and the fabric stays as it is to the last byte.
func TestRefused(t *testing.T) {
	const small = 3
	list := topology.Demo()
	victim := list.Nodes[5]
	all := hosts(list)
	fits := halves(all)
	tooMuch := halves(all)
	for base := range ib.PKeyBase(small) {
		tooMuch.tenants = append(tooMuch.tenants, tenant{base: 0x100 + base, full: []ib.PortGUID{victim.Ports[1].GUID}})
	}
	twoFirst := fits.policy()
	for i := range twoFirst.Partitions {
		twoFirst.Partitions[i].Members = append(twoFirst.Partitions[i].Members, policy.Member{
			Selector: policy.Selector{Kind: policy.SelectNode, GUID: uint64(victim.GUID)}, Membership: policy.Full, Index0: true,
		})
	}
	s := setup{list: list}
	s.fabric.Profile = func(n *topology.Node, c *sma.Config) {
		if n.GUID == victim.GUID {
			c.PartitionCap = small
		}
	}
	for _, x := range []struct {
		name  string
		bad   *policy.Policy
		names []string
	}{
		{"PT-08 NI-20 table too small", tooMuch.policy(), []string{victim.Ports[1].GUID.String(), "3", "5"}},
		{"two keys for index 0", twoFirst, []string{victim.Ports[1].GUID.String(), "tenant-16", "tenant-32"}},
	} {
		t.Run(x.name+"/first start", func(t *testing.T) {
			s := s
			s.policy = x.bad
			w := newWorld(t, s)
			before := w.dump()
			w.settle()
			w.checkRefused(before, x.names)
			w.change(fits.policy()) // and goes on with one that fits
			w.checkUp(fits)
		})
		t.Run(x.name+"/running", func(t *testing.T) {
			s := s
			s.policy = fits.policy()
			w := bringUp(t, s)
			w.calm()
			before := w.dump()
			w.forget()
			w.change(x.bad)
			w.checkRefused(before, x.names)
			w.forget()
			w.run(engine.DefaultDriftPeriod) // the old one stays, and is looked after
			if n := len(w.sets()); n != 0 {
				t.Errorf("%d Sets after the refusal", n)
			}
			w.checkUp(fits)
			w.tamper(victim.ID)
			w.run(engine.DefaultDriftPeriod + engine.DefaultSweepInterval)
			w.checkKeys(fits)
		})
	}
}

// A device that a new policy does not fit holds up the others for as long as it
// is there; one that comes when the policy stands is fenced, and so it stays for
// the next policy and the next manager.
func TestRefusedUntilItFits(t *testing.T) {
	list := topology.Demo()
	y := tenancy{tenants: []tenant{{base: 0x10, full: hosts(list)[:8]}}}
	s := setup{list: list, policy: y.policy()}
	s.fabric.Profile = sizes(map[string]uint16{"red-1": 1})
	misfit := []string{"red-1"}
	checkFenced := func(w *world, y tenancy) {
		t.Helper()
		if n := len(all[event.Refused](w)); n != 0 {
			t.Fatalf("%d refusals: %v", n, all[event.Refused](w))
		}
		if !w.warned("fenced", guidOf(list, "red-1").String()) {
			t.Errorf("no word of red-1: %v", all[event.Warned](w))
		}
		for _, at := range []place{w.host("red-1"), w.switchPort("red-1")} {
			if got := valid(w.table(at)); len(got) != 1 || got[0].Base() != ib.PKeyBaseDefault {
				t.Errorf("%v holds %v, want the default partition only", at, got)
			}
		}
		if w.info(w.host("red-1")).PortState != smp.PortActive || w.info(w.host("red-1")).LID == 0 {
			t.Error("red-1 was not brought up")
		}
		if !w.result().Proof.Verdict.Holds() {
			t.Error(w.result().Proof)
		}
		w.checkRest(y, misfit)
	}
	t.Run("at first", func(t *testing.T) {
		w := newWorld(t, s)
		w.settle()
		w.checkRefused(w.dump(), nil)
		w.must(w.fabric.PowerOff(w.node("red-1").GUID))
		w.run(engine.DefaultDriftPeriod + time.Second)
		w.settle()
		w.checkRest(y, misfit)
	})
	t.Run("later", func(t *testing.T) {
		w := newWorld(t, s)
		w.must(w.fabric.PowerOff(w.node("red-1").GUID))
		w.settle()
		w.calm()
		w.checkRest(y, misfit)
		w.forget()
		w.must(w.fabric.PowerOn(w.node("red-1").GUID))
		w.tamper("red-2")
		w.run(engine.DefaultDriftPeriod)
		w.settle()
		checkFenced(w, y)
		next := y.move(hosts(list)[7], 0x10, 0)
		w.forget()
		w.change(next.policy())
		checkFenced(w, next)
		w.manager.Known = w.engine.Assigned()
		w.restart(y.policy())
		w.settle()
		checkFenced(w, y)
		w.calm()
		w.forget()
		bad := partitions(guidOf(list, "red-2"), 200, tenancy{}) // more than any device holds
		w.change(bad.policy())
		if !mentions[event.Refused](w, guidOf(list, "red-2").String()) || mentions[event.Refused](w, guidOf(list, "red-1").String()) {
			t.Errorf("refused with red-1, or not at all: %v", all[event.Refused](w))
		}
		w.must(w.fabric.PowerOff(w.node("red-1").GUID))
		w.run(2 * time.Second)
		w.settle()
		w.checkRest(y, misfit)
	})
}

func (w *world) checkRefused(before string, names []string) {
	w.t.Helper()
	refused := all[event.Refused](w)
	if len(refused) != 1 {
		w.t.Fatalf("%d refusals, want 1: %v", len(refused), w.events)
	}
	for _, name := range names {
		if !strings.Contains(refused[0].String(), name) {
			w.t.Errorf("%q does not name %s", refused[0], name)
		}
	}
	if len(w.sets()) != 0 {
		w.t.Errorf("%d Sets of a policy that was refused", len(w.sets()))
	}
	if d := firstDifference(before, w.dump()); d != "" {
		w.t.Errorf("the fabric has changed: %s", d)
	}
}

// tamper puts a foreign key into the table of a host, as its owner can.
func (w *world) tamper(id string) {
	w.t.Helper()
	at := w.host(id)
	w.agentSet(at, smp.AttrPKeyTable, 0, func(data *[mad.DataSize]byte) {
		var t smp.PKeyTable
		copy(t.Keys[:], w.table(at))
		t.Keys[2] = 0x8666
		w.encode(&t, data)
	})
}
