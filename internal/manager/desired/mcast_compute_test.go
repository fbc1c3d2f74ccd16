package desired

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// send follows one packet through what the switches hold, as switches do, and
// counts the copies that each end port gets; ok is false when it goes round.
func send(f *observed.Fabric, from *observed.Port, mlid ib.LID) (got map[*observed.Port]int, ok bool) {
	got = map[*observed.Port]int{}
	type arrival struct {
		n  *observed.Node
		in int // port number, -1 for the switch itself
	}
	var queue []arrival
	if from.Node.Switch != nil {
		queue = append(queue, arrival{from.Node, -1})
	} else if from.Peer != nil && from.IsUp() && from.Peer.Node.Switch != nil {
		queue = append(queue, arrival{from.Peer.Node, int(from.Peer.Num)})
	}
	for hops := 0; len(queue) > 0; hops++ {
		if hops > 1000 {
			return nil, false
		}
		at := queue[0]
		queue = queue[1:]
		sw, entry := at.n.Switch, []int(nil)
		if i := int(mlid) - 0xC000; i < int(sw.Info.MulticastFDBCap) {
			for port := range at.n.Ports {
				b := sw.MFT[uint32(port/16)<<28|uint32(i/32)]
				if b.Masks[i%32]>>(port%16)&1 != 0 {
					entry = append(entry, port)
				}
			}
		}
		if entry == nil {
			exit := int(sw.Info.DefaultMulticastPrimaryPort)
			if at.in == exit {
				exit = int(sw.Info.DefaultMulticastNotPrimaryPort)
			}
			entry = []int{exit}
		}
		for _, exit := range entry {
			switch {
			case exit == at.in || exit >= len(at.n.Ports) || exit == 0 && at.in == -1:
			case exit == 0:
				got[&at.n.Ports[0]]++
			case at.n.Ports[exit].Peer == nil || !at.n.Ports[exit].IsUp():
			case at.n.Ports[exit].Peer.Node.Switch == nil:
				got[at.n.Ports[exit].Peer]++
			default:
				queue = append(queue, arrival{at.n.Ports[exit].Peer.Node, int(at.n.Ports[exit].Peer.Num)})
			}
		}
	}
	return got, true
}

// expected are the members that a member's packets have to reach: found by a
// flood over what can carry the group, without the code under test.
func expected(w *world, g *group.Group, from *observed.Port) map[*observed.Port]int {
	carries := func(n *observed.Node) bool {
		return n.Switch.InfoRead && int(g.MLID)-0xC000 < int(n.Switch.Info.MulticastFDBCap)
	}
	takesPart := func(p *observed.Port) *observed.Node {
		i := slices.IndexFunc(g.Members, func(m group.Member) bool { return m.Port == p.GUID })
		switch {
		case i < 0 || w.outlaw[p.GUID] || p.Node.Contested:
			return nil
		case p.Node.Switch != nil && carries(p.Node):
			return p.Node
		case p.Node.Switch == nil && p.IsUp() && p.Peer != nil && carries(p.Peer.Node):
			return p.Peer.Node
		}
		return nil
	}
	out := map[*observed.Port]int{}
	start := takesPart(from)
	if start == nil {
		return out
	}
	seen := map[*observed.Node]bool{start: true}
	for todo := []*observed.Node{start}; len(todo) > 0; todo = todo[1:] {
		for i := 1; i < len(todo[0].Ports); i++ {
			p := &todo[0].Ports[i]
			if p.Peer == nil || !p.IsUp() || p.Peer.Node.Switch == nil || !carries(p.Peer.Node) || seen[p.Peer.Node] ||
				p.Info.MTUCap < g.MTU || p.Peer.Info.MTUCap < g.MTU {
				continue
			}
			seen[p.Peer.Node] = true
			todo = append(todo, p.Peer.Node)
		}
	}
	for _, p := range w.hosts {
		i := slices.IndexFunc(g.Members, func(m group.Member) bool { return m.Port == p.GUID })
		if n := takesPart(p); n != nil && seen[n] && p != from && g.Members[i].State&(sa.JoinFull|sa.JoinNon) != 0 {
			out[p] = 1
		}
	}
	return out
}

