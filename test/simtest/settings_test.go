package simtest

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// A device may take most of a Set of PortInfo and answer that something in it was
// wrong. What it took is not undone by the Set that makes its link Active.
func TestRefusedSettingsStand(t *testing.T) {
	list := topology.Demo()
	y := halves(hosts(list))
	w := newWorld(t, setup{list: list, policy: y.policy()})
	g := w.node("red-1").GUID
	refusals := 0
	err := w.fabric.SetFault(g, fabric.Fault{Alter: func(_ time.Duration, m *[mad.Size]byte) {
		var p mad.SMP
		if p.UnmarshalBinary(m[:]) != nil || p.AttributeID != smp.AttrPortInfo || p.Method != mad.MethodGetResp {
			return
		}
		var info smp.PortInfo
		if info.UnmarshalBinary(p.Data[:]) == nil && info.PortState == smp.PortArmed && refusals == 0 {
			refusals++
			p.Status = mad.StatusInvalidField
			_ = p.Encode(m) // it was decoded
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.settle()
	info := w.info(place{g, 1})
	if refusals != 1 || info.GIDPrefix != ib.DefaultGIDPrefix || info.LID == 0 || info.NeighborMTU != ib.MTU4096 || info.PortState != smp.PortActive {
		t.Errorf("%d refusals; GidPrefix %#x, LID %v, MTU %v, %v; want what was written, and Active",
			refusals, info.GIDPrefix, info.LID, info.NeighborMTU, info.PortState)
	}
}
