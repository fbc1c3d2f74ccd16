package simtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// collusion is all hosts of all tenants at work together: between every two SMPs
// each sends every other that it has no business with a packet with every key, of
// either membership, of every partition that there has ever been, and raw packets
// too; and takes whatever comes. Nothing but the switch ports before them can stop
// that. Two hosts have business with each other when a policy in force joins
// them in some partition.
//
// It reads the tables of switch agents and shares nothing with exposure but the
// model of who may talk.
type collusion struct {
	w       *world
	hosts   []end
	guards  []place
	at      map[place]int // switch ports, to hosts
	apart   [][]bool
	ever    []ib.PKeyBase
	views   []gate
	touched map[int]bool

	tried, foreign, raw int
	by                  map[ib.PKeyBase]int // of foreign
	first               string
}

// gate is what a switch port lets pass of its host: by partition, in the order of
// collusion.ever, and raw packets.
type gate struct {
	in, out       []role
	rawIn, rawOut bool
}

func newCollusion(w *world) *collusion {
	c := &collusion{
		w: w, at: map[place]int{}, touched: map[int]bool{}, by: map[ib.PKeyBase]int{},
		ever: []ib.PKeyBase{ib.PKeyBaseDefault},
	}
	for _, e := range w.ends() {
		if e.isSwitch {
			continue
		}
		guard, ok := w.peer(e.place)
		if !ok || w.agent(guard.node).SwitchInfo() == nil {
			w.t.Fatalf("no switch before %s", e.name)
		}
		c.at[guard] = len(c.hosts)
		c.hosts, c.guards = append(c.hosts, e), append(c.guards, guard)
	}
	c.views = make([]gate, len(c.hosts))
	return c
}

// rule says which tenancies are in force from now on.
func (c *collusion) rule(rules []tenancy) {
	c.settle()
	for _, y := range rules {
		for _, t := range y.tenants {
			if !slices.Contains(c.ever, t.base) {
				c.ever = append(c.ever, t.base)
			}
		}
	}
	self := c.w.selfGUID()
	c.apart = make([][]bool, len(c.hosts))
	for i, a := range c.hosts {
		c.apart[i] = make([]bool, len(c.hosts))
		for j, b := range c.hosts {
			c.apart[i][j] = i != j && !slices.ContainsFunc(rules, func(y tenancy) bool { return y.joins(a.guid, b.guid, self) })
		}
	}
	for i := range c.hosts {
		c.read(i)
	}
	for i := range c.hosts {
		c.try(i)
	}
}

// joins reports whether two ports may talk over some partition.
func (y tenancy) joins(a, b, self ib.PortGUID) bool {
	for _, x := range append([]tenant{{base: ib.PKeyBaseDefault}}, y.tenants...) {
		if joined(y.role(a, self, x.base), y.role(b, self, x.base)) {
			return true
		}
	}
	return false
}

// arrived sees every packet just before an agent acts on it.
func (c *collusion) arrived(a arrival) {
	c.settle()
	if a.Method != mad.MethodSet {
		return
	}
	num := ib.PortNum(a.AttributeModifier)
	switch a.AttributeID {
	case smp.AttrPKeyTable:
		num = ib.PortNum(a.AttributeModifier >> 16)
	case smp.AttrPortInfo:
	default:
		return
	}
	if i, ok := c.at[place{a.node, num}]; ok {
		c.touched[i] = true
	}
}

func (c *collusion) settle() {
	for i := range c.touched {
		c.read(i)
		c.try(i)
		delete(c.touched, i)
	}
}

func (c *collusion) read(i int) {
	info, table := c.w.info(c.guards[i]), c.w.table(c.guards[i])
	g := gate{rawIn: !info.FilterRawInbound, rawOut: !info.FilterRawOutbound}
	for _, base := range c.ever {
		in, out := full, full // where nothing is checked
		if info.PartitionEnforcementInbound {
			in = holds(table, base)
		}
		if info.PartitionEnforcementOutbound {
			out = holds(table, base)
		}
		g.in, g.out = append(g.in, in), append(g.out, out)
	}
	c.views[i] = g
}

// try sends everything from and to one host.
func (c *collusion) try(i int) {
	for j := range c.hosts {
		if c.apart[i][j] {
			c.send(i, j)
			c.send(j, i)
		}
	}
}

func (c *collusion) send(from, to int) {
	s, r := &c.views[from], &c.views[to]
	for b, base := range c.ever {
		for _, isFull := range []bool{true, false} {
			if c.tried++; passesKey(s.in[b], isFull) && passesKey(r.out[b], isFull) {
				c.by[base]++
				c.count(&c.foreign, from, to, fmt.Sprintf("with a key of %v (full %v)", base, isFull))
			}
		}
	}
	if c.tried++; s.rawIn && r.rawOut {
		c.count(&c.raw, from, to, "raw")
	}
}

