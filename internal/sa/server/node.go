package server

import (
	"github.com/ibwarden/ibwarden/ib/sa"
)

// nodes gives a NodeRecord for every end port.
func (x *search) nodes() {
	for p := range x.ends {
		r := sa.NodeRecord{LID: p.LID, NodeInfo: p.Node.Info}
		r.NodeInfo.PortGUID, r.NodeInfo.LocalPortNum = p.GUID, p.Num
		// Descriptions were read from as many bytes as are written.
		_ = r.NodeDescription.SetString(p.Node.Description)
		x.give(&r)
	}
}

// switchInfos gives the SwitchInfo of every switch that answered it.
func (x *search) switchInfos() {
	for p := range x.switches {
		if s := p.Node.Switch; s.InfoRead {
			x.give(&sa.SwitchInfoRecord{LID: p.LID, SwitchInfo: s.Info})
		}
	}
}

// smInfos gives the SMInfo of the master and of other managers.
func (x *search) smInfos() {
	give := func(p *Port, r sa.SMInfoRecord) {
		if !x.Sees(p) {
			return
		}
		if r.LID = p.LID; !x.Trusted || x.NoKeys {
			r.SMInfo.SMKey = 0
		}
		x.give(&r)
	}
	if self := x.View.Fabric.Self; self != nil {
		give(x.View.EndOf(self), sa.SMInfoRecord{SMInfo: x.View.Manager})
	}
	for _, m := range x.View.Others {
		give(x.View.EndOf(m.Port), sa.SMInfoRecord{SMInfo: m.Info})
	}
}

// links gives both directions of every link whose ends the asker sees.
func (x *search) links() {
	for from := range x.ends {
		n := from.Node
		for i := range n.Ports {
			p := &n.Ports[i]
			if n.Switch == nil && p != from.Port || p.Peer == nil || !x.View.SeesPort(x.Asker, p) {
				continue
			}
			if to := x.View.EndOf(p.Peer); x.Sees(to) {
				x.give(&sa.LinkRecord{FromLID: from.LID, FromPort: p.Num, ToPort: p.Peer.Num, ToLID: to.LID})
			}
		}
	}
}
