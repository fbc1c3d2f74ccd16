package sma

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// statesAt is where PortInfo has PortState, in the lower half, and behind it
// PortPhysicalState and LinkDownDefaultState.
const statesAt = 32

// refusedSets is how many Sets each kind of device gets.
const refusedSets = 6_000

// TestRefusedSetChangesNothing gives two devices of each kind the same Sets of every
// attribute, one of them only those that the other did not refuse. Both stay the same, so
// a refused Set leaves nothing behind, whatever else stood in it.
func TestRefusedSetChangesNothing(t *testing.T) {
	one := optional(caConfig(2))
	one.OneMembership = true
	for _, x := range []struct {
		name string
		c    Config
	}{
		{"CA", optional(caConfig(2))}, {"one membership", one}, {"router", optional(routerConfig(3))},
		{"switch", optional(switchConfig(4))}, {"enhanced port 0", optional(enhancedConfig(4))}, {"random", optional(randomConfig(4))},
	} {
		if x.c.Switch != nil && x.c.Switch.LinearFDBCap != 0 {
			x.c.Switch.LinearFDBCap, x.c.Switch.OptimizedSLToVL = 300, true
		}
		t.Run(x.name, func(t *testing.T) {
			all, good := start(t, x.c), start(t, x.c)
			for _, d := range []*device{all, good} {
				for n := ib.PortNum(1); int(n) < d.ends() || n == 1; n++ {
					d.address(n, ib.LID(0x10*n))
				}
			}
			refused, taken := map[mad.AttributeID]int{}, map[mad.AttributeID]int{}
			r := rand.New(rand.NewPCG(1, 2))
			for i := range refusedSets {
				through, p := randomSet(r, all, good)
				for _, d := range []*device{all, good} {
					d.mkey = d.endPort(through).info.MKey // the Sets of the manager
				}
				if i%50 == 0 { // links train, so that there are states to go on from
					all.plug(1 + ib.PortNum(i/50%len(x.c.Ports)))
					good.plug(1 + ib.PortNum(i/50%len(x.c.Ports)))
				}
				answer := all.send(through, p)
				if answer.Status == mad.StatusOK {
					taken[p.AttributeID]++
					good.send(through, p)
				} else {
					refused[p.AttributeID]++
					// The right M_Key keeps a lease from running out, whatever it came with.
					good.request(through, mad.MethodGet, p.AttributeID, p.AttributeModifier, p.Data)
					if len(all.last.Effects) > 0 {
						t.Fatalf("effects of a refused Set: %+v", all.last.Effects)
					}
				}
				all.effects, good.effects = nil, nil
				if !reflect.DeepEqual(all.Agent, good.Agent) {
					t.Fatalf("Set(%s) modifier %#x by port %d is answered %v, and changed something: data %x\n%s", smp.AttributeName(p.AttributeID),
						p.AttributeModifier, through, answer.Status, p.Data, difference(all.Agent, good.Agent))
				}
			}
			for _, d := range smp.Attributes() {
				// Outside switches no modifier and no value of this table is bad.
				never := d.ID == smp.AttrSLToVLMappingTable && x.c.Switch == nil
				if refused[d.ID] == 0 && !never {
					t.Errorf("no Set(%s) was refused: the test shows nothing of it", d.Name)
				}
				t.Logf("%s: %d refused, %d taken", d.Name, refused[d.ID], taken[d.ID])
			}
		})
	}
}

