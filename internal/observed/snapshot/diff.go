package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Difference is a fact of a fabric that two snapshots have differently.
type Difference struct {
	// Where names the device or the port, Node is the node GUID of it, and What the fact.
	Where string
	Node  ib.NodeGUID
	What  string
	// Was and Is are what the two have; empty for nothing.
	Was, Is string
}

// Diff lists what differs between two snapshots of one fabric: devices, cables, P_Keys, what
// guards and enforces, addresses, and who manages it, by node GUID and port. What only one of
// them was asked for is left out; a key counts as there or not, since another stands in its
// place in each file.
func Diff(a, b *Snapshot) []Difference {
	d := differ{both: func(asked string) bool { return slices.Contains(a.Asked, asked) && slices.Contains(b.Asked, asked) }}
	nodes := slices.Clone(a.Fabric.Nodes)
	for _, n := range b.Fabric.Nodes {
		if a.Fabric.Node(n.GUID()) == nil {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(x, y *observed.Node) int { return cmp.Compare(x.GUID(), y.GUID()) })
	for _, n := range nodes {
		x, y := a.Fabric.Node(n.GUID()), b.Fabric.Node(n.GUID())
		d.node, d.where = n, n.Name()
		d.add("device", device(x), device(y))
		if x != nil && y != nil {
			d.add("name", x.Description, y.Description)
			d.tables(x.Switch, y.Switch)
		}
		for i := range n.Ports {
			p, q := portOf(x, i), portOf(y, i)
			if p == nil && q == nil {
				continue // port 0 of a CA
			}
			d.where = n.Ports[i].String()
			if n.Switch != nil && i == 0 {
				d.where = n.Name() + ":0"
			}
			d.cable(p, q)
			d.keys(p, q)
			if p != nil && q != nil {
				d.port(p, q)
			}
		}
	}
	return d.out
}

type differ struct {
	both  func(asked string) bool
	node  *observed.Node
	where string
	out   []Difference
}

func (d *differ) add(what, was, is string) {
	if was != is {
		d.out = append(d.out, Difference{d.where, d.node.GUID(), what, was, is})
	}
}

func portOf(n *observed.Node, num int) *observed.Port {
	if n == nil {
		return nil
	}
	return n.Port(ib.PortNum(num))
}

func device(n *observed.Node) string {
	if n == nil {
		return ""
	}
	i := &n.Info
	text := fmt.Sprintf("%s of %d ports, VendorID 0x%06x, DeviceID 0x%04x, Revision 0x%x", n.Type(), i.NumPorts, i.VendorID, i.DeviceID, i.Revision)
	if n.Contested {
		text += ", a second one has its GUID"
	}
	return text
}

// cable compares where a cable leads. One to a host is named at the host, one between two
// of the same kind at the lower end.
func (d *differ) cable(p, q *observed.Port) {
	named := false
	for _, x := range []*observed.Port{p, q} {
		if x == nil || x.Peer == nil {
			continue
		}
		if mine, other := x.Node.Switch != nil, x.Peer.Node.Switch != nil; mine == other {
			named = named || x.Place().Compare(x.Peer.Place()) < 0
		} else {
			named = named || other
		}
	}
	if named {
		d.add("cable", peerOf(p), peerOf(q))
	}
	if p != nil && q != nil {
		d.add("unknown device behind", strangerOf(p), strangerOf(q))
	}
}

func peerOf(p *observed.Port) string {
	if p == nil || p.Peer == nil {
		return ""
	}
	return fmt.Sprintf("%s (%s port %d)", p.Peer.Node.Name(), p.Peer.Node.GUID(), p.Peer.Num)
}

func strangerOf(p *observed.Port) string {
	switch {
	case p.Stranger != nil:
		return fmt.Sprintf("%s %s", p.Stranger.Info.NodeType, p.Stranger.Info.NodeGUID)
	case p.FacesStranger():
		return "does not answer"
	}
	return ""
}

// keys compares P_Keys, whatever their order but for the one at index 0.
func (d *differ) keys(p, q *observed.Port) {
	if r := cmp.Or(p, q); !r.IsEnd() && (p == nil || q == nil || !r.FacesEnd() && !d.both(AskedAudit)) {
		return
	}
	was, is := keysOf(p), keysOf(q)
	lacking := func(of, other []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(of), func(k string) bool { return slices.Contains(other, k) }), " ")
	}
	d.add("P_Keys", lacking(was, is), lacking(is, was))
	if p != nil && q != nil && p.IsEnd() && p.PKeyBlockRead(0) && q.PKeyBlockRead(0) && len(p.PKeys) > 0 && len(q.PKeys) > 0 {
		d.add("P_Key at index 0", p.PKeys[0].String(), q.PKeys[0].String())
	}
}

