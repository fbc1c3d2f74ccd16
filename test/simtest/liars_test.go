package simtest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// liarSeeds is how many devices lie in every run of the tests, liarSoak how many
// with IBWARDEN_SOAK.
const (
	liarSeeds = 60
	liarSoak  = 4000
)

// lieAbout is one thing that a device can say otherwise than it is.
type lieAbout struct {
	name string
	// who reports whether it concerns who and what the device is: that never gets past
	// the list.
	who  bool
	tell func(r *rand.Rand, l *topology.Netlist, p *mad.SMP)
}

// nodeInfoLie changes NodeInfo.
func nodeInfoLie(name string, who bool, change func(r *rand.Rand, l *topology.Netlist, i *smp.NodeInfo)) lieAbout {
	return lieAbout{name, who, func(r *rand.Rand, l *topology.Netlist, p *mad.SMP) {
		var info smp.NodeInfo
		if p.AttributeID == smp.AttrNodeInfo && info.UnmarshalBinary(p.Data[:]) == nil {
			change(r, l, &info)
			_ = info.Encode(&p.Data) // what cannot be said is not said
		}
	}}
}

// portInfoLie changes PortInfo.
func portInfoLie(name string, change func(r *rand.Rand, l *topology.Netlist, i *smp.PortInfo)) lieAbout {
	return lieAbout{name, false, func(r *rand.Rand, l *topology.Netlist, p *mad.SMP) {
		var info smp.PortInfo
		if p.AttributeID == smp.AttrPortInfo && info.UnmarshalBinary(p.Data[:]) == nil {
			change(r, l, &info)
			_ = info.Encode(&p.Data)
		}
	}}
}

// bytesLie says anything at all for an attribute, whether or not the device has
// it.
func bytesLie(a mad.AttributeID) lieAbout {
	return lieAbout{"any " + smp.AttributeName(a), a == smp.AttrNodeInfo, func(r *rand.Rand, _ *topology.Netlist, p *mad.SMP) {
		if p.AttributeID == a {
			p.Status = 0
			for i := range p.Data {
				p.Data[i] = byte(r.Uint32())
			}
		}
	}}
}

// another is some other node of the topology.
func another(r *rand.Rand, l *topology.Netlist, not ib.NodeGUID) *topology.Node {
	for {
		if n := l.Nodes[r.IntN(len(l.Nodes))]; n.GUID != not {
			return n
		}
	}
}