// TestRefusedCommand: what a Set asks of the link, or of forwarding, is not done when
// something else in it is refused.
func TestRefusedCommand(t *testing.T) {
	d := start(t, switchConfig(2))
	d.address(1, 0x10)
	d.bring(1, 2, smp.PortActive)
	for name, write := range map[string]func(*smp.PortInfo){
		"down":     func(p *smp.PortInfo) { p.LinkDownDefaultState, p.PortState = smp.PhysDisabled, smp.PortDown },
		"disabled": func(p *smp.PortInfo) { p.LinkDownDefaultState, p.PortPhysicalState = 7, smp.PhysDisabled },
		"sleep":    func(p *smp.PortInfo) { p.NeighborMTU, p.PortPhysicalState = 9, smp.PhysSleep },
	} {
		before := d.portInfo(1, 2)
		if s := d.change(1, 2, write); s != mad.StatusInvalidField || len(d.last.Effects) != 0 {
			t.Errorf("%s: status %v, effects %v", name, s, d.last.Effects)
		}
		if got := d.portInfo(1, 2); got != before {
			t.Errorf("%s: left\n%+v, want\n%+v", name, got, before)
		}
	}
	c := switchConfig(2)
	c.Switch.LinearFDBCap = 100
	d = start(t, c)
	before := *d.SwitchInfo()
	want := smp.SwitchInfo{LinearFDBTop: 100, LifeTimeValue: 9, DefaultMulticastPrimaryPort: 1, DefaultMulticastNotPrimaryPort: 2, MulticastFDBTop: 0xC001}
	if s := d.set(1, 0, &want); s != mad.StatusInvalidField || *d.SwitchInfo() != before || len(d.last.Effects) != 0 {
		t.Errorf("SwitchInfo: status %v, effects %v, left %+v", s, d.last.Effects, d.SwitchInfo())
	}
}

// TestWrittenBack: PortInfo of a device that was just switched on can be written as it was
// read, but for the states, of which a Set is a command; a LID that stands does not make
// another LMC right.
func TestWrittenBack(t *testing.T) {
	for _, c := range []Config{caConfig(2), routerConfig(2), switchConfig(4), enhancedConfig(4)} {
		d := start(t, c)
		for n := range d.ports {
			if d.port(ib.PortNum(n)) == nil {
				continue
			}
			through := max(ib.PortNum(n), 1)
			info := d.portInfo(through, ib.PortNum(n))
			info.PortState, info.PortPhysicalState, info.LinkDownDefaultState = 0, 0, 0
			if s := d.set(through, uint32(n), &info); s != mad.StatusOK {
				t.Errorf("%v, port %d: status %v", c.NodeType, n, s)
			}
		}
	}
	d := start(t, caConfig(1))
	d.address(1, 0x11)
	if s := d.change(1, 1, func(p *smp.PortInfo) { p.LMC = 3 }); s != mad.StatusInvalidField {
		t.Errorf("LID 0x11 with LMC 3: status %v", s)
	}
}

// randomSet is a Set of any attribute: what the device holds with some bytes changed, or
// bytes of which most are zero, at a place that exists or not.
func randomSet(r *rand.Rand, d, other *device) (through ib.PortNum, p mad.SMP) {
	through = ib.PortNum(1 + r.IntN(len(d.ports)-1))
	attributes := smp.Attributes()
	p.Method, p.AttributeID = mad.MethodSet, attributes[r.IntN(len(attributes))].ID
	if r.IntN(3) == 0 {
		p.AttributeID = smp.AttrPortInfo
	}
	p.AttributeModifier = uint32(r.IntN(6))
	if r.IntN(2) == 0 {
		p.AttributeModifier |= uint32(r.IntN(6)) << (8 * r.IntN(4))
	}
	if r.IntN(4) > 0 {
		get := p
		d.mkey, other.mkey = d.endPort(through).info.MKey, d.endPort(through).info.MKey
		get.Method = mad.MethodGet
		other.send(through, get)
		p.Data = d.send(through, get).Data
		if p.AttributeID == smp.AttrPortInfo && r.IntN(4) > 0 {
			p.Data[statesAt] &= 0xF0 // the port's state: no change
			p.Data[statesAt+1] = 0
		}
	}
	for range 1 + r.IntN(4) {
		b := byte(r.Uint32())
		if r.IntN(2) == 0 {
			b &= byte(r.Uint32()) // few bits
			b &= byte(r.Uint32())
		}
		p.Data[r.IntN(mad.DataSize)] = b
	}
	return through, p
}

// difference names the ports of two agents that differ.
func difference(a, b *Agent) (text string) {
	for i := range a.ports {
		if !reflect.DeepEqual(a.ports[i], b.ports[i]) {
			text += fmt.Sprintf("port %d:\n%+v\n%+v\n", i, a.ports[i], b.ports[i])
		}
	}
	return text
}
