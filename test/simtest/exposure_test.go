package simtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// exposure tries packets from everybody to everybody, between every two SMPs,
// and counts those that get through though no policy in force lets them. It
// reads the tables of the agents and has its own idea of who may talk: the
// tenancies. Packets are tried
//
//   - as hosts send them: with the keys of the sender's table, to receivers that
//     check theirs;
//   - from hostile hosts: stamped with any key of any partition, to receivers
//     that check, and to hostile ones that take anything.
//
// Routes are taken to lead everywhere, and every link to be up: what is kept
// apart by these alone counts as exposed. After an SMP only what its port sends
// and gets can have changed; now and then everything is tried all the same.
type exposure struct {
	w       *world
	ends    []end
	at      map[place]int // end ports and switch ports before them, to ends
	self    ib.PortGUID
	bases   []ib.PKeyBase
	rules   []tenancy // who may talk by any of these may talk
	roles   [][][]role
	views   []standing
	touched map[int]bool
	// unplugs has the packets of a host not counted whose link is not Active: links are
	// pulled out, and what is at their end cannot be written.
	unplugs bool
	// colluders, when there are any, see what this sees.
	colluders *collusion

	smps, looks, packets int
	exposed              int // packets that got through
	atOnce               int // of them, by hosts that forge nothing
	first                string
}

// standing is what decides over packets to and from an end port, by base.
type standing struct {
	isSwitch        bool
	guarded         bool
	table, passing  []role
	inbound, outbnd bool
	off             bool // its link carries nothing
}

func newExposure(w *world) *exposure {
	x := &exposure{w: w, ends: w.ends(), self: w.selfGUID(), at: map[place]int{}, touched: map[int]bool{}}
	for i, e := range x.ends {
		x.at[e.place] = i
		if p, ok := w.peer(e.place); ok && !e.isSwitch {
			x.at[p] = i
		}
	}
	x.views = make([]standing, len(x.ends))
	w.watch = x.arrived
	return x
}

// rule says which tenancies are in force from now on, and tries everything.
func (x *exposure) rule(tenancies ...tenancy) {
	x.settle()
	if x.colluders != nil {
		x.colluders.rule(tenancies)
	}
	x.rules = tenancies
	x.bases = []ib.PKeyBase{ib.PKeyBaseDefault}
	for _, y := range tenancies {
		for _, t := range y.tenants {
			if !slices.Contains(x.bases, t.base) {
				x.bases = append(x.bases, t.base)
			}
		}
	}
	x.roles = make([][][]role, len(tenancies))
	for r, y := range tenancies {
		x.roles[r] = make([][]role, len(x.ends))
		for i, e := range x.ends {
			x.roles[r][i] = make([]role, len(x.bases))
			for b, base := range x.bases {
				x.roles[r][i][b] = y.role(e.guid, x.self, base)
			}
		}
	}
	x.everything()
}

// fullLookEvery is how many SMPs pass between two looks at everything.
const fullLookEvery = 256

// arrived sees every packet just before an agent acts on it: what the one
// before has done shows now.
func (x *exposure) arrived(a arrival) {
	x.smps++
	if x.colluders != nil {
		x.colluders.arrived(a)
	}
	x.settle()
	if x.smps%fullLookEvery == 0 {
		x.everything()
	}
	if a.Method != mad.MethodSet {
		return
	}
	at := place{a.node, a.in}
	switch a.AttributeID {
	case smp.AttrPKeyTable:
		if x.w.agent(a.node).SwitchInfo() != nil {
			at.num = ib.PortNum(a.AttributeModifier >> 16)
		}
	case smp.AttrPortInfo:
		if num := ib.PortNum(a.AttributeModifier); x.w.agent(a.node).SwitchInfo() != nil {
			at.num = num
		}
	default:
		return
	}
	if i, ok := x.at[at]; ok {
		x.touched[i] = true
	}
}

// settle tries what the last SMP can have changed.
func (x *exposure) settle() {
	for i := range x.touched {
		x.read(i)
		x.try(i)
		delete(x.touched, i)
	}
}

