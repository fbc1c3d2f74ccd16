package simtest

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// SM-11: SMInfo.GUID is the PortGUID of the port that the manager is behind, whichever
// of a host's three ports that is, and of port 0 on a switch: what NodeInfo says there.
func TestSM11GUIDOfThePort(t *testing.T) {
	list := &topology.Netlist{Nodes: []*topology.Node{topology.NewNode(ib.NodeSwitch, "s", 0x500, 7)}}
	for i := range 3 {
		h := topology.NewNode(ib.NodeCA, fmt.Sprint("h", i+1), ib.NodeGUID(0x1000*(i+1)), 3)
		if err := topology.Connect(list.Nodes[0], ib.PortNum(2*i+2), h, ib.PortNum(i+1)); err != nil {
			t.Fatal(err)
		}
		list.Nodes = append(list.Nodes, h)
	}
	seen := map[uint64]bool{}
	for _, at := range []struct {
		node, asker string
		port        ib.PortNum
	}{{"s", "h1", 0}, {"h1", "s", 1}, {"h2", "h1", 2}, {"h3", "h1", 3}} {
		w := bringUp(t, setup{list: list, at: at.node, port: at.port, policy: halves(hosts(list)).policy()})
		s := w.stranger(at.asker)
		lid := w.info(w.self).LID
		get := func(id mad.AttributeID) mad.SMP {
			t.Helper()
			answer, ok := s.ask(s.packet(mad.ClassSubnLID, mad.MethodGet, id, 0), lid)
			if !ok || answer.Status != mad.StatusOK {
				t.Fatalf("%s: attribute %#x: %v, status %v", at.node, id, ok, answer.Status)
			}
			return answer
		}
		// PortGUID is at byte 20 of NodeInfo, GUID at byte 0 of SMInfo.
		said, node := get(0x0020), get(smp.AttrNodeInfo)
		guid, want := binary.BigEndian.Uint64(said.Data[:]), binary.BigEndian.Uint64(node.Data[20:])
		if guid != want || seen[guid] {
			t.Errorf("%s: SMInfo says GUID %#x, NodeInfo PortGUID %#x", at.node, guid, want)
		}
		seen[guid] = true
	}
}
