package simtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	saview "github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// site is a tenancy, the claims to index 0 in it, and the port that has an alias
// GUID, zero where there are no aliases.
type site struct {
	tenancy
	first map[ib.PKeyBase]ib.PortGUID
	alias ib.PortGUID
}

func (y site) policy() *policy.Policy {
	p := y.tenancy.policy()
	for i := range p.Partitions {
		for j := range p.Partitions[i].Members {
			m := &p.Partitions[i].Members[j]
			m.Index0 = ib.PortGUID(m.GUID) == y.first[p.Partitions[i].PKey]
		}
	}
	if y.alias != 0 {
		p.Aliases = []policy.PortAliases{{Port: y.alias, GUIDs: []ib.PortGUID{0x0200_0000_0000_0001}}}
	}
	return p
}

// edit changes a site as somebody does who runs it: in one place, now and then
// in all.
func (y site) edit(r *rand.Rand, ports []ib.PortGUID) site {
	g, h := ports[r.IntN(len(ports))], ports[r.IntN(len(ports))]
	next := site{tenancy{full: y.full}, maps.Clone(y.first), y.alias}
	for _, x := range y.tenants {
		x.full, x.limited = slices.Clone(x.full), slices.Clone(x.limited)
		next.tenants = append(next.tenants, x)
	}
	in := &next.tenants[r.IntN(len(next.tenants))]
	without := func(x ib.PortGUID) bool { return x == g || x == h }
	switch n := r.IntN(15); n {
	case 0:
		return site{randomTenancy(r, ports, 1+r.IntN(6)), map[ib.PKeyBase]ib.PortGUID{}, y.alias}
	case 1:
		next.full = !next.full
	case 2: // a tenant comes
		next.tenants = append(next.tenants, tenant{base: ib.PKeyBase(0x4000 + r.IntN(0x100)), full: []ib.PortGUID{g}})
	case 3: // a tenant goes, with its key
		if len(next.tenants) > 1 {
			next.tenants = slices.Delete(next.tenants, 0, 1)
		}
	case 4: // or is given another
		in.base = ib.PKeyBase(0x5000 + r.IntN(0x100))
	case 5: // virtual lanes come into use, or go out of it
		in.sl = ib.SL(r.IntN(2))
	case 6:
		next.first[in.base] = g
	case 14: // the alias, if there is one, goes to another port
		if y.alias != 0 {
			next.alias = g
		}
	default: // a host goes, comes, or becomes something else; two may change places
		was := slices.Contains(in.full, g)
		in.full, in.limited = slices.DeleteFunc(in.full, without), slices.DeleteFunc(in.limited, without)
		switch {
		case was:
			in.full = append(in.full, h)
		case n < 10:
			in.full = append(in.full, g)
		case n < 12:
			in.limited = append(in.limited, g)
		}
	}
	seen := map[ib.PKeyBase]bool{}
	next.tenants = slices.DeleteFunc(next.tenants, func(x tenant) bool {
		twice := seen[x.base]
		seen[x.base] = true
		return twice
	})
	return next
}

// trouble lets something happen to the fabric between two policies. lossy tells
// that writes need not hold.
func (w *world) trouble(r *rand.Rand, ids []string) (what string, lossy bool) {
	id, other := ids[r.IntN(len(ids))], ids[r.IntN(len(ids))]
	at := w.switchPort(id)
	guard := w.nodeOf(at.node).ID
	w.must(w.fabric.SetLoss(0))
	for _, n := range w.list.Nodes {
		w.must(w.fabric.SetFault(n.GUID, fabric.Fault{}))
	}
	switch r.IntN(20) {
	case 0:
		w.tamper(id)
		return "the table of " + id + " is tampered with", false
	case 1:
		w.tamper(id)
		w.calm()
		return "the table of " + id + " is tampered with and put right", false
	case 2, 3:
		w.deaf(id, smp.AttrPKeyTable, true)
		w.tamper(id)
		w.calm()
		w.mute(id, false)
		return "the table of " + id + " is tampered with and could not be put right", false
	case 4:
		w.calm()
		return "time passes", false
	case 5:
		w.must(w.fabric.SetLoss(0.3))
		return "packets are lost", true
	case 6, 7:
		w.deaf(id, smp.AttrPKeyTable, r.IntN(2) == 0)
		return id + " takes no tables", true
	case 8:
		w.must(w.fabric.PowerOff(w.node(id).GUID))
		w.must(w.fabric.PowerOn(w.node(id).GUID))
		w.calm()
		return id + " begins again", false
	case 9, 10:
		w.deaf(guard, smp.AttrPortInfo, true)
		info := w.agent(at.node).Port(at.num)
		info.PartitionEnforcementInbound = !info.PartitionEnforcementInbound
		w.run(2 * engine.DefaultSweepInterval)
		return "the switch port of " + id + " is tampered with and cannot be put right", true
	case 11:
		w.info(w.host(id)).LID += 300
		w.must(w.fabric.PowerOff(w.node(other).GUID))
		w.must(w.fabric.PowerOn(w.node(other).GUID))
		w.calm()
		return id + " has another LID, and " + other + " begins again", false
	}
	return "nothing", false
}

