package sweep

import (
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Least is how many requests it takes, at the least, to read what was found, without and with the
// tables: each device and each port is asked once who and how it is, each cable is followed once, by
// Options.Verify from both ends, where it joins switches, and each table is read once where it may hold
// something. Again counts only what is behind the links that it follows.
func (d *Discovery) Least() (found, tables uint64) {
	if len(d.kept) == 0 {
		found = 1 // the manager's own node, which no cable leads to
	}
	table := func(observed.Block) { tables++ }
	for _, n := range d.fabric.Nodes {
		kept := d.kept[n.GUID()]
		if !kept {
			found++ // NodeDescription
			n.Tables(d.options.scope(), table)
		}
		if !kept && n.Switch != nil {
			found++ // SwitchInfo
		}
		for i := range n.Ports {
			p := &n.Ports[i]
			if !p.Reached || kept && !d.followed[p] {
				continue
			}
			if i > 0 || n.Switch != nil {
				found++ // PortInfo
			}
			if p.IsEnd() && p.Modifier(smp.AttrPortInfo, p.PortInfoBlock()) != p.PortInfoBlock() {
				found++ // and once more with the bit of extended speeds, which PortInfo itself allows
			}
			found += d.leastBehind(p)
			if kept {
				p.PKeyTable(table)
			}
			if kept && d.options.QoS {
				p.LaneTables(table)
			}
		}
	}
	return found, tables
}

// leastBehind counts the requests for NodeInfo over the cable of a port, at that of its ends that comes
// first.
func (d *Discovery) leastBehind(p *observed.Port) uint64 {
	far := p.Peer
	switch {
	case far == nil && p.Num > 0 && p.IsUp() && (p.Node.Switch != nil || p == d.fabric.Self):
		return 1 // who does not say who it is
	case far == nil:
		return 0
	case (far.Node.Index < p.Node.Index || far.Node == p.Node && far.Num < p.Num) && far.Reached && (!d.kept[far.Node.GUID()] || d.followed[far]):
		return 0 // it was counted there
	case d.options.Verify && p.Node.Switch != nil && far.Node.Switch != nil:
		return 2
	}
	return 1
}
