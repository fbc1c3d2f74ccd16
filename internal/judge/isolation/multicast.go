package isolation

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Group is a multicast group.
type Group struct {
	MLID ib.LID
	Base ib.PKeyBase
	// Receivers are the members that packets of the group have to reach.
	Receivers []ib.PortGUID
}

// Multicast says to whom the multicast forwarding tables lead packets.
type Multicast struct {
	// Verdict is Isolated when tables lead packets of a multicast LID only to
	// ports that one partition holds, Violated when they lead them farther or in
	// a circle, Unknown when a table was not read.
	Verdict Verdict `json:"verdict"`
	// Spreads are the multicast LIDs that any table leads anywhere, in order,
	// MaxSpreads at most.
	Spreads []Spread `json:"spreads"`
	// Reasons says in words why the verdict is not Isolated.
	Reasons []string `json:"reasons"`
	// LIDs counts all multicast LIDs that lead anywhere, Missing the members of
	// known groups that their packets do not reach; these do not weigh on the
	// verdict.
	LIDs    int `json:"lids"`
	Missing int `json:"missing"`
}

// Spread is who gets packets for one multicast LID.
type Spread struct {
	MLID ib.LID `json:"mlid"`
	// Ports counts the end ports that it leads to, First is the first of them.
	Ports int         `json:"ports"`
	First ib.PortGUID `json:"first"`
	// Partitions are those that hold all of these ports, one at least as a full
	// member; of a known group only its own is asked for.
	Partitions []string `json:"partitions"`
	Verdict    Verdict  `json:"verdict"`
	Reason     string   `json:"reason"`
}

// MaxSpreads bounds Multicast.Spreads.
const MaxSpreads = 1024

// ProveMulticast judges the multicast forwarding tables of a snapshot. Which
// group a multicast LID belongs to no table says: of those that groups does not
// have, all ports that one leads to have to share a partition.
func ProveMulticast(f *observed.Fabric, allowed []observed.Partition, groups []Group) *Multicast {
	m := &Multicast{Spreads: []Spread{}, Reasons: []string{}}
	p := multicastProver{proof: m, leads: make(map[ib.LID]*lead), holds: make(map[ib.PortGUID]map[int]bool)}
	for _, part := range allowed {
		if part.Base.IsValid() {
			p.allow(part)
		}
	}
	for _, n := range f.Switches() {
		p.read(n)
	}
	known := make(map[ib.LID]*Group, len(groups))
	for i := range groups {
		known[groups[i].MLID] = &groups[i]
		p.missing(&groups[i])
	}
	m.LIDs = len(p.leads)
	for _, mlid := range slices.Sorted(maps.Keys(p.leads)) {
		s := p.judge(mlid, p.leads[mlid], known[mlid])
		if s.Verdict != Isolated {
			p.tally.add(s.Reason, fmt.Sprintf("0x%04x", uint16(mlid)))
		}
		p.worst = max(p.worst, s.Verdict)
		if len(m.Spreads) < MaxSpreads {
			m.Spreads = append(m.Spreads, s)
		}
	}
	m.Verdict = max(p.worst, Isolated)
	m.Reasons = append(m.Reasons, p.tally.lines("")...)
	return m
}

type multicastProver struct {
	proof *Multicast
	parts []part
	// holds tells for each end port the partitions that it is in, by their
	// place in parts, and whether as a full member.
	holds map[ib.PortGUID]map[int]bool
	leads map[ib.LID]*lead
	worst Verdict
	tally tally
}

// allow enters a partition; those of one base are one.
func (p *multicastProver) allow(x observed.Partition) {
	i := slices.IndexFunc(p.parts, func(q part) bool { return q.base == x.Base })
	if i < 0 {
		i = len(p.parts)
		p.parts = append(p.parts, part{x.Name, x.Base})
	}
	for k, guids := range [][]ib.PortGUID{x.Full, x.Limited} {
		for _, g := range guids {
			if p.holds[g] == nil {
				p.holds[g] = make(map[int]bool)
			}
			p.holds[g][i] = p.holds[g][i] || k == 0
		}
	}
}

// lead is where tables lead packets of one multicast LID.
type lead struct {
	ports []*observed.Port
	// first is the first switch of those that its cables join; circle tells
	// that they join two in two ways.
	first  map[*observed.Node]*observed.Node
	cables map[[2]*observed.Port]bool
	circle bool
}

func (l *lead) root(n *observed.Node) *observed.Node {
	for l.first[n] != nil {
		n = l.first[n]
	}
	return n
}

