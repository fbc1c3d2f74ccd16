package plan

import (
	"cmp"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Kind is the step of the safety rule that an operation belongs to.
type Kind uint8

// The kinds of operation in the order of their stages.
const (
	MKeys           Kind = iota // PortInfo of an end port: M_Key, M_KeyProtectBits, M_KeyLeasePeriod
	ReadyEnd                    // the P_Key table of the manager's port: what it has and will have
	ReadySwitch                 // the same of the switch port before it
	NarrowSwitch                // a switch port's P_Key table loses keys
	Enforce                     // PortInfo of a switch port: enforcement and raw filters on
	TakeGUIDs                   // GUIDInfo: alias GUIDs that the port is to lose
	NarrowEnd                   // an unguarded end port's P_Key table loses keys
	CloseMulticast              // SwitchInfo: packets that no multicast table knows go nowhere
	NarrowMulticast             // a block of a multicast forwarding table loses ports
	GuardedEndKeys              // the P_Key table of an end port behind an enforcing switch port
	EndKeys                     // the P_Key table of any other end port
	SwitchKeys                  // a switch port's P_Key table
	LeaveSwitch                 // the P_Key table of the switch port before the manager: what it will have
	LeaveEnd                    // the same of the manager's port
	GiveGUIDs                   // GUIDInfo: alias GUIDs
	Yield                       // the same of an end port that has a LID which another is to have
	Settings                    // PortInfo: addresses, link settings, Initialize to Armed
	Forwarding                  // a block of a forwarding table
	Multicast                   // a block of a multicast forwarding table
	SwitchSettings              // SwitchInfo
	Lanes                       // SLToVLMappingTable, VLArbitrationTable
	Counters                    // PortInfo: violation counters that have stopped, back to zero
	Activate                    // PortInfo: Armed to Active
)

// Op is one write of one attribute block.
type Op struct {
	// Port is the port whose table or settings are written; its Path leads to
	// the agent.
	Port      *observed.Port
	Modifier  uint32
	Attribute mad.AttributeID
	Kind      Kind
	// Pass tells writes of one block of a linear forwarding table apart, where there are
	// several; 0 is the last of them. Each gives one LID at least its route.
	Pass uint8
}

// Stage is a set of operations that may go out in any order.
type Stage struct {
	Name string
	Ops  []Op
}

// Plan is a list of stages, none of them empty.
type Plan struct {
	Stages  []Stage
	fabric  *observed.Fabric
	desired *observed.Desired
	// interims are those of the manager's ports that have something to write.
	interims map[*observed.Port]interim
	// sought has, by LID, the port that is to have it and has another so far; nil when
	// there is none.
	sought []*observed.Port
	// kept are LIDs, as bits of a block of a linear table, that a write leaves as they are:
	// a later one has their new routes.
	kept map[Op]uint64
	// comes and goes tell that the default partition is only given, or only taken.
	comes, goes bool
	room        [mad.DataSize]byte // of encoded
	info        smp.PortInfo       // of fillPortInfo
}

// Len is the number of operations.
func (p *Plan) Len() int {
	n := 0
	for _, s := range p.Stages {
		n += len(s.Ops)
	}
	return n
}

// stages gives each kind its stage.
var stages = []struct {
	name  string
	kinds []Kind
}{
	{"M_Keys", []Kind{MKeys}},
	{"manager's keys", []Kind{ReadyEnd}},
	{"manager's switch port", []Kind{ReadySwitch}},
	{"narrow switch ports", []Kind{NarrowSwitch, Enforce}},
	{"take alias GUIDs", []Kind{TakeGUIDs}},
	{"narrow end ports", []Kind{NarrowEnd}},
	{"close multicast", []Kind{CloseMulticast}},
	{"narrow multicast", []Kind{NarrowMulticast}},
	{"guarded end port keys", []Kind{GuardedEndKeys}},
	{"end port keys", []Kind{EndKeys}},
	{"switch port keys", []Kind{SwitchKeys}},
	{"manager's switch port at last", []Kind{LeaveSwitch}},
	{"manager's keys at last", []Kind{LeaveEnd}},
	{"alias GUIDs", []Kind{GiveGUIDs}},
	{"LIDs that others get", []Kind{Yield}},
	{"port settings", []Kind{Settings}},
	{forwardingTables, []Kind{Forwarding, Multicast}},
	{"switch settings", []Kind{SwitchSettings}},
	{"VLs", []Kind{Lanes}},
	{"violation counters", []Kind{Counters}},
	{"activate", []Kind{Activate}},
}

// Diff lists what has to be written for f to hold what d wants.
func Diff(f *observed.Fabric, d *observed.Desired) *Plan {
	p, ops := &Plan{fabric: f, desired: d}, &collected{}
	p.prepare(nil)
	for _, n := range f.Nodes {
		for i := range n.Ports {
			p.seek(&n.Ports[i])
		}
	}
	for _, n := range f.Nodes {
		for i := range n.Ports {
			p.diffPort(&n.Ports[i], ops.add)
		}
		if n.Switch != nil {
			p.diffSwitch(n, ops.add)
		}
	}
	p.arrange(ops)
	return p
}

// DiffAt is Diff for callers that know the only ports where something may have to be
// written; what belongs to a switch as a whole is compared with its port 0.
func DiffAt(f *observed.Fabric, d *observed.Desired, ports []*observed.Port) *Plan {
	p, ops := &Plan{fabric: f, desired: d}, &collected{}
	p.prepare(ports)
	for _, port := range ports {
		p.seek(port)
	}
	order := slices.Compact(slices.SortedFunc(slices.Values(ports), func(a, b *observed.Port) int {
		return cmp.Or(cmp.Compare(a.Node.Index, b.Node.Index), cmp.Compare(a.Num, b.Num))
	}))
	whole := false // the first port of this node is port 0 of a switch
	for i, port := range order {
		n := port.Node
		if i == 0 || order[i-1].Node != n {
			whole = n.Switch != nil && port.Num == 0
		}
		p.diffPort(port, ops.add)
		if last := i+1 == len(order) || order[i+1].Node != n; last && whole {
			p.diffSwitch(n, ops.add)
		}
	}
	p.arrange(ops)
	return p
}

func (p *Plan) diffPort(port *observed.Port, add addFunc) {
	if port.Reached {
		p.diffKeys(port, add)
		p.diffGUIDs(port, add)
		p.diffPortInfo(port, add)
		p.diffLanes(port, add)
	}
}

// diffSwitch compares what belongs to a switch as a whole.
func (p *Plan) diffSwitch(n *observed.Node, add addFunc) {
	p.diffForwarding(n, add)
	p.diffMulticast(n, add)
}

// collected are operations by their kind.
type collected [Activate + 1][]Op

func (c *collected) add(k Kind, port *observed.Port, a mad.AttributeID, modifier uint32) {
	c[k] = append(c[k], Op{Kind: k, Port: port, Attribute: a, Modifier: modifier})
}

const forwardingTables = "forwarding tables"

// arrange puts operations into their stages.
func (p *Plan) arrange(byKind *collected) {
	waves := p.rerouted(byKind[Forwarding])
	var late [][]Op
	byKind[Forwarding], waves, late = p.postponed(waves, byKind[SwitchSettings])
	for _, s := range stages {
		var ops []Op
		for _, k := range s.kinds {
			if ops == nil {
				ops = byKind[k] // there are millions where tables are written
			} else {
				ops = append(ops, byKind[k]...)
			}
		}
		if len(ops) > 0 {
			p.Stages = append(p.Stages, Stage{s.name, ops})
		}
		if s.name == forwardingTables {
			for _, ops := range waves {
				p.Stages = append(p.Stages, Stage{s.name, ops})
			}
		}
	}
	for _, ops := range late {
		p.Stages = append(p.Stages, Stage{forwardingTables, ops})
	}
}

type addFunc func(Kind, *observed.Port, mad.AttributeID, uint32)

// carriesData reports whether packets may pass p now.
func carriesData(p *observed.Port) bool {
	return !p.InfoRead || p.Info.PortState == smp.PortActive || p.Info.PortState == smp.PortArmed ||
		(p.Num == 0 && p.Node.Switch != nil)
}

// guarded reports whether a switch keeps port to the switch port's table in both
// directions already, and that table loses what port is to lose before anybody
// gains a key. A table that is left alone, since it has no room for what is
// wanted, keeps nobody from a partition that it still holds.
func (p *Plan) guarded(port *observed.Port) bool {
	return port.Peer != nil && port.Peer.FacesEnd() && port.Peer.Enforces() && p.desired.Port(port.Peer).PKeys != nil
}

func (p *Plan) diffKeys(port *observed.Port, add addFunc) {
	want := p.desired.Port(port)
	if want.PKeys == nil {
		return
	}
	if x, own := p.interims[port]; own {
		p.diffInterim(port, x, add)
		return
	}
	narrow, final := SwitchKeys, SwitchKeys
	switch {
	case !port.IsEnd():
		narrow = NarrowSwitch
	case !p.guarded(port):
		narrow, final = NarrowEnd, EndKeys
	default:
		narrow, final = GuardedEndKeys, GuardedEndKeys
	}
	var between []ib.PKey
	for block := range port.PKeyBlocks() {
		now, after := smp.PKeyBlock(port.PKeys, block), smp.PKeyBlock(want.PKeys, block)
		read := port.PKeyBlockRead(block)
		if read && now == after {
			continue
		}
		modifier := keyModifier(port, block)
		if narrow != final && carriesData(port) {
			if between == nil {
				between = p.between(port)
			}
			if then := smp.PKeyBlock(between, block); (!read || then != now) && then != after {
				add(narrow, port, smp.AttrPKeyTable, modifier)
			} else if then == after {
				// Nothing is added here: the narrowing is all there is to do.
				add(narrow, port, smp.AttrPKeyTable, modifier)
				continue
			}
		}
		add(final, port, smp.AttrPKeyTable, modifier)
	}
}

// Permitted is the key of k's partition that a table lets its port use: k itself,
// its limited twin, or none (ib.PKeyInvalid), as for a k that is no key.
func Permitted(table []ib.PKey, k ib.PKey) ib.PKey {
	best := ib.PKeyInvalid
	if !k.IsValid() {
		return best // most entries are empty, and a table can have 65,535
	}
	for _, have := range table {
		switch {
		case have.Base() != k.Base():
		case have.IsFull():
			return k
		default:
			best = have
		}
	}
	return best
}

// inUse is a table without its empty entries. The desired table of a device that reports
// 65,535 entries, all in use, can be as long, and almost all of it is empty: a comparison
// with what the device holds has to skip those, or a host could keep the manager busy.
func inUse(table []ib.PKey) (out []ib.PKey) {
	for _, k := range table {
		if k.IsValid() {
			out = append(out, k)
		}
	}
	return out
}

// Differing are the elements of PortInfo that have to be written, those left out that
// the port is known to forget; the state is not among them.
func Differing(port *observed.Port, d *observed.Desired) observed.Element {
	want := d.Port(port)
	return (want.Elements &^ port.Forgets).Differ(&port.Info, &want.Info)
}

func (p *Plan) diffPortInfo(port *observed.Port, add addFunc) {
	if !port.InfoRead {
		return
	}
	modifier := port.PortInfoBlock()
	want := p.desired.Port(port)
	differ := Differing(port, p.desired)
	arm := want.Activate && port.Info.PortState == smp.PortInit
	if on := turnsOn(differ, &want.Info); on != 0 && !arm && !isBetween(port) {
		add(Enforce, port, smp.AttrPortInfo, modifier)
		differ &^= on
	}
	switch {
	case differ&observed.ElementLID != 0 && p.yields(port):
		add(Yield, port, smp.AttrPortInfo, modifier)
	case differ != 0 || arm || want.Reregister && hasReregistration(port):
		add(Settings, port, smp.AttrPortInfo, modifier)
	}
	if want.Elements != 0 && len(observed.Stopped(&port.Info)) > 0 && port.Forgets&observed.ElementViolations == 0 {
		add(Counters, port, smp.AttrPortInfo, modifier)
	}
	if want.Activate && (arm || port.Info.PortState == smp.PortArmed) {
		add(Activate, port, smp.AttrPortInfo, modifier)
	}
}

// isBetween reports whether a port joins two switches. It checks what the ports
// before end ports have checked already, and begins when its table stands, so
// that it stops nothing meanwhile.
func isBetween(port *observed.Port) bool {
	return !port.IsEnd() && port.Peer != nil && port.Peer.Node.Switch != nil
}

// hasReregistration reports whether a port can tell its software to register
// again.
func hasReregistration(port *observed.Port) bool {
	return port.IsEnd() && port.Info.CapabilityMask.Has(smp.CapClientReregistration)
}

// turnsOn are the bits of a guard among the differing elements that are wanted
// on. Turning one off widens and waits for the settings.
func turnsOn(differ observed.Element, want *smp.PortInfo) (on observed.Element) {
	for _, x := range []struct {
		bit  observed.Element
		want bool
	}{
		{observed.ElementPartitionEnforcementInbound, want.PartitionEnforcementInbound},
		{observed.ElementPartitionEnforcementOutbound, want.PartitionEnforcementOutbound},
		{observed.ElementFilterRawInbound, want.FilterRawInbound},
		{observed.ElementFilterRawOutbound, want.FilterRawOutbound},
	} {
		if x.want {
			on |= differ & x.bit
		}
	}
	return on
}

// Guards reports whether p wants a bit of the guard of port on that is not on yet.
func (p *Plan) Guards(port *observed.Port) bool {
	want := p.desired.Port(port)
	return turnsOn(want.Elements.Differ(&port.Info, &want.Info), &want.Info) != 0
}
