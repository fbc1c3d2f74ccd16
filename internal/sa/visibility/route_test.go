package visibility

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// TestPathAboveLinearFDBTop: what stands in a linear table above its top does not
// count, for paths as little as for packets.
func TestPathAboveLinearFDBTop(t *testing.T) {
	for _, tc := range []struct {
		top  ib.LID
		ways int
	}{{3, 2}, {2, 1}, {1, 0}} {
		v := New(observed.Subnet{Fabric: star(tc.top), GIDPrefix: ib.DefaultGIDPrefix, Lifetime: 18})
		a, b := v.At(2), v.At(3)
		ways := 0
		for _, to := range []struct{ from, to *Port }{{a, b}, {b, a}} {
			if _, ok := v.Path(to.from, to.to, to.from.LID, to.to.LID); ok {
				ways++
			}
		}
		if ways != tc.ways {
			t.Errorf("LinearFDBTop %d: %d of two ways, want %d", tc.top, ways, tc.ways)
		}
	}
}

// star is a switch with LID 1 and two hosts with LIDs 2 and 3, behind its ports 1
// and 2.
func star(top ib.LID) *observed.Fabric {
	f := observed.NewFabric()
	var ends []*observed.Port
	for i, kind := range []ib.NodeType{ib.NodeSwitch, ib.NodeCA, ib.NodeCA} {
		n := f.AddNode(smp.NodeInfo{NodeType: kind, NumPorts: 2, NodeGUID: ib.NodeGUID(i + 1), PortGUID: ib.PortGUID(i + 1), PartitionCap: 32})
		for num := range n.Ports {
			p := &n.Ports[num]
			p.Reached, p.InfoRead = true, true
			p.Info = smp.PortInfo{PortState: smp.PortActive, NeighborMTU: ib.MTU4096, MTUCap: ib.MTU4096, LinkWidthActive: smp.LinkWidth4X, LinkSpeedActive: smp.LinkSpeedQDR}
		}
		end := &n.Ports[min(i, 1)]
		end.GUID, end.Info.LID = ib.PortGUID(i+1), ib.LID(i+1)
		ends = append(ends, end)
	}
	s := f.Nodes[0]
	observed.Connect(&s.Ports[1], ends[1])
	observed.Connect(&s.Ports[2], ends[2])
	s.Switch.Info, s.Switch.InfoRead = smp.SwitchInfo{LinearFDBCap: 64, LinearFDBTop: top}, true
	s.Switch.LFT = make([]ib.PortNum, smp.LIDsPerLinearBlock)
	s.Switch.LFT[1], s.Switch.LFT[2], s.Switch.LFT[3] = 0, 1, 2
	s.Switch.LFTRead = []bool{true}
	f.Self = ends[0]
	return f
}
