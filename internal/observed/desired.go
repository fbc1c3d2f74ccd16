package observed

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// Element is a set of PortInfo elements that a manager writes.
type Element uint32

// The elements, each a bit.
const (
	ElementMKey Element = 1 << iota
	ElementMKeyProtectBits
	ElementMKeyLeasePeriod
	ElementGIDPrefix
	ElementLID
	ElementLMC
	ElementMasterSMLID
	ElementMasterSMSL
	ElementNeighborMTU
	ElementOperationalVLs
	ElementHOQLife
	ElementVLStallCount
	ElementVLHighLimit
	ElementSubnetTimeOut
	ElementPartitionEnforcementInbound
	ElementPartitionEnforcementOutbound
	ElementFilterRawInbound
	ElementFilterRawOutbound
	// What a switch keeps of SwitchInfo is noted at its port 0.
	ElementDefaultMulticastPorts
	ElementMulticastFDBTop
	ElementLifeTimeValue // of SwitchInfo
	// Settings of links.
	ElementLinkWidthEnabled
	ElementLinkSpeedEnabled
	ElementLinkSpeedExtEnabled
	ElementOverrunErrors
	ElementLocalPhyErrors
	// ElementViolations are the violation counters that have stopped at their highest value.
	ElementViolations

	// ElementEnforcement is both enforcement bits.
	ElementEnforcement = ElementPartitionEnforcementInbound | ElementPartitionEnforcementOutbound
	// ElementRawFilters is both filters of raw packets.
	ElementRawFilters = ElementFilterRawInbound | ElementFilterRawOutbound
	// ElementGuard is what makes a switch port confine the device behind it.
	ElementGuard = ElementEnforcement | ElementRawFilters
)

// element ties a bit to its name and to the field of PortInfo behind it.
type element struct {
	bit  Element
	name string
	same func(a, b *smp.PortInfo) bool
	copy func(to, from *smp.PortInfo)
}

