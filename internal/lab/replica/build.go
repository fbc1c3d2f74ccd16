package replica

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Replica is a simulated fabric with the tables of a snapshot.
type Replica struct {
	fabric *fabric.Fabric
	gaps   []Gap
	// strangers stand behind links that lead to nobody who was found.
	strangers map[ib.NodeGUID]bool
	ends      map[observed.Place]*end

	// Of the packet that was sent last.
	from    observed.Place
	to      observed.Place
	unsent  End    // why it was not sent, empty when it was
	reason  string // of unsent
	unbound bool   // no queue pair could be bound to an entry of the receiver's table
	seen    []sighting
	over    bool
}

// Gap is what a replica does not have as the snapshot has it.
type Gap struct {
	At  observed.Place
	Why string
}

// Fabric is the simulated fabric.
func (r *Replica) Fabric() *fabric.Fabric { return r.fabric }

// Gaps lists what the replica lacks, in the order of the snapshot.
func (r *Replica) Gaps() []Gap { return r.gaps }

// Build makes a simulated fabric of a snapshot. It fails on one that no fabric
// can be made of; what is merely not known is listed as a Gap, and closed: no
// key, no route.
func Build(f *observed.Fabric) (*Replica, error) {
	b := builder{source: f, r: &Replica{strangers: make(map[ib.NodeGUID]bool), ends: make(map[observed.Place]*end)}}
	b.lay()
	c := fabric.Config{Profile: b.profile, DataTrace: b.r.see}
	fabric, err := fabric.New(&b.list, c)
	if err != nil {
		return nil, fmt.Errorf("replica: %w", err)
	}
	b.r.fabric = fabric
	for _, n := range f.Nodes {
		b.fill(n)
	}
	return b.r, nil
}

// builder is a replica in the making.
type builder struct {
	source *observed.Fabric
	list   topology.Netlist
	nodes  map[ib.NodeGUID]*topology.Node
	guids  map[ib.PortGUID]bool
	free   uint64 // a GUID that nobody may have
	r      *Replica
}

func (b *builder) gap(g ib.NodeGUID, num ib.PortNum, format string, args ...any) {
	b.r.gaps = append(b.r.gaps, Gap{observed.Place{Node: g, Port: num}, fmt.Sprintf(format, args...)})
}

// spareGUID is a GUID of no device and no port.
func (b *builder) spareGUID() uint64 {
	for {
		b.free++
		if b.source.Node(ib.NodeGUID(b.free)) == nil && !b.guids[ib.PortGUID(b.free)] {
			return b.free
		}
	}
}

// lay makes the devices and cables. Two ports of one GUID are two ports: no
// packet is sent by GUIDs here.
func (b *builder) lay() {
	b.nodes, b.guids = make(map[ib.NodeGUID]*topology.Node), make(map[ib.PortGUID]bool)
	for _, n := range b.source.Nodes {
		for i := range n.Ports {
			b.guids[n.Ports[i].GUID] = true
		}
	}
	taken := make(map[ib.PortGUID]bool)
	for i, n := range b.source.Nodes {
		m := topology.NewNode(n.Type(), fmt.Sprintf("node %d", i), n.GUID(), ib.PortNum(n.Info.NumPorts))
		m.EnhancedPort0 = n.Switch != nil && n.Switch.InfoRead && n.Switch.Info.EnhancedPort0
		for num := range m.Ports {
			if !m.IsEndPort(num) {
				continue
			}
			guid := n.Ports[num].GUID
			if guid == 0 || taken[guid] {
				guid = ib.PortGUID(b.spareGUID())
			}
			taken[guid], m.Ports[num].GUID = true, guid
		}
		b.nodes[n.GUID()] = m
		b.list.Nodes = append(b.list.Nodes, m)
	}
	for _, l := range b.source.Links() {
		b.cable(l.A, l.B)
	}
	for _, n := range b.source.Nodes {
		for i := 1; i < len(n.Ports); i++ {
			if p := &n.Ports[i]; p.Peer == nil && p.IsUp() {
				b.stranger(p)
			}
		}
	}
}