// nodeOf finds a node of the topology by its GUID.
func (w *world) nodeOf(g ib.NodeGUID) *topology.Node {
	i := slices.IndexFunc(w.list.Nodes, func(n *topology.Node) bool { return n.GUID == g })
	return w.list.Nodes[i]
}

// whole is what looking at everything comes to, worked out beside the manager
// from what it has read.
type whole struct {
	*desired.Result
	plan *plan.Plan
}

func (w *world) whole(y site) (x whole, err error) {
	c := w.manager
	c.Routing = routing.UpDown
	c.Known = w.engine.Assigned()
	c.Known.Forgets = nil // the snapshot has them
	if x.Result, err = desired.Predict(c.Desired(w.engine.Fabric()), y.policy()); err == nil {
		x.plan = plan.Diff(w.engine.Fabric(), x.Tables)
	}
	return x, err
}

// written are the blocks that a plan writes, and those that agents were sent.
func (x whole) written() (out []string) {
	for _, s := range x.plan.Stages {
		for _, op := range s.Ops {
			out = append(out, fmt.Sprintf("%v %s 0x%x", op.Port.Node.GUID(), smp.AttributeName(op.Attribute), op.Modifier))
		}
	}
	return out
}

func (w *world) written() (out []string) {
	for _, a := range w.sets() {
		block := a.AttributeModifier
		if a.AttributeID == smp.AttrPortInfo {
			block &= 1<<31 - 1 // the bit of extended speeds is of the request, not of the block
		}
		out = append(out, fmt.Sprintf("%v %s 0x%x", a.node, smp.AttributeName(a.AttributeID), block))
	}
	return out
}

// checkAgainst holds a pass against what looking at the whole came to before it.
func (w *world) checkAgainst(x whole, lossy bool) {
	w.t.Helper()
	var warned []string
	for _, e := range all[event.Warned](w) {
		warned = append(warned, e.Text)
	}
	if d := cmp.Diff(x.Warnings, warned); d != "" && !lossy {
		w.t.Errorf("warnings (-whole +manager)\n%s", d)
	}
	result := w.result()
	if d := cmp.Diff(x.Assigned.LIDs, w.engine.Assigned().LIDs); d != "" {
		w.t.Errorf("LIDs (-whole +manager)\n%s", d)
	}
	if result.Counts != w.engine.Fabric().Count() {
		w.t.Errorf("counts %+v, want %+v", result.Counts, w.engine.Fabric().Count())
	}
	if lossy {
		return
	}
	if left := plan.Diff(w.engine.Fabric(), x.Tables); left.Len() > 0 {
		w.t.Errorf("tables other than a look at the whole wants: %v", left.Stages)
	}
	if result.Writes != x.plan.Len() {
		w.t.Errorf("%d writes, want %d", result.Writes, x.plan.Len())
	}
	// Some blocks are written twice, and a write may be sent again when its
	// answer is late.
	unique := func(blocks []string) []string { slices.Sort(blocks); return slices.Compact(blocks) }
	if d := cmp.Diff(unique(x.written()), unique(w.written())); d != "" {
		w.t.Errorf("writes (-whole +manager)\n%s", d)
	}
}

// A manager that looks at what changed only comes to what a look at the whole
// comes to: the same writes, the same proof with the same witnesses, the same
// warnings; whatever happens to the fabric meanwhile.
func TestIncrementalPassEqualsFullPass(t *testing.T) {
	seeds, steps := need.Share[uint64](3, 40), 50
	if os.Getenv("IBWARDEN_SOAK") != "" {
		seeds, steps = 200, 200
	}
	amended, looked := make([]int, seeds), make([]int, seeds)
	t.Run("seeds", func(t *testing.T) {
		for seed := range seeds {
			t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
				t.Parallel()
				amended[seed], looked[seed] = amendments(t, seed, steps)
			})
		}
	})
	total, of := 0, 0
	for i := range amended {
		total, of = total+amended[i], of+looked[i]
	}
	t.Logf("%d passes looked at what changed only, %d at everything", total, of-total)
	if total == 0 || of == total {
		t.Error("want some of each")
	}
}