// theLies are all of them.
var theLies = []lieAbout{
	nodeInfoLie("NodeType", true, func(r *rand.Rand, _ *topology.Netlist, i *smp.NodeInfo) { i.NodeType = 2 + ib.NodeType(r.IntN(2)) }),
	nodeInfoLie("any NodeType", true, func(r *rand.Rand, _ *topology.Netlist, i *smp.NodeInfo) {
		if i.NodeType = ib.NodeType(r.IntN(256)); i.NodeType == ib.NodeCA {
			i.NodeType = 0
		}
	}),
	nodeInfoLie("NumPorts", true, func(r *rand.Rand, _ *topology.Netlist, i *smp.NodeInfo) { i.NumPorts += uint8(1 + r.IntN(255)) }),
	nodeInfoLie("LocalPortNum", true, func(r *rand.Rand, _ *topology.Netlist, i *smp.NodeInfo) {
		i.LocalPortNum += ib.PortNum(1 + r.IntN(255))
	}),
	nodeInfoLie("NodeGUID of another", true, func(r *rand.Rand, l *topology.Netlist, i *smp.NodeInfo) { i.NodeGUID = another(r, l, i.NodeGUID).GUID }),
	nodeInfoLie("PortGUID of another", true, func(r *rand.Rand, l *topology.Netlist, i *smp.NodeInfo) {
		n := another(r, l, i.NodeGUID)
		i.PortGUID = n.Ports[min(1, len(n.Ports)-1)].GUID
		if n.Type == ib.NodeSwitch {
			i.PortGUID = n.Ports[0].GUID
		}
	}),
	nodeInfoLie("all of another", true, func(r *rand.Rand, l *topology.Netlist, i *smp.NodeInfo) {
		n := another(r, l, i.NodeGUID)
		i.NodeType, i.NodeGUID, i.NumPorts = n.Type, n.GUID, uint8(n.NumPorts())
		i.PortGUID, i.LocalPortNum = n.Ports[0].GUID, ib.PortNum(1+r.IntN(n.NumPorts()))
		if n.Type != ib.NodeSwitch {
			i.PortGUID = n.Ports[i.LocalPortNum].GUID
		}
	}),
	nodeInfoLie("no GUID", true, func(r *rand.Rand, _ *topology.Netlist, i *smp.NodeInfo) { i.NodeGUID = 0 }),
	nodeInfoLie("PartitionCap", false, func(r *rand.Rand, _ *topology.Netlist, i *smp.NodeInfo) {
		i.PartitionCap = []uint16{0, 1, 2, 33, 1000, uint16(r.Uint32())}[r.IntN(6)]
	}),
	nodeInfoLie("VendorID", false, func(r *rand.Rand, _ *topology.Netlist, i *smp.NodeInfo) {
		i.VendorID, i.DeviceID = r.Uint32()>>8, uint16(r.Uint32())
	}),
	portInfoLie("CapabilityMask", func(r *rand.Rand, _ *topology.Netlist, i *smp.PortInfo) {
		i.CapabilityMask ^= smp.CapabilityMask(r.Uint32())
	}),
	portInfoLie("an SM", func(_ *rand.Rand, _ *topology.Netlist, i *smp.PortInfo) { i.CapabilityMask |= smp.CapIsSM }),
	portInfoLie("LID of another", func(r *rand.Rand, l *topology.Netlist, i *smp.PortInfo) {
		i.LID, i.LMC = ib.LID(1+r.IntN(len(l.Nodes))), ib.LMC(r.IntN(8))
	}),
	portInfoLie("enforcement", func(r *rand.Rand, _ *topology.Netlist, i *smp.PortInfo) {
		i.PartitionEnforcementInbound, i.PartitionEnforcementOutbound = r.IntN(2) == 0, r.IntN(2) == 0
	}),
	portInfoLie("PortState", func(r *rand.Rand, _ *topology.Netlist, i *smp.PortInfo) {
		i.PortState, i.PortPhysicalState = smp.PortState(r.IntN(16)), smp.PhysState(r.IntN(16))
	}),
	portInfoLie("VLs and MTU", func(r *rand.Rand, _ *topology.Netlist, i *smp.PortInfo) {
		i.VLCap, i.MTUCap, i.VLArbitrationHighCap, i.VLArbitrationLowCap = uint8(r.IntN(16)), ib.MTU(r.IntN(16)), uint8(r.Uint32()), uint8(r.Uint32())
	}),
	portInfoLie("GUIDCap", func(r *rand.Rand, _ *topology.Netlist, i *smp.PortInfo) { i.GUIDCap = uint8(r.Uint32()) }),
	{"NodeDescription of another", false, func(r *rand.Rand, l *topology.Netlist, p *mad.SMP) {
		if p.AttributeID == smp.AttrNodeDescription {
			p.Data = [mad.DataSize]byte{}
			copy(p.Data[:], another(r, l, 0).Description)
		}
	}},
	{"alias GUIDs of others", false, func(r *rand.Rand, l *topology.Netlist, p *mad.SMP) {
		if p.AttributeID == smp.AttrGUIDInfo {
			p.Status = 0
			for i := range 8 {
				binary.BigEndian.PutUint64(p.Data[8*i:], uint64(another(r, l, 0).GUID)+1)
			}
		}
	}},
	{"keys of others", false, func(r *rand.Rand, _ *topology.Netlist, p *mad.SMP) {
		if p.AttributeID == smp.AttrPKeyTable {
			for i := 0; i+1 < len(p.Data); i += 2 {
				binary.BigEndian.PutUint16(p.Data[i:], uint16([]ib.PKey{0, 0x8010, 0x8020, 0xFFFF, 0x10, ib.PKey(r.Uint32())}[r.IntN(6)]))
			}
		}
	}},
	{"SwitchInfo", false, func(r *rand.Rand, _ *topology.Netlist, p *mad.SMP) {
		if p.AttributeID == smp.AttrSwitchInfo {
			p.Status = 0
			_ = (&smp.SwitchInfo{LinearFDBCap: 49152, LinearFDBTop: ib.LID(r.IntN(49152)), PartitionEnforcementCap: uint16(r.Uint32()),
				InboundEnforcementCap: r.IntN(2) == 0, OutboundEnforcementCap: r.IntN(2) == 0, MulticastFDBCap: uint16(r.Uint32()), EnhancedPort0: r.IntN(2) == 0}).Encode(&p.Data)
		}
	}},
	{"errors", false, func(r *rand.Rand, _ *topology.Netlist, p *mad.SMP) {
		if p.AttributeID != smp.AttrNodeInfo && r.IntN(2) == 0 {
			p.Status = mad.Status(r.IntN(64))
		}
	}},
	bytesLie(smp.AttrNodeInfo), bytesLie(smp.AttrPortInfo), bytesLie(smp.AttrPKeyTable), bytesLie(smp.AttrNodeDescription),
	bytesLie(smp.AttrSwitchInfo), bytesLie(smp.AttrGUIDInfo), bytesLie(smp.AttrSMInfo),
}

