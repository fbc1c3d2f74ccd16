package replica

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// pair is two hosts of one partition behind two switches, and one of another.
func pair() (b *subnettest.Builder, red, friend, blue *observed.Port) {
	b = subnettest.New()
	leaf, spine := b.Switch(4, "leaf"), b.Switch(4, "spine")
	red, friend, blue = b.Host(leaf, "red"), b.Host(spine, "friend"), b.Host(leaf, "blue")
	subnettest.Join(leaf, spine)
	subnettest.SetPKeysThrough(red, 0x8010)
	subnettest.SetPKeysThrough(friend, 0x8010)
	subnettest.SetPKeysThrough(blue, 0x8020)
	b.Route()
	b.ManagedFrom(red)
	for _, n := range b.Fabric.Nodes {
		for i := range n.Ports {
			n.Ports[i].Info.OperationalVLs = 1
		}
	}
	return b, red, friend, blue
}

func at(p *observed.Port) observed.Place {
	return observed.Place{Node: p.Node.GUID(), Port: p.Num}
}

func build(t *testing.T, b *subnettest.Builder) *Replica {
	t.Helper()
	r, err := Build(b.Fabric)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEnds: where packets end in a replica, by every transport, and after one table of the
// snapshot is changed.
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(red, friend *observed.Port)
		packet Packet
		want   End
	}{
		{"UD", nil, Packet{PKey: 0x8010}, Delivered},
		{"RC", nil, Packet{Service: RC, PKey: 0x8010}, Delivered},
		{"UC", nil, Packet{Service: UC, PKey: 0x8010}, Delivered},
		{"RD", nil, Packet{Service: RD, PKey: 0x8010}, Delivered},
		{"a key that the sender does not have", nil, Packet{PKey: 0x8020}, SourceKey},
		{"the switch does not let the key in", func(red, _ *observed.Port) { subnettest.SetPKeys(red.Peer, 0x8020) }, Packet{PKey: 0x8010}, InboundKey},
		{"the switch does not let the key out", func(_, friend *observed.Port) { subnettest.SetPKeys(friend.Peer, 0x8020) }, Packet{PKey: 0x8010}, OutboundKey},
		{"the receiver does not have the key", func(_, friend *observed.Port) { subnettest.SetPKeys(friend, 0x8020) }, Packet{PKey: 0x8010}, DestinationKey},
		{"no route", func(red, friend *observed.Port) { red.Peer.Node.Switch.LFT[friend.Info.LID] = ib.PortNone }, Packet{PKey: 0x8010}, NoRoute},
		{"a loop", func(red, friend *observed.Port) {
			spine := friend.Peer.Node
			spine.Switch.LFT[friend.Info.LID] = red.Peer.Node.Switch.LFT[friend.Info.LID]
			for i := range spine.Ports { // the cable between the switches
				if p := &spine.Ports[i]; p.Peer != nil && p.Peer.Node == red.Peer.Node {
					spine.Switch.LFT[friend.Info.LID] = p.Num
				}
			}
		}, Packet{PKey: 0x8010}, Loop},
		{"a link that is Armed", func(_, friend *observed.Port) {
			subnettest.SetLink(friend, smp.PortArmed, smp.PhysLinkUp)
		}, Packet{PKey: 0x8010}, LinkState},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, red, friend, _ := pair()
			if c.change != nil {
				c.change(red, friend)
			}
			r := build(t, b)
			if err := r.Send(at(red), at(friend), c.packet); err != nil {
				t.Fatal(err)
			}
			if j := r.Journey(); j.End != c.want || j.End != r.Ended() || j.Sent == (c.want == SourceKey) {
				t.Errorf("%+v, want %s", j, c.want)
			}
		})
	}
}

// TestJourney: the nodes on the way, with the ports by which the packet comes and goes.
func TestJourney(t *testing.T) {
	b, red, friend, blue := pair()
	r := build(t, b)
	if len(r.Gaps()) != 0 {
		t.Errorf("a snapshot without gaps has gaps %v", r.Gaps())
	}
	if err := r.Send(at(red), at(friend), Packet{PKey: 0x8010}); err != nil {
		t.Fatal(err)
	}
	hops := r.Journey().Hops
	var way []ib.NodeGUID
	for _, h := range hops {
		way = append(way, h.Node)
	}
	leaf, spine := red.Peer.Node, friend.Peer.Node
	if len(way) != 4 || way[0] != red.Node.GUID() || way[1] != leaf.GUID() || way[2] != spine.GUID() || way[3] != friend.Node.GUID() {
		t.Fatalf("went by %v", way)
	}
	if first, last := hops[0], hops[3]; first.In != 0 || first.Out != 1 || last.In != 1 || last.Out != 0 || last.VL != nil || first.VL == nil {
		t.Errorf("hops %+v", hops)
	}
	if hops[1].In != red.Peer.Num || hops[2].Out != friend.Peer.Num {
		t.Errorf("hops %+v", hops)
	}
	// The next packet starts again.
	if err := r.Send(at(blue), at(friend), Packet{PKey: 0x8020}); err != nil {
		t.Fatal(err)
	}
	if j := r.Journey(); j.End != OutboundKey || len(j.Hops) == 0 || j.Hops[0].Node != blue.Node.GUID() {
		t.Errorf("%+v", j)
	}
	if err := r.Send(at(red), observed.Place{Node: leaf.GUID(), Port: 1}, Packet{PKey: 0x8010}); err == nil {
		t.Error("a packet to an external port of a switch was sent")
	}
}

// TestGaps: what was not read is listed, and closed.
func TestGaps(t *testing.T) {
	b, red, friend, _ := pair()
	friend.PKeysRead[0] = false
	r := build(t, b)
	if gaps := r.Gaps(); len(gaps) != 1 || gaps[0].At != at(friend) || !strings.Contains(gaps[0].Why, "P_Key") {
		t.Errorf("gaps %v", gaps)
	}
	if err := r.Send(at(red), at(friend), Packet{PKey: 0x8010}); err != nil {
		t.Fatal(err)
	}
	if j := r.Journey(); j.End != DestinationKey {
		t.Errorf("%+v, want a receiver without keys", j)
	}
}
