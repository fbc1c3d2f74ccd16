package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/lab/golden"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// drawn is a fabric with two switches that are cabled twice, and hosts, that holds what a seed draws;
// wanted is drawn too. Little of either is likely in one network: it is what a plan has to stand.
type drawn struct {
	*rand.Rand
	f *observed.Fabric
	d *observed.Desired
}

func draw(seed uint64) *drawn {
	b := subnettest.New()
	b.NodeInfo.PartitionCap, b.SwitchInfo.PartitionEnforcementCap = 40, 40
	b.SwitchInfo.LinearFDBCap, b.SwitchInfo.MulticastFDBCap = 256, 64
	b.PortInfo.GUIDCap, b.PortInfo.CapabilityMask = 16, smp.CapClientReregistration
	x, y := b.Switch(6, "x"), b.Switch(6, "y")
	subnettest.Join(x, y)
	subnettest.Join(x, y)
	for i, at := range []*observed.Node{x, x, y, y} {
		b.Host(at, fmt.Sprint("host-", i))
	}
	b.Route()
	b.ManagedFrom(b.Fabric.EndPorts()[2])
	r := &drawn{rand.New(rand.NewPCG(seed, 33)), b.Fabric, observed.NewDesired(b.Fabric)}
	for _, n := range r.f.Nodes {
		for i := range n.Ports {
			if p := &n.Ports[i]; p.Reached {
				r.port(p)
			}
		}
		if n.Switch != nil {
			r.nodeOf(n)
		}
	}
	return r
}

// one is whether something happens that does so once in n.
func (r *drawn) one(n int) bool { return r.IntN(n) == 0 }

func (r *drawn) keys(n int) (out []ib.PKey) {
	out = make([]ib.PKey, n)
	for i := range min(n, 36) {
		if r.one(3) || i > 32 {
			base := []ib.PKeyBase{ib.PKeyBaseDefault, 0x10, 0x20, 0x30}[r.IntN(4)]
			if out[i] = base.Full(); r.one(3) {
				out[i] = base.Limited()
			}
		}
	}
	return out
}

func (r *drawn) info(x *smp.PortInfo) {
	x.LID, x.LMC = ib.LID(1+r.IntN(12)), ib.LMC(r.IntN(2))
	x.MasterSMLID, x.MKey, x.MKeyProtectBits = ib.LID(r.IntN(3)), ib.MKey(r.IntN(2)), uint8(r.IntN(3))
	x.PartitionEnforcementInbound, x.PartitionEnforcementOutbound = r.one(2), r.one(2)
	x.FilterRawInbound, x.FilterRawOutbound = r.one(3), r.one(3)
	x.HOQLife, x.MKeyLeasePeriod, x.LinkSpeedExtEnabled = ib.TimeValue(r.IntN(2)), uint16(r.IntN(2)), smp.LinkSpeedExt(r.IntN(2))
}

func (r *drawn) port(p *observed.Port) {
	r.info(&p.Info)
	if p.Num > 0 {
		p.Info.PortState = []smp.PortState{smp.PortInit, smp.PortArmed, smp.PortActive, smp.PortActive}[r.IntN(4)]
	}
	p.InfoRead, p.Reached = !r.one(12), !r.one(16)
	subnettest.SetPKeys(p, r.keys(p.PKeyCap())...)
	if r.one(16) {
		p.MarkUnread(smp.AttrPKeyTable, 0)
	}
	if r.one(6) {
		p.Forgets = observed.Element(r.Uint32())
	}
	want := r.d.Port(p)
	r.info(&want.Info)
	want.Elements = observed.Element(r.Uint32()) & (1<<26 - 1)
	want.Activate, want.Reregister, want.Registered = r.one(3), r.one(6), r.one(2)
	if !r.one(4) {
		want.PKeys = r.keys(34 + r.IntN(6))
	}
	if p.IsEnd() && r.one(2) {
		p.GUIDInfo = map[uint32]smp.GUIDInfo{0: {GUIDs: [8]uint64{uint64(p.GUID), uint64(r.IntN(2)), uint64(r.IntN(3)) * 7}}}
		if r.one(2) {
			p.GUIDInfo[1] = smp.GUIDInfo{GUIDs: [8]uint64{3: uint64(r.IntN(2)) * 9}}
		}
		want.GUIDs = make([]ib.PortGUID, 8+r.IntN(8))
		want.GUIDs[1], want.GUIDs[2], want.GUIDs[7] = ib.PortGUID(r.IntN(2)), ib.PortGUID(r.IntN(3)*7), ib.PortGUID(r.IntN(2))
	}
	if r.one(2) {
		p.SLToVL = map[ib.PortNum]smp.SLToVLMappingTable{0: {}, 1: {VLs: [smp.SLCount]ib.VL{1: 1}}}
		want.SLToVL = []*smp.SLToVLMappingTable{{VLs: [smp.SLCount]ib.VL{1: ib.VL(r.IntN(2))}}}
		if p.Node.Switch != nil && r.one(2) {
			want.SLToVL = append(want.SLToVL, nil, &smp.SLToVLMappingTable{VLs: [smp.SLCount]ib.VL{2: 1}})
		}
		p.VLArbitration = make([]smp.VLArbitrationTable, r.IntN(5))
		want.VLArbitration[r.IntN(len(want.VLArbitration))] = &smp.VLArbitrationTable{Entries: [32]smp.VLArbitrationEntry{3: {Weight: uint8(r.IntN(2))}}}
	}
}

