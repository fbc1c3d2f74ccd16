package engine

import (
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
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
	before := e.unseen
	e.unseen = facts.UnseenAfter(old, e.fabric, e.ends, before, e.known.Fences, e.cabling.list)
	e.fabric.Recall(old)
	facts.RecallUnseen(e.fabric, e.ends, before)
	down, up := watch.CompareLinks(old, e.fabric)
	if len(down.Links)+len(down.Gone) > 0 {
		e.emit(down)
	}
	if len(up.Links)+len(up.New) > 0 {
		e.emit(up)
	}
}
