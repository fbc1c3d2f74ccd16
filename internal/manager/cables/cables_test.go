package cables

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// found is a subnet as a sweep would find it, from the first node.
func found(t testing.TB, n *topology.Netlist) *observed.Fabric {
	t.Helper()
	f := observed.NewFabric()
	for _, x := range n.Nodes {
		info := smp.NodeInfo{NodeType: x.Type, NumPorts: uint8(x.NumPorts()), NodeGUID: x.GUID, PartitionCap: 32}
		if x.Type == ib.NodeSwitch {
			info.PortGUID = x.Ports[0].GUID
		}
		m := f.AddNode(info)
		m.Description = x.Description
		if m.Switch != nil {
			m.Switch.InfoRead = true
		}
		for i := range m.Ports {
			p := &m.Ports[i]
			if x.Ports[i].Peer == nil && !(i == 0 && m.Switch != nil) {
				continue
			}
			p.Reached, p.InfoRead = true, true
			p.Info.PortState, p.Info.PortPhysicalState = smp.PortActive, smp.PhysLinkUp
			if x.IsEndPort(i) {
				p.GUID = x.Ports[i].GUID
			}
		}
	}
	for _, x := range n.Nodes {
		for i := range x.Ports {
			if peer := x.Ports[i].Peer; peer != nil {
				observed.Connect(&f.Node(x.GUID).Ports[i], &f.Node(peer.GUID).Ports[x.Ports[i].PeerPort])
			}
		}
	}
	first := f.Nodes[0]
	if f.Self = &first.Ports[1]; first.Switch != nil {
		f.Self = &first.Ports[0]
	}
	return f
}

func trusting(*observed.Port) string { return "" }

func learned(t testing.TB, f *observed.Fabric) (*List, []Left) {
	t.Helper()
	l, left, err := Learn(f, trusting)
	if err != nil {
		t.Fatal(err)
	}
	return l, left
}

