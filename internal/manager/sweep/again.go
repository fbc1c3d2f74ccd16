package sweep

import (
	"errors"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// CanCut reports whether Cut and Again can leave the links of these ports out: not
// the one by which the manager reaches the subnet, and not where two devices claim
// one GUID, of which nobody can tell which went.
func CanCut(f *observed.Fabric, ports []*observed.Port) bool {
	if f.Self == nil || slices.ContainsFunc(f.Nodes, func(n *observed.Node) bool { return n.Contested }) {
		return false
	}
	return !slices.ContainsFunc(ports, func(p *observed.Port) bool {
		return p == f.Self || p == f.Self.Peer && f.Self.Node.Switch == nil
	})
}

// Cut is a snapshot like f without the links of some ports and without the nodes
// that nothing else leads to. The ports of f stay as they are.
func Cut(f *observed.Fabric, ports []*observed.Port) *observed.Fabric {
	cut := make(map[*observed.Port]bool, 2*len(ports))
	for _, p := range ports {
		cut[p] = true
		if p.Peer != nil {
			cut[p.Peer] = true
		}
	}
	ways, ends := waysIn(f, cut)
	out := observed.NewFabric()
	for _, n := range f.Nodes {
		if _, reached := ways[n]; reached {
			out.Adopt(n)
		}
	}
	for _, n := range f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			q := twin(out, p)
			if q == nil {
				continue
			}
			to, reached := ends[p]
			if !reached || !p.Reached { // another port of a CA is
				*q = observed.Port{Node: q.Node, Num: q.Num}
				continue
			}
			q.Path, q.Peer, q.Silent, q.Via = to.path, nil, q.Silent && !cut[p], nil
			if to.via != nil && q.IsEnd() {
				q.Via = twin(out, to.via)
			}
			if cut[p] {
				q.Stranger, q.Leads = nil, false
			}
			if !cut[p] && p.Peer != nil {
				q.Peer = twin(out, p.Peer)
			}
		}
	}
	out.Self = twin(out, f.Self)
	return out
}

// twin is the port of another snapshot at the same place.
func twin(f *observed.Fabric, p *observed.Port) *observed.Port {
	n := f.Node(p.Node.GUID())
	if n == nil || int(p.Num) >= len(n.Ports) {
		return nil
	}
	return &n.Ports[p.Num]
}

// way is a route to an agent, and the port by which it goes there last.
type way struct {
	path mad.Path
	via  *observed.Port
}

// waysIn walks f from the manager's own port without the links of cut, breadth first: the
// nodes that it reaches, and the way to each port's agent. It uses no cable over which
// the key of the device beyond may not be sent.
func waysIn(f *observed.Fabric, cut map[*observed.Port]bool) (map[*observed.Node]bool, map[*observed.Port]way) {
	nodes, ends := map[*observed.Node]bool{}, map[*observed.Port]way{}
	var queue []*observed.Port
	arrive := func(p *observed.Port, to way) {
		n := p.Node
		switch {
		case n.Switch == nil:
			if _, was := ends[p]; !was {
				nodes[n], ends[p] = true, to
			}
			return
		case nodes[n]:
			return
		}
		nodes[n] = true
		for i := range n.Ports {
			ends[&n.Ports[i]] = to
			queue = append(queue, &n.Ports[i])
		}
	}
	arrive(f.Self, way{})
	if f.Self.Node.Switch == nil {
		queue = append(queue, f.Self)
	}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		if p.Peer == nil || cut[p] || len(ends[p].path) >= mad.MaxHops || p.Peer.MKey() != 0 && !p.Leads && p.Peer.Agent().Via != p {
			continue
		}
		before := ends[p].path
		path := make(mad.Path, len(before)+1)
		copy(path, before)
		path[len(before)] = p.Num
		arrive(p.Peer, way{path, p})
	}
	return nodes, ends
}

