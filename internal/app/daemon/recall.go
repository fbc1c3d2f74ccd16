package daemon

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/kept"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// recall reads what the former master kept, when this manager takes over.
type recall struct {
	load func() (kept.All, error) // nil: nothing is shared
	from ib.PortGUID
	due  bool
}

// Recall has load called when this manager takes over from another. What it returns counts
// if the former master wrote it. What an earlier master wrote, or this one, is older than
// what hosts have registered since: then they are asked to register again, as if there were
// nothing. It is called before Run.
func (r *Runner) Recall(load func() (kept.All, error)) { r.recall.load = load }

func (r *Runner) recallFormer() {
	if !r.recall.due {
		return
	}
	r.recall.due = false
	if r.recall.load == nil || r.recall.from == 0 {
		return
	}
	all, err := r.recall.load()
	if err == nil && all.Registered.Manager == r.recall.from {
		err = r.managed.Recall(all.Assigned, all.Registered.State)
	}
	if err != nil {
		r.watcher.Event(event.Warned{Text: fmt.Sprintf("what the manager at port %s kept is not known, hosts register again: %v", r.recall.from, err)})
	}
}

// PortOf is the port of a manager; 0 before it knows it.
func PortOf(e *engine.Engine) ib.PortGUID {
	if f := e.Fabric(); f != nil && f.Self != nil {
		return f.Self.GUID
	}
	return 0
}