// wire sends packets that hosts forge and sees where they come out.
type wire struct {
	w    *world
	came map[uint32][]ib.NodeGUID // nodes that a packet came to, by its mark
	next uint32
}

const unicastMarkAt = packet.LRHSize + packet.BTHSize + packet.DETHSize

// tap has a wire see what arrives; it is to be called before the world is made.
func tap(s *setup) *wire {
	x := &wire{came: map[uint32][]ib.NodeGUID{}}
	s.fabric.DataTrace = func(d fabric.DataSighting) {
		if (d.Outcome == fabric.OutcomeTaken || d.Outcome == fabric.OutcomeRefused) && len(d.Bytes) >= unicastMarkAt+4 {
			mark := binary.BigEndian.Uint32(d.Bytes[unicastMarkAt:])
			x.came[mark] = append(x.came[mark], d.Node)
		}
	}
	return x
}

// send puts a datagram on the wire with whatever key the host stamps on it.
func (x *wire) send(from place, to ib.LID, key ib.PKey) uint32 {
	x.w.t.Helper()
	b, v, err := packet.Append(nil, packet.MakeOpCode(packet.UD, packet.SendOnly), false, make([]byte, 16))
	if err != nil {
		x.w.t.Fatal(err)
	}
	v.LRH.SetSLID(x.w.info(from).LID)
	v.LRH.SetDLID(to)
	v.BTH.SetPKey(key)
	v.BTH.SetDestQP(77)
	v.DETH.SetQKey(1)
	v.DETH.SetSrcQP(77)
	x.next++
	binary.BigEndian.PutUint32(b[unicastMarkAt:], x.next)
	if err := packet.Seal(b); err != nil {
		x.w.t.Fatal(err)
	}
	if err := x.w.fabric.Inject(from.node, from.num, b); err != nil {
		x.w.t.Fatal(err)
	}
	return x.next
}

// shots are what check found.
type shots struct {
	sent                      int
	exposed, unserved, astray []string
}

// check has every host send every other one every key: it comes to where the
// policy lets it and to nobody else, whatever hosts forge. Those left out need not be
// reached, and get no farther than the policy says.
func (x *wire) check(y tenancy, out []string) (found shots) {
	x.w.t.Helper()
	clear(x.came)
	type try struct {
		from, to end
		key      ib.PKey
		mark     uint32
	}
	var tries []try
	self := x.w.selfGUID()
	for _, from := range x.w.ends() {
		for _, to := range x.w.ends() {
			if from.isSwitch || to.isSwitch || from.guid == to.guid {
				continue
			}
			for _, base := range []ib.PKeyBase{0x10, 0x20, 0x30} {
				for _, key := range []ib.PKey{base.Full(), base.Limited()} {
					tries = append(tries, try{from, to, key, x.send(from.place, x.w.info(to.place).LID, key)})
				}
			}
			tries = append(tries, try{from, to, ib.PKeyDefaultFull, x.send(from.place, x.w.info(to.place).LID, ib.PKeyDefaultFull)})
		}
		x.w.run(wait)
	}
	isOut := func(e end) bool {
		return slices.ContainsFunc(out, func(id string) bool { return x.w.node(id).GUID == e.place.node })
	}
	found.sent = len(tries)
	for _, a := range tries {
		joint := y.role(a.from.guid, self, a.key.Base()) != outsider && y.role(a.to.guid, self, a.key.Base()) != outsider
		came := slices.Contains(x.came[a.mark], a.to.place.node)
		shot := fmt.Sprintf("%s sends %v to %s", a.from.name, a.key, a.to.name)
		if came && !joint {
			found.exposed = append(found.exposed, shot)
		}
		if !came && joint && a.key.IsFull() && !isOut(a.from) && !isOut(a.to) {
			found.unserved = append(found.unserved, shot)
		}
		for _, node := range x.came[a.mark] {
			// A liar's own idea of its LID counts for nothing.
			if node != a.to.place.node && !isOut(a.to) {
				found.astray = append(found.astray, fmt.Sprintf("%s, and it comes to %v", shot, node))
			}
		}
	}
	return found
}

