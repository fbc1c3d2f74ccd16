package daemon

import (
	"context"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
)

// recall reads what the former master kept, when this manager takes over.
type recall struct {
	load func() (files.All, error) // nil: nothing is shared
	from ib.PortGUID
	due  bool
	// lacks reports whether hosts may have registered with a former master what is not known
	// here: until a pass has asked them to register again.
	lacks bool
}

// Recall has load called when this manager takes over from another. What it returns counts
// if the former master wrote it. What an earlier master wrote, or this one, is older than
// what hosts have registered since: then they are asked to register again, as if there were
// nothing. It is called before Run.
func (r *Runner) Recall(load func() (files.All, error)) { r.recall.load = load }

func (r *Runner) recallFormer() {
	if !r.recall.due {
		return
	}
	r.recall.due, r.recall.lacks = false, true
	if r.recall.load == nil || r.recall.from == 0 {
		return
	}
	all, err := r.recall.load()
	if err == nil && all.Registered.Manager == r.recall.from {
		err = r.managed.Recall(all.Assigned, all.Registered.State)
		r.recall.lacks = err != nil
	}
	if err != nil {
		r.watcher.Event(event.Warned{Text: fmt.Sprintf("what the manager at port %s kept is not known, hosts register again: %v", r.recall.from, err)})
	}
}

// Resume enters what another manager kept that was master while this one was stopped, and that
// all hosts registered with, and reports whether no host has to register again. It is called in
// the goroutine of Run.
func (r *Runner) Resume(all *files.All) bool {
	if all.Registered.Manager == 0 || all.Registered.Manager == PortOf(r.Engine()) {
		return false
	}
	whole, err := r.managed.Resume(all.Registered.State)
	if whole = whole && err == nil; whole {
		r.recall.lacks = false // the other one knew of all
	}
	return whole
}

// PortOf is the port of a manager; 0 before it knows it.
func PortOf(e *engine.Engine) ib.PortGUID {
	if f := e.Fabric(); f != nil && f.Self != nil {
		return f.Self.GUID
	}
	return 0
}

// Lacks tells, before Run, whether nothing is known of what hosts registered before.
func (r *Runner) Lacks(all bool) { r.recall.lacks = all }

// RegisteredHere is what hosts have registered, with the port of this manager where that is
// all that they have registered.
func (r *Runner) RegisteredHere(saKey ib.SMKey) files.Registered {
	out := files.Registered{State: r.managed.Registered(), SAKey: saKey}
	if !r.recall.lacks {
		out.Manager = PortOf(r.Engine())
	}
	return out
}

// Share has give called whenever there is something new that other managers are to know, in
// the goroutine of Run; see master.Engine.Share. It is called before Run, after Keep and
// KeepKeys.
func (r *Runner) Share(give func() bool) { r.managed.Share(give) }

// Versions are those of what hosts registered and of the key book, for Stored. It is
// called in the goroutine of Run.
func (r *Runner) Versions() (registered, keys uint64) { return r.managed.Versions() }

// Stored tells what of these is stored where other managers read it, and has then called in
// the goroutine of Run.
func (r *Runner) Stored(ctx context.Context, registered, keys uint64, then func()) error {
	return r.Ask(ctx, func(*engine.Engine) {
		r.managed.Stored(registered, keys)
		then()
	})
}

// Reregister has every host register again, and says why. It is called in the goroutine of Run.
func (r *Runner) Reregister(why string) {
	r.recall.lacks = true
	r.watcher.Event(event.Warned{Text: why + ": hosts are asked to register again"})
	r.Engine().Reregister()
}
