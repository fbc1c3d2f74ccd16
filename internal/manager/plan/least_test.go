package plan

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// TestLeast holds the least packets of drawn plans against the tables themselves: two for each block
// that isolates and differs, one for each block of routes, however often the order writes it.
func TestLeast(t *testing.T) {
	again := 0
	for seed := range uint64(400) {
		r := draw(seed)
		p := Diff(r.f, r.d)
		least, sent := map[mad.AttributeID]uint64{}, map[mad.AttributeID]uint64{}
		for _, s := range p.Stages {
			for _, op := range s.Ops {
				least[op.Attribute] += p.leastOf(op)
				sent[op.Attribute]++
			}
		}
		var keys, routes uint64
		for _, n := range r.f.Nodes {
			for i := range n.Ports {
				q, want := &n.Ports[i], r.d.Port(&n.Ports[i]).PKeys
				for block := 0; q.Reached && want != nil && block < q.PKeyBlocks(); block++ {
					if !q.PKeyBlockRead(block) || smp.PKeyBlock(q.PKeys, block) != smp.PKeyBlock(want, block) {
						keys += 2
					}
				}
			}
			want := r.d.Nodes[n.Index].LFT
			for block := 0; block*smp.LIDsPerLinearBlock < len(want); block++ {
				if block >= len(n.Switch.LFTRead) || !n.Switch.LFTRead[block] || smp.LinearBlock(n.Switch.LFT, block) != smp.LinearBlock(want, block) {
					routes++
				}
			}
		}
		if got := least[smp.AttrPKeyTable]; got != keys {
			t.Errorf("seed %d: %d packets for P_Key tables, want %d of %d writes", seed, got, keys, sent[smp.AttrPKeyTable])
		}
		if got := least[smp.AttrLinearForwardingTable]; got != routes {
			t.Errorf("seed %d: %d packets for linear tables, want %d of %d writes", seed, got, routes, sent[smp.AttrLinearForwardingTable])
		}
		if 2*sent[smp.AttrPKeyTable] > keys || sent[smp.AttrLinearForwardingTable] > routes {
			again++
		}
	}
	if again < 20 {
		t.Errorf("in %d plans alone something is written twice", again)
	}
}

// TestLeastOfPorts: what is written of PortInfo is read back where it guards, and a link is asked
// about once.
func TestLeastOfPorts(t *testing.T) {
	r := draw(1)
	for _, n := range r.f.Nodes {
		for i := range n.Ports {
			q, want := &n.Ports[i], r.d.Port(&n.Ports[i])
			*want = observed.DesiredPort{}
			if q.Reached, q.InfoRead = q.IsEnd() || q.Peer != nil, true; q.Peer == nil {
				continue
			}
			q.Info.PortState, want.Activate = smp.PortInit, true
			want.Elements, want.Info = observed.ElementEnforcement, q.Info
			want.Info.PartitionEnforcementInbound = !q.Info.PartitionEnforcementInbound
			q.Forgets = 0
		}
		r.d.Nodes[n.Index].LFT, r.d.Nodes[n.Index].RFT, r.d.Nodes[n.Index].Multicast = nil, nil, nil
	}
	links, ends := uint64(len(r.f.Links())), uint64(2*len(r.f.Links()))
	guards := uint64(0)
	for _, n := range r.f.Nodes {
		for i := range n.Ports {
			if q := &n.Ports[i]; q.Peer != nil && Differing(q, r.d)&observed.ElementGuard != 0 {
				guards++
			}
		}
	}
	p := Diff(r.f, r.d)
	got := p.Least()
	var names []string
	for _, s := range p.Stages {
		names = append(names, s.Name)
	}
	if guards == 0 || got["port settings"] != ends+guards || got["activate"] != ends+links {
		t.Errorf("%d links, %d guards: %v in %q", links, guards, got, names)
	}
	if !slices.Contains(names, "activate") {
		t.Errorf("stages %q", names)
	}
}
