package certificate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// View is whose certificate it is.
type View struct {
	// Owns are the tenant's end ports, Sees the partitions of which it may know who is in
	// them. Everybody knows the default partition.
	Owns map[ib.PortGUID]bool
	Sees map[ib.PKeyBase]bool
}

// The certificate of a tenant has the same form, and is checked by the same rules, but it has of
// others only what these rules need to find who reaches the tenant: each kind of them once,
// under numbers that are counted. So it is the same whoever they are and however many, and
// nothing is drawn at random that could be asked for twice.
//
// A kind is one cable, or one device where that is all: what holds an end port, whether that is
// on the list of cables, and of its keys those that reach the tenant's ports. All other keys
// become one partition of all others, in which they may talk: what they do to each
// other is not claimed.

// others is the name of whatever is not the tenant's.
const others = "others"

// notTold is a guard that no rule looks at.
const notTold = "key=unread protect=unread lease=unread"

// unit is a cable with what is at its ends, or one device.
type unit struct {
	a, b   side
	listed string // "" where there is no cable
}

// side is a port: an end port, or port 0 with the switch that it is of, and with one of its external
// ports, where that is meant; or, where all is zero, one of which nothing was read. Names and
// places are given by show.
type side struct {
	device    switchFacts
	port      portFacts
	end       endFacts
	contested string // the GUID of the device, or others
	twice     bool   // another end port has the same GUID
}

func (s side) isSwitch() bool { return s.device.key != "" }

// blinder is the work on one certificate of a tenant.
type blinder struct {
	*writer
	own []*observed.Port
	// as are the numbers under which others' tables show partitions; who is in a partition
	// that is not here is not told.
	as   map[ib.PKeyBase]ib.PKeyBase
	rest ib.PKeyBase // the partition of all others
	// rawOpen reports whether some of them can send, or get, raw packets that may not be.
	rawOpen bool
	seen    map[ib.PortGUID]int
	// used are GUIDs that are shown; next is the last that was counted.
	used map[string]bool
	next int
}

// blind finds the facts that a tenant is shown.
func (w *writer) blind() {
	b := &blinder{writer: w, as: map[ib.PKeyBase]ib.PKeyBase{}, seen: map[ib.PortGUID]int{}, used: map[string]bool{}}
	for _, p := range w.ports {
		if b.seen[p.GUID]++; b.owns(p) {
			b.own = append(b.own, p)
			b.used[p.GUID.String()], b.used[p.Node.GUID().String()] = true, true
		} else if p.Node.Switch == nil && !w.in.RawAllowed && (p.Peer == nil || p.Peer.IsEnd() || !filters(p.Peer)) {
			b.rawOpen = true
		}
	}
	b.number()
	own, foreign := map[unit]bool{}, map[unit]bool{}
	add := func(u unit, ends ...*observed.Port) {
		if slices.ContainsFunc(ends, b.owns) {
			own[u] = true
		} else {
			foreign[u] = true
		}
	}
	b.devices(add)
	for _, l := range w.in.Fabric.Links() {
		listed := w.listed(l.A, l.B)
		if l.A.IsEnd() || l.B.IsEnd() || listed != "listed" { // else no rule looks at it
			x, y := b.side(l.A, l.B), b.side(l.B, l.A)
			if x.isSwitch() && !y.isSwitch() || x.isSwitch() == y.isSwitch() && fmt.Sprintf("%#v", x) > fmt.Sprintf("%#v", y) {
				x, y = y, x // not by GUIDs, whose order would show
			}
			add(unit{x, y, listed}, l.A, l.B)
		}
	}
	for _, units := range []map[unit]bool{own, foreign} {
		inOrder := map[string]unit{}
		for u := range units {
			inOrder[fmt.Sprintf("%#v", u)] = u
		}
		for _, text := range slices.Sorted(maps.Keys(inOrder)) {
			b.show(inOrder[text])
		}
	}
}

func (b *blinder) owns(p *observed.Port) bool { return p.IsEnd() && b.in.View.Owns[p.GUID] }