var elements = []element{
	{ElementMKey, "M_Key",
		func(a, b *smp.PortInfo) bool { return a.MKey == b.MKey },
		func(to, from *smp.PortInfo) { to.MKey = from.MKey }},
	{ElementMKeyProtectBits, "M_KeyProtectBits",
		func(a, b *smp.PortInfo) bool { return a.MKeyProtectBits == b.MKeyProtectBits },
		func(to, from *smp.PortInfo) { to.MKeyProtectBits = from.MKeyProtectBits }},
	{ElementMKeyLeasePeriod, "M_KeyLeasePeriod",
		func(a, b *smp.PortInfo) bool { return a.MKeyLeasePeriod == b.MKeyLeasePeriod },
		func(to, from *smp.PortInfo) { to.MKeyLeasePeriod = from.MKeyLeasePeriod }},
	{ElementGIDPrefix, "GidPrefix",
		func(a, b *smp.PortInfo) bool { return a.GIDPrefix == b.GIDPrefix },
		func(to, from *smp.PortInfo) { to.GIDPrefix = from.GIDPrefix }},
	{ElementLID, "LID",
		func(a, b *smp.PortInfo) bool { return a.LID == b.LID },
		func(to, from *smp.PortInfo) { to.LID = from.LID }},
	{ElementLMC, "LMC",
		func(a, b *smp.PortInfo) bool { return a.LMC == b.LMC },
		func(to, from *smp.PortInfo) { to.LMC = from.LMC }},
	{ElementMasterSMLID, "MasterSMLID",
		func(a, b *smp.PortInfo) bool { return a.MasterSMLID == b.MasterSMLID },
		func(to, from *smp.PortInfo) { to.MasterSMLID = from.MasterSMLID }},
	{ElementMasterSMSL, "MasterSMSL",
		func(a, b *smp.PortInfo) bool { return a.MasterSMSL == b.MasterSMSL },
		func(to, from *smp.PortInfo) { to.MasterSMSL = from.MasterSMSL }},
	{ElementNeighborMTU, "NeighborMTU",
		func(a, b *smp.PortInfo) bool { return a.NeighborMTU == b.NeighborMTU },
		func(to, from *smp.PortInfo) { to.NeighborMTU = from.NeighborMTU }},
	{ElementOperationalVLs, "OperationalVLs",
		func(a, b *smp.PortInfo) bool { return a.OperationalVLs == b.OperationalVLs },
		func(to, from *smp.PortInfo) { to.OperationalVLs = from.OperationalVLs }},
	{ElementHOQLife, "HOQLife",
		func(a, b *smp.PortInfo) bool { return a.HOQLife == b.HOQLife },
		func(to, from *smp.PortInfo) { to.HOQLife = from.HOQLife }},
	{ElementVLStallCount, "VLStallCount",
		func(a, b *smp.PortInfo) bool { return a.VLStallCount == b.VLStallCount },
		func(to, from *smp.PortInfo) { to.VLStallCount = from.VLStallCount }},
	{ElementVLHighLimit, "VLHighLimit",
		func(a, b *smp.PortInfo) bool { return a.VLHighLimit == b.VLHighLimit },
		func(to, from *smp.PortInfo) { to.VLHighLimit = from.VLHighLimit }},
	{ElementSubnetTimeOut, "SubnetTimeOut",
		func(a, b *smp.PortInfo) bool { return a.SubnetTimeOut == b.SubnetTimeOut },
		func(to, from *smp.PortInfo) { to.SubnetTimeOut = from.SubnetTimeOut }},
	{ElementPartitionEnforcementInbound, "PartitionEnforcementInbound",
		func(a, b *smp.PortInfo) bool { return a.PartitionEnforcementInbound == b.PartitionEnforcementInbound },
		func(to, from *smp.PortInfo) { to.PartitionEnforcementInbound = from.PartitionEnforcementInbound }},
	{ElementPartitionEnforcementOutbound, "PartitionEnforcementOutbound",
		func(a, b *smp.PortInfo) bool { return a.PartitionEnforcementOutbound == b.PartitionEnforcementOutbound },
		func(to, from *smp.PortInfo) { to.PartitionEnforcementOutbound = from.PartitionEnforcementOutbound }},
	{ElementFilterRawInbound, "FilterRawInbound",
		func(a, b *smp.PortInfo) bool { return a.FilterRawInbound == b.FilterRawInbound },
		func(to, from *smp.PortInfo) { to.FilterRawInbound = from.FilterRawInbound }},
	{ElementFilterRawOutbound, "FilterRawOutbound",
		func(a, b *smp.PortInfo) bool { return a.FilterRawOutbound == b.FilterRawOutbound },
		func(to, from *smp.PortInfo) { to.FilterRawOutbound = from.FilterRawOutbound }},
	{ElementDefaultMulticastPorts, "DefaultMulticastPorts", sameAnyway, func(_, _ *smp.PortInfo) {}},
	{ElementMulticastFDBTop, "MulticastFDBTop", sameAnyway, func(_, _ *smp.PortInfo) {}},
	{ElementLifeTimeValue, "LifeTimeValue", sameAnyway, func(_, _ *smp.PortInfo) {}},
	{ElementLinkWidthEnabled, "LinkWidthEnabled",
		func(a, b *smp.PortInfo) bool { return a.LinkWidthEnabled == b.LinkWidthEnabled },
		func(to, from *smp.PortInfo) { to.LinkWidthEnabled = from.LinkWidthEnabled }},
	{ElementLinkSpeedEnabled, "LinkSpeedEnabled",
		func(a, b *smp.PortInfo) bool { return a.LinkSpeedEnabled == b.LinkSpeedEnabled },
		func(to, from *smp.PortInfo) { to.LinkSpeedEnabled = from.LinkSpeedEnabled }},
	{ElementLinkSpeedExtEnabled, "LinkSpeedExtEnabled",
		func(a, b *smp.PortInfo) bool { return a.LinkSpeedExtEnabled == b.LinkSpeedExtEnabled },
		func(to, from *smp.PortInfo) { to.LinkSpeedExtEnabled = from.LinkSpeedExtEnabled }},
	{ElementOverrunErrors, "OverrunErrors",
		func(a, b *smp.PortInfo) bool { return a.OverrunErrors == b.OverrunErrors },
		func(to, from *smp.PortInfo) { to.OverrunErrors = from.OverrunErrors }},
	{ElementLocalPhyErrors, "LocalPhyErrors",
		func(a, b *smp.PortInfo) bool { return a.LocalPhyErrors == b.LocalPhyErrors },
		func(to, from *smp.PortInfo) { to.LocalPhyErrors = from.LocalPhyErrors }},
	{ElementViolations, "violation counters",
		func(a, _ *smp.PortInfo) bool { return len(Stopped(a)) == 0 },
		func(to, _ *smp.PortInfo) {
			for _, c := range Stopped(to) {
				*c.counter(to) = 0
			}
		}},
}

// Violations is one of the counters of PortInfo that count packets with a wrong key.
type Violations string

// The counters, by the names of their fields.
const (
	MKeyViolations Violations = "MKeyViolations"
	PKeyViolations Violations = "PKeyViolations"
	QKeyViolations Violations = "QKeyViolations"
)

func (v Violations) counter(i *smp.PortInfo) *uint16 {
	switch v {
	case MKeyViolations:
		return &i.MKeyViolations
	case PKeyViolations:
		return &i.PKeyViolations
	}
	return &i.QKeyViolations
}

// Stopped lists the violation counters that stand at smp.ViolationsMax: they count no more
// until they are set back.
func Stopped(i *smp.PortInfo) (out []Violations) {
	for _, v := range []Violations{MKeyViolations, PKeyViolations, QKeyViolations} {
		if *v.counter(i) == smp.ViolationsMax {
			out = append(out, v)
		}
	}
	return out
}