// Again is a Discovery of a subnet of which f is a snapshot and of which the links
// of some ports, cut, have changed since: what cannot be reached without them is
// left out, and what is behind those of follow is visited. All else stands as it
// was. f stays as it is, so that the discovery can be given up.
func Again(w *transact.Window, o Options, f *observed.Fabric, cut, follow []*observed.Port) *Discovery {
	d := newDiscovery(w, o, Cut(f, cut))
	d.kept, d.followed = make(map[ib.NodeGUID]bool), make(map[*observed.Port]bool)
	for _, n := range d.fabric.Nodes {
		d.kept[n.GUID()] = true
	}
	for _, n := range d.fabric.Nodes {
		d.ports += int(n.Info.NumPorts)
	}
	d.tabled = len(d.fabric.Nodes)
	for _, old := range follow {
		for _, p := range []*observed.Port{old, old.Peer} {
			if p == nil {
				continue
			}
			if q := twin(d.fabric, p); q != nil && q.Reached {
				d.followAgain(q)
			}
		}
	}
	return d
}

// followAgain reads a port and visits what is behind it.
func (d *Discovery) followAgain(p *observed.Port) {
	if d.followed[p] {
		return
	}
	d.followed[p] = true
	d.read(p, smp.AttrPortInfo, p.PortInfoBlock(), func() {
		if p.Num != 0 && p.IsUp() && p.Peer == nil && (p.Node.Switch != nil || p == d.fabric.Self) {
			d.follow(p)
		}
	})
}

// doubt looks at the other ends of the links of a switch that stands as it was and does not
// answer any more: it may have died, with more links than have been heard of yet.
func (d *Discovery) doubt(n *observed.Node, err error) {
	if n.Switch == nil || !d.kept[n.GUID()] || !errors.Is(err, transact.ErrNoAnswer) || d.doubted[n] {
		return
	}
	if d.doubted == nil {
		d.doubted = make(map[*observed.Node]bool)
	}
	d.doubted[n] = true
	own := make(map[*observed.Port]bool, len(n.Ports))
	for i := range n.Ports {
		own[&n.Ports[i]] = true
	}
	_, ends := waysIn(d.fabric, own) // around it
	for i := range n.Ports {
		p := n.Ports[i].Peer
		to, reached := ends[p]
		if p == nil || !reached || d.followed[p] {
			continue
		}
		d.get(to.path, p.MKey(), p.RespTime(), smp.AttrPortInfo, p.Modifier(smp.AttrPortInfo, p.PortInfoBlock()), func(r transact.Reply) {
			var info smp.PortInfo
			if r.Err == nil && info.UnmarshalBinary(r.SMP.Data[:]) == nil && info.PortState == smp.PortDown {
				d.fallen = append(d.fallen, p)
			}
		})
	}
}

// Fallen are ports of the snapshot whose links are down, to switches that do not answer any
// more: links that were not among those which have changed.
func (d *Discovery) Fallen() []*observed.Port { return d.fallen }

// Conflicts reports whether a device answered that stands elsewhere in the part
// of the snapshot that was kept: then that is out of date too.
func (d *Discovery) Conflicts() bool { return d.conflicts }

// Kept reports whether what an earlier discovery found at a port, or behind it, is still
// so as far as this one knows.
func (d *Discovery) Kept(p *observed.Port) bool {
	q := twin(d.fabric, p)
	return q != nil && d.kept[p.Node.GUID()] && !d.followed[q]
}

// rereadFollowed asks for the keys of the ports behind which the discovery looked,
// and for what is not known of others.
func (d *Discovery) rereadFollowed() {
	for _, n := range d.fabric.Nodes[:d.tabled] {
		for i := range n.Ports {
			p := &n.Ports[i]
			if !p.Reached || i == 0 && n.Switch == nil {
				continue
			}
			if !p.InfoRead && !d.followed[p] {
				d.read(p, smp.AttrPortInfo, p.PortInfoBlock(), nil)
			}
			if d.followed[p] || !p.PKeysKnown() {
				d.readPKeys(p)
			}
			if d.followed[p] && d.options.QoS {
				p.LaneTables(d.readBlock)
			}
		}
	}
}