// none complains of everything that check found.
func (s shots) none(t *testing.T) {
	t.Helper()
	for what, list := range map[string][]string{"exposed": s.exposed, "not served": s.unserved, "astray": s.astray} {
		if len(list) > 0 {
			t.Errorf("%s: %d packets, the first: %s", what, len(list), list[0])
		}
	}
}

// aLiar is what one device does.
type aLiar struct {
	id      string
	about   []lieAbout
	fickle  bool // lies every other time only
	asserts bool // the list is bound to notice
}

func randomLiar(r *rand.Rand, id string) aLiar {
	x := aLiar{id: id, fickle: r.IntN(4) == 0}
	for range 1 + r.IntN(3) {
		about := theLies[r.IntN(len(theLies))]
		x.about = append(x.about, about)
		x.asserts = x.asserts || about.who
	}
	return x
}

func (x aLiar) String() string {
	var names []string
	for _, a := range x.about {
		names = append(names, a.name)
	}
	if x.fickle {
		names = append(names, "now and then")
	}
	return x.id + " lies about " + strings.Join(names, ", ")
}

func (x aLiar) tell(r *rand.Rand, l *topology.Netlist) func(*mad.SMP) {
	return func(p *mad.SMP) {
		if x.fickle && r.IntN(2) == 0 {
			return
		}
		for _, a := range x.about {
			a.tell(r, l, p)
		}
	}
}

// liarsOf picks one or two devices that lie.
func liarsOf(r *rand.Rand) (liars []aLiar, ids []string) {
	for range 1 + r.IntN(2) {
		id := fmt.Sprintf("%s-%d", []string{"red", "blue"}[r.IntN(2)], 1+r.IntN(6))
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
			liars = append(liars, randomLiar(r, id))
		}
	}
	return liars, ids
}

// liarSeedsNow is how many seeds a test takes.
func liarSeedsNow() uint64 {
	if os.Getenv("IBWARDEN_SOAK") != "" {
		return liarSoak
	}
	return need.Share[uint64](liarSeeds/4, liarSeeds)
}

// A device lies, about anything and at any time, on a fabric whose cables were
// learned: nothing gets to whom the policy does not let it, whatever hosts forge;
// everybody else is served; a liar about who it is is fenced, and named.
func TestLiars(t *testing.T) {
	need.Long(t, "seconds of processor time")
	lied, fenced, packets := 0, 0, 0
	for seed := range liarSeedsNow() {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 12))
			list := topology.Demo()
			y := halves(hosts(list))
			s := setup{list: list, policy: y.policy(), manager: held()}
			by := map[ib.NodeGUID]func(*mad.SMP){}
			truth := lying(&s, by)
			x := tap(&s)
			w := newWorld(t, s)
			x.w = w
			truth.seat(w)
			w.settle()
			liars, ids := liarsOf(r)
			lied += len(liars)
			for _, liar := range liars {
				t.Log(liar)
				by[w.node(liar.id).GUID] = liar.tell(r, list)
			}
			if r.IntN(2) == 0 {
				w.manager.Cables = w.engine.Cables() // as it was kept
				w.restart(y.policy())
				w.settle()
			} else {
				w.run(engine.DefaultDriftPeriod) // nobody tells of it
			}
			w.run(2*engine.DefaultSweepInterval + engine.DefaultSweepInterval/2)
			w.settle()
			found := x.check(y, ids)
			found.none(t)
			packets += found.sent
			w.checkRest(y, ids)
			for _, liar := range liars {
				at := w.switchPort(liar.id)
				if liar.asserts && !liar.fickle {
					w.checkFenced(at, "not on the cable list")
				}
				if slices.ContainsFunc(w.result().Fences, func(f facts.Fence) bool { return f.At == smPlace(at) }) {
					fenced++
				}
			}
			for _, f := range w.result().Fences {
				if !slices.ContainsFunc(ids, func(id string) bool { return smPlace(w.switchPort(id)) == f.At }) {
					t.Errorf("an honest device is fenced: %+v", f)
				}
			}
		})
	}
	t.Logf("%d seeds, %d packets, %d liars, %d of them fenced", liarSeedsNow(), packets, lied, fenced)
	if fenced == 0 || packets == 0 {
		t.Error("nobody was fenced, or nothing was sent")
	}
}