// number chooses how others' partitions are shown: those that a tenant may know as they are, and
// of the rest, of which something is in its tables, those that are in the same ones together.
// What a tenant's host writes into its own table does not count: it could ask for any number.
func (b *blinder) number() {
	taken := map[ib.PKeyBase]bool{}
	places := map[ib.PKeyBase]*strings.Builder{}
	enter := func(where string, i int, keys []ib.PKey) {
		for _, k := range keys {
			if taken[k.Base()] = true; k.IsValid() && where != "own" {
				if places[k.Base()] == nil {
					places[k.Base()] = &strings.Builder{}
				}
				fmt.Fprintf(places[k.Base()], "%s %06d %t ", where, i, k.IsFull())
			}
		}
	}
	for i, p := range b.own {
		enter("policy", i, b.grants[p.GUID])
		switch {
		case p.Node.Switch != nil: // which holds to its table
			enter("switch", i, p.PKeys)
		case p.Peer != nil && !p.Peer.IsEnd():
			enter("before", i, p.Peer.PKeys)
			fallthrough
		default:
			enter("own", i, p.PKeys)
		}
	}
	unseen := map[string][]ib.PKeyBase{}
	for k, at := range places {
		if taken[k] = true; k == ib.PKeyBaseDefault || b.in.View.Sees[k] {
			b.as[k] = k
		} else {
			unseen[at.String()] = append(unseen[at.String()], k)
		}
	}
	free := ib.PKeyBase(0)
	lowest := func(called string) ib.PKeyBase {
		for free++; taken[free]; free++ {
		}
		b.partitions = append(b.partitions, partitionLine(free, called))
		return free
	}
	b.rest = lowest(others)
	for _, at := range slices.Sorted(maps.Keys(unseen)) {
		n := lowest(others)
		for _, k := range unseen[at] {
			b.as[k] = n
		}
	}
	for _, a := range b.in.Allowed {
		if l := partitionLine(a.Base, a.Name); b.as[a.Base] == a.Base && a.Base.IsValid() && !slices.Contains(b.partitions, l) {
			b.partitions = append(b.partitions, l)
		}
	}
}

// keys is a set of keys as it is shown: of the tenant's, or of one of others, which may be in the
// partition of others.
func (b *blinder) keys(list []ib.PKey, own, rest bool) string {
	var out []ib.PKey
	if rest {
		out = append(out, b.rest.Full())
	}
	for _, k := range list {
		if base, shown := b.as[k.Base()]; shown && k.IsFull() {
			out = append(out, base.Full())
		} else if shown {
			out = append(out, base.Limited())
		} else if own {
			out = append(out, k)
		}
	}
	return keySet(out)
}

// table is what a table holds, as it is shown.
func (b *blinder) table(p *observed.Port, own, rest bool) string {
	if t := table(p); t == noTable || t == notRead {
		return t
	}
	list := slices.Clone(p.PKeys)
	for i := range list {
		if !own && !p.IsEnd() { // membership counts for nothing there
			list[i] = list[i].Base().Full()
		}
	}
	return b.keys(list, own, rest)
}

// inRest reports whether an end port is shown in the partition of others, in which they may do
// what they like: not those to which nothing comes.
func (b *blinder) inRest(p *observed.Port) bool {
	q := p.Peer
	if p.Node.Switch != nil {
		return b.rawOpen || !isKnown(p) || slices.ContainsFunc(p.PKeys, func(k ib.PKey) bool { return k.IsValid() && b.as[k.Base()] == 0 })
	}
	return q == nil || q.IsEnd() || !holds(q) || !isEmpty(q) || !b.in.RawAllowed && !filters(q)
}

// isEmpty reports whether the table of a port was read and has no key.
func isEmpty(p *observed.Port) bool {
	return isKnown(p) && !slices.ContainsFunc(p.PKeys, ib.PKey.IsValid)
}

// holds reports whether a switch port checks P_Keys both ways, filters whether it stops raw
// packets both ways.
func holds(p *observed.Port) bool {
	i, s := &p.Info, p.Node.Switch
	return p.InfoRead && s.InfoRead && s.Info.PartitionEnforcementCap > 0 && s.Info.InboundEnforcementCap && s.Info.OutboundEnforcementCap &&
		i.PartitionEnforcementInbound && i.PartitionEnforcementOutbound
}

func filters(p *observed.Port) bool {
	i, s := &p.Info, p.Node.Switch
	return p.InfoRead && s.InfoRead && s.Info.FilterRawInboundCap && s.Info.FilterRawOutboundCap && i.FilterRawInbound && i.FilterRawOutbound
}

