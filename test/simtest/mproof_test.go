package simtest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// allowed is the tenancy as a proof is told it.
func (y tenancy) allowed() (out []observed.Partition) {
	for _, x := range y.tenants {
		out = append(out, observed.Partition{Name: x.base.String(), Base: x.base, Full: x.full, Limited: x.limited})
	}
	return out
}

// TestMulticastProof holds the proof against packets followed through the
// agents, and finds every single thing that is put wrong.
func TestMulticastProof(t *testing.T) {
	list := generate(t, "fattree,radix=4,levels=3")
	y := halves(hosts(list)[1:])
	red, blue := y.tenants[0], y.tenants[1]
	w := newGroups(t, list, fabric.DefaultConfig(), y.ipoib())
	w.settle()
	for _, x := range y.tenants {
		for _, guid := range x.full {
			w.host(guid).enter(x.base, ipGroup(x.base, allHosts))
		}
	}
	w.settle()
	f := w.runner.Engine().Fabric()
	good := isolation.ProveMulticast(f, y.allowed(), nil)
	if good.Verdict != isolation.Isolated || good.LIDs != 4 || len(good.Reasons) != 0 {
		t.Fatalf("%+v", good)
	}
	for _, s := range good.Spreads {
		reached := map[ib.PortGUID]int{}
		for at := range w.hosts {
			maps.Copy(reached, w.walk(at, s.MLID))
		}
		first := slices.Min(slices.Collect(maps.Keys(reached)))
		base := w.runner.Administration().Groups().ByMLID(s.MLID).Partition
		if len(reached) != s.Ports || first != s.First || !slices.Equal(s.Partitions, []string{base.String()}) {
			t.Errorf("%+v, packets reach %d ports from %s on", s, len(reached), first)
		}
	}
	events := 0
	for _, e := range w.events {
		if e, ok := e.(event.Regrouped); ok {
			if events++; e.Proof.Verdict != isolation.Isolated || e.Proof.Missing != 0 {
				t.Errorf("%v: %+v", e, e.Proof)
			}
		}
	}
	if events == 0 {
		t.Error("no groups were told of")
	}

	// What is traced is what packets do.
	clear(w.came)
	var traced []map[ib.PortGUID]int
	for _, from := range f.EndPorts() {
		if from.Node.Switch != nil || from == f.Self {
			continue
		}
		for _, g := range w.runner.Administration().Groups().Groups() {
			ways := map[ib.PortGUID]int{}
			for _, c := range reach.FollowGroup(from, g.MLID, reach.Packet{PKey: g.Partition.Full()}) {
				if c.Disposition == reach.Delivered {
					ways[c.To]++
				}
			}
			w.host(from.GUID).send(g, uint32(len(traced)))
			traced = append(traced, ways)
		}
	}
	w.fabric.AdvanceTo(w.fabric.Now() + time.Millisecond)
	for i, ways := range traced {
		if !maps.Equal(ways, w.came[uint32(i)]) {
			t.Errorf("traced %v, got there %v", ways, w.came[uint32(i)])
		}
	}

	set := w.runner.Administration().Groups()
	mlid := set.Group(broadcastOf(red.base)).MLID
	known := []isolation.Group{{MLID: mlid, Base: red.base, Receivers: red.full}}
	_, index := smp.MFTPlace(mlid)
	// flip changes whether packets of red's broadcast group leave by a port.
	flip := func(p *observed.Port) {
		m := smp.MFTModifier(0, uint8(p.Num/smp.PortsPerPosition))
		b := p.Node.Switch.MFT[m]
		b.Masks[index] ^= 1 << (p.Num % smp.PortsPerPosition)
		p.Node.Switch.MFT[m] = b
	}
	facing := func(g ib.PortGUID) *observed.Port {
		for _, p := range f.EndPorts() {
			if p.GUID == g {
				return p.Peer
			}
		}
		return nil
	}
	expect := func(what string, groups []isolation.Group, want isolation.Verdict, missing int) {
		t.Helper()
		got := isolation.ProveMulticast(f, y.allowed(), groups)
		if got.Verdict != want || got.Missing != missing || want != isolation.Isolated && len(got.Reasons) == 0 {
			t.Errorf("%s: %s, %d missing, %q; want %s, %d missing", what, got.Verdict, got.Missing, got.Reasons, want, missing)
		}
	}
	expect("as it stands", known, isolation.Isolated, 0)
	for _, g := range blue.full {
		flip(facing(g))
		expect("a port of the other partition", nil, isolation.Violated, 0)
		expect("a port of the other partition, the group known", known, isolation.Violated, 0)
		flip(facing(g))
	}
	for _, g := range red.full {
		flip(facing(g))
		expect("a member that is left out", known, isolation.Isolated, 1)
		flip(facing(g))
	}
	wrongGroup := []isolation.Group{{MLID: mlid, Base: blue.base}}
	expect("a multicast LID of another partition's group", wrongGroup, isolation.Violated, 0)
	for _, n := range f.Switches() {
		for modifier, b := range n.Switch.MFT {
			delete(n.Switch.MFT, modifier)
			expect("a block that was not read", known, isolation.Unknown, isolation.ProveMulticast(f, y.allowed(), known).Missing)
			n.Switch.MFT[modifier] = b
		}
		n.Switch.InfoRead = false
		expect("SwitchInfo not read", nil, isolation.Unknown, 0)
		n.Switch.InfoRead = true
		for i := 1; i < len(n.Ports); i++ {
			p := &n.Ports[i]
			old := n.Switch.Info.DefaultMulticastPrimaryPort
			n.Switch.Info.DefaultMulticastPrimaryPort = p.Num
			want := isolation.Isolated
			if p.FacesEnd() {
				want = isolation.Violated
			}
			expect("a default port", nil, want, 0)
			n.Switch.Info.DefaultMulticastPrimaryPort = old
		}
	}
	// Every cable more: packets go round.
	for _, n := range f.Switches() {
		for i := 1; i < len(n.Ports) && n.Switch.MFT != nil; i++ {
			if p := &n.Ports[i]; p.Peer != nil && p.Peer.Node.Switch != nil {
				flip(p)
			}
		}
	}
	expect("cables in a circle", known, isolation.Violated, 0)
}
