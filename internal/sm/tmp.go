package sm

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/subnet"
)

func (e *Engine) startElection()                                           { e.state = stateElecting }
func (e *Engine) elected(now time.Duration)                                { e.pursue(now) }
func (e *Engine) pollMaster()                                              {}
func (e *Engine) receiveSMInfo(now time.Duration, p *mad.SMP, slid ib.LID) {}

type qosT struct{}

var qos qosT

func (qosT) Enter(f *subnet.Fabric, l []ib.SL, d *subnet.Desired) {
	for _, n := range f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			if p.Peer == nil {
				continue
			}
			w := d.Port(p)
			w.Elements |= subnet.ElementNeighborMTU | subnet.ElementOperationalVLs
			w.Info.NeighborMTU = min(p.Info.MTUCap, p.Peer.Info.MTUCap)
			w.Info.OperationalVLs = min(p.Info.VLCap, p.Peer.Info.VLCap)
		}
	}
}