// devices adds what is not at a cable.
func (b *blinder) devices(add func(unit, ...*observed.Port)) {
	for _, n := range b.in.Fabric.Nodes {
		if n.Contested {
			i := slices.IndexFunc(b.own, func(p *observed.Port) bool { return p.Node == n })
			s := side{contested: others}
			if i >= 0 {
				s.contested = n.GUID().String()
			}
			add(unit{a: s})
		}
		for i := range n.Ports {
			switch p := &n.Ports[i]; {
			case n.Switch != nil && i == 0:
				add(unit{a: side{device: b.device(n), end: b.end(p), twice: b.seen[p.GUID] > 1}}, p)
			case p.Peer != nil || p.IsEnd() && (!p.Reached || i == 0):
			case p.IsEnd():
				add(unit{a: side{end: b.end(p), twice: b.seen[p.GUID] > 1}}, p)
			case !p.InfoRead || p.Info.PortState != smp.PortDown && p.Info.PortState != smp.PortInit:
				f := portOf(p)
				f.state, f.table = notRead, b.table(p, false, !isEmpty(p))
				add(unit{a: side{device: b.device(n), end: b.other(&n.Ports[0]), port: f}})
			}
		}
	}
}

// device is what a switch can do, as far as a rule tells it from others.
func (b *blinder) device(n *observed.Node) switchFacts {
	s := b.switchOf(n)
	if s.entries != "0" && s.entries != notRead {
		s.entries = "1"
	}
	if n.Ports[0].InfoRead && n.Ports[0].Info.MKeyProtectBits > 1 {
		s.key = strings.Replace(s.key, fmt.Sprintf("protect=%d", n.Ports[0].Info.MKeyProtectBits), "protect=1", 1)
	}
	return s
}

// end is an end port: all of the tenant's, and of others what tells them apart.
func (b *blinder) end(p *observed.Port) endFacts {
	if b.owns(p) {
		e := b.endOf(p)
		e.table, e.class = b.table(p, true, false), b.keys(b.grants[p.GUID], true, false)
		return e
	}
	return b.other(p)
}

// other is an end port as if it were another's.
func (b *blinder) other(p *observed.Port) endFacts {
	e := endFacts{kind: "ca", class: b.keys(b.grants[p.GUID], false, b.inRest(p)), key: notTold, name: others}
	if e.table = e.class; p.Node.Switch != nil { // hosts do not hold to theirs
		e.kind, e.table = "switch", b.table(p, false, b.inRest(p))
	}
	return e
}

// side is the end of a cable at p, which leads to peer.
func (b *blinder) side(p, peer *observed.Port) side {
	switch {
	case p.IsEnd() && !p.Reached:
		return side{}
	case p.IsEnd():
		return side{end: b.end(p), twice: b.seen[p.GUID] > 1 && !b.owns(p)}
	case !peer.IsEnd():
		return side{device: b.device(p.Node), end: b.other(&p.Node.Ports[0]), port: portFacts{state: notRead, enforce: notRead, filter: notRead, table: notRead}}
	}
	f, own := portOf(p), b.owns(peer)
	if f.table = b.table(p, own, !own && b.inRest(peer)); !own {
		f.state = notRead
	}
	return side{device: b.device(p.Node), end: b.other(&p.Node.Ports[0]), port: f}
}

// guid is one that is not used yet.
func (b *blinder) guid() string {
	for {
		b.next++
		if g := ib.PortGUID(b.next).String(); !b.used[g] {
			return g
		}
	}
}

// show gives a unit its names, and enters it in the facts.
func (b *blinder) show(u unit) {
	at := b.showSide(u.a)
	if u.listed != "" {
		b.cables = append(b.cables, cableLine(at, b.showSide(u.b), u.listed))
	}
}

// showSide returns the place of the port.
func (b *blinder) showSide(s side) (at string) {
	if s.contested != "" {
		if s.contested == others {
			s.contested = b.guid()
		}
		b.unread = append(b.unread, contestedLine(s.contested))
		return ""
	}
	e, d := s.end, s.device
	if e.at == "" { // none of the tenant's
		e.guid = b.guid()
		if e.at = e.guid + " 001"; s.isSwitch() {
			e.at = e.guid + " 000"
		}
	}
	if at = e.at; s.isSwitch() {
		d.guid, d.name = at[:len(at)-len(" 000")], cmp.Or(e.name, others)
		if s.port.state != "" {
			d.ports = 1
			s.port.at = d.guid + " 001"
			at = s.port.at
			b.external = append(b.external, s.port)
		}
		b.switches = append(b.switches, d)
	}
	if e.kind != "" {
		b.ends = append(b.ends, e)
	}
	if s.twice {
		b.unread = append(b.unread, fmt.Sprintf("unread %s %s", e.guid, name("another end port has the same GUID")))
	}
	return at
}
