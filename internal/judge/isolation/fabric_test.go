package isolation

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

const (
	endEntries    = 40 // two blocks, the second not full
	switchEntries = 33
)

func newBuilder() *subnettest.Builder {
	b := subnettest.New()
	b.NodeInfo.PartitionCap, b.SwitchInfo.PartitionEnforcementCap = endEntries, switchEntries
	return b
}

func up(p *observed.Port) {
	p.Info.PortState, p.Info.PortPhysicalState = smp.PortActive, smp.PhysLinkUp
}

// program gives every end port what the policy gives it, and the switch port
// before it the same; the second block is used too.
func program(f *observed.Fabric, allowed []observed.Partition) {
	for _, p := range f.EndPorts() {
		keys := subnettest.PKeys(allowed, p.GUID)
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
		subnettest.SetPKeys(p, keys...)
		return
	}
	last := len(keys) - 1
	subnettest.SetPKeys(p, keys[:last]...)
	p.PKeys[len(p.PKeys)-1] = keys[last]
}

// site is a fabric of leaves under one spine, and a policy that it keeps.
type site struct {
	*subnettest.Builder
	f       *observed.Fabric
	spine   *observed.Node
	leaves  []*observed.Node
	hosts   []*observed.Port
	allowed []observed.Partition
}

const spare = 1 // ports of a leaf without a cable

// newTree cables leaves with hosts each, and routes them.
func newTree(leaves, hostsPerLeaf int) *site {
	s := &site{Builder: newBuilder()}
	s.f, s.spine = s.Fabric, s.Switch(leaves, "spine")
	s.f.Self = &s.spine.Ports[0]
	for l := range leaves {
		leaf := s.Switch(hostsPerLeaf+1+spare, fmt.Sprintf("leaf%d", l))
		s.leaves = append(s.leaves, leaf)
		subnettest.Cable(&leaf.Ports[hostsPerLeaf+1], &s.spine.Ports[l+1])
		for h := range hostsPerLeaf {
			s.hosts = append(s.hosts, s.Host(leaf, fmt.Sprintf("h%d", l*hostsPerLeaf+h)))
		}
		idle := &leaf.Ports[len(leaf.Ports)-spare]
		idle.PKeys, idle.PKeysRead = nil, nil
	}
	s.Route()
	return s
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
		{Name: "default", Base: ib.PKeyBaseDefault, Full: subnettest.GUIDs(h[7]), Limited: subnettest.GUIDs(append(limited, h[:7]...)...)},
		{Name: "storage", Base: baseStorage, Full: subnettest.GUIDs(h[6]), Limited: subnettest.GUIDs(h[:6]...)},
		{Name: "red", Base: baseRed, Full: subnettest.GUIDs(h[0], h[1], h[4])},
		{Name: "blue", Base: baseBlue, Full: subnettest.GUIDs(h[2], h[3], h[5])},
	}
	program(s.f, s.allowed)
	return s
}