// The control: where devices are believed, the same lies expose somebody, or cut
// somebody off.
func TestLiarsBelieved(t *testing.T) {
	need.Long(t, "seconds of processor time")
	exposed, cut := 0, 0
	for seed := range uint64(liarSeeds) {
		r := rand.New(rand.NewPCG(seed, 12))
		list := topology.Demo()
		y := halves(hosts(list))
		s := setup{list: list, policy: y.policy()}
		by := map[ib.NodeGUID]func(*mad.SMP){}
		truth := lying(&s, by)
		x := tap(&s)
		w := newWorld(t, s)
		x.w = w
		truth.seat(w)
		w.settle()
		liars, ids := liarsOf(r)
		for _, liar := range liars {
			by[w.node(liar.id).GUID] = liar.tell(r, list)
		}
		w.run(engine.DefaultDriftPeriod) // nobody tells of it
		w.run(2*engine.DefaultSweepInterval + engine.DefaultSweepInterval/2)
		w.settle()
		found := x.check(y, ids)
		exposed += min(1, len(found.exposed))
		cut += min(1, len(found.unserved))
	}
	t.Logf("of %d seeds %d exposed somebody and %d cut somebody off", liarSeeds, exposed, cut)
	if exposed+cut == 0 {
		t.Error("the lies do no harm anywhere")
	}
}

// Devices that lie from the very first sweep, of which the list is learned: nothing
// is exposed, and who is not let in is a liar, or one whose GUID a liar claims, or
// behind a switch whose GUID one claims: from the wire nobody can tell them apart,
// and each is named.
func TestLiarsAtLearning(t *testing.T) {
	need.Long(t, "seconds of processor time")
	claimed, packets := 0, 0
	for seed := range liarSeedsNow() {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 13))
			list := topology.Demo()
			y := halves(hosts(list))
			s := setup{list: list, policy: y.policy(), manager: held()}
			by := map[ib.NodeGUID]func(*mad.SMP){}
			truth := lying(&s, by)
			x := tap(&s)
			liars, ids := liarsOf(r)
			claims := false
			for _, liar := range liars {
				t.Log(liar)
				by[nodeOf(list, liar.id).GUID] = liar.tell(r, list)
				claims = claims || slices.ContainsFunc(liar.about, func(a lieAbout) bool { return a.who })
			}
			w := newWorld(t, s)
			x.w = w
			truth.seat(w)
			w.settle()
			w.run(2*engine.DefaultSweepInterval + engine.DefaultSweepInterval/2)
			w.settle()
			found := x.check(y, ids)
			packets += found.sent
			if claims {
				claimed += min(1, len(found.unserved))
				found.unserved = nil
			}
			found.none(t)
			learned := all[event.Learned](w)
			if len(learned) != 1 {
				t.Fatalf("learned %v", learned)
			}
			for _, n := range list.Nodes {
				_, listed := learned[0].List.Device(n.GUID)
				if listed || slices.Contains(ids, n.ID) {
					continue
				}
				if !claims || len(learned[0].Left) == 0 {
					t.Errorf("%s is not listed: %v", n.ID, learned[0].Left)
				}
			}
			if !claims {
				w.checkRest(y, ids)
			}
		})
	}
	t.Logf("%d seeds, %d packets; in %d of them somebody honest is left out since a liar claims the same", liarSeedsNow(), packets, claimed)
}
