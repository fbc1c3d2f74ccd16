package fabric_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// hostile is a small fabric with every kind of node, LIDs and routes.
func hostile(t testing.TB) (*fabric.Fabric, []*client) {
	l, err := topology.Generate("random,seed=2,switches=3,hosts=3,routers=1,ports=6,ca-ports=2")
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range l.Nodes {
		for p := range n.Ports {
			if n.IsEndPort(p) && p < 2 {
				n.Ports[p].LID = ib.LID(i + 1)
			}
		}
	}
	f := newFabric(t, l, fabric.Config{HopDelay: 1, AgentDelay: 10, TrainDelay: 100})
	var clients []*client
	for _, n := range l.Nodes {
		num := ib.PortNum(1)
		if n.Type == ib.NodeSwitch {
			num = 0
		}
		clients = append(clients, attach(t, f, n.GUID, num))
	}
	clients[0].a.SetIsSM(true)
	return f, clients
}

// Whatever bytes a client sends, from wherever it is, to whichever LID, and
// whatever that does to the fabric: nothing panics, no packet is lost sight
// of, every packet ends.
func FuzzSend(f *testing.F) {
	seed := func(p mad.SMP, at, dlid uint16) {
		m, err := p.AppendBinary(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(m, at, dlid)
	}
	for _, attribute := range []mad.AttributeID{
		smp.AttrNotice, smp.AttrNodeInfo, smp.AttrSwitchInfo, smp.AttrPortInfo, smp.AttrPKeyTable,
		smp.AttrLinearForwardingTable, smp.AttrMulticastForwardingTable, smp.AttrSMInfo, smp.AttrLEDInfo,
	} {
		seed(directed(mad.Path{1, 2}, mad.MethodGet, attribute, 0), 0, 0xFFFF)
		seed(directed(mad.Path{1}, mad.MethodSet, attribute, 1), 1, 0xFFFF)
		seed(byLID(mad.MethodSet, attribute, 0), 0, 4)
	}
	mixed := directed(mad.Path{1, 2}, mad.MethodGet, smp.AttrNodeInfo, 0)
	mixed.DrSLID, mixed.DrDLID = 1, 2
	seed(mixed, 0, 4)
	back := directed(mad.Path{1, 2}, mad.MethodGetResp, smp.AttrNodeInfo, 0)
	back.Direction, back.HopPointer = true, 3
	seed(back, 3, 0xFFFF)
	seed(byLID(mad.MethodTrap, smp.AttrNotice, 0), 2, 1)
	seed(byLID(mad.MethodTrapRepress, smp.AttrNotice, 0), 2, 1)
	f.Add([]byte{1, 3, 2, 1}, uint16(0), uint16(1))

	f.Fuzz(func(t *testing.T, data []byte, at, dlid uint16) {
		fabric, clients := hostile(t)
		c := clients[int(at)%len(clients)]
		var m [mad.Size]byte
		copy(m[:], data)
		c.a.Send(&m, ib.LID(dlid))
		// Again, after the fabric is what the first has made of it.
		fabric.AdvanceTo(fabric.Now() + time.Millisecond)
		c.a.Send(&m, ib.LID(dlid))
		fabric.AdvanceTo(fabric.Now() + time.Millisecond)
		// Traps may be due for ever; with their sources off all comes to rest.
		for _, n := range clients {
			n.a.SetIsSM(false)
		}
		waiting := 0
		for _, n := range clients {
			waiting += n.a.Waiting()
		}
		if fabric.InFlight() != waiting {
			t.Errorf("%d packets in the fabric, %d wait to be received", fabric.InFlight(), waiting)
		}
		if waiting > 100 {
			t.Errorf("two packets have become %d", waiting)
		}
	})
}