func sameAnyway(_, _ *smp.PortInfo) bool { return true }

// Names lists the elements of the set in the order of their bits.
func (e Element) Names() []string {
	var out []string
	for _, x := range elements {
		if e&x.bit != 0 {
			out = append(out, x.name)
		}
	}
	return out
}

// ParseElements is the inverse of Names; ok is false when a name is unknown.
func ParseElements(names []string) (e Element, ok bool) {
	for _, name := range names {
		i := slices.IndexFunc(elements, func(x element) bool { return x.name == name })
		if i < 0 {
			return 0, false
		}
		e |= elements[i].bit
	}
	return e, true
}

// Differ returns the elements of e whose values in a and b are not the same.
func (e Element) Differ(a, b *smp.PortInfo) Element {
	var out Element
	for i := range elements {
		if x := &elements[i]; e&x.bit != 0 && !x.same(a, b) {
			out |= x.bit
		}
	}
	return out
}

// Copy sets the elements of e in to as they are in from.
func (e Element) Copy(to, from *smp.PortInfo) {
	for i := range elements {
		if x := &elements[i]; e&x.bit != 0 {
			x.copy(to, from)
		}
	}
}

// Desired is what the devices of a Fabric ought to hold.
type Desired struct {
	// Nodes stand in the order of Fabric.Nodes.
	Nodes []DesiredNode
}

// DesiredNode is what one device ought to hold.
type DesiredNode struct {
	// Ports is indexed by port number, as Node.Ports.
	Ports []DesiredPort
	// LFT is the linear forwarding table by LID, RFT the random one by index;
	// at most one of them is set, nil leaves the table alone.
	LFT []ib.PortNum
	RFT []smp.RandomEntry
	// DefaultPort is SwitchInfo.DefaultPort, for a switch with an RFT.
	DefaultPort ib.PortNum
	// LifeTimeValue is SwitchInfo.LifeTimeValue, wanted with SetLifeTime.
	LifeTimeValue ib.TimeValue
	SetLifeTime   bool
	// Multicast is what a switch ought to do with multicast packets; nil
	// leaves that alone.
	Multicast *DesiredMulticast
}

// DesiredMulticast is what a switch ought to do with multicast packets.
type DesiredMulticast struct {
	// Blocks are those of the multicast forwarding table that are not to be
	// empty, by smp.MFTModifier.
	Blocks map[uint32]smp.MulticastForwardingTable
	// Top is the highest multicast LID with a port; one below the first when
	// there is none.
	Top ib.LID
	// Primary and NotPrimary are SwitchInfo.DefaultMulticastPrimaryPort and
	// DefaultMulticastNotPrimaryPort; ib.PortNone for no port at all.
	Primary, NotPrimary ib.PortNum
}

// DesiredPort is what one port ought to hold.
type DesiredPort struct {
	// Elements tells which elements of Info are wanted.
	Elements Element
	Info     smp.PortInfo
	// PKeys is the P_Key table by index, shorter than the table when the rest
	// is to be empty; nil leaves the table alone.
	PKeys []ib.PKey
	// GUIDs is the table of GUIDs by index, shorter than the table when the
	// rest is to be empty; element 0, the port's own, counts for nothing. nil
	// leaves the table alone.
	GUIDs []ib.PortGUID
	// SLToVL is wanted by input port; of one element for every input port, of none leaves
	// the tables alone. Ports share it: it must not be changed.
	SLToVL []*smp.SLToVLMappingTable
	// VLArbitration is wanted part by part, in the order of smp.VLArbPart; nil
	// leaves a part alone.
	VLArbitration [vlArbParts]*smp.VLArbitrationTable
	// Activate asks for the link to be brought to Active.
	Activate bool
	// Reregister asks the software behind an end port to renew its
	// registrations with subnet administration, once.
	Reregister bool
	// Registered reports whether those are known to the manager: another MasterSMLID, or
	// another LID of the port, is no reason to renew them.
	Registered bool
}

// SLToVLFrom is the mapping wanted for packets that come in by port in; nil for none.
func (d *DesiredPort) SLToVLFrom(in ib.PortNum) *smp.SLToVLMappingTable {
	switch {
	case len(d.SLToVL) == 1:
		return d.SLToVL[0]
	case int(in) < len(d.SLToVL):
		return d.SLToVL[in]
	}
	return nil
}

// NewDesired returns a Desired that leaves everything in f alone.
func NewDesired(f *Fabric) *Desired {
	d := &Desired{Nodes: make([]DesiredNode, len(f.Nodes))}
	for i, n := range f.Nodes {
		d.Nodes[i].Ports = make([]DesiredPort, len(n.Ports))
	}
	return d
}

// Port is what p ought to hold.
func (d *Desired) Port(p *Port) *DesiredPort { return &d.Nodes[p.Node.Index].Ports[p.Num] }