func (c *collusion) count(n *int, from, to int, what string) {
	if *n++; c.first == "" {
		c.first = fmt.Sprintf("at %v a packet %s from %s reaches %s", c.w.fabric.Now(), what, c.hosts[from].name, c.hosts[to].name)
	}
}

// holdings is tenants who own hosts, each host one's or nobody's, and a storage that
// some of them use: by partitions that all share, or by none that two share.
type holdings struct {
	owner   map[ib.PortGUID]int // tenant, nobody's when missing
	storage []ib.PortGUID
	served  []bool // by tenant
	// bases are those of the tenants, then those of storage: one, or one for each.
	bases  []ib.PKeyBase
	shared bool
}

const (
	holders = 3
	// holderBases are so few that numbers come back.
	holderBases             = 2*holders + 2
	management  ib.PKeyBase = 0x40
)

func newHoldings(r *rand.Rand, all []ib.PortGUID, shared bool) *holdings {
	s := &holdings{shared: shared, storage: all[:2]}
	s.shuffle(r)
	s.owner = map[ib.PortGUID]int{}
	for i, g := range all[2:] {
		s.owner[g] = i % holders
	}
	return s
}

func (s *holdings) shuffle(r *rand.Rand) {
	s.bases, s.served = nil, nil
	for _, i := range r.Perm(holderBases)[:2*holders] {
		s.bases = append(s.bases, ib.PKeyBase(0x100+i*0x111))
	}
	for range holders {
		s.served = append(s.served, r.IntN(3) > 0)
	}
}

// change moves hosts, or gives the numbers again.
func (s *holdings) change(r *rand.Rand) {
	if r.IntN(8) == 0 {
		s.shuffle(r)
		return
	}
	all := make([]ib.PortGUID, 0, len(s.owner))
	for g := range s.owner {
		all = append(all, g)
	}
	slices.Sort(all)
	for range 1 + r.IntN(4) {
		g := all[r.IntN(len(all))]
		s.owner[g] = r.IntN(holders+1) - 1 // now and then nobody's
	}
}

func (s *holdings) tenancy() tenancy {
	y := tenancy{none: !s.shared}
	of := make([][]ib.PortGUID, holders)
	var everybody, clients []ib.PortGUID
	for g, t := range s.owner {
		everybody = append(everybody, g)
		if t >= 0 {
			of[t] = append(of[t], g)
		}
	}
	for t, hosts := range of {
		slices.Sort(hosts)
		y.tenants = append(y.tenants, tenant{base: s.bases[t], full: hosts})
		if s.served[t] {
			clients = append(clients, hosts...)
		}
	}
	if s.shared {
		slices.Sort(everybody)
		y.tenants = append(y.tenants, tenant{base: s.bases[holders], full: s.storage, limited: clients},
			tenant{base: management, limited: append(everybody, s.storage...)})
		return y
	}
	for t, hosts := range of {
		if s.served[t] && len(hosts) > 0 {
			y.tenants = append(y.tenants, tenant{base: s.bases[holders+t], full: s.storage, limited: hosts})
		}
	}
	return y
}

// collusionMoves is how many moves each of the worlds makes in a test of every day;
// a long run makes zeroMovesSoak.
const (
	collusionWorlds = 4
	collusionMoves  = 120
)

// colluders makes a world whose policy deal changes, and hosts that work together.
func newColluders(t *testing.T, seed, n uint64, deal func(*rand.Rand, []ib.PortGUID) func() tenancy) *zero {
	t.Helper()
	list := generate(t, fmt.Sprintf("random,seed=%d,switches=%d,hosts=%d,routers=1,ca-ports=%d", seed%1000, 2+n%3, 8+n, 1+n%2))
	r := rand.New(rand.NewPCG(seed, 16))
	ports := slices.DeleteFunc(hosts(list), func(g ib.PortGUID) bool { return g == managerGUID(list) })
	next := deal(r, ports)
	y := next()
	s := setup{list: list, policy: y.policy()}
	s.fabric.Seed = seed
	s.manager.Profile = protect.Tenant
	w := bringUp(t, s)
	w.calm()
	w.stop()
	z := &zero{world: w, r: r, now: y, profile: protect.Tenant, deal: next}
	z.x = newExposure(w)
	z.x.colluders = newCollusion(w)
	z.x.rule(y)
	return z
}

// managerGUID is the port that a manager of these tests is behind.
func managerGUID(list *topology.Netlist) ib.PortGUID {
	n, num, err := list.Attach("")
	if err != nil {
		return 0
	}
	return n.Ports[num].GUID
}

// colluding lets one world make its moves, with loss, delays and managers that are
// killed.
func (z *zero) colluding(t *testing.T, want int) {
	for z.moves < want && !t.Failed() {
		z.disturb()
		z.change(z.deal())
		z.checkKeysIn(z.now)
		z.x.check(t)
	}
	c := z.x.colluders
	c.settle()
	t.Logf("%d moves in %d changes, %d kills, %d stops, %d rolled back; %d SMPs, %d packets of colluding hosts tried, %d foreign ones delivered and %d raw; by partition %v; the first: %s",
		z.moves, z.changes, z.kills, z.stops, z.rollbacks, z.x.smps, c.tried, c.foreign, c.raw, c.by, c.first)
}

