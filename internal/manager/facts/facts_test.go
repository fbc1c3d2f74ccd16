package facts

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/manager/desired/partition"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// chain is two switches with a host each, and the manager at the first.
func chain() (b *subnettest.Builder, self, near, far *observed.Port) {
	b = subnettest.New()
	first, second := b.Switch(4, "first"), b.Switch(4, "second")
	self, near = b.Host(first, "self"), b.Host(first, "near")
	subnettest.Join(first, second)
	far = b.Host(second, "far")
	b.ManagedFrom(self)
	return b, self, near, far
}

// sent is a directed route from a port to the manager as it arrives: each switch has
// written down by which port the packet came in. made is what the sender wrote.
func sent(f *observed.Fabric, from *observed.Port, made ...ib.PortNum) *mad.SMP {
	p := &mad.SMP{}
	p.Class, p.DrSLID, p.DrDLID = mad.ClassSubnDirected, ib.LIDPermissive, ib.LIDPermissive
	entered := slices.Clone(from.Path) // seen from the manager: its own port first
	slices.Reverse(entered)
	back := append(slices.Clone(made), entered...)
	for i, n := range back {
		p.ReturnPath[i+1] = uint8(n)
	}
	p.HopCount = uint8(len(back))
	return p
}

// The port that a packet came from is told by what switches wrote, not by what its
// sender made up.
func TestCameFrom(t *testing.T) {
	b, self, near, far := chain()
	ends := b.Fabric.EndPorts()
	for _, p := range ends {
		if p == self {
			continue
		}
		if got, shown := CameFrom(b.Fabric, ends, sent(b.Fabric, p), 0); got != p || !shown {
			t.Errorf("from %s: %v, %v", p, got, shown)
		}
	}
	for name, p := range map[string]*mad.SMP{
		"a hop before the sender's own port": sent(b.Fabric, near, 1),
		"two such":                           sent(b.Fabric, far, 3, 1),
		"a port that no switch has":          sent(b.Fabric, self, 200),
	} {
		if got, shown := CameFrom(b.Fabric, ends, p, 0); got != nil || shown {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, change := range map[string]func(p *mad.SMP){
		"no hop":                 func(p *mad.SMP) { p.HopCount = 0 },
		"too many hops":          func(p *mad.SMP) { p.HopCount = mad.MaxHops + 1 },
		"part of it by LID":      func(p *mad.SMP) { p.DrSLID = 3 },
		"the rest of it by LID":  func(p *mad.SMP) { p.DrDLID = 3 },
		"not by the manager's":   func(p *mad.SMP) { p.ReturnPath[p.HopCount] = 2 },
		"a port without a cable": func(p *mad.SMP) { p.ReturnPath[p.HopCount-1] = 4 },
	} {
		p := sent(b.Fabric, far)
		change(p)
		if got, _ := CameFrom(b.Fabric, ends, p, far.Info.LID); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	far.Reached = false
	if got, _ := CameFrom(b.Fabric, ends, sent(b.Fabric, far), 0); got != nil {
		t.Errorf("a port that no sweep has reached: %v", got)
	}
	byLID := &mad.SMP{}
	byLID.Class = mad.ClassSubnLID
	if got, shown := CameFrom(b.Fabric, ends, byLID, near.Info.LID); got != near || shown {
		t.Errorf("by LID: %v, and shown %v: who sends chooses it", got, shown)
	}
}

// A manager with two ports has requests come in by the one that it manages from.
func TestCameFromTheOtherPort(t *testing.T) {
	b := subnettest.New()
	sw := b.Switch(4, "switch")
	self := b.Node(ib.NodeCA, 2, "self")
	subnettest.Join(self, sw)
	subnettest.Join(self, sw)
	host := b.Host(sw, "host")
	b.ManagedFrom(&self.Ports[1])
	for port, want := range map[byte]*observed.Port{1: host, 2: nil} {
		p := sent(b.Fabric, host)
		p.ReturnPath[p.HopCount] = port
		if got, _ := CameFrom(b.Fabric, b.Fabric.EndPorts(), p, 0); got != want {
			t.Errorf("by port %d: from %v, want %v", port, got, want)
		}
	}
}

// Whatever a packet says, nothing breaks, and who it is said to come from has a path
// that ends with what the packet has last.
func TestCameFromAnything(t *testing.T) {
	b, _, _, _ := chain()
	ends := b.Fabric.EndPorts()
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	found := 0
	for range 20000 {
		p := &mad.SMP{}
		p.Class, p.DrSLID, p.DrDLID, p.HopCount = mad.ClassSubnDirected, ib.LIDPermissive, ib.LIDPermissive, uint8(r.IntN(5))
		for i := range p.ReturnPath {
			p.ReturnPath[i] = uint8(r.IntN(6))
		}
		from, shown := CameFrom(b.Fabric, ends, p, 0)
		if (from != nil) != shown {
			t.Fatalf("seed %d: %v, %v", seed, from, shown)
		}
		if from == nil {
			continue
		}
		found++
		if want := sent(b.Fabric, from); want.HopCount != p.HopCount || want.ReturnPath[p.HopCount] != p.ReturnPath[p.HopCount] {
			// The packet may have gone round; its first hops lead to the port all the same.
			at := b.Fabric.Self
			for i := p.HopCount; i > 0; i-- {
				at = at.Node.Ports[p.ReturnPath[i]].Peer
			}
			if at.Agent() != from {
				t.Fatalf("seed %d: %v leads to %s, not to %s", seed, p.ReturnPath[:p.HopCount+1], at, from)
			}
		}
	}
	if found == 0 {
		t.Errorf("seed %d: no packet came from anywhere", seed)
	}
}

func TestOwnerOf(t *testing.T) {
	b := subnettest.New()
	b.PortInfo.LMC = 2
	p, q := b.Host(nil, "p"), b.Host(nil, "q") // LIDs 4 to 7, 8 to 11
	ends := b.Fabric.EndPorts()
	for lid, want := range map[ib.LID]*observed.Port{0: nil, 3: nil, 4: p, 7: p, 8: q, 11: q, 12: nil} {
		if got := OwnerOf(ends, lid); got != want {
			t.Errorf("LID %d: %v, want %v", lid, got, want)
		}
	}
	q.Info.LID = 6
	if OwnerOf(ends, 6) != nil || OwnerOf(ends, 5) != p {
		t.Error("a LID that two ports have is nobody's")
	}
	if p.InfoRead = false; OwnerOf(ends, 5) != nil || OwnerOf(ends, 6) != q {
		t.Error("a LID that was not read counts")
	}
	if p.InfoRead, p.Info.LID, p.Info.LMC = true, 0, 0; OwnerOf(ends, 0) != nil {
		t.Error("LID 0 is nobody's")
	}
}

// A place is one port or none.
func TestPortAt(t *testing.T) {
	b := subnettest.New()
	x, y := b.Switch(2, "leaf"), b.Switch(2, "leaf")
	only := b.Switch(2, "only")
	for _, c := range []struct {
		at   policy.Place
		want *observed.Port
	}{
		{policy.Place{Name: "only", Port: 2}, &only.Ports[2]},
		{policy.Place{Name: "leaf", Port: 2}, nil},
		{policy.Place{Switch: x.GUID(), Port: 1}, &x.Ports[1]},
		{policy.Place{Switch: y.GUID(), Name: "only", Port: 1}, &y.Ports[1]},
		{policy.Place{Name: "only", Port: 3}, nil},
		{policy.Place{Name: "only", Port: 0}, nil},
		{policy.Place{Name: "none", Port: 1}, nil},
		{policy.Place{Switch: 7, Port: 1}, nil},
	} {
		if got := PortAt(b.Fabric, c.at); got != c.want {
			t.Errorf("%+v: %v, want %v", c.at, got, c.want)
		}
	}
}

// A port and the switch port before it are described as they are; a cable to a
// switch is no place of a host.
func TestFactsOfPorts(t *testing.T) {
	b, self, near, _ := chain()
	subnettest.SetPKeysThrough(near, 0x8010)
	want := policy.EndPort{PortGUID: near.GUID, NodeGUID: near.Node.GUID(), PortNum: 1, Description: "near", NodeType: ib.NodeCA,
		Switch: near.Peer.Node.GUID(), SwitchName: "first", SwitchPort: 2}
	if d := cmp.Diff(want, Identity(near, false)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if x := Identity(self, true); !x.SM {
		t.Error("the manager's own port")
	}
	if x := Identity(&b.Fabric.Switches()[0].Ports[0], false); x.Switch != 0 || x.PortNum != 0 {
		t.Errorf("port 0 of a switch stands before no switch port: %+v", x)
	}
	near.Peer.Node.Switch.Info.OutboundEnforcementCap = false
	got := OfEnd(near)
	guard := partition.SwitchPortFacts{SwitchGUID: near.Peer.Node.GUID(), PortNum: 2, Cap: 32, InboundCap: true}
	if got.PortGUID != near.GUID || got.Cap != 32 || got.Current[0] != 0x8010 || cmp.Diff(&guard, got.Facing) != "" {
		t.Errorf("%+v, %+v", got, got.Facing)
	}
	if x := OfEnd(&b.Fabric.Switches()[1].Ports[0]); x.Facing != nil {
		t.Errorf("%+v", x.Facing)
	}
}

// Only a host behind a switch port can have a small table to speak of, and small is
// what is below the middle.
func TestSmallTables(t *testing.T) {
	b := subnettest.New()
	sw := b.Switch(6, "switch")
	var ports []*observed.Port
	for _, size := range []uint16{128, 128, 64, 128, 2} {
		b.NodeInfo.PartitionCap = size
		ports = append(ports, b.Host(sw, ""))
	}
	want := map[ib.PortGUID]bool{ports[2].GUID: true, ports[4].GUID: true}
	if d := cmp.Diff(want, SmallTables(b.Fabric.EndPorts())); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestTally(t *testing.T) {
	b, self, near, far := chain()
	got := Tally(map[*observed.Port]observed.Element{
		far: observed.ElementHOQLife, near: observed.ElementHOQLife, &b.Fabric.Nodes[0].Ports[2]: observed.ElementHOQLife, &b.Fabric.Nodes[0].Ports[1]: observed.ElementHOQLife,
		self: observed.ElementLID,
	})
	if len(got) != 2 || got[0].Elements != observed.ElementLID || got[0].Ports != 1 || got[0].Example != self ||
		got[1].Ports != 4 || got[1].Example != &b.Fabric.Nodes[0].Ports[1] {
		t.Errorf("%+v", got)
	}
}

// Who is affected by what was read is the end port, or the one behind a switch port;
// of a GUID that two ports have both.
func TestAffected(t *testing.T) {
	b, self, near, far := chain()
	ends := b.Fabric.EndPorts()
	stale := map[*observed.Port]bool{near: true, far.Peer: true, &b.Fabric.Nodes[0].Ports[3]: true}
	if got := Affected(ends, nil, stale); !slices.Equal(got, []*observed.Port{near, far}) {
		t.Errorf("%v", got)
	}
	if got := Affected(ends, []ib.PortGUID{self.GUID, self.GUID, 0x999}, nil); !slices.Equal(got, []*observed.Port{self}) {
		t.Errorf("%v", got)
	}
	far.GUID = near.GUID
	ends = b.Fabric.EndPorts()
	if got := Affected(ends, []ib.PortGUID{near.GUID}, nil); len(got) != 2 {
		t.Errorf("two ports of one GUID: %v", got)
	}
}

// A warning names some switch ports for each reason, and counts the others.
func TestIncapable(t *testing.T) {
	b := subnettest.New()
	sw := b.Switch(8, "switch")
	var lacking []partition.NotEnforced
	for i := range 6 {
		x := partition.NotEnforced{PortNum: ib.PortNum(i + 1), Cap: 2, Needed: 5, Reasons: []partition.Reason{partition.TableTooSmall}}
		if i == 5 {
			x.Reasons = nil
		}
		lacking = append(lacking, x)
	}
	got := Incapable(lacking, func(x partition.NotEnforced) *observed.Port {
		if x.PortNum == 6 {
			return nil
		}
		return &sw.Ports[x.PortNum]
	})
	if len(got) != 1 || !strings.Contains(got[0], "switch:1, switch:2, switch:3 and 2 more: ") || !strings.Contains(got[0], "(2 entries, 5 needed)") {
		t.Errorf("%q", got)
	}
}
