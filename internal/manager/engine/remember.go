package engine

import (
	"github.com/ibwarden/ibwarden/internal/manager/links"
	"github.com/ibwarden/ibwarden/internal/manager/unseen"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// recognize looks who there is after a sweep; old is what the one before it found.
func (e *Engine) recognize(old *observed.Fabric) {
	e.ends = e.fabric.EndPorts()
	e.remember(old)
	e.resolver = e.newResolver()
}

// remember carries over what an earlier sweep taught about the devices.
func (e *Engine) remember(old *observed.Fabric) {
	if old == nil {
		e.known.Recall(e.fabric)
		return
	}
	e.unseen = unseen.After(old, e.fabric, e.ends, e.unseen, e.known.Fences, e.cabling.list)
	for _, n := range old.Nodes {
		same := e.fabric.Node(n.GUID())
		if same == nil {
			continue
		}
		for i := range min(len(n.Ports), len(same.Ports)) {
			// A port that was down may have another firmware behind it.
			if same.Ports[i].IsUp() && n.Ports[i].IsUp() {
				same.Ports[i].Forgets = n.Ports[i].Forgets
			}
			same.Ports[i].Recall(&n.Ports[i])
		}
	}
	down, up := links.Compare(old, e.fabric)
	if len(down.Links)+len(down.Gone) > 0 {
		e.emit(down)
	}
	if len(up.Links)+len(up.New) > 0 {
		e.emit(up)
	}
}