// cable lays a cable that is up at both ends, as far as that was read.
func (b *builder) cable(x, y *observed.Port) {
	down := func(p *observed.Port) bool { return p.InfoRead && p.Info.PortState == smp.PortDown }
	switch {
	case down(x) && down(y):
		return
	case down(x):
		b.gap(y.Node.GUID(), y.Num, "its link is up, and down at the other end")
		return
	case down(y):
		b.gap(x.Node.GUID(), x.Num, "its link is up, and down at the other end")
		return
	}
	if err := topology.Connect(b.nodes[x.Node.GUID()], x.Num, b.nodes[y.Node.GUID()], y.Num); err != nil {
		b.gap(x.Node.GUID(), x.Num, "%v", err)
	}
}

// stranger puts a device that was not found behind p.
func (b *builder) stranger(p *observed.Port) {
	guid := b.spareGUID()
	m := topology.NewNode(ib.NodeCA, fmt.Sprintf("stranger %d", len(b.r.strangers)), ib.NodeGUID(guid), 1)
	m.Ports[1].GUID = ib.PortGUID(b.spareGUID())
	if topology.Connect(b.nodes[p.Node.GUID()], p.Num, m, 1) == nil {
		b.list.Nodes = append(b.list.Nodes, m)
		b.r.strangers[m.GUID] = true
	}
}

// profile gives a device the capacities that it was read to have.
func (b *builder) profile(m *topology.Node, c *sma.Config) {
	c.TrapSends = 1
	c.BadInput = sma.BadInputPartly // a snapshot may hold a value that no agent here takes, beside others
	for i := range c.Ports {
		c.Ports[i].CapabilityMask = 0
	}
	n := b.source.Node(m.GUID)
	if n == nil {
		return
	}
	c.PartitionCap = max(n.Info.PartitionCap, 1)
	for i := range c.Ports {
		if p := &n.Ports[i+1]; p.InfoRead {
			portProfile(&c.Ports[i], &p.Info)
		}
	}
	s := n.Switch
	if s == nil {
		return
	}
	c.Switch.Port0.CapabilityMask = 0
	if n.Ports[0].InfoRead {
		portProfile(&c.Switch.Port0, &n.Ports[0].Info)
	}
	if !s.InfoRead {
		return
	}
	c.Switch.LinearFDBCap = min(s.Info.LinearFDBCap, sma.MaxLinearFDBCap)
	c.Switch.RandomFDBCap = s.Info.RandomFDBCap
	c.Switch.PartitionEnforcementCap = s.Info.PartitionEnforcementCap
	c.Switch.InboundEnforcementCap, c.Switch.OutboundEnforcementCap = s.Info.InboundEnforcementCap, s.Info.OutboundEnforcementCap
	c.Switch.FilterRawInboundCap, c.Switch.FilterRawOutboundCap = s.Info.FilterRawInboundCap, s.Info.FilterRawOutboundCap
}

// portProfile copies the virtual lanes and lengths that a port says it has, where they
// are ones that exist.
func portProfile(c *sma.PortConfig, info *smp.PortInfo) {
	if lanes := smp.DataVLs(info.VLCap); lanes > 0 {
		c.VLCap, c.VLArbitrationHighCap, c.VLArbitrationLowCap = info.VLCap, 0, 0
		if lanes > 1 {
			const least = 8 // where a device says that it has none, which no agent here has
			c.VLArbitrationHighCap = min(max(info.VLArbitrationHighCap, least), smp.VLArbitrationMax)
			c.VLArbitrationLowCap = min(max(info.VLArbitrationLowCap, least), smp.VLArbitrationMax)
		}
	}
	if info.MTUCap.IsValid() {
		c.MTUCap = info.MTUCap
	}
}

// set writes an attribute through the agent of a node, by port from.
func (b *builder) set(n *observed.Node, from ib.PortNum, modifier uint32, attribute smp.Attribute) error {
	m := mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnLID, ClassVersion: mad.ClassVersion,
		Method: mad.MethodSet, AttributeID: attribute.ID(), AttributeModifier: modifier,
	}
	if err := attribute.Encode(&m.Data); err != nil {
		return err
	}
	a := b.r.fabric.Agent(n.GUID())
	if v := a.Handle(0, sma.Ingress{Port: from}, &m).Verdict; v != sma.Answered || m.Status != mad.StatusOK {
		return fmt.Errorf("%s: the agent does not take it: status %v", smp.AttributeName(attribute.ID()), m.Status)
	}
	return nil
}
