package simtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// ndr is a profile of NDR devices that show and take extended speeds only from a manager that
// says that it knows them; with mixed, a third of them show them to anybody, refuse that bit, or
// have no extended speeds at all.
func ndr(mixed bool) func(*topology.Node, *sma.Config) {
	return func(n *topology.Node, c *sma.Config) {
		ports := []*sma.PortConfig{}
		for i := range c.Ports {
			ports = append(ports, &c.Ports[i])
		}
		if c.Switch != nil {
			ports = append(ports, &c.Switch.Port0)
			c.Switch.EnhancedPort0 = n.GUID%2 == 0
		}
		kind := 0
		if mixed {
			kind = rand.New(rand.NewPCG(uint64(n.GUID), 31)).IntN(6)
		}
		c.HidesExtendedSpeeds, c.RefusesExtendedSpeeds = kind < 3, kind == 4
		for _, p := range ports {
			p.LinkSpeedExtSupported = smp.LinkSpeedFDR | smp.LinkSpeedEDR | smp.LinkSpeedHDR | smp.LinkSpeedNDR
			if kind == 5 {
				p.LinkSpeedExtSupported, p.CapabilityMask = 0, p.CapabilityMask&^smp.CapExtendedSpeeds
			}
		}
	}
}

// extended watches PortInfo requests on a fabric: the bit is in every one that it belongs into.
type extended struct {
	*world
	gets map[place]bool // whether the last Get of a port had the bit
	// plain is how many Gets had no bit, of devices that have extended speeds and take the bit.
	plain int
}

func watchExtended(w *world) *extended {
	x := &extended{world: w, gets: map[place]bool{}}
	w.watch = func(a arrival) {
		if a.AttributeID != smp.AttrPortInfo || a.Method != mad.MethodGet && a.Method != mad.MethodSet {
			return
		}
		agent := w.agent(a.node)
		n, bit, ok := smp.SplitPortInfoModifier(a.AttributeModifier)
		at, takes := place{a.node, a.in}, x.takes(a.node, a.in)
		if agent.SwitchInfo() != nil {
			at.num = n
		}
		switch {
		case !ok:
			w.t.Errorf("modifier %#x", a.AttributeModifier)
		case isSet(a) && bit != takes:
			w.t.Errorf("%v: a Set with the bit %v, want %v", at, bit, takes)
		case isSet(a):
		default:
			x.gets[at] = bit
			if takes && !bit {
				x.plain++
			}
		}
		if bit && !agent.Options().RefusesExtendedSpeeds && !takes {
			w.t.Errorf("%v: asked with the bit, and its device has no extended speeds", at)
		}
	}
	return x
}

// takes reports whether the agent behind a port has extended speeds, and takes the bit.
func (x *extended) takes(node ib.NodeGUID, in ib.PortNum) bool {
	agent, end := x.agent(node), in
	if agent.SwitchInfo() != nil {
		end = 0
	}
	return agent.Port(end).CapabilityMask.Has(smp.CapExtendedSpeeds) && !agent.Options().RefusesExtendedSpeeds
}

// speedsOf are the elements of a PortInfo that have the speeds of a link, and nothing else of it.
func speedsOf(i *smp.PortInfo) smp.PortInfo {
	return smp.PortInfo{
		LinkSpeedActive: i.LinkSpeedActive, LinkSpeedSupported: i.LinkSpeedSupported, LinkSpeedEnabled: i.LinkSpeedEnabled,
		LinkSpeedExtActive: i.LinkSpeedExtActive, LinkSpeedExtSupported: i.LinkSpeedExtSupported, LinkSpeedExtEnabled: i.LinkSpeedExtEnabled,
		LinkSpeedExtActive2: i.LinkSpeedExtActive2, LinkSpeedExtSupported2: i.LinkSpeedExtSupported2, LinkSpeedExtEnabled2: i.LinkSpeedExtEnabled2,
	}
}

// check: every extended field of every device is as its ports were made, with speeds enabled up
// to limit; the manager knows them as they are, where the device shows them; every link runs as
// fast as its ends can, since a limit counts when it trains next; nothing is locked.
func (x *extended) check(when string, limit smp.LinkSpeedExt) {
	x.t.Helper()
	for _, n := range x.list.Nodes {
		agent := x.agent(n.GUID)
		for num := range ib.PortNum(len(n.Ports)) {
			at, is := place{n.GUID, num}, agent.Port(num)
			if is == nil || is.LinkWidthSupported == 0 {
				continue // port 0 of a CA, or one without a link
			}
			node := x.engine.Fabric().Node(n.GUID)
			if node == nil || !node.Port(num).Reached {
				continue // it is off, or its cable is out
			}
			known := node.Port(num)
			enabled := is.LinkSpeedExtSupported
			if is.PortPhysicalState == smp.PhysLinkUp && num != 0 {
				enabled &= limit
			}
			if agent.Options().RefusesExtendedSpeeds {
				enabled = is.LinkSpeedExtSupported // it takes them from nobody
			}
			if is.LinkSpeedExtEnabled != enabled {
				x.t.Errorf("%s: %s port %d has %v enabled, want %v", when, n.ID, num, is.LinkSpeedExtEnabled, enabled)
			}
			if got := known.Info; speedsOf(&got) != speedsOf(is) {
				x.t.Errorf("%s: the manager knows of %s port %d\n%v, it is\n%v", when, n.ID, num, got, is)
			}
			if far, ok := x.peer(at); ok && num != 0 && is.PortState == smp.PortActive {
				common := is.LinkSpeedExtSupported & x.info(far).LinkSpeedExtSupported
				if _, fastest, _ := smp.FastestSpeed(0, common, 0).Bits(); is.LinkSpeedExtActive != fastest {
					x.t.Errorf("%s: %s port %d runs at %v, both ends have %v", when, n.ID, num, is.LinkSpeedExtActive, common)
				}
			}
			if agent.IsLocked(num) {
				x.t.Errorf("%s: %s port %d passes small packets only", when, n.ID, num)
			}
			if takes := x.takes(n.GUID, num); x.gets[at] != takes && (agent.SwitchInfo() != nil || num == 1) {
				x.t.Errorf("%s: %s port %d was asked last with the bit %v, want %v", when, n.ID, num, x.gets[at], takes)
			}
		}
	}
	l := newLoad(x.world, 10)
	l.hosts = slices.DeleteFunc(l.hosts, func(h *loadHost) bool {
		off := x.info(h.port).PortState != smp.PortActive
		if off {
			h.qp.Destroy()
		}
		return off
	})
	l.allToAll(2, 1)
	l.end(when)
}