func generate(t testing.TB, spec string) *topology.Netlist {
	t.Helper()
	if spec == "demo" {
		return topology.Demo()
	}
	n, err := topology.Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// port finds a port by the id of its node.
func port(t testing.TB, n *topology.Netlist, f *observed.Fabric, id string, num int) *observed.Port {
	t.Helper()
	i := slices.IndexFunc(n.Nodes, func(x *topology.Node) bool { return x.ID == id })
	if i < 0 {
		t.Fatalf("no node %q", id)
	}
	return &f.Node(n.Nodes[i].GUID).Ports[num]
}

func written(t testing.TB, l *List) string {
	t.Helper()
	var b bytes.Buffer
	if err := l.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// What is learned holds every cable, is the same after a trip through a file, and
// differs in nothing from what it was learned from.
func TestLearnWhole(t *testing.T) {
	for _, spec := range []string{"demo", "fattree,radix=8,levels=2", "torus,x=2,y=3,z=2", "torus,x=1,y=1", "dragonfly,groups=3", "random,switches=9,hosts=30,ports=16,seed=5"} {
		t.Run(spec, func(t *testing.T) {
			n := generate(t, spec)
			f := found(t, n)
			l, left := learned(t, f)
			if len(left) > 0 {
				t.Fatalf("left out: %v", left)
			}
			if l.Cables() != len(f.Links()) || len(l.Devices()) != len(f.Nodes) {
				t.Errorf("%d cables of %d, %d devices of %d", l.Cables(), len(f.Links()), len(l.Devices()), len(f.Nodes))
			}
			again, err := Read([]byte(written(t, l)), "again")
			if err != nil {
				t.Fatal(err)
			}
			if a, b := written(t, l), written(t, again); a != b || !slices.Equal(l.Devices(), again.Devices()) {
				t.Error("a list that was written reads back otherwise")
			}
			for _, m := range f.Nodes {
				for i := range m.Ports {
					p := &m.Ports[i]
					peer, ok := again.Peer(p.Place())
					if ok != (p.Peer != nil) || ok && peer != p.Peer.Place() {
						t.Errorf("%v: listed with %v %v", p, peer, ok)
					}
					if g := again.PortGUID(p.Place()); p.Reached && g != p.GUID {
						t.Errorf("%v: port GUID %v, listed with %v", p, p.GUID, g)
					}
					if ok {
						info := p.Peer.Node.Info
						info.LocalPortNum = p.Peer.Num
						if info.NodeType != ib.NodeSwitch {
							info.PortGUID = p.Peer.GUID
						}
						checkExact(t, again, p.Place(), info)
					}
				}
			}
			if d := again.Diff(f); len(d) > 0 {
				t.Errorf("differs: %v", d)
			}
		})
	}
}

// checkExact: what stands there is accepted, and nothing that differs in any one
// thing that counts.
func checkExact(t *testing.T, l *List, at observed.Place, info smp.NodeInfo) {
	t.Helper()
	if err := l.Check(at, &info); err != nil {
		t.Errorf("%s: %v", l.Name(at), err)
	}
	for what, change := range map[string]func(*smp.NodeInfo){
		"node GUID": func(i *smp.NodeInfo) { i.NodeGUID++ },
		"type":      func(i *smp.NodeInfo) { i.NodeType = i.NodeType%3 + 1 },
		"ports":     func(i *smp.NodeInfo) { i.NumPorts++ },
		"port":      func(i *smp.NodeInfo) { i.LocalPortNum++ },
		"port GUID": func(i *smp.NodeInfo) { i.PortGUID++ },
	} {
		other := info
		change(&other)
		if l.Check(at, &other) == nil {
			t.Errorf("%s: another %s is taken for what is listed", l.Name(at), what)
		}
	}
}

// Descriptions come from devices: none of them makes a list that reads back
// otherwise, or not at all.
func TestDescriptions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range need.Share(500, 2000) {
		n := topology.Demo()
		f := found(t, n)
		x := f.Nodes[r.IntN(len(f.Nodes))]
		b := make([]byte, r.IntN(65))
		for j := range b {
			b[j] = byte(r.IntN(256))
			if r.IntN(2) == 0 {
				b[j] = "\"#@[]() =\\\t\n\x00lid 1 lmc"[r.IntN(22)]
			}
		}
		x.Description = string(b)
		l, _ := learned(t, f)
		if d, _ := l.Device(x.GUID()); d.Description != topology.PlainText(x.Description) {
			t.Fatalf("%d: %q is listed as %q", i, x.Description, d.Description)
		}
		if d := l.Diff(f); len(d) > 0 {
			t.Fatalf("%q differs: %v", x.Description, d)
		}
	}
}

// turnedAway is who is behind the port of blue-6 and was not let in.
func turnedAway(t *testing.T, n *topology.Netlist, f *observed.Fabric) *observed.Stranger {
	t.Helper()
	at := port(t, n, f, "blue-6", 1).Peer
	at.Stranger = &observed.Stranger{Why: fmt.Errorf("255 ports")}
	return at.Stranger
}

// What is contradicted is not learned, at either of its ends, and nothing else is
// lost by it.
func TestLearnNot(t *testing.T) {
	for _, x := range []struct {
		name    string
		doubt   string // of the cable at red-1
		change  func(t *testing.T, n *topology.Netlist, f *observed.Fabric)
		without []string
	}{
		{"a doubt of the sweep", "it leads elsewhere now", nil, []string{"red-1"}},
		{"a node GUID claimed twice", "", func(t *testing.T, n *topology.Netlist, f *observed.Fabric) {
			port(t, n, f, "red-1", 1).Node.Contested = true
		}, []string{"red-1"}},
		{"a port GUID claimed twice", "", func(t *testing.T, n *topology.Netlist, f *observed.Fabric) {
			port(t, n, f, "red-1", 1).GUID = port(t, n, f, "blue-6", 1).GUID
		}, []string{"red-1", "blue-6"}},
		{"a port GUID that a stranger claims", "", func(t *testing.T, n *topology.Netlist, f *observed.Fabric) {
			turnedAway(t, n, f).Info.PortGUID = port(t, n, f, "red-1", 1).GUID
		}, []string{"red-1", "blue-6"}},
		{"a node GUID that a stranger claims", "", func(t *testing.T, n *topology.Netlist, f *observed.Fabric) {
			turnedAway(t, n, f).Info.NodeGUID = port(t, n, f, "red-1", 1).Node.GUID()
		}, []string{"red-1", "blue-6"}},
		{"what a stranger claims and cannot be", "", func(t *testing.T, n *topology.Netlist, f *observed.Fabric) {
			s := turnedAway(t, n, f)
			s.Info.NodeGUID, s.Info.PortGUID = port(t, n, f, "spine-1", 0).Node.GUID(), port(t, n, f, "mgmt-1", 1).GUID
		}, []string{"blue-6"}},
		{"no port GUID", "", func(t *testing.T, n *topology.Netlist, f *observed.Fabric) {
			port(t, n, f, "red-1", 1).GUID = 0
		}, []string{"red-1"}},
		{"PortInfo not read", "", func(t *testing.T, n *topology.Netlist, f *observed.Fabric) {
			port(t, n, f, "red-1", 1).InfoRead = false
		}, []string{"red-1"}},
		{"no SwitchInfo", "", func(t *testing.T, n *topology.Netlist, f *observed.Fabric) {
			port(t, n, f, "spine-1", 0).Node.Switch.InfoRead = false
		}, []string{"spine-1"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			n := topology.Demo()
			f := found(t, n)
			if x.change != nil {
				x.change(t, n, f)
			}
			l, left, err := Learn(f, func(p *observed.Port) string {
				if x.doubt != "" && p == port(t, n, f, "red-1", 1) {
					return x.doubt
				}
				return ""
			})
			if err != nil {
				t.Fatal(err)
			}
			if want := len(f.Nodes) - len(x.without); len(l.Devices()) != want {
				t.Errorf("%d devices, want %d", len(l.Devices()), want)
			}
			for _, id := range x.without {
				p := port(t, n, f, id, 1)
				if _, ok := l.Device(p.Node.GUID()); ok {
					t.Errorf("%s is listed", id)
				}
				if !slices.ContainsFunc(left, func(m Left) bool { return m.At == p.Peer.Place() && m.Reason != "" }) {
					t.Errorf("%s is not named: %v", id, left)
				}
			}
		})
	}
}

// A device that says it is a switch, a chain of them or a whole ring, with nobody
// behind it and one cable to the rest, is not learned; a leaf with one cable and
// hosts is.
func TestLearnNoIdleBranch(t *testing.T) {
	for hosts := range 2 {
		for _, shape := range []string{"one", "chain", "ring", "doubled"} {
			t.Run(fmt.Sprint(shape, " with ", hosts, " hosts"), func(t *testing.T) {
				n := topology.Demo()
				red := slices.IndexFunc(n.Nodes, func(x *topology.Node) bool { return x.ID == "red-1" })
				leaf, num := n.Nodes[red].Ports[1].Peer, n.Nodes[red].Ports[1].PeerPort
				leaf.Ports[num] = topology.NewNode(ib.NodeSwitch, "x", 1, 1).Ports[1]
				n.Nodes = slices.Delete(n.Nodes, red, red+1)
				fakes := 1
				if shape != "one" {
					fakes = 3
				}
				var fake []*topology.Node
				lay := func(a *topology.Node, p int, b *topology.Node, q int) {
					if err := topology.Connect(a, ib.PortNum(p), b, ib.PortNum(q)); err != nil {
						t.Fatal(err)
					}
				}
				for i := range fakes {
					fake = append(fake, topology.NewNode(ib.NodeSwitch, fmt.Sprint("fake-", i), ib.NodeGUID(0xfa00+i), 8))
					n.Nodes = append(n.Nodes, fake[i])
					if i > 0 {
						lay(fake[i-1], 2, fake[i], 1)
						if shape == "doubled" {
							lay(fake[i-1], 3, fake[i], 4)
						}
					}
				}
				if shape == "ring" {
					lay(fake[fakes-1], 2, fake[0], 7)
				}
				lay(leaf, int(num), fake[0], 1)
				if hosts > 0 {
					host := topology.NewNode(ib.NodeCA, "behind", 0xfb00, 1)
					n.Nodes = append(n.Nodes, host)
					lay(fake[fakes-1], 8, host, 1)
				}
				f := found(t, n)
				l, left := learned(t, f)
				for _, x := range fake {
					if _, ok := l.Device(x.GUID); ok != (hosts > 0) {
						t.Errorf("%s: listed %v", x.ID, ok)
					}
				}
				if hosts == 0 && (len(left) != 1 || left[0].At != (observed.Place{Node: leaf.GUID, Port: num})) {
					t.Errorf("left out: %v", left)
				}
				if want := len(f.Nodes) - (1-hosts)*fakes; len(l.Devices()) != want {
					t.Errorf("%d devices, want %d", len(l.Devices()), want)
				}
			})
		}
	}
}

// Diff says in words what is not as listed, and Accept takes it over: then there
// is no difference any more.
func TestDiffAndAccept(t *testing.T) {
	n := topology.Demo()
	f := found(t, n)
	l, _ := learned(t, f)
	a, b := port(t, n, f, "red-1", 1), port(t, n, f, "blue-6", 1)
	atA, atB := a.Peer, b.Peer
	a.Peer, b.Peer = nil, nil
	observed.Connect(atA, b) // blue-6 is in the place of red-1
	atB.Peer = nil
	atB.Info.PortPhysicalState = smp.PhysPolling
	a.Info.PortPhysicalState = smp.PhysPolling
	var said []string
	for _, d := range l.Diff(f) {
		said = append(said, string(d.Kind)+" "+d.Where+": "+d.What)
	}
	want := []string{
		"moved " + l.Name(atA.Place()) + ": expected red-1 HCA-1, found blue-6 HCA-1",
		"missing " + l.Name(atB.Place()) + ": expected blue-6 HCA-1, found nothing",
	}
	slices.Sort(said)
	slices.Sort(want)
	if !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
	at, err := l.Find(l.Name(atA.Place()), f)
	if err != nil || at != atA.Place() {
		t.Fatalf("%v, %v", at, err)
	}
	next, done, err := l.Accept(f, at)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(done, "\n"); !strings.Contains(got, "blue-6") || !strings.Contains(got, "red-1 HCA-1 is not listed any more") {
		t.Errorf("said %q", got)
	}
	d := next.Diff(f)
	if len(d) != 1 || !strings.Contains(d[0].What, "is not listed") || d[0].Where != "red-1 HCA-1" {
		t.Errorf("still differs: %v", d)
	}
	if _, _, ok := l.Place(a.GUID); !ok || len(l.Devices()) != len(n.Nodes) {
		t.Error("the list that was changed is not as it was")
	}
	if _, at, _ := next.Place(b.GUID); at != atA.Place() {
		t.Errorf("blue-6 is listed at %v", at)
	}
}

func TestAcceptNot(t *testing.T) {
	n := topology.Demo()
	f := found(t, n)
	l, _ := learned(t, f)
	p := port(t, n, f, "red-1", 1)
	for name, change := range map[string]func(){
		"two claim to be it": func() { p.Node.Contested = true },
		"it makes no sense":  func() { p.Peer.Stranger = &observed.Stranger{Why: fmt.Errorf("255 ports")} },
		"it is silent":       func() { p.Peer.Peer, p.Peer.Stranger = nil, nil },
	} {
		at := p.Peer
		peer, contested := at.Peer, p.Node.Contested
		change()
		if _, _, err := l.Accept(f, at.Place()); err == nil {
			t.Errorf("%s: accepted", name)
		}
		at.Peer, at.Stranger, p.Node.Contested, p.Peer = peer, nil, contested, at
	}
	for _, name := range []string{"", "red-1", "red-1:", "red-1:0", "red-1:255", "nobody:1", ":1"} {
		if e, err := l.Find(name, f); err == nil {
			t.Errorf("%q is %v", name, e)
		}
	}
}

// Nothing is learned through a cable of the manager's own that is contradicted: all of
// the subnet is behind it.
func TestLearnNothing(t *testing.T) {
	f := found(t, topology.Demo())
	f.Nodes[0].Index = 0
	f.Self = port(t, topology.Demo(), f, "mgmt-1", 1)
	l, _, err := Learn(f, func(p *observed.Port) string {
		if p == f.Self.Peer {
			return "it leads elsewhere now"
		}
		return ""
	})
	if err == nil || l != nil || !strings.Contains(err.Error(), "own cable") {
		t.Errorf("%v, %v", l, err)
	}
	f.Self = nil
	if _, _, err := Learn(f, trusting); err == nil {
		t.Error("learned without a port of its own")
	}
}

// What stands in a message can be typed again, whatever devices call themselves.
func TestSpelling(t *testing.T) {
	for _, name := range []string{"leaf-1", "a b", "$(reboot)", "-x", "`x`", "a;b", "x'", "", "leaf-2", "0x12", "é"} {
		n := topology.Demo()
		f := found(t, n)
		x := port(t, n, f, "leaf-1", 0).Node
		x.Description = name
		l, _ := learned(t, f)
		at := observed.Place{Node: x.GUID(), Port: 7}
		said := l.Spelling(at)
		if got, err := l.Find(said, nil); err != nil || got != at {
			t.Errorf("%q: %q is %v, %v", name, said, got, err)
		}
		if strings.ContainsAny(said, " $`'\"\\;()|&<>*?[]{}~#!") || said[0] == '-' {
			t.Errorf("%q: spelled %q", name, said)
		}
	}
}

// A person may say what stands where, without anybody being asked.
func TestMove(t *testing.T) {
	n := topology.Demo()
	f := found(t, n)
	l, _ := learned(t, f)
	red, blue := port(t, n, f, "red-1", 1), port(t, n, f, "blue-6", 1)
	at := red.Peer
	for _, x := range []struct {
		name string
		ok   bool
	}{
		{l.Name(at.Place()) + "=blue-6 HCA-1", true}, {l.Name(at.Place()) + "=blue-6 HCA-1:1", true}, {l.Name(at.Place()) + "=" + blue.Node.GUID().String(), true},
		{l.Name(at.Place()) + "=nobody", false}, {l.Name(at.Place()) + "=leaf-1", false}, {"nobody:1=red-1 HCA-1", false}, {l.Name(at.Place()) + "=", false},
		{l.Name(at.Place()) + "=leaf-1:99", false},
	} {
		device, to, moved, err := l.FindMove(x.name)
		if !moved {
			t.Errorf("%q is no move", x.name)
		}
		var next *List
		var done []string
		if err == nil {
			next, done, err = l.Move(device, to)
		}
		if (err == nil) != x.ok {
			t.Errorf("%q: %v", x.name, err)
		}
		if err != nil {
			continue
		}
		port, place, ok := next.Place(blue.GUID)
		if !ok || port != blue.Place() || place != at.Place() || len(done) != 4 {
			t.Errorf("%q: blue-6 is listed at %v %v: %q", x.name, place, ok, done)
		}
		if _, there := next.Device(red.Node.GUID()); there || next.Cables() != l.Cables()-1 {
			t.Errorf("%q: who was there before is listed still", x.name)
		}
	}
	if _, _, moved, _ := l.FindMove("leaf-1:7"); moved {
		t.Error("a port is a move")
	}
	if same, done, err := l.Move(red.Place(), at.Place()); err != nil || len(done) > 0 || same != l {
		t.Errorf("where it is: %v, %v", done, err)
	}
}

// What is listed already is not changed by being accepted.
func TestAcceptAgain(t *testing.T) {
	n := topology.Demo()
	f := found(t, n)
	l, _ := learned(t, f)
	before := written(t, l)
	for _, x := range l.All() {
		next, done, err := l.Accept(f, x.From)
		if err != nil || len(done) > 0 || written(t, next) != before {
			t.Fatalf("%s: %v, %v", l.Name(x.From), done, err)
		}
	}
	p := port(t, n, f, "red-1", 1)
	p.GUID = 0x77
	next, done, err := l.Accept(f, p.Peer.Place())
	if err != nil || len(done) != 1 || next.PortGUID(p.Place()) != 0x77 {
		t.Errorf("another port GUID: %v, %v", done, err)
	}
}

// A nil list lists nothing.
func TestNil(t *testing.T) {
	var l *List
	if _, ok := l.Peer(observed.Place{Node: 1, Port: 1}); ok || l.Cables() != 0 || len(l.Devices()) != 0 || l.PortGUID(observed.Place{Node: 1, Port: 0}) != 0 {
		t.Error("something is listed")
	}
	if l.Check(observed.Place{Node: 1, Port: 1}, &smp.NodeInfo{}) == nil {
		t.Error("a device is taken for what is listed")
	}
	if l.Declares() != nil {
		t.Error("no list declares something")
	}
	n := topology.Demo()
	f := found(t, n)
	whole, _ := learned(t, f)
	red, blue := port(t, n, f, "red-1", 1), port(t, n, f, "blue-6", 1)
	if has := whole.Declares(); !has(red) || !has(red.Peer) || has(&f.Nodes[0].Ports[0]) {
		t.Error("what stands is not declared, or port 0 is")
	}
	at := red.Peer
	observed.Connect(blue, at)
	if whole.Has(at) || whole.Has(blue) {
		t.Error("a cable that was moved is declared")
	}
	observed.Connect(red, at)
	if next, _, err := l.Accept(f, port(t, n, f, "red-1", 1).Peer.Place()); err != nil || next.Cables() != 1 {
		t.Errorf("%v, %v", next, err)
	}
}

// TestKinds: each sort of difference is called what it is.
func TestKinds(t *testing.T) {
	for _, x := range []struct {
		kind   Kind
		where  string
		change func(f *observed.Fabric, red *observed.Port)
	}{
		{Missing, "leaf-2:2", func(_ *observed.Fabric, red *observed.Port) {
			red.Info.PortPhysicalState, red.Peer.Info.PortPhysicalState = smp.PhysPolling, smp.PhysPolling
			red.Peer.Peer, red.Peer = nil, nil
		}},
		{Moved, "leaf-2:2", func(_ *observed.Fabric, red *observed.Port) {
			red.Info.PortPhysicalState = smp.PhysPolling
			red.Peer.Stranger, red.Peer.Peer, red.Peer = &observed.Stranger{}, nil, nil
		}},
		{DeviceChanged, "red-1 HCA-1", func(_ *observed.Fabric, red *observed.Port) { red.Node.Info.NumPorts++ }},
		{DeviceChanged, "red-1 HCA-1", func(_ *observed.Fabric, red *observed.Port) { red.GUID++ }},
		{Renamed, "red-1 HCA-1", func(_ *observed.Fabric, red *observed.Port) { red.Node.Description = "blue-1" }},
		{DeviceUnlisted, "new", func(f *observed.Fabric, red *observed.Port) {
			n := f.AddNode(smp.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 0xabcd})
			n.Description = "new"
		}},
	} {
		n := topology.Demo()
		f := found(t, n)
		l, _ := learned(t, f)
		at := port(t, n, f, "red-1", 1)
		where := strings.Replace(x.where, "leaf-2:2", l.Name(at.Peer.Place()), 1)
		x.change(f, at)
		if d := l.Diff(f); len(d) != 1 || d[0].Kind != x.kind || d[0].Where != where {
			t.Errorf("%s: %v, want one at %s", x.kind, d, where)
		}
	}
	n := topology.Demo()
	f := found(t, n)
	l, _ := learned(t, f)
	red := slices.IndexFunc(n.Nodes, func(x *topology.Node) bool { return x.ID == "red-1" })
	leaf, num := n.Nodes[red].Ports[1].Peer, n.Nodes[red].Ports[1].PeerPort
	without := topology.Demo()
	without.Nodes = slices.Delete(without.Nodes, red, red+1)
	for _, x := range without.Nodes {
		if x.GUID == leaf.GUID {
			x.Ports[num].Peer = nil
		}
	}
	if got, want := kinds(l.Diff(found(t, without))), []Kind{DeviceMissing, Missing}; !slices.Equal(got, want) {
		t.Errorf("a host has gone: %v, want %v", got, want)
	}
	l, _ = learned(t, found(t, without))
	if got, want := kinds(l.Diff(f)), []Kind{DeviceUnlisted, Unlisted}; !slices.Equal(got, want) {
		t.Errorf("a host has come: %v, want %v", got, want)
	}
}

func kinds(list []Difference) (out []Kind) {
	for _, d := range list {
		out = append(out, d.Kind)
	}
	slices.Sort(out)
	return out
}
