//go:build unix

package fabric_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// window sends n requests, always with as many as width outstanding, and
// receives the answers.
func window(t testing.TB, f *fabric.Fabric, a *fabric.Attachment, request *[mad.Size]byte, dlid ib.LID, n, width int) {
	var d fabric.Delivery
	sent, answered := 0, 0
	for answered < n {
		for ; sent < n && sent-answered < width; sent++ {
			a.Send(request, dlid)
		}
		if !f.Step() {
			t.Fatalf("%d of %d answered; discarded: %s", answered, n, discards(f))
		}
		for a.Receive(&d) {
			answered++
		}
	}
}

func encoded(t testing.TB, p mad.SMP) *[mad.Size]byte {
	var m [mad.Size]byte
	if err := p.Encode(&m); err != nil {
		t.Fatal(err)
	}
	return &m
}

// A packet on its way costs no memory, however far it goes.
func TestNoAllocationPerHop(t *testing.T) {
	f := newFabric(t, chain(t, 40), fabric.DefaultConfig())
	c := attach(t, f, hostGUID(1), 1)
	perRequest := func(hops int) float64 {
		m := encoded(t, directed(along(hops), mad.MethodGet, smp.AttrNodeInfo, 0))
		return testing.AllocsPerRun(50, func() { window(t, f, c.a, m, ib.LIDPermissive, 20, 20) }) / 20
	}
	if near, far := perRequest(1), perRequest(41); far > near {
		t.Errorf("a request allocates %v times over 1 hop, %v times over 41", near, far)
	}
}

// BenchmarkSMP asks a node a number of hops away, by directed route: requests and
// their answers, 64 on their way at once, carried link by link, looked at in each node
// and answered by the agent. Metrics as those of BenchmarkDatagram; a round trip
// counts as one.
func BenchmarkSMP(b *testing.B) {
	for _, hops := range []int{1, 3, 5} {
		for _, attribute := range []mad.AttributeID{smp.AttrNodeInfo, smp.AttrPortInfo, smp.AttrLinearForwardingTable} {
			b.Run(fmt.Sprintf("hops=%d/%s", hops, smp.AttributeName(attribute)), func(b *testing.B) {
				f := newFabric(b, chain(b, 6), fabric.DefaultConfig())
				c := attach(b, f, hostGUID(1), 1)
				m := encoded(b, directed(along(hops), mad.MethodGet, attribute, 0))
				b.ReportAllocs()
				b.ResetTimer()
				before := processorTime(b)
				window(b, f, c.a, m, ib.LIDPermissive, b.N, 64)
				b.ReportMetric(float64(b.N)/(processorTime(b)-before).Seconds(), "SMPs/cpu-s")
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "SMPs/s")
			})
		}
	}
}

// BenchmarkFatTree makes a three-level fat tree of 11,664 hosts and 1,620
// switches, asks every node for NodeInfo, fills the forwarding table of every
// switch and the P_Key tables of its ports, as a bring-up does, and reports the
// memory that the fabric then takes.
func BenchmarkFatTree(b *testing.B) {
	l, err := topology.Generate("fattree,radix=36,levels=3")
	if err != nil {
		b.Fatal(err)
	}
	for range b.N {
		before := heap()
		f := newFabric(b, l, fabric.DefaultConfig())
		empty := heap()
		c := attach(b, f, l.Nodes[0].GUID, 1)
		smps := 0
		set := func(path mad.Path, modifier uint32, a smp.Attribute) { c.set(path, modifier, a); smps++ }
		known := map[ib.NodeGUID]bool{}
		var switches []mad.Path
		for next := []mad.Path{{1}}; len(next) > 0; next = next[1:] {
			path := next[0]
			var node smp.NodeInfo
			c.get(path, 0, &node)
			smps++
			if known[node.NodeGUID] || node.NodeType != ib.NodeSwitch {
				continue
			}
			known[node.NodeGUID] = true
			switches = append(switches, path)
			for p := range ib.PortNum(36) {
				next = append(next, append(path[:len(path):len(path)], p+1))
			}
		}
		var table smp.LinearForwardingTable
		var keys smp.PKeyTable
		for i := range keys.Keys {
			keys.Keys[i] = ib.PKey(0x8001 + i)
		}
		for _, path := range switches {
			for block := range uint32(208) { // 13,284 LIDs
				set(path, block, &table)
			}
			for port := range ib.PortNum(36) {
				set(path, smp.PKeyModifier(port+1, 0), &keys)
			}
		}
		full := heap()
		b.ReportMetric(float64(len(switches)), "switches")
		b.ReportMetric(float64(smps), "SMPs")
		b.ReportMetric(float64(empty-before)/1e6, "MB-empty")
		b.ReportMetric(float64(full-before)/1e6, "MB-full")
		runtime.KeepAlive(f)
	}
}

// heap is the memory in use, in bytes.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