func (r *drawn) nodeOf(n *observed.Node) {
	s, want := n.Switch, &r.d.Nodes[n.Index]
	s.InfoRead = !r.one(10)
	s.Info.OptimizedSLToVLMappingProgramming = uint8(r.IntN(2))
	s.Info.DefaultMulticastPrimaryPort, s.Info.DefaultMulticastNotPrimaryPort = ib.PortNum(r.IntN(4)), ib.PortNone
	if r.one(2) {
		n.Ports[0].Info.CapabilityMask |= smp.CapMulticastFDBTop
	}
	want.SetLifeTime, want.LifeTimeValue = r.one(2), ib.TimeValue(r.IntN(20))
	if !r.one(3) {
		want.LFT = slices.Repeat([]ib.PortNum{ib.PortNone}, 64+r.IntN(80))
		copy(want.LFT, s.LFT)
		for range r.IntN(6) {
			want.LFT[r.IntN(len(want.LFT))] = []ib.PortNum{0, 3, 4, ib.PortNone}[r.IntN(4)] // routes that are wanted end, and lead in no circle
		}
		for i := range s.LFTRead {
			s.LFTRead[i] = !r.one(5)
		}
	} else if r.one(2) {
		s.RFT, s.RFTRead = make([]smp.RandomEntry, 32), []bool{true, r.one(2)}
		want.RFT, want.DefaultPort = make([]smp.RandomEntry, 32), ib.PortNum(r.IntN(3))
		want.RFT[17*r.IntN(2)].Valid = r.one(2)
	}
	if r.one(3) {
		return
	}
	block := func() (t smp.MulticastForwardingTable) {
		t.Masks[1], t.Masks[2] = uint16(r.IntN(8)), uint16(r.IntN(4))
		return t
	}
	s.MFT = map[uint32]smp.MulticastForwardingTable{}
	want.Multicast = &observed.DesiredMulticast{Blocks: map[uint32]smp.MulticastForwardingTable{}, Top: ib.LIDMulticastMin - 1, Primary: ib.PortNone, NotPrimary: ib.PortNum(r.IntN(3))}
	for m := range uint32(2) {
		if r.one(2) {
			s.MFT[m] = block()
		}
		if r.one(2) {
			want.Multicast.Blocks[m], want.Multicast.Top = block(), ib.LIDMulticastMin+ib.LID(m*smp.MLIDsPerBlock)+2
		}
	}
}

// text is a plan in full: stage by stage what is written where, and what it means.
func (r *drawn) text(w *strings.Builder, name string, p *Plan) {
	fmt.Fprintf(w, "%s: %d\n", name, p.Len())
	for _, s := range p.Stages {
		fmt.Fprintf(w, " %s\n", s.Name)
		for _, op := range s.Ops {
			write, err := p.Fill(op)
			fmt.Fprintf(w, "  %s %d %v %x pass %d widened %v guards %v: ", op.Port, op.Kind, smp.AttributeName(op.Attribute), op.Modifier, op.Pass, Widened(op, r.d), p.Guards(op.Port))
			fmt.Fprintf(w, "%v %v %v %v adds %v removes %v gives %v takes %v asks %v back %v widens %v %v %x %v\n", write.Elements.Names(), write.MKey, write.State, err,
				write.Adds, write.Removes, write.Gives, write.Takes, write.Asks, write.ReadBack,
				write.WidensOf(map[ib.PKeyBase]bool{0x10: true}), write.GivesOf(map[ib.PortGUID]bool{7: true}), write.Data, op.SameAsRead(write.Data[:]))
		}
	}
}

// TestPlans compares the plans for what seeds draw with those of testdata/plans.txt: of all, of
// single ports, of routes, of multicast, of keys, of what only narrows, and of a part that leaves
// the manager its keys.
func TestPlans(t *testing.T) {
	var story golden.Story
	for seed := range uint64(150) {
		r := draw(seed)
		var w strings.Builder
		all := Diff(r.f, r.d)
		r.text(&w, "all", all)
		ends := r.f.EndPorts()
		at := []*observed.Port{ends[r.IntN(len(ends))], &r.f.Nodes[0].Ports[r.IntN(5)], &r.f.Nodes[1].Ports[0], ends[2]}
		r.text(&w, "at", DiffAt(r.f, r.d, at))
		r.text(&w, "narrowing", Narrowing(r.f, r.d))
		r.text(&w, "narrowing at", NarrowingAt(r.f, r.d, at))
		r.text(&w, "forwarding", DiffForwarding(r.f, r.d, r.f.Switches()[1:]))
		r.text(&w, "multicast", DiffMulticast(r.f, r.d))
		r.text(&w, "keys", DiffMKeys(r.f, r.d))
		for _, p := range []*Plan{all, DiffForwarding(r.f, r.d, r.f.Switches())} {
			for _, m := range []ib.LID{0, 3} {
				moves, tables := p.MovesWithMaster(r.d, r.f.Self, m)
				fmt.Fprintln(&w, "moves with the master", moves, tables)
			}
		}
		full := draw(seed + 1000)
		KeepManagers(r.f, full.d, r.d)
		r.text(&w, "kept", Diff(r.f, r.d))
		all.Share()
		for _, n := range r.f.Switches() {
			fmt.Fprintln(&w, n.Switch.LFT, slices.Sorted(maps.Keys(n.Switch.MFT)))
		}
		story.Add(fmt.Sprintf("seed %d: %d writes", seed, all.Len()), w.String())
	}
	story.Check(t, "plans.txt")
}
