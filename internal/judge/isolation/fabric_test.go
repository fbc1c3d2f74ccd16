package isolation

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// builder makes snapshots as a sweep would leave them, all of them read.
type builder struct {
	f    *observed.Fabric
	guid uint64
	lid  ib.LID
}

func newBuilder() *builder { return &builder{f: observed.NewFabric(), guid: 0x1000, lid: 1} }

const (
	endEntries    = 40 // two blocks, the second not full
	switchEntries = 33
)

func (b *builder) node(t ib.NodeType, name string, ports uint8) *observed.Node {
	b.guid += 0x10
	n := b.f.AddNode(smp.NodeInfo{
		NodeType: t, NumPorts: ports, NodeGUID: ib.NodeGUID(b.guid),
		PortGUID: ib.PortGUID(b.guid + 1), PartitionCap: endEntries,
	})
	n.Description = name
	return n
}

func (b *builder) open(p *observed.Port) {
	p.Reached, p.InfoRead = true, true
	p.Info.PortState, p.Info.PortPhysicalState = smp.PortDown, smp.PhysPolling
	if p.IsEnd() {
		p.Info.LID = b.lid
		b.lid++
	}
}

func (b *builder) sw(name string, ports uint8) *observed.Node {
	n := b.node(ib.NodeSwitch, name, ports)
	n.Switch.InfoRead = true
	n.Switch.Info = smp.SwitchInfo{
		LinearFDBCap: 0xBFFF, PartitionEnforcementCap: switchEntries,
		InboundEnforcementCap: true, OutboundEnforcementCap: true,
	}
	for i := range n.Ports {
		b.open(&n.Ports[i])
	}
	n.Ports[0].Info.PortState = smp.PortActive
	return n
}

func (b *builder) host(name string) *observed.Port {
	n := b.node(ib.NodeCA, name, 1)
	p := &n.Ports[1]
	p.GUID = n.Info.PortGUID
	b.open(p)
	return p
}

func (b *builder) cable(x, y *observed.Port) {
	observed.Connect(x, y)
	for _, p := range []*observed.Port{x, y} {
		up(p)
		if p.FacesEnd() {
			enforce(p, true, true)
		}
	}
}

func up(p *observed.Port) {
	p.Info.PortState, p.Info.PortPhysicalState = smp.PortActive, smp.PhysLinkUp
}

func enforce(p *observed.Port, in, out bool) {
	p.Info.PartitionEnforcementInbound, p.Info.PartitionEnforcementOutbound = in, out
}

func setKeys(p *observed.Port, keys ...ib.PKey) {
	p.PKeys = make([]ib.PKey, p.PKeyCap())
	copy(p.PKeys, keys)
	p.PKeysRead = make([]bool, p.PKeyBlocks())
	for i := range p.PKeysRead {
		p.PKeysRead[i] = true
	}
}

// program gives every end port what the policy gives it, and the switch port
// before it the same; the second block is used too.
func program(f *observed.Fabric, allowed []observed.Partition) {
	for _, p := range f.EndPorts() {
		var keys []ib.PKey
		for _, a := range allowed {
			if slices.Contains(a.Full, p.GUID) {
				keys = append(keys, a.Base.Full())
			} else if slices.Contains(a.Limited, p.GUID) {
				keys = append(keys, a.Base.Limited())
			}
		}
		setTail(p, keys)
		if p.Peer != nil && p.Peer.FacesEnd() {
			setTail(p.Peer, keys)
		}
	}
}

// setTail puts the last of keys at the end of the table, the others at its
// start.
func setTail(p *observed.Port, keys []ib.PKey) {
	if len(keys) == 0 || p.PKeyCap() < len(keys) {
		setKeys(p, keys...)
		return
	}
	last := len(keys) - 1
	setKeys(p, keys[:last]...)
	p.PKeys[len(p.PKeys)-1] = keys[last]
}

// site is a fabric of leaves under one spine, and a policy that it keeps.
type site struct {
	*builder
	spine   *observed.Node
	leaves  []*observed.Node
	hosts   []*observed.Port
	allowed []observed.Partition
}

const spare = 1 // ports of a leaf without a cable

// newTree cables leaves with hosts each, and routes them.
func newTree(leaves, hostsPerLeaf int) *site {
	s := &site{builder: newBuilder()}
	s.spine = s.sw("spine", uint8(leaves))
	s.f.Self = &s.spine.Ports[0]
	for l := range leaves {
		leaf := s.sw(fmt.Sprintf("leaf%d", l), uint8(hostsPerLeaf+1+spare))
		s.leaves = append(s.leaves, leaf)
		s.cable(&leaf.Ports[hostsPerLeaf+1], &s.spine.Ports[l+1])
		for h := range hostsPerLeaf {
			host := s.host(fmt.Sprintf("h%d", l*hostsPerLeaf+h))
			s.cable(&leaf.Ports[h+1], host)
			s.hosts = append(s.hosts, host)
		}
	}
	s.route(hostsPerLeaf)
	return s
}

func (s *site) route(hostsPerLeaf int) {
	blocks := int(s.lid)/smp.LIDsPerLinearBlock + 1
	for _, n := range s.f.Switches() {
		n.Switch.Info.LinearFDBTop = s.lid - 1
		n.Switch.LFT = make([]ib.PortNum, blocks*smp.LIDsPerLinearBlock)
		n.Switch.LFTRead = make([]bool, blocks)
		for i := range n.Switch.LFTRead {
			n.Switch.LFTRead[i] = true
		}
		for lid := range n.Switch.LFT {
			n.Switch.LFT[lid] = ib.PortNone
			if n != s.spine {
				n.Switch.LFT[lid] = ib.PortNum(hostsPerLeaf + 1)
			}
		}
		n.Switch.LFT[n.Ports[0].Info.LID] = 0
	}
	for l, leaf := range s.leaves {
		s.spine.Switch.LFT[leaf.Ports[0].Info.LID] = ib.PortNum(l + 1)
	}
	for _, h := range s.hosts {
		leaf := h.Peer.Node
		leaf.Switch.LFT[h.Info.LID] = h.Peer.Num
		s.spine.Switch.LFT[h.Info.LID] = leaf.Ports[hostsPerLeaf+1].Peer.Num
	}
}

func guids(ports ...*observed.Port) []ib.PortGUID {
	var out []ib.PortGUID
	for _, p := range ports {
		out = append(out, p.GUID)
	}
	return out
}

const (
	baseRed     ib.PKeyBase = 0x0101
	baseBlue    ib.PKeyBase = 0x0102
	baseStorage ib.PKeyBase = 0x0200
)

// newSite is two leaves of four hosts: red (h0, h1, h4), blue (h2, h3, h5),
// storage with h6 full and the others limited, and a default partition in
// which h7 is full and all else limited.
func newSite() *site {
	s := newTree(2, 4)
	h := s.hosts
	var limited []*observed.Port
	for _, n := range s.f.Switches() {
		limited = append(limited, &n.Ports[0])
	}
	s.allowed = []observed.Partition{
		{Name: "default", Base: ib.PKeyBaseDefault, Full: guids(h[7]), Limited: guids(append(limited, h[:7]...)...)},
		{Name: "storage", Base: baseStorage, Full: guids(h[6]), Limited: guids(h[:6]...)},
		{Name: "red", Base: baseRed, Full: guids(h[0], h[1], h[4])},
		{Name: "blue", Base: baseBlue, Full: guids(h[2], h[3], h[5])},
	}
	program(s.f, s.allowed)
	return s
}
