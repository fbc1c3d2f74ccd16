package opensm

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/manager/preview"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// square is four hosts at two leaves, with two spines between them, and what leaves it as it is.
func square() (f *observed.Fabric, d *observed.Desired, leaves, spines [2]*observed.Node, hosts []*observed.Port) {
	b := subnettest.New()
	for i, name := range []string{"a", "b"} {
		leaves[i], spines[i] = b.Switch(4, "leaf-"+name), b.Switch(2, "spine-"+name)
	}
	for _, leaf := range leaves {
		hosts = append(hosts, b.Host(leaf, leaf.Name()+"-1"), b.Host(leaf, leaf.Name()+"-2"))
	}
	for _, leaf := range leaves {
		for _, spine := range spines {
			subnettest.Join(leaf, spine)
		}
	}
	b.Route()
	b.ManagedFrom(hosts[0])
	d = observed.NewDesired(b.Fabric)
	for _, n := range b.Fabric.Nodes {
		if n.Switch != nil {
			d.Nodes[n.Index].LFT = slices.Clone(n.Switch.LFT[:n.Switch.Info.LinearFDBTop+1])
		}
	}
	return b.Fabric, d, leaves, spines, hosts
}

// looked is Look with the plan and preview of these values.
func looked(t *testing.T, f *observed.Fabric, d *observed.Desired) *Takeover {
	t.Helper()
	p := plan.Diff(f, d)
	v, err := preview.Look(preview.Input{Fabric: f, Desired: d, Plan: p})
	if err != nil {
		t.Fatal(err)
	}
	return Look(f, d, p, v, false)
}

const pairs = 4 * 3 // of hosts

func TestNothingChanges(t *testing.T) {
	f, d, _, _, _ := square()
	x := looked(t, f, d)
	if x.LIDs.Stay != 8 || x.Paths != (Paths{Stay: pairs}) || x.Routes.Changes+x.Routes.New > 0 || x.Routes.Stay == 0 || len(x.Writes) > 0 || x.Notice.Paths > 0 {
		t.Errorf("%+v", x)
	}
}

// TestPaths moves routes, and breaks those that there were.
func TestPaths(t *testing.T) {
	f, d, leaves, spines, hosts := square()
	to := hosts[2] // at the second leaf
	lid, table := to.Info.LID, d.Nodes[leaves[0].Index].LFT
	other := func(n *observed.Node, out ib.PortNum) ib.PortNum {
		for i := 1; i < len(n.Ports); i++ {
			if peer := n.Ports[i].Peer; peer != nil && peer.Node.Switch != nil && ib.PortNum(i) != out {
				return ib.PortNum(i)
			}
		}
		t.Fatalf("no other way from %s", n.Name())
		return 0
	}
	was := table[lid]
	table[lid] = other(leaves[0], was)
	x := looked(t, f, d)
	// Two hosts of the first leaf reach one of the second over the other spine.
	if x.Paths != (Paths{Stay: pairs - 2, Changes: 2}) || x.Routes.Changes != 1 || x.Notice.Paths != 2 {
		t.Errorf("one route moved: %+v, %+v, %+v", x.Paths, x.Routes, x.Notice)
	}
	if len(x.Writes) != 1 || x.Writes[0].Attribute != "LinearForwardingTable" || x.Writes[0].What != "block 0" {
		t.Errorf("writes %+v", x.Writes)
	}

	// Packets went in a circle between the first leaf and its spine: that is no way.
	spine := leaves[0].Ports[was].Peer.Node
	back := spine.Ports[1].Num
	if spine.Ports[1].Peer.Node != leaves[0] {
		back = 2
	}
	spine.Switch.LFT[lid] = back
	x = looked(t, f, d)
	if x.Paths != (Paths{Stay: pairs - 2, New: 2}) {
		t.Errorf("a circle: %+v", x.Paths)
	}

	// What was not read counts as new.
	spine.Switch.LFT[lid] = d.Nodes[spine.Index].LFT[lid]
	for _, n := range append(spines[:], leaves[:]...) {
		n.Switch.LFTRead = make([]bool, len(n.Switch.LFTRead))
	}
	if x = looked(t, f, d); x.Paths != (Paths{New: pairs}) || x.Routes.Stay > 0 {
		t.Errorf("nothing was read: %+v, %+v", x.Paths, x.Routes)
	}
}