func holdingsOf(shared bool) func(*rand.Rand, []ib.PortGUID) func() tenancy {
	return func(r *rand.Rand, ports []ib.PortGUID) func() tenancy {
		s := newHoldings(r, ports, shared)
		return func() tenancy {
			s.change(r)
			return s.tenancy()
		}
	}
}

// Without a partition that two tenants share nothing is left to the hosts:
// whatever they forge, together, at whatever moment of a change, none of it
// reaches another tenant.
func TestColludingHostsWithoutDefault(t *testing.T) {
	seed, soak := soakSeed(t)
	want, worlds := need.Share(collusionMoves/3, collusionMoves), uint64(collusionWorlds)
	if soak {
		want, worlds = zeroMovesSoak, zeroWorlds
	}
	t.Logf("SOAK_SEED=%d", seed)
	for n := range worlds {
		t.Run(fmt.Sprintf("world %d", n), func(t *testing.T) {
			t.Parallel()
			z := newColluders(t, seed+n, n, holdingsOf(false))
			z.colluding(t, want)
			if c := z.x.colluders; c.foreign+c.raw > 0 || c.tried == 0 {
				t.Errorf("%d of %d packets, and %d raw, were delivered to another tenant, the first: %s", c.foreign, c.tried, c.raw, c.first)
			}
		})
	}
}

// With the shared default partition, a storage and a management partition, the
// same hosts reach each other by those, and by nothing else: this is what it stops.
func TestColludingHostsWithSharedPartitions(t *testing.T) {
	seed, soak := soakSeed(t)
	want, worlds := collusionMoves/2, uint64(2)
	if soak {
		want, worlds = zeroMovesSoak, zeroWorlds
	}
	t.Logf("SOAK_SEED=%d", seed)
	for n := range worlds {
		t.Run(fmt.Sprintf("world %d", n), func(t *testing.T) {
			t.Parallel()
			z := newColluders(t, seed+n, n, holdingsOf(true))
			z.colluding(t, want)
			c := z.x.colluders
			if c.by[ib.PKeyBaseDefault] == 0 || c.by[management] == 0 || c.raw > 0 {
				t.Errorf("%d foreign packets by partition %v, %d raw: want some by the default partition and by management, none raw", c.foreign, c.by, c.raw)
			}
		})
	}
}

// Policies go over from the shared default to none and back on a live fabric, and
// nothing gets through that neither lets; nor does a raw packet.
func TestZeroExposureGoingOverToNone(t *testing.T) {
	seed, soak := soakSeed(t)
	want, worlds := collusionMoves, uint64(2)
	if soak {
		want, worlds = zeroMovesSoak/4, zeroWorlds
	}
	t.Logf("SOAK_SEED=%d", seed)
	for n := range worlds {
		t.Run(fmt.Sprintf("world %d", n), func(t *testing.T) {
			t.Parallel()
			over := 0
			z := newColluders(t, seed+n, n, func(r *rand.Rand, ports []ib.PortGUID) func() tenancy {
				s := newHoldings(r, ports, true)
				return func() tenancy {
					s.change(r)
					if r.IntN(2) == 0 {
						over++
						s.shared = !s.shared
					}
					return s.tenancy()
				}
			})
			z.colluding(t, want)
			if over < 3 || z.x.colluders.raw > 0 {
				t.Errorf("went over %d times; %d raw packets delivered", over, z.x.colluders.raw)
			}
		})
	}
}

// The colluders see what a guard that does not check lets through, and what raw
// packets there are without filters.
func TestCollusionIsSeen(t *testing.T) {
	z := newColluders(t, 1, 1, holdingsOf(false))
	c := z.x.colluders
	if c.tried == 0 || c.foreign+c.raw > 0 {
		t.Fatalf("%d tried, %d foreign, %d raw before anything is opened: %s", c.tried, c.foreign, c.raw, c.first)
	}
	a, b := -1, -1
	for i := range c.hosts {
		for j := range c.hosts {
			if c.apart[i][j] && a < 0 && len(valid(z.table(c.guards[i])))*len(valid(z.table(c.guards[j]))) > 0 {
				a, b = i, j
			}
		}
	}
	z.setPortInfo(c.guards[a], func(i *smp.PortInfo) { i.PartitionEnforcementInbound, i.FilterRawInbound = false, false })
	c.touched[a] = true
	c.settle()
	if c.foreign == 0 || c.raw != 0 {
		t.Errorf("inbound open: %d foreign, %d raw", c.foreign, c.raw)
	}
	z.setPortInfo(c.guards[b], func(i *smp.PortInfo) { i.FilterRawOutbound = false })
	c.touched[b] = true
	c.settle()
	if c.raw == 0 {
		t.Error("no raw packet is seen")
	}
}