func (x *exposure) everything() {
	for i := range x.ends {
		x.read(i)
	}
	for i := range x.ends {
		x.try(i)
	}
}

// read looks at the tables that decide over one end port.
func (x *exposure) read(i int) {
	e := x.ends[i]
	v := standing{isSwitch: e.isSwitch, table: make([]role, len(x.bases)), passing: make([]role, len(x.bases))}
	v.off = x.unplugs && !e.isSwitch && x.w.info(e.place).PortState != smp.PortActive
	own := x.w.table(e.place)
	var guard []ib.PKey
	if p, ok := x.w.peer(e.place); ok && !e.isSwitch && x.w.agent(p.node).SwitchInfo() != nil {
		info := x.w.info(p)
		v.inbound, v.outbnd = info.PartitionEnforcementInbound, info.PartitionEnforcementOutbound
		guard = x.w.table(p)
		v.guarded = x.canGuard(e, p)
	}
	for b, base := range x.bases {
		v.table[b], v.passing[b] = holds(own, base), holds(guard, base)
	}
	x.views[i] = v
}

// canGuard reports whether a switch port can hold its host to the keys of each
// policy in force, whether or not it does.
func (x *exposure) canGuard(e end, p place) bool {
	s := x.w.agent(p.node).SwitchInfo()
	for _, y := range x.rules {
		if int(s.PartitionEnforcementCap) < len(y.keys(e.guid, x.self)) {
			return false
		}
	}
	return s.InboundEnforcementCap && s.OutboundEnforcementCap
}

// passesKey: an entry of the table matches the key, unless both are limited.
func passesKey(have role, isFull bool) bool {
	return have == full || have == limited && isFull
}

// try sends every packet from and to one end port.
func (x *exposure) try(i int) {
	x.looks++
	for j := range x.ends {
		if i == j {
			continue
		}
		for b := range x.bases {
			x.send(i, j, b)
			x.send(j, i, b)
		}
	}
}

// send tries both keys of a partition from one end port to another, by honest
// and by hostile senders and receivers.
func (x *exposure) send(from, to, b int) {
	s, r := &x.views[from], &x.views[to]
	if s.off || r.off {
		return
	}
	for _, isFull := range []bool{false, true} {
		x.packets += 3
		if s.inbound && !passesKey(s.passing[b], isFull) || r.outbnd && !passesKey(r.passing[b], isFull) {
			continue // a switch has stopped it
		}
		sends := s.table[b] == limited && !isFull || s.table[b] == full && isFull
		takes := passesKey(r.table[b], isFull)
		if sends && takes && !x.mayTalk(from, to, b) {
			x.atOnce++
			x.fail(from, to, b, isFull, "")
		}
		if s.isSwitch || !s.guarded {
			continue // whoever forges these no switch can hold
		}
		if takes && !x.share(from, to, b) {
			x.fail(from, to, b, isFull, " with a forged table")
		}
		if r.guarded && !r.isSwitch && !x.share(from, to, b) {
			x.fail(from, to, b, isFull, ", both with forged tables")
		}
	}
}

func (x *exposure) mayTalk(i, j, b int) bool {
	for r := range x.rules {
		if joined(x.roles[r][i][b], x.roles[r][j][b]) {
			return true
		}
	}
	return false
}

// share reports whether a policy puts both into the partition: then no switch
// can tell their packets apart.
func (x *exposure) share(i, j, b int) bool {
	for r := range x.rules {
		if x.roles[r][i][b] != outsider && x.roles[r][j][b] != outsider {
			return true
		}
	}
	return false
}

func (x *exposure) fail(from, to, b int, isFull bool, how string) {
	if x.exposed++; x.first == "" {
		x.first = fmt.Sprintf("at %v, after %d SMPs: a packet of %v (full %v) from %s reaches %s%s",
			x.w.fabric.Now(), x.smps, x.bases[b], isFull, x.ends[from].name, x.ends[to].name, how)
	}
}

func (x *exposure) check(t *testing.T) {
	t.Helper()
	x.settle()
	if x.exposed > 0 {
		t.Errorf("%d packets got through that no policy in force lets (%d without forging), the first: %s", x.exposed, x.atOnce, x.first)
	}
}