func checkAll(w *world) error {
	for _, g := range w.groups {
		for _, m := range g.Members {
			i := slices.IndexFunc(w.hosts, func(p *observed.Port) bool { return p.GUID == m.Port })
			from := w.hosts[i]
			want := expected(w, g, from)
			got, ok := send(w.f, from, g.MLID)
			if !ok {
				return fmt.Errorf("a packet from %s to %s goes round", from, g.MLID)
			}
			if len(want) == 0 && w.outlaw[from.GUID] {
				continue // what it sends, its key keeps out
			}
			for p, n := range got {
				if p != from && want[p] != n && !from.Node.Contested {
					return fmt.Errorf("%s gets %d copies of what %s sends to %s, want %d", p, n, from, g.MLID, want[p])
				}
			}
			for p := range want {
				if got[p] != 1 {
					return fmt.Errorf("%s gets %d copies of what %s sends to %s, want 1", p, got[p], from, g.MLID)
				}
			}
			if got[from] != 0 {
				return fmt.Errorf("%s gets back what it sends to %s", from, g.MLID)
			}
		}
		if w.groups[0].MLID == g.MLID {
			for _, from := range w.hosts {
				if got, ok := send(w.f, from, 0xC3FF); !ok || len(got) > 0 {
					return fmt.Errorf("packets for an unknown multicast LID from %s reach %d ports", from, len(got))
				}
			}
		}
	}
	return nil
}

// TestEveryMemberOnceAndNobodyElse sends a packet from every member of random
// groups on random fabrics, while members come and go and cables break.
func TestEveryMemberOnceAndNobodyElse(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range 400 {
		w := irregular(rng)
		for step := range 6 {
			if _, _, err := w.compute(); err != nil {
				t.Fatalf("seed %d round %d step %d: %v", seed, round, step, err)
			}
			if err := checkAll(w); err != nil {
				t.Fatalf("seed %d round %d step %d: %v", seed, round, step, err)
			}
			change(w, rng)
		}
	}
}

func change(w *world, rng *rand.Rand) {
	if len(w.groups) > 0 && len(w.hosts) > 0 {
		g, p := w.groups[rng.IntN(len(w.groups))], w.hosts[rng.IntN(len(w.hosts))]
		if i := slices.IndexFunc(g.Members, func(m group.Member) bool { return m.Port == p.GUID }); i >= 0 {
			leave(g, i)
		} else {
			join(g, p, randomState(rng))
		}
	}
	switch s := w.f.Switches(); rng.IntN(4) {
	case 0: // a cable breaks, or works again
		n := s[rng.IntN(len(s))]
		p := &n.Ports[1+rng.IntN(len(n.Ports)-1)]
		if p.Peer == nil {
			return
		}
		if p.IsUp() {
			subnettest.SetLink(p, smp.PortDown, smp.PhysPolling)
		} else {
			subnettest.SetLink(p, smp.PortActive, smp.PhysLinkUp)
		}
	case 1: // somebody else writes anything into a table
		n := s[rng.IntN(len(s))]
		b := smp.MulticastForwardingTable{}
		for i := range b.Masks {
			b.Masks[i] = uint16(rng.Uint32())
		}
		if n.Switch.InfoRead && n.Switch.Info.MulticastFDBCap > 0 {
			n.Switch.MFT = map[uint32]smp.MulticastForwardingTable{0: b}
		}
	}
}

// fatTree has every leaf cabled to every spine.
func fatTree(leaves, spines, hosts int) (w *world, spine []*observed.Node) {
	w = newWorld()
	for i := range spines {
		spine = append(spine, w.Switch(leaves, fmt.Sprintf("spine %d", i)))
	}
	for i := range leaves {
		l := w.Switch(hosts+spines, fmt.Sprintf("leaf %d", i))
		for range hosts {
			w.host(l)
		}
		for _, s := range spine {
			subnettest.Join(l, s)
		}
	}
	return w, spine
}

// TestOneChangeIsAFewBlocks lets members come and go one at a time: at most
// the blocks of the switches on the way to the tree change.
func TestOneChangeIsAFewBlocks(t *testing.T) {
	w, spine := fatTree(12, 6, 4)
	g := w.group(ib.MTU2048)
	for _, p := range []int{0, 9, 17, 30} {
		join(g, w.hosts[p], sa.JoinFull)
	}
	if _, n, err := w.compute(); err != nil || n != 5 {
		t.Fatalf("a new tree over 4 leaves and a spine: %d blocks, %v", n, err)
	}
	for _, x := range []struct {
		what  string
		do    func()
		most  int
		least int
	}{
		{"nothing", func() {}, 0, 0},
		{"a host of a leaf in the tree joins", func() { join(g, w.hosts[1], sa.JoinFull) }, 1, 1},
		{"a host of another leaf joins", func() { join(g, w.hosts[47], sa.JoinFull) }, 2, 2},
		{"it leaves", func() { leave(g, len(g.Members)-1) }, 2, 2},
		{"a host of another leaf is to send only", func() { join(g, w.hosts[46], sa.JoinSendOnlyNon) }, 1, 1},
		{"the first leaves", func() { leave(g, 0) }, 1, 1},
	} {
		x.do()
		if _, n, err := w.compute(); err != nil || n > x.most || n < x.least {
			t.Errorf("%s: %d blocks change, want %d to %d (%v)", x.what, n, x.least, x.most, err)
		}
		if err := checkAll(w); err != nil {
			t.Errorf("%s: %v", x.what, err)
		}
	}
	used := 0
	for _, s := range spine {
		if len(s.Switch.MFT) > 0 {
			used++
		}
	}
	if used != 1 {
		t.Errorf("the tree has %d spines, want 1", used)
	}
}

