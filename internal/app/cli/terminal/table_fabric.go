package terminal

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// sorted returns the nodes ordered by type (switches first) and GUID.
func sorted(f *observed.Fabric) []*observed.Node {
	nodes := slices.Clone(f.Nodes)
	slices.SortFunc(nodes, func(a, b *observed.Node) int {
		return cmp.Or(-cmp.Compare(a.Type()&ib.NodeSwitch, b.Type()&ib.NodeSwitch), cmp.Compare(a.GUID(), b.GUID()))
	})
	return nodes
}

// Nodes has a row for each device.
func Nodes(f *observed.Fabric) Table {
	t := NewTable("guid", "type", "ports", "partition_cap", "vendor_id", "device_id", "description")
	for _, n := range sorted(f) {
		i := &n.Info
		t.Add(n.GUID(), n.Type().String(), i.NumPorts, i.PartitionCap,
			fmt.Sprintf("0x%06x", i.VendorID), fmt.Sprintf("0x%04x", i.DeviceID), n.Description)
	}
	return t
}

// Ports has a row for each end port, and for each port with a cable.
func Ports(f *observed.Fabric) Table {
	t := NewTable("node", "port", "guid", "lid", "state", "physical_state", "width", "speed",
		"neighbor_mtu", "operational_vls", "enforce_inbound", "enforce_outbound", "peer")
	for _, n := range sorted(f) {
		for i := range n.Ports {
			p := &n.Ports[i]
			if !p.InfoRead || (!p.IsEnd() && p.Peer == nil && !p.IsUp()) {
				continue
			}
			var guid, peer any
			if p.IsEnd() {
				guid = p.GUID
			}
			if p.Peer != nil {
				peer = place(p.Peer)
			}
			t.Add(n.Name(), p.Num, guid, p.Info.LID, p.Info.PortState.String(), p.Info.PortPhysicalState.String(),
				p.Info.LinkWidthActive.String(), p.Info.Speed().Gbps(), mtuOf(p), p.Info.OperationalVLs,
				p.Info.PartitionEnforcementInbound, p.Info.PartitionEnforcementOutbound, peer)
		}
	}
	return t
}

// mtuOf is the MTU that the link uses; code 0 is what a port says that has none, as
// port 0 of most switches.
func mtuOf(p *observed.Port) string {
	if p.Info.NeighborMTU == 0 {
		return "none"
	}
	return p.Info.NeighborMTU.String()
}

func place(p *observed.Port) string { return fmt.Sprintf("%s:%d", p.Node.Name(), p.Num) }

// Links has a row for each cable.
func Links(f *observed.Fabric) Table {
	t := NewTable("guid_a", "port_a", "guid_b", "port_b", "width", "speed", "state", "a", "b")
	for _, l := range f.Links() {
		t.Add(l.A.Node.GUID(), l.A.Num, l.B.Node.GUID(), l.B.Num, l.A.Info.LinkWidthActive.String(), l.A.Info.Speed().Gbps(),
			l.A.Info.PortState.String(), l.A.Node.Name(), l.B.Node.Name())
	}
	return t
}

// LIDs has the addresses of end ports.
func LIDs(f *observed.Fabric) Table {
	t := NewTable("lid", "lmc", "guid", "master_sm_lid", "type", "name")
	ports := f.EndPorts()
	slices.SortStableFunc(ports, func(a, b *observed.Port) int { return cmp.Compare(a.Info.LID, b.Info.LID) })
	for _, p := range ports {
		t.Add(p.Info.LID, p.Info.LMC, p.GUID, p.Info.MasterSMLID, p.Node.Type().String(), p.String())
	}
	return t
}

// Routes has the entries of forwarding tables that lead somewhere.
func Routes(f *observed.Fabric) Table {
	t := NewTable("switch", "guid", "lid", "port", "towards")
	for _, n := range sorted(f) {
		if n.Switch == nil {
			continue
		}
		add := func(lid ib.LID, out ib.PortNum) {
			var next any
			if p := n.Port(out); out == 0 {
				next = n.Name()
			} else if p != nil && p.Peer != nil {
				next = p.Peer.Node.Name()
			}
			t.Add(n.Name(), n.GUID(), lid, out, next)
		}
		for lid, out := range n.Switch.LFT {
			if lid > 0 && lid <= int(n.Switch.Info.LinearFDBTop) && out != ib.PortNone {
				add(ib.LID(lid), out)
			}
		}
		for _, e := range n.Switch.RFT {
			if e.Valid {
				add(e.LID, e.Port)
			}
		}
	}
	return t
}

// PKeys has the valid entries of every P_Key table.
func PKeys(f *observed.Fabric) Table {
	t := NewTable("node", "port", "guid", "cap", "pkeys")
	for _, n := range sorted(f) {
		for i := range n.Ports {
			p := &n.Ports[i]
			if p.PKeys == nil {
				continue
			}
			var guid any
			if p.IsEnd() {
				guid = p.GUID
			}
			keys := make([]tableKey, 0, len(p.PKeys))
			for index, k := range p.PKeys {
				if k.IsValid() {
					keys = append(keys, tableKey{index, k})
				}
			}
			t.Add(n.Name(), p.Num, guid, p.PKeyCap(), keys)
		}
	}
	return t
}

// Aliases has the GUIDs of end ports besides their own.
func Aliases(f *observed.Fabric) Table {
	t := NewTable("node", "port", "guid", "cap", "index", "alias")
	for _, p := range f.EndPorts() {
		for _, a := range p.Aliases() {
			t.Add(p.Node.Name(), p.Num, p.GUID, p.Info.GUIDCap, a.Index, a.GUID)
		}
	}
	return t
}

// tableKey is an entry of a P_Key table.
type tableKey struct {
	Index int     `json:"index"`
	PKey  ib.PKey `json:"pkey"`
}

func (k tableKey) String() string { return fmt.Sprintf("[%d]%s", k.Index, k.PKey) }

// Partitions has the partitions that the tables of end ports make.
func Partitions(f *observed.Fabric) Table {
	t := NewTable("pkey", "full", "limited", "full_members", "limited_members")
	type members struct{ full, limited []string }
	by := map[ib.PKeyBase]*members{}
	for _, p := range f.EndPorts() {
		for _, k := range p.PKeys {
			if !k.IsValid() {
				continue
			}
			m := by[k.Base()]
			if m == nil {
				m = new(members)
				by[k.Base()] = m
			}
			if k.IsFull() {
				m.full = append(m.full, p.String())
			} else {
				m.limited = append(m.limited, p.String())
			}
		}
	}
	bases := make([]ib.PKeyBase, 0, len(by))
	for b := range by {
		bases = append(bases, b)
	}
	slices.Sort(bases)
	for _, b := range bases {
		t.Add(b, len(by[b].full), len(by[b].limited), by[b].full, by[b].limited)
	}
	return t
}