// pass lets a stretch of time of any length pass.
func (x *extended) pass(d time.Duration) {
	x.t.Helper()
	over := false
	x.fabric.At(x.fabric.Now()+d, func() { over = true })
	x.must(x.link.Drive(context.Background(), x.engine, func() bool { return over }))
}

// PI-01: on fabrics of devices that hide extended speeds from who does not know them, are
// older, or refuse the bit, every PortInfo is asked for and set as the device takes it, and every
// extended field stays as it should be: when the fabric is brought up, while links, devices and the
// policy come and go, under a manager that starts again, and over a year of sweeps. With the M_Keys
// of the tenant profile the year has twelve days, in a soak all. That profile also has guards looked
// at many times a second: with it a month has a minute, in a soak two hours.
func TestExtendedSpeeds(t *testing.T) {
	need.Long(t, "seconds of processor time")
	const day, aMonth = 24 * time.Hour, 365 * 24 * time.Hour / 12
	open, keysMonth, tenantMonth := engine.Config{Periods: engine.Periods{Sweep: 12 * time.Hour, Drift: day}}, day, time.Minute
	keys := engine.Config{Periods: engine.Periods{Sweep: time.Hour, Drift: 2 * time.Hour}} // whoever has keys looks at them often
	if need.Soak() {
		open.Periods.Sweep, open.Periods.Drift = time.Minute, 6*time.Minute
		keys, keysMonth, tenantMonth = open, aMonth, 2*time.Hour
	}
	for name, of := range map[string]struct {
		manager engine.Config
		level   uint8 // of protection by M_Keys
		month   time.Duration
	}{
		"open":   {open, 0, aMonth},
		"keys":   {keys, protect.Tenant.MKeyProtectBits(), keysMonth},
		"tenant": {engine.Config{Profile: protect.Tenant}, protect.Tenant.MKeyProtectBits(), tenantMonth},
	} {
		for _, mixed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/mixed=%v", name, mixed), func(t *testing.T) {
				if !mixed || name == "keys" {
					need.Long(t, "months of other fabrics")
				}
				c := of.manager
				s := policy.DefaultSettings()
				if s.MKeyProtectBits = of.level; of.level != 0 {
					c.Keys = keyed().Keys // a book of its own
				}
				w := newWorld(t, setup{
					list: generate(t, "fattree,radix=4,levels=2"), policy: &policy.Policy{Default: policy.Full, Settings: &s}, manager: c,
					fabric: fabric.Config{Profile: ndr(mixed), WireTime: true},
				})
				x := watchExtended(w)
				w.settle()
				x.check("brought up", smp.LinkSpeedExtAll)
				x.aYear(s, of.month)
				if c.Keys != nil {
					x.wantGuarded()
				}
			})
		}
	}
}

// aYear lets 12 months pass, in each of which something happens, and a few light sweeps before and
// after it.
func (x *extended) aYear(s policy.Settings, month time.Duration) {
	cable := x.switchPort("H0_1")
	far, _ := x.peer(cable)
	spine := x.node("SP1").GUID
	hdr := s
	hdr.LinkSpeed = policy.HDR
	limit := smp.LinkSpeedExtAll
	unlink := func() { x.must(x.fabric.Unlink(cable.node, cable.num)) }
	link := func() { x.must(x.fabric.Link(cable.node, cable.num, far.node, far.num)) }
	off := func() { x.must(x.fabric.PowerOff(spine)) }
	on := func() { x.must(x.fabric.PowerOn(spine)) }
	again := func() { x.restart(&policy.Policy{Default: policy.Full, Settings: &s}) }
	slower := func() {
		x.change(&policy.Policy{Default: policy.Full, Settings: &hdr})
		limit = smp.LinkSpeedFDR | smp.LinkSpeedEDR | smp.LinkSpeedHDR
	}
	happenings := [12]func(){unlink, link, off, on, again, unlink, again, link, off, on, slower, again}
	light := 0
	for m := range 12 {
		x.pass(month / 2)
		x.forget()
		plain, sweeps := x.plain, x.engine.Status().Sweeps
		x.pass(month / 2)
		if now := x.engine.Status().Sweeps; now.Light <= sweeps.Light || now.Full != sweeps.Full || x.plain != plain {
			x.t.Errorf("month %d: %d light sweeps and %d full ones, %d Gets without the bit", m+1, now.Light-sweeps.Light, now.Full-sweeps.Full, x.plain-plain)
		}
		light += int(x.engine.Status().Sweeps.Light - sweeps.Light)
		x.check(fmt.Sprintf("month %d", m+1), limit)
		happenings[m]()
		x.pass(time.Minute)
		x.settle()
		x.check(fmt.Sprintf("month %d, after what happened", m+1), limit)
		x.forget()
	}
	x.t.Logf("%d light sweeps", light)
}