// TestRandomTables: a switch with a random forwarding table sends each LID by the first entry
// that covers it, and by its default port without one.
func TestRandomTables(t *testing.T) {
	f, d, leaves, _, hosts := square()
	node := &d.Nodes[leaves[0].Index]
	table := node.LFT
	node.LFT = nil
	node.DefaultPort = table[hosts[2].Info.LID]
	for _, p := range f.EndPorts() {
		if out := table[p.Info.LID]; p.Info.LID != 0 && out != node.DefaultPort {
			node.RFT = append(node.RFT, smp.RandomEntry{LID: p.Info.LID, Valid: true, Port: out}, smp.RandomEntry{LID: p.Info.LID, Valid: true, Port: 99})
		}
	}
	x := looked(t, f, d)
	if x.Paths != (Paths{Stay: pairs}) || x.Routes.Changes+x.Routes.New > 0 {
		t.Errorf("the same routes in another form: %+v, %+v", x.Paths, x.Routes)
	}
	node.RFT = node.RFT[:0]
	if x = looked(t, f, d); x.Routes.Changes == 0 || x.Paths.Changes+x.Paths.New == 0 {
		t.Errorf("all routes to the default port: %+v, %+v", x.Paths, x.Routes)
	}
}

func TestLIDsAndKeys(t *testing.T) {
	f, d, leaves, _, hosts := square()
	want := func(p *observed.Port, lid ib.LID) {
		q := d.Port(p)
		q.Info, q.Elements = p.Info, observed.ElementLID
		q.Info.LID = lid
	}
	want(hosts[1], 77)
	want(hosts[2], hosts[2].Info.LID)
	hosts[3].Info.LID = 0
	want(hosts[3], 78)
	d.Port(hosts[1]).PKeys = []ib.PKey{0x7FFF, 0x8010}
	subnettest.SetPKeys(hosts[1], 0xFFFF, 0x8020, 0x8030)
	d.Port(hosts[0]).Reregister = true
	x := looked(t, f, d)
	if x.LIDs.New != 1 || len(x.LIDs.Changes) != 1 || x.LIDs.Changes[0].To != 77 || x.LIDs.Changes[0].GUID != hosts[1].GUID || x.LIDs.Stay != 6 {
		t.Errorf("LIDs %+v", x.LIDs)
	}
	if x.PKeys.Membership != 1 || x.PKeys.Added != 1 || x.PKeys.Removed != 2 || !slices.Equal(x.Notice.Keys, []string{leaves[0].Name() + "-2"}) || x.Notice.Reregister != 1 {
		t.Errorf("P_Keys %+v, notice %+v", x.PKeys, x.Notice)
	}
	// A path ends at another LID: it is another one.
	if x.Paths.Changes != 3 || x.Paths.New != 3 {
		t.Errorf("paths %+v", x.Paths)
	}
	if y := Look(f, d, plan.Diff(f, d), &preview.Preview{}, true); y.OwnKeys != 8 {
		t.Errorf("%d ports get keys", y.OwnKeys)
	}
}

// What a write of PortInfo is for decides how it is told.
func TestWhatIsWritten(t *testing.T) {
	_, d, leaves, _, _ := square()
	p := leaves[0].Port(1)
	for kind, want := range map[plan.Kind]string{
		plan.Activate: "PortState Active",
		plan.Counters: "violation counters",
	} {
		if got := describe(plan.Op{Kind: kind, Port: p, Attribute: smp.AttrPortInfo}, d, map[*observed.Port]bool{}); got != want {
			t.Errorf("%v: %q, want %q", kind, got, want)
		}
	}
}
