package desired

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// world is a fabric made by hand, with its groups.
type world struct {
	*subnettest.Builder
	f      *observed.Fabric
	hosts  []*observed.Port
	groups []*group.Group
	outlaw map[ib.PortGUID]bool // may be in no partition
}

func newWorld() *world {
	b := subnettest.New()
	b.SwitchInfo.MulticastFDBCap, b.PortInfo.MTUCap = 1024, ib.MTU4096
	return &world{Builder: b, f: b.Fabric, outlaw: map[ib.PortGUID]bool{}}
}

func (w *world) sw(name string) *observed.Node { return w.Switch(40, name) }

func (w *world) host(s *observed.Node) *observed.Port {
	p := w.Host(s, fmt.Sprintf("host %d", len(w.hosts)))
	w.hosts = append(w.hosts, p)
	return p
}

func (w *world) group(mtu ib.MTU) *group.Group {
	i := len(w.groups)
	g := &group.Group{
		MGID: ib.GID{0: 0xFF, 1: 0x12, 15: byte(i)}, MLID: ib.LIDMulticastMin + ib.LID(i),
		Partition: ib.PKeyBase(1 + i%3), Settings: group.Settings{MTU: mtu},
	}
	w.groups = append(w.groups, g)
	return g
}

func join(g *group.Group, p *observed.Port, s sa.JoinState) {
	g.Members = append(g.Members, group.Member{Port: p.GUID, State: s})
}

func leave(g *group.Group, i int) {
	g.Members = append(g.Members[:i:i], g.Members[i+1:]...)
}

func leavePort(g *group.Group, p *observed.Port) {
	g.Members = slices.DeleteFunc(g.Members, func(m group.Member) bool { return m.Port == p.GUID })
}

func (w *world) allowed(_ ib.PKeyBase, p ib.PortGUID) bool { return !w.outlaw[p] }

// compute also puts the tables into the switches, and says how many blocks
// changed.
func (w *world) compute() (*MulticastTables, int, error) {
	t, err := ComputeMulticast(MulticastInput{Fabric: w.f, Groups: w.groups, Allowed: w.allowed})
	if err != nil {
		return nil, 0, err
	}
	d := observed.NewDesired(w.f)
	t.Enter(w.f, d)
	changed := 0
	for _, n := range w.f.Switches() {
		want := d.Nodes[n.Index].Multicast
		if want == nil {
			continue
		}
		for m, b := range want.Blocks {
			if n.Switch.MFT[m] != b {
				changed++
			}
		}
		for m := range n.Switch.MFT {
			if _, stays := want.Blocks[m]; !stays {
				changed++
			}
		}
		n.Switch.MFT = want.Blocks
		n.Switch.Info.DefaultMulticastPrimaryPort, n.Switch.Info.DefaultMulticastNotPrimaryPort = want.Primary, want.NotPrimary
	}
	return t, changed, nil
}

// irregular is a random tree with extra cables, some doubled, some into the
// same switch, some down, some with a small MTU, and hosts on some switches.
func irregular(rng *rand.Rand) *world {
	w := newWorld()
	var all []*observed.Node
	for i := range 1 + rng.IntN(12) {
		s := w.sw(fmt.Sprintf("switch %d", i))
		for range rng.IntN(5) {
			w.host(s)
		}
		if i > 0 && rng.IntN(20) > 0 {
			subnettest.Join(s, all[rng.IntN(i)])
		}
		all = append(all, s)
	}
	for range rng.IntN(12) {
		p := subnettest.Join(all[rng.IntN(len(all))], all[rng.IntN(len(all))])
		switch rng.IntN(8) {
		case 0:
			subnettest.SetLink(p, smp.PortDown, smp.PhysPolling)
		case 1:
			p.Info.MTUCap = ib.MTU1024
		}
	}
	for _, s := range all {
		switch rng.IntN(12) {
		case 0:
			s.Switch.Info.MulticastFDBCap = uint16(rng.IntN(8))
		case 1: // nobody can set its default ports either
			s.Switch.InfoRead = false
			s.Switch.Info.DefaultMulticastPrimaryPort, s.Switch.Info.DefaultMulticastNotPrimaryPort = ib.PortNone, ib.PortNone
		}
	}
	for _, p := range w.hosts {
		switch rng.IntN(15) {
		case 0:
			w.outlaw[p.GUID] = true
		case 1:
			subnettest.SetLink(p, smp.PortDown, smp.PhysPolling)
		case 2:
			p.Node.Contested = true
		}
	}
	for _, s := range all {
		if rng.IntN(3) == 0 {
			w.hosts = append(w.hosts, &s.Ports[0])
		}
	}
	for range rng.IntN(8) {
		g := w.group([]ib.MTU{ib.MTU1024, ib.MTU2048}[rng.IntN(2)])
		for _, p := range w.hosts {
			if rng.IntN(3) == 0 {
				join(g, p, randomState(rng))
			}
		}
	}
	return w
}

func randomState(rng *rand.Rand) sa.JoinState {
	return []sa.JoinState{sa.JoinFull, sa.JoinFull, sa.JoinNon, sa.JoinSendOnlyNon, sa.JoinSendOnlyFull}[rng.IntN(5)]
}