// keysOf are the P_Keys of a port's table, and what could not be read of it.
func keysOf(p *observed.Port) (out []string) {
	if p == nil {
		return nil
	}
	for _, k := range p.ReadPKeys() {
		if k != 0 && !slices.Contains(out, k.String()) {
			out = append(out, k.String())
		}
	}
	slices.Sort(out)
	if p.Reached && !p.PKeysKnown() {
		out = append(out, "(not all read)")
	}
	return out
}

// port compares the settings of a port that both have.
func (d *differ) port(p, q *observed.Port) {
	settings := func(what string, of func(*observed.Port) string) {
		text := func(p *observed.Port) string {
			if p.Reached && !p.InfoRead {
				return "not read"
			}
			return of(p)
		}
		d.add(what, text(p), text(q))
	}
	directions := func(what string, of func(*observed.Port) (in, out bool)) {
		settings(what, func(p *observed.Port) string {
			in, out := of(p)
			return "inbound " + onOff[in] + ", outbound " + onOff[out]
		})
	}
	settings("link", func(p *observed.Port) string { return p.Info.PortState.String() })
	if !p.IsEnd() {
		directions("enforcement", func(p *observed.Port) (in, out bool) {
			return p.Info.PartitionEnforcementInbound, p.Info.PartitionEnforcementOutbound
		})
		directions("raw filter", func(p *observed.Port) (in, out bool) { return p.Info.FilterRawInbound, p.Info.FilterRawOutbound })
		return
	}
	settings("port GUID", func(p *observed.Port) string { return p.GUID.String() })
	settings("LID", func(p *observed.Port) string { return fmt.Sprintf("%s, LMC %d", p.Info.LID, p.Info.LMC) })
	settings("manager's LID", func(p *observed.Port) string { return p.Info.MasterSMLID.String() })
	settings("guard", guardOf)
	if d.both(AskedAudit) {
		settings("manager behind", managerOf)
		settings("aliases", func(p *observed.Port) string { return fmt.Sprint(p.Aliases()) })
	}
}

var onOff = map[bool]string{true: "on", false: "off"}

func guardOf(p *observed.Port) string {
	key := "M_Key"
	switch {
	case p.Info.MKey == 0 && p.Info.MKeyProtectBits == 0:
		return "none"
	case p.Info.MKey == 0:
		key = "M_Key hidden or 0"
	}
	return fmt.Sprintf("%s, M_KeyProtectBits %d, M_KeyLeasePeriod %d s", key, p.Info.MKeyProtectBits, p.Info.MKeyLeasePeriod)
}

func managerOf(p *observed.Port) string {
	if !p.SMInfoRead {
		return ""
	}
	return fmt.Sprintf("%s, priority %d", p.SMInfo.SMState, p.SMInfo.Priority)
}

// tables compares the tables of a switch that both have.
func (d *differ) tables(x, y *observed.Switch) {
	if x == nil || y == nil {
		return
	}
	d.add("enforcement capability", capabilityOf(x), capabilityOf(y))
	if d.both(AskedForwarding) {
		unread := func(s *observed.Switch) string {
			if slices.Contains(s.LFTRead, false) {
				return "not all read"
			}
			return ""
		}
		different := ""
		if n := routesChanged(x.LFT, y.LFT); n > 0 {
			different = fmt.Sprintf("%d LIDs have another port", n)
		}
		d.add("forwarding table", unread(x), cmp.Or(unread(y), different))
	}
	if d.both(AskedMulticast) && !maps.Equal(x.MFT, y.MFT) {
		d.add("multicast forwarding table", "", "another")
	}
}

// routesChanged counts the LIDs for which two tables have different ports; beyond its end a
// table has none.
func routesChanged(a, b []ib.PortNum) (n int) {
	at := func(t []ib.PortNum, lid int) ib.PortNum {
		if lid < len(t) {
			return t[lid]
		}
		return ib.PortNone
	}
	for lid := range max(len(a), len(b)) {
		if at(a, lid) != at(b, lid) {
			n++
		}
	}
	return n
}

func capabilityOf(x *observed.Switch) string {
	if !x.InfoRead {
		return "not read"
	}
	i := &x.Info
	return fmt.Sprintf("P_Key tables of %d, inbound %s, outbound %s", i.PartitionEnforcementCap, onOff[i.InboundEnforcementCap], onOff[i.OutboundEnforcementCap])
}
