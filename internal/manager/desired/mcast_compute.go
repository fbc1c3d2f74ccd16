// Multicast: ComputeMulticast computes the multicast forwarding tables of a subnet.
//
// In: a snapshot, the groups with their multicast LIDs and members, and the members of
// the partitions. Out: for each switch the exit ports of each group, to be entered into
// an observed.Desired, and what is not possible and why. The same input always gives
// the same tables, and the order of discovery does not matter.
//
// Every group has a tree of switches and cables that connects the switches of its
// members, so packets cannot loop. A port is in the table of a switch
// when a receiving member is behind it: at its other end, or farther down
// the tree. So a packet of a member reaches every other receiving member
// once, and nobody else; send-only members are connected to the tree and receive
// nothing. Port 0 is in the table only when the switch itself is a member.
//
// A member that is not in the partition is left out, and so is one whose GUID two
// devices claim, or one without a trained link.
//
// Trees start from the present tables, as the snapshot shows
// them: cables that are still needed stay, a new member is connected by a shortest path
// to the tree, and branches end where the last member left. New trees
// use equal paths in turn, by their multicast LID.
//
// Where an order of the switches is given, a tree has one switch that stands above all
// others, and every other one neighbour that stands above it. Packets on trees of one order
// never wait for each other in a circle. Where cables that can carry the group leave no
// such tree, it has another one.
//
// A switch carries a group only if its table has room for the group's multicast
// LID. Packets to any other multicast LID are to be dropped: the default multicast
// ports of switches are closed.
//
// One multicast LID belongs to one group. Input to the contrary is refused
// as a whole.

package desired

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// MulticastInput is what tables are computed from.
type MulticastInput struct {
	Fabric *observed.Fabric
	Groups []*group.Group
	// Allowed reports whether a port may be in a partition.
	Allowed func(ib.PKeyBase, ib.PortGUID) bool
	// Idle are ports between switches by which no packets go.
	Idle map[*observed.Port]bool
	// Order lists the switches by node GUID from the highest to the lowest. Trees keep to
	// it wherever it connects the members of a group: none goes up after it went down.
	// nil: any tree will do.
	Order []ib.NodeGUID
}

// MulticastFault is what keeps a group from somewhere.
type MulticastFault struct {
	MGID ib.GID
	MLID ib.LID
	// Port is the member that packets of the group do not reach, or that
	// cannot send any.
	Port ib.PortGUID
	Why  string
}

// String says it in one line.
func (f MulticastFault) String() string {
	return fmt.Sprintf("multicast group %s, MLID 0x%04x: member %s: %s", f.MGID, uint16(f.MLID), f.Port, f.Why)
}

// MulticastTables is where every switch sends packets of every group.
type MulticastTables struct {
	// Faults are ordered by MLID and port.
	Faults []MulticastFault
	// blocks holds for each switch, by Node.Index, the blocks that are not
	// empty, by smp.MFTModifier; tops the highest multicast LID with a port.
	blocks []map[uint32]smp.MulticastForwardingTable
	tops   []ib.LID
}

// ComputeMulticast works out the tables. It fails when two groups have one multicast
// LID, or when a group has none.
func ComputeMulticast(in MulticastInput) (*MulticastTables, error) {
	groups := slices.Clone(in.Groups)
	slices.SortStableFunc(groups, func(a, b *group.Group) int { return cmp.Compare(a.MLID, b.MLID) })
	for i, g := range groups {
		if !g.MLID.IsMulticast() {
			return nil, fmt.Errorf("multicast group %s of partition %s: LID 0x%04x, want 0xc000 to 0xfffe", g.MGID, g.Partition, uint16(g.MLID))
		}
		if i > 0 && groups[i-1].MLID == g.MLID {
			o := groups[i-1]
			return nil, fmt.Errorf("multicast LID 0x%04x: of group %s of partition %s and of group %s of partition %s, want one group",
				uint16(g.MLID), o.MGID, o.Partition, g.MGID, g.Partition)
		}
	}
	t := &MulticastTables{
		blocks: make([]map[uint32]smp.MulticastForwardingTable, len(in.Fabric.Nodes)),
		tops:   make([]ib.LID, len(in.Fabric.Nodes)),
	}
	for i := range t.tops {
		t.tops[i] = ib.LIDMulticastMin - 1
	}
	w := newWeb(in.Fabric, in.Idle)
	h := newHeights(w, in.Order)
	ends := endPorts(in.Fabric)
	for _, g := range groups {
		newTree(w, h, g).compute(ends, in.Allowed, t)
	}
	return t, nil
}

// endPorts are those that can be told apart, by GUID; those whose GUID several
// ports claim are nil.
func endPorts(f *observed.Fabric) map[ib.PortGUID]*observed.Port {
	out := make(map[ib.PortGUID]*observed.Port)
	for _, p := range f.EndPorts() {
		if _, twice := out[p.GUID]; twice || p.Node.Contested {
			out[p.GUID] = nil
		} else {
			out[p.GUID] = p
		}
	}
	return out
}

func (t *MulticastTables) fault(g *group.Group, port ib.PortGUID, why string) {
	t.Faults = append(t.Faults, MulticastFault{g.MGID, g.MLID, port, why})
}

// add makes packets for a multicast LID leave a switch by a port.
func (t *MulticastTables) add(n *observed.Node, mlid ib.LID, port ib.PortNum) {
	block, i := smp.MFTPlace(mlid)
	modifier := smp.MFTModifier(block, uint8(port/smp.PortsPerPosition))
	if t.blocks[n.Index] == nil {
		t.blocks[n.Index] = make(map[uint32]smp.MulticastForwardingTable)
	}
	b := t.blocks[n.Index][modifier]
	b.Masks[i] |= 1 << (port % smp.PortsPerPosition)
	t.blocks[n.Index][modifier] = b
	t.tops[n.Index] = max(t.tops[n.Index], mlid)
}

// Exits are the ports by which packets for a multicast LID leave a switch, in
// order.
func (t *MulticastTables) Exits(n *observed.Node, mlid ib.LID) (ports []ib.PortNum) {
	block, i := smp.MFTPlace(mlid)
	for position := range n.MFTPositions() {
		mask := t.blocks[n.Index][smp.MFTModifier(block, uint8(position))].Masks[i]
		for k := range smp.PortsPerPosition {
			if mask&(1<<k) != 0 {
				ports = append(ports, ib.PortNum(position*smp.PortsPerPosition+k))
			}
		}
	}
	return ports
}

// Enter wants the tables of every switch that answered what it can hold.
func (t *MulticastTables) Enter(f *observed.Fabric, d *observed.Desired) {
	for _, n := range f.Switches() {
		if n.Switch.InfoRead {
			d.Nodes[n.Index].Multicast = &observed.DesiredMulticast{
				Blocks: t.blocks[n.Index], Top: t.tops[n.Index],
				Primary: ib.PortNone, NotPrimary: ib.PortNone,
			}
		}
	}
}
