package views

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// swept is a generated subnet as a sweep finds it, without tables.
func swept(t testing.TB, spec string) *observed.Fabric {
	t.Helper()
	net, err := topology.Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	f := observed.NewFabric()
	for _, x := range net.Nodes {
		info := smp.NodeInfo{NodeType: x.Type, NumPorts: uint8(x.NumPorts()), NodeGUID: x.GUID, PartitionCap: 32}
		if x.Type == ib.NodeSwitch {
			info.PortGUID = x.Ports[0].GUID
		}
		n := f.AddNode(info)
		if n.Description = x.ID; n.Switch != nil {
			n.Switch.InfoRead = true
		}
		for i := range n.Ports {
			p := &n.Ports[i]
			p.Reached, p.InfoRead, p.PKeys, p.PKeysRead = true, true, make([]ib.PKey, 32), []bool{true}
			if x.IsEndPort(i) {
				p.GUID, p.Info.LID = x.Ports[i].GUID, ib.LID(n.Index+1)
			}
			p.Info.PortState, p.Info.PortPhysicalState = smp.PortDown, smp.PhysPolling
		}
	}
	for _, l := range net.Links() {
		a, b := f.Node(l.A).Port(l.APort), f.Node(l.B).Port(l.BPort)
		observed.Connect(a, b)
		for _, p := range []*observed.Port{a, b} {
			p.Info.PortState, p.Info.PortPhysicalState = smp.PortActive, smp.PhysLinkUp
		}
	}
	return f
}

// factsOf are facts of a fabric of which each cable is listed.
func factsOf(f *observed.Fabric) *MapFacts {
	list := &MapList{}
	for _, n := range f.Nodes {
		list.Devices = append(list.Devices, MapDevice{n.GUID(), n.Type(), n.Description})
	}
	for _, l := range f.Links() {
		list.Cables = append(list.Cables, Cable{l.A.Place(), l.B.Place()})
	}
	return &MapFacts{
		Snapshot: &snapshot.Snapshot{ReadAt: time.Unix(1e9, 0).UTC(), Fabric: f}, Cabling: &Cabling{List: list},
		Proof: isolation.Prove(f, nil),
	}
}

// BenchmarkMap makes the whole map of 11,664 and of 40,000 hosts, with a list of all cables:
// when nothing of it is known (first), when a revision has changed who owns what (revision),
// and when it is as it was (again).
func BenchmarkMap(b *testing.B) {
	for name, spec := range map[string]string{"11664": "fattree,radix=36,levels=3", "40000": "fattree,radix=56,levels=3,hosts=40000"} {
		facts, state := factsOf(swept(b, spec)), resource.New(&policy.Policy{})
		gathered := func(snap *snapshot.Snapshot) *MapFacts {
			f := *facts
			f.Snapshot = snap
			f.Gather(state, resource.Caller{Name: "uid 0", Tenant: resource.Provider})
			return &f
		}
		make := func(b *testing.B, m *MapMaker, f *MapFacts) *MapAnswer {
			a, err := m.Whole(f)
			if err != nil {
				b.Fatal(err)
			}
			return a
		}
		b.Run(name+"/first", func(b *testing.B) {
			var a *MapAnswer
			for b.Loop() {
				a = make(b, new(MapMaker), gathered(facts.Snapshot))
			}
			b.ReportMetric(float64(len(a.Body)), "bytes")
			b.ReportMetric(float64(len(a.Zipped)), "bytes-gzip")
		})
		b.Run(name+"/revision", func(b *testing.B) {
			var m MapMaker
			n := uint64(0)
			for b.Loop() {
				f := gathered(facts.Snapshot)
				n++
				f.revision = n
				make(b, &m, f)
			}
		})
		b.Run(name+"/again", func(b *testing.B) {
			var m MapMaker
			for b.Loop() {
				make(b, &m, gathered(facts.Snapshot))
			}
		})
	}
}