func amendments(t *testing.T, seed uint64, steps int) (amended, passes int) {
	list := generate(t, fmt.Sprintf("random,seed=%d,switches=5,hosts=12,routers=1,ca-ports=2", seed))
	r := rand.New(rand.NewPCG(seed, 11))
	ports := ends(list)
	s := setup{list: list}
	if seed%3 != 0 {
		s.fabric.Profile = mixed(seed, 256)
	}
	var ids []string
	for _, n := range list.Nodes[1:] {
		if n.Type == ib.NodeCA && n.Ports[1].Peer != nil {
			ids = append(ids, n.ID)
		}
	}
	if seed%4 == 0 { // one host has no table, of which every pass warns
		odd := list.Nodes[slices.IndexFunc(list.Nodes, func(n *topology.Node) bool { return n.ID == ids[0] })]
		s.fabric.Drop = lie(odd.GUID, func(i *smp.NodeInfo) { i.PartitionCap = 0 })
		ports = slices.DeleteFunc(ports, func(g ib.PortGUID) bool {
			return slices.ContainsFunc(odd.Ports, func(p topology.Port) bool { return p.GUID == g })
		})
		ids = ids[1:]
	}
	y := site{randomTenancy(r, ports, 6), map[ib.PKeyBase]ib.PortGUID{}, 0}
	if seed%5 == 1 {
		y.alias = ports[0]
	}
	s.policy = y.policy()
	w := bringUp(t, s)
	if seed%2 == 0 {
		w.calm()
	}
	var allowed []observed.Partition
	var kept *saview.View
	w.completed = func(r *event.Result) {
		if snapshot, ok := w.engine.Subnet(); ok {
			kept = saview.After(kept, snapshot)
			checkView(t, kept, saview.NewView(snapshot), r.Compiled)
		}
		if d := cmp.Diff(isolation.Prove(w.engine.Fabric(), allowed), r.Proof); d != "" && allowed != nil {
			t.Errorf("proof (-whole +manager)\n%s", d)
		}
	}
	for step := range steps {
		w.forget()
		what, lossy := w.trouble(r, ids)
		w.run(time.Second) // late copies of what was sent before land
		w.settle()
		y = y.edit(r, ports)
		w.forget()
		doubted := w.doubts() // routes are kept then, where a first look has none
		x, err := w.whole(y)
		allowed = nil
		if err == nil {
			allowed = x.Resolution.Partitions
		}
		w.change(y.policy())
		// A sweep comes first, or a round of checks fell due in the same moment and
		// found what somebody had changed before: its writes are not the policy's.
		swept := len(all[event.Resweeping](w)) > 0 || len(all[event.Drifted](w)) > 0 || len(w.events) == 0
		if refused := len(all[event.Refused](w)) > 0; !swept && refused != (err != nil) {
			t.Errorf("a look at the whole: %v; the manager: %v", err, w.events)
		}
		if swept || err != nil {
			allowed = nil
			w.must(w.fabric.SetLoss(0))
			w.calm()
			continue
		}
		w.checkAgainst(x, lossy || doubted)
		passes++
		if w.result().Compiled < len(ports) {
			amended++
		}
		if t.Failed() {
			t.Fatalf("seed %d, step %d, %s", seed, step, what)
		}
	}
	return amended, passes
}

// doubts reports whether the manager does not know the state of some port.
func (w *world) doubts() bool {
	return slices.ContainsFunc(w.engine.Fabric().Nodes, func(n *observed.Node) bool {
		return slices.ContainsFunc(n.Ports, func(p observed.Port) bool { return p.Reached && !p.InfoRead })
	})
}

// checkView holds a view that was kept from pass to pass against a new one: who
// there is, who has which keys, and the ways of one port chosen by turn.
func checkView(t *testing.T, kept, fresh *saview.View, turn int) {
	if len(kept.Ports) != len(fresh.Ports) {
		t.Fatalf("administration: %d ports, want %d", len(kept.Ports), len(fresh.Ports))
	}
	for i, want := range fresh.Ports {
		got := kept.Ports[i]
		if got.Port != want.Port || got.LID != want.LID || got.Contested != want.Contested || !slices.Equal(got.Keys, want.Keys) {
			t.Errorf("administration: %s has %v, want %v", want, got.Keys, want.Keys)
		}
		from := turn % len(fresh.Ports)
		way, ok := kept.Path(kept.Ports[from], got, kept.Ports[from].LID, got.LID)
		if wanted, there := fresh.Path(fresh.Ports[from], want, fresh.Ports[from].LID, want.LID); way != wanted || ok != there {
			t.Errorf("administration: way from %s to %s is %v, want %v", fresh.Ports[from], want, way, wanted)
		}
	}
	for _, p := range fresh.Partitions {
		if got := kept.Partition(p.Base); got == nil || got.Name != p.Name || got.SL != p.SL || got.RateLimit != p.RateLimit {
			t.Errorf("administration: partition %v is %v", p.Base, got)
		}
	}
}