// TestGroupsSpread looks at the spines that sixty groups take.
func TestGroupsSpread(t *testing.T) {
	w, spine := fatTree(8, 6, 2)
	for range 60 {
		g := w.group(ib.MTU2048)
		for _, p := range w.hosts {
			join(g, p, sa.JoinFull)
		}
	}
	tables, _, err := w.compute()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range spine {
		n := 0
		for _, g := range w.groups {
			if len(tables.Exits(s, g.MLID)) > 0 {
				n++
			}
		}
		if n != 10 {
			t.Errorf("%s carries %d of 60 groups, want 10", s.Name(), n)
		}
	}
}

func TestOrderOfDiscoveryDoesNotMatter(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		w := irregular(rng)
		a, err := ComputeMulticast(MulticastInput{Fabric: w.f, Groups: w.groups, Allowed: w.allowed})
		if err != nil {
			t.Fatal(err)
		}
		before := map[*observed.Node][][]ib.PortNum{}
		for _, n := range w.f.Switches() {
			for _, g := range w.groups {
				before[n] = append(before[n], a.Exits(n, g.MLID))
			}
		}
		rng.Shuffle(len(w.f.Nodes), func(i, j int) { w.f.Nodes[i], w.f.Nodes[j] = w.f.Nodes[j], w.f.Nodes[i] })
		for i, n := range w.f.Nodes {
			n.Index = i
		}
		b, err := ComputeMulticast(MulticastInput{Fabric: w.f, Groups: w.groups, Allowed: w.allowed})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range w.f.Switches() {
			for i, g := range w.groups {
				if !slices.Equal(b.Exits(n, g.MLID), before[n][i]) {
					t.Fatalf("seed %d: %s, %s: the order of discovery matters", seed, n.Name(), g.MLID)
				}
			}
		}
		if fmt.Sprint(a.Faults) != fmt.Sprint(b.Faults) {
			t.Fatalf("seed %d: faults %v\nand %v", seed, a.Faults, b.Faults)
		}
	}
}

func TestWhatCannotBeHadIsNamed(t *testing.T) {
	w := newWorld()
	a, b, c := w.sw("a"), w.sw("b"), w.sw("c")
	subnettest.Join(a, b).Info.MTUCap = ib.MTU1024
	c.Switch.Info.MulticastFDBCap = 1
	subnettest.Join(b, c)
	w.group(ib.MTU2048)
	g := w.group(ib.MTU2048)
	down := w.host(a)
	subnettest.SetLink(down, smp.PortDown, smp.PhysPolling)
	for _, p := range []*observed.Port{down, w.host(a), w.host(b), w.host(c)} {
		join(g, p, sa.JoinFull)
	}
	tables, _, err := w.compute()
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, f := range tables.Faults {
		text = append(text, f.String())
	}
	for i, want := range []string{"no trained link", "switch c: MulticastFDBCap 1, want at least 2", "its switch b is cut off"} {
		if i >= len(text) || !strings.Contains(text[i], want) || !strings.Contains(text[i], "MLID 0xc001") {
			t.Errorf("faults %q, want one with %q", text, want)
		}
	}
	if err := checkAll(w); err != nil {
		t.Error(err)
	}
}

func TestSharedMulticastLIDsAreRefused(t *testing.T) {
	w := newWorld()
	g, h := w.group(ib.MTU2048), w.group(ib.MTU2048)
	h.MLID = g.MLID
	if _, _, err := w.compute(); err == nil || !strings.Contains(err.Error(), "multicast LID 0xc000: of group") {
		t.Errorf("two groups with one multicast LID: %v", err)
	}
	h.MLID = 0xFFFF
	if _, _, err := w.compute(); err == nil {
		t.Error("a group with the permissive LID is taken")
	}
}
