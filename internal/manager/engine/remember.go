package engine

import (
	"github.com/ibwarden/ibwarden/internal/manager/links"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// meet looks who there is, and remembers them.
func (e *Engine) meet(old *observed.Fabric) {
	e.ends = e.fabric.EndPorts()
	e.remember(old)
	e.resolver = e.names.Resolver(e.identities())
}

// remember carries over what an earlier sweep taught about the devices.
func (e *Engine) remember(old *observed.Fabric) {
	if old == nil {
		for at, elements := range e.known.Forgets {
			if n := e.fabric.Node(at.Node); n != nil && int(at.Port) < len(n.Ports) && n.Ports[at.Port].IsUp() {
				n.Ports[at.Port].Forgets = elements
			}
		}
		return
	}
	e.loseSight(old)
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
