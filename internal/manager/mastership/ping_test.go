package mastership

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// A manager on a host asks over its port, one on a switch over the first ports that are up, and
// never its own port 0. The request has the key of who is there, if the cable is known to lead
// there: one that answers only those who have its key is heard too, and reports no wrong one. No
// other manager is asked for that, and nothing is sent before there is a fabric.
func TestPing(t *testing.T) {
	for _, hosts := range []int{0, 1, pingsMost - 1, pingsMost, pingsMost + 1, 2 * pingsMost} {
		for _, onSwitch := range []bool{false, true} {
			r := &rig{TB: t, b: subnettest.New()}
			leaf := r.b.Switch(3*pingsMost, "leaf")
			self := r.b.Host(leaf, "self")
			for range hosts {
				r.b.Host(leaf, "")
			}
			subnettest.SetLink(&leaf.Ports[1], smp.PortDown, smp.PhysPolling)
			want := []ib.PortNum{self.Num}
			if onSwitch {
				self, want = &leaf.Ports[0], nil
				for i := range min(hosts, pingsMost) {
					want = append(want, ib.PortNum(i+2))
				}
			}
			c := strict()
			c.Limits = transact.DefaultLimits()
			r.Peers = New(c, (*rigHost)(r))
			fabric := r.b.Fabric
			r.b.Fabric = nil
			r.Ping()
			r.b.Fabric = fabric
			r.Ping() // it is not known yet where the manager is
			r.b.ManagedFrom(self)
			keys := make(map[ib.PortNum]ib.MKey)
			for _, num := range want {
				p := &self.Node.Ports[num%ib.PortNum(len(self.Node.Ports))]
				if p.Peer.Agent().Key = ib.MKey(0x100 + uint64(num)); num%2 == 0 || !onSwitch {
					p.Leads, keys[num] = true, p.Peer.Agent().Key
				}
			}
			r.Ping()
			var got []ib.PortNum
			var p mad.SMP
			for w := r.Next(0, &p); w != nil; w = r.Next(0, &p) {
				if p.HopCount != 1 || p.Method != mad.MethodGet || p.AttributeID != smp.AttrNodeInfo {
					t.Errorf("%d hops, %v %v", p.HopCount, p.Method, p.AttributeID)
				}
				num := ib.PortNum(p.InitialPath[1])
				if got = append(got, num); p.MKey != keys[num] {
					t.Errorf("over port %d with the M_Key %v, want %v", num, p.MKey, keys[num])
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%d other hosts, on a switch %v: asks over ports %v, want %v", hosts, onSwitch, got, want)
			}
		}
	}
}
