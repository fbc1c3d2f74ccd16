package audit

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// The partitions of the good fabric.
const (
	red     = ib.PKeyBase(0x0101)
	blue    = ib.PKeyBase(0x0102)
	storage = ib.PKeyBase(0x0200)
	mlid    = 0xC003
)

const (
	leaves       = 2
	hostsPerLeaf = 4
	uplink       = hostsPerLeaf + 1
	idle         = hostsPerLeaf + 2                 // the leaf port without a cable
	managerLID   = 1 + leaves + leaves*hostsPerLeaf // h7's: it is entered last
	endEntries   = 40                               // two blocks, the second not full
	guardEntries = 33
)

// site is a fabric in which everything was read and everything is as it should
// be, with what its owner wants and an earlier reading of it: two leaves of
// four hosts under one spine. The manager is h7, storage h6, red h0, h1 and h4,
// blue h2, h3 and h5.
type site struct {
	*subnettest.Builder
	f       *observed.Fabric
	intent  Intent
	options Options

	spine *observed.Node
	leaf  [leaves]*observed.Node
	hosts []*observed.Port
}

func newSite() *site {
	s := bare()
	s.options.Earlier = bare().f
	return s
}

// bare is the site without an earlier reading.
func bare() *site {
	s := &site{Builder: subnettest.New(), options: Options{Profile: Strict}}
	s.f, s.GUID = s.Fabric, 0x0002_C900_0000_1010
	s.NodeInfo = smp.NodeInfo{PartitionCap: endEntries, VendorID: 0x2C9, DeviceID: 0x1017, Revision: 1}
	s.SwitchInfo = smp.SwitchInfo{
		LinearFDBCap: 0xBFFF, MulticastFDBCap: 64, PartitionEnforcementCap: guardEntries,
		InboundEnforcementCap: true, OutboundEnforcementCap: true, FilterRawInboundCap: true, FilterRawOutboundCap: true,
		LifeTimeValue: 18,
	}
	s.spine = s.addSwitch("spine", leaves)
	for l := range s.leaf {
		s.leaf[l] = s.addSwitch(fmt.Sprintf("leaf%d", l), idle)
		s.cable(&s.leaf[l].Ports[uplink], &s.spine.Ports[l+1])
		for h := range hostsPerLeaf {
			p := s.addHost(ib.NodeCA, fmt.Sprintf("h%d", l*hostsPerLeaf+h))
			s.cable(&s.leaf[l].Ports[h+1], p)
			s.hosts = append(s.hosts, p)
		}
	}
	s.Route()
	h := s.hosts
	s.f.Self = h[7]
	h[7].Info.CapabilityMask |= smp.CapIsSM
	h[7].SMInfoRead = true
	h[7].SMInfo = smp.SMInfo{GUID: h[7].GUID, SMKey: 0x5A17_C0DE_92E1_3B04, SMState: smp.SMMaster, Priority: 8}
	limited := append([]*observed.Port{}, h[:7]...)
	for _, n := range s.f.Switches() {
		limited = append(limited, &n.Ports[0])
	}
	s.intent = Intent{
		Partitions: []observed.Partition{
			{Name: "default", Base: ib.PKeyBaseDefault, Full: subnettest.GUIDs(h[7]), Limited: subnettest.GUIDs(limited...)},
			{Name: "storage", Base: storage, Full: subnettest.GUIDs(h[6]), Limited: subnettest.GUIDs(h[:6]...)},
			{Name: "red", Base: red, Full: subnettest.GUIDs(h[0], h[1], h[4]), SL: 1},
			{Name: "blue", Base: blue, Full: subnettest.GUIDs(h[2], h[3], h[5]), SL: 2},
		},
		Managers: subnettest.GUIDs(h[7]),
		Cables:   CablesOf(s.f),
	}
	s.program()
	s.group()
	return s
}

// enter gives a port what an end port has besides keys.
func (s *site) enter(p *observed.Port) {
	i := &p.Info
	i.MKey = ib.MKey(0x9E37_79B9_7F4A_7C15 * uint64(i.LID))
	i.MKeyProtectBits, i.MKeyLeasePeriod, i.GUIDCap = 2, 0, 8
	i.MasterSMLID = managerLID
	p.GUIDInfo = map[uint32]smp.GUIDInfo{0: {GUIDs: [8]uint64{0: uint64(p.GUID), 3: uint64(p.GUID) + 0x1_0000_0000}}}
}

func (s *site) addSwitch(name string, ports int) *observed.Node {
	n := s.Switch(ports, name)
	n.Switch.MFT = map[uint32]smp.MulticastForwardingTable{0: {}, 1: {}}
	for i := range n.Ports {
		p := &n.Ports[i]
		p.Info.PortPhysicalState = smp.PhysDisabled
		p.Info.VLCap, p.Info.OperationalVLs = 3, 3
		p.Info.HOQLife = 15
		p.VLArbitration = make([]smp.VLArbitrationTable, 4)
	}
	s.enter(&n.Ports[0])
	return n
}

func (s *site) addHost(t ib.NodeType, name string) *observed.Port {
	p := &s.Node(t, 1, name).Ports[1]
	s.enter(p)
	return p
}

// virtual lanes is a mapping in which levels 1 and 2 have virtual lanes of their own.
var lanes = smp.SLToVLMappingTable{VLs: [smp.SLCount]ib.VL{1: 1, 2: 2}}

func (s *site) cable(x, y *observed.Port) {
	subnettest.Cable(x, y)
	for _, p := range []*observed.Port{x, y} {
		if p.Node.Switch == nil {
			continue
		}
		p.SLToVL = map[ib.PortNum]smp.SLToVLMappingTable{}
		for in := range p.Node.Ports {
			p.SLToVL[ib.PortNum(in)] = lanes
		}
		subnettest.Enforce(p, p.FacesEnd(), p.FacesEnd())
		p.Info.FilterRawInbound, p.Info.FilterRawOutbound = p.FacesEnd(), p.FacesEnd()
	}
}

// keysOf is the table of a port without its empty tail.
func keysOf(p *observed.Port) []ib.PKey {
	out := p.PKeys
	for len(out) > 0 && out[len(out)-1] == 0 {
		out = out[:len(out)-1]
	}
	return append([]ib.PKey{}, out...)
}

// program writes the policy into the tables.
func (s *site) program() {
	for _, p := range s.f.EndPorts() {
		subnettest.SetPKeysThrough(p, subnettest.PKeys(s.intent.Partitions, p.GUID)...)
	}
}

// send makes the switches send mlid to a host.
func send(p *observed.Port) {
	sw := p.Peer.Node.Switch
	t := sw.MFT[0]
	t.Masks[mlid&0x1F] |= 1 << p.Peer.Num
	sw.MFT[0] = t
}

// group is the red one.
func (s *site) group() {
	for _, i := range []int{0, 1, 4} {
		send(s.hosts[i])
	}
}

// last appends a key to a host's table and the switch port's.
func last(p *observed.Port, k ib.PKey) { subnettest.SetPKeysThrough(p, append(keysOf(p), k)...) }

// blind takes away all that was read but NodeInfo.
func (s *site) blind() {
	for _, n := range s.f.Nodes {
		if n.Switch != nil {
			info := n.Switch.Info
			*n.Switch = observed.Switch{Info: info}
		}
		for i := range n.Ports {
			p := &n.Ports[i]
			p.InfoRead, p.SMInfoRead, p.GUIDInfo, p.SLToVL = false, false, nil, nil
			p.PKeys, p.PKeysRead = nil, nil
		}
	}
}
