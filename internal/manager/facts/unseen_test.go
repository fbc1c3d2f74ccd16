package facts

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// sweep is what a sweep finds of a chain: switch 1, switch 2 behind its port 2, and
// a host behind port 2 of each; found says which nodes answer. What does not is
// behind a link that stays up.
func sweep(found ...ib.NodeGUID) *observed.Fabric {
	b := subnettest.New()
	b.NodeInfo.PartitionCap, b.SwitchInfo.PartitionEnforcementCap = 8, 8
	node := func(g ib.NodeGUID, kind ib.NodeType, ports int) *observed.Node {
		b.GUID = g
		n := b.Node(kind, ports, "")
		for i := range n.Ports {
			subnettest.SetPKeys(&n.Ports[i], 0x8000|ib.PKey(g))
			n.Ports[i].Info.PortState, n.Ports[i].Info.PortPhysicalState = smp.PortActive, smp.PhysLinkUp
		}
		return n
	}
	// behind adds who is at the other end of a cable, where that answers.
	behind := func(p *observed.Port, g ib.NodeGUID, kind ib.NodeType, ports int) *observed.Node {
		if p.Silent = !slices.Contains(found, g); p.Silent {
			return nil
		}
		n := node(g, kind, ports)
		subnettest.Cable(p, &n.Ports[1])
		subnettest.Enforce(p, false, false)
		return n
	}
	first := node(1, ib.NodeSwitch, 2)
	if second := behind(&first.Ports[2], 2, ib.NodeSwitch, 2); second != nil {
		behind(&second.Ports[2], 4, ib.NodeCA, 1)
	}
	behind(&first.Ports[1], 3, ib.NodeCA, 1)
	return b.Fabric
}

func TestAfter(t *testing.T) {
	all := sweep(2, 3, 4)
	place := func(n ib.NodeGUID, num ib.PortNum) observed.Place { return observed.Place{Node: n, Port: num} }
	type lost struct {
		Node       ib.NodeGUID
		At, Behind observed.Place
	}
	for _, x := range []struct {
		name   string
		now    *observed.Fabric
		before []UnseenPort
		fences FenceSet
		want   []lost
	}{
		{"everybody answers", sweep(2, 3, 4), nil, nil, nil},
		{"a host is silent", sweep(2, 4), nil, nil, []lost{{3, place(1, 1), place(1, 1)}}},
		{"a host of the other switch is silent", sweep(2, 3), nil, nil, []lost{{4, place(2, 2), place(2, 2)}}},
		{"the other switch is silent, and its host with it", sweep(3), nil, nil, []lost{{2, observed.Place{}, place(1, 2)}, {4, place(2, 2), place(1, 2)}}},
	} {
		var got []lost
		for _, u := range UnseenAfter(all, x.now, x.now.EndPorts(), x.before, x.fences, nil) {
			got = append(got, lost{u.Identity.NodeGUID, u.At, u.Behind})
			if len(u.Keys) == 0 || u.Cap != 8 {
				t.Errorf("%s: %v held %v, room for %d", x.name, u.Identity, u.Keys, u.Cap)
			}
		}
		if d := cmp.Diff(x.want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", x.name, d)
		}
	}

	hidden := sweep(3)
	out := UnseenAfter(all, hidden, hidden.EndPorts(), nil, nil, nil)
	again := sweep(2, 3)
	back := UnseenAfter(hidden, again, again.EndPorts(), out, nil, nil)
	if len(back) != 1 || back[0].Identity.NodeGUID != 4 || back[0].Behind != place(2, 2) {
		t.Errorf("the switch is back, its host is not: %+v", back)
	}
	if facts := back[0].Facts(again); facts.Facing == nil || facts.Facing.SwitchGUID != 2 || facts.Facing.PortNum != 2 {
		t.Errorf("the switch port before it can be reached: %+v", facts)
	}
	if end := sweep(2, 3, 4); len(UnseenAfter(again, end, end.EndPorts(), back, nil, nil)) != 0 {
		t.Error("it answers again, and is out of sight still")
	}

	shut := sweep(2, 4)
	q := &shut.Node(1).Ports[1]
	q.Info.PartitionEnforcementInbound, q.Info.PartitionEnforcementOutbound, q.PKeys = true, true, []ib.PKey{0}
	for fenced, want := range map[bool]int{false: 1, true: 0} {
		var fences FenceSet
		if fenced {
			fences = FenceSet{q.Place(): "why"}
		}
		if left := UnseenAfter(all, shut, shut.EndPorts(), nil, fences, nil); len(left) != want {
			t.Errorf("the port lets nothing pass, fenced %v: %d out of sight, want %d", fenced, len(left), want)
		}
	}
}

// TestRecall: a host that is found again and does not say what its P_Key table holds may still
// have what it had; where it says so, that counts. The same of the switch port before it.
func TestRecall(t *testing.T) {
	all, hidden := sweep(2, 3, 4), sweep(2, 4)
	out := UnseenAfter(all, hidden, hidden.EndPorts(), nil, nil, nil)
	for _, x := range []struct {
		read bool
		want ib.PKey
	}{{true, 0}, {false, 0x8003}} {
		again := sweep(2, 3, 4)
		host := &again.Node(3).Ports[1]
		guard := host.Peer
		for _, p := range []*observed.Port{host, guard} {
			clear(p.PKeys)
			for block := range p.PKeysRead {
				p.PKeysRead[block] = x.read
			}
		}
		held := all.At(guard.Place()).PKeys
		RecallUnseen(again, again.EndPorts(), out)
		if got := host.PKeys[0]; got != x.want || host.PKeysKnown() != x.read {
			t.Errorf("read %v: the host has %v, known %v; want %v", x.read, got, host.PKeysKnown(), x.want)
		}
		if got := guard.PKeys; slices.Equal(got, held) == x.read {
			t.Errorf("read %v: the switch port has %v; it held %v", x.read, got, held)
		}
	}
}