// join notes a cable between switches, once.
func (l *lead) join(a, b *observed.Port) {
	if l.cables[[2]*observed.Port{b, a}] {
		return
	}
	l.cables[[2]*observed.Port{a, b}] = true
	from, to := l.root(a.Node), l.root(b.Node)
	if from == to {
		l.circle = true
		return
	}
	l.first[from] = to
}

// read enters what a switch does with multicast packets.
func (p *multicastProver) read(n *observed.Node) {
	at := n.Ports[0].String()
	if !n.Switch.InfoRead || !n.Ports[0].InfoRead {
		p.unsure("SwitchInfo or PortInfo"+unread, at)
		return
	}
	p.readDefault(n, n.Switch.Info.DefaultMulticastPrimaryPort)
	p.readDefault(n, n.Switch.Info.DefaultMulticastNotPrimaryPort)
	for block := range n.MFTBlocks() {
		for position := range n.MFTPositions() {
			t, ok := n.Switch.MFT[smp.MFTModifier(uint16(block), uint8(position))]
			if !ok {
				p.unsure("a block of the multicast forwarding table"+unread, at)
			}
			for i, mask := range t.Masks {
				mlid := ib.LIDMulticastMin + ib.LID(block*smp.MLIDsPerBlock+i)
				for bit := range smp.PortsPerPosition {
					if num := position*smp.PortsPerPosition + bit; mask>>bit&1 != 0 && num < len(n.Ports) {
						p.lead(mlid, &n.Ports[num])
					}
				}
			}
		}
	}
}

// readDefault looks where packets go that the table does not know.
func (p *multicastProver) readDefault(n *observed.Node, num ib.PortNum) {
	if !n.LeadsSomewhere(num) {
		return
	}
	exit := &n.Ports[num]
	if num != 0 && (exit.Peer == nil || exit.Peer.Node.Switch != nil) {
		return // the next switch decides
	}
	p.worst = Violated
	p.tally.add("packets of any group that the table does not know leave by a default port to an end port", exit.String())
}

func (p *multicastProver) unsure(what, where string) {
	p.worst = max(p.worst, Unknown)
	p.tally.add(what, where)
}

// lead notes that packets for a multicast LID leave by a port.
func (p *multicastProver) lead(mlid ib.LID, exit *observed.Port) {
	l := p.leads[mlid]
	if l == nil {
		l = &lead{first: make(map[*observed.Node]*observed.Node), cables: make(map[[2]*observed.Port]bool)}
		p.leads[mlid] = l
	}
	switch peer := exit.Peer; {
	case exit.Num == 0:
		l.ports = append(l.ports, exit)
	case peer == nil:
		if exit.IsUp() {
			p.unsure("multicast packets leave to a device that was not read", exit.String())
		}
	case peer.Node.Switch != nil:
		l.join(exit, peer)
	default:
		l.ports = append(l.ports, peer)
	}
}

func (p *multicastProver) missing(g *Group) {
	l := p.leads[g.MLID]
	for _, guid := range g.Receivers {
		if l == nil || !slices.ContainsFunc(l.ports, func(q *observed.Port) bool { return q.GUID == guid }) {
			p.proof.Missing++
		}
	}
}

// judge holds the ports that a multicast LID leads to against the partitions.
func (p *multicastProver) judge(mlid ib.LID, l *lead, g *Group) Spread {
	slices.SortFunc(l.ports, func(a, b *observed.Port) int { return compareGUIDs(a.GUID, b.GUID) })
	s := Spread{MLID: mlid, Ports: len(l.ports), Partitions: []string{}, Verdict: Isolated}
	if len(l.ports) > 0 {
		s.First = l.ports[0].GUID
	}
	members, full := make([]int, len(p.parts)), make([]bool, len(p.parts))
	for _, q := range l.ports {
		for i, isFull := range p.holds[q.GUID] {
			members[i]++
			full[i] = full[i] || isFull
		}
	}
	for i, n := range members {
		switch {
		case n < len(l.ports) || g != nil && p.parts[i].base != g.Base:
		case full[i] || g != nil || len(l.ports) < 2:
			s.Partitions = append(s.Partitions, p.parts[i].name)
		}
	}
	switch {
	case l.circle:
		s.Verdict, s.Reason = Violated, "packets go in a circle, or come twice"
	case len(l.ports) > 0 && len(s.Partitions) == 0:
		s.Verdict, s.Reason = Violated, "packets are led to end ports that no partition holds together"
		if g != nil {
			s.Reason = "packets are led out of the partition of their group"
		}
	}
	return s
}
