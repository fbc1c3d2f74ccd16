package daemon

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// hears is a watcher that keeps the warnings.
type hears []string

func (*hears) Progress(string, uint64) {}

func (h *hears) Event(e event.Event) {
	if w, is := e.(event.Warned); is {
		*h = append(*h, w.Text)
	}
}

// TestRecallOfTheFormer: a manager that takes over reads what the former master kept, once, and takes
// it where that manager wrote it. Without it, hosts have registered with somebody what is not known here.
func TestRecallOfTheFormer(t *testing.T) {
	const former, earlier = ib.PortGUID(0xf0), ib.PortGUID(0xe0)
	of := func(manager ib.PortGUID, aliases map[ib.PortGUID][]ib.PortGUID) func() (files.All, error) {
		return func() (files.All, error) {
			return files.All{Registered: files.Registered{State: server.State{Aliases: aliases}, Manager: manager}}, nil
		}
	}
	good := map[ib.PortGUID][]ib.PortGUID{0x43: {0x99}}
	for _, x := range []struct {
		name  string
		load  func() (files.All, error)
		from  ib.PortGUID
		due   bool
		lacks bool
		says  string // after the manager's name
		knows int
	}{
		{"nothing to take over", of(former, good), former, false, false, "", 0},
		{"nothing is shared", nil, former, true, true, "", 0},
		{"nobody was master", of(former, good), 0, true, true, "", 0},
		{"the former master's", of(former, good), former, true, false, "", 1},
		{"an earlier one's", of(earlier, good), former, true, true, "", 0},
		{"none that can be read", func() (files.All, error) { return files.All{}, errors.New("no store") }, former, true, true, "no store", 0},
		{"one that makes no sense", of(former, map[ib.PortGUID][]ib.PortGUID{0x43: {0x99}, 0x44: {0x99}}), former, true, true, "alias", 0},
	} {
		r := broughtUp(t, 0)
		var heard hears
		r.watcher = &heard
		r.Recall(x.load)
		r.recall.from, r.recall.due = x.from, x.due
		r.recallFormer()
		if r.recall.lacks != x.lacks || r.recall.due || len(r.Registered().Aliases) != x.knows {
			t.Errorf("%s: lacks %v, due %v, knows %d", x.name, r.recall.lacks, r.recall.due, len(r.Registered().Aliases))
		}
		if prefix := fmt.Sprintf("what the manager at port %s kept is not known, hosts register again: ", former); (len(heard) > 0) != (x.says != "") ||
			len(heard) > 0 && (len(heard[0]) <= len(prefix) || heard[0][:len(prefix)] != prefix) {
			t.Errorf("%s: said %q", x.name, heard)
		}
		heard = nil
		if r.recallFormer(); len(heard) > 0 {
			t.Errorf("%s: read twice: %q", x.name, heard)
		}
	}
}

// TestResumeAndRegistered: what another manager kept counts when this one was stopped, and who wrote
// a list says whether it has all that hosts registered.
func TestResumeAndRegistered(t *testing.T) {
	r := broughtUp(t, 0)
	own := PortOf(r.Engine())
	if own == 0 {
		t.Fatal("the manager does not know its port")
	}
	list := func(manager ib.PortGUID) *files.All {
		return &files.All{Registered: files.Registered{Manager: manager, State: server.State{Aliases: map[ib.PortGUID][]ib.PortGUID{0x43: {0x99}}}}}
	}
	for _, x := range []struct {
		manager ib.PortGUID
		whole   bool
	}{{0, false}, {own, false}, {own + 1, true}} {
		r.Lacks(true)
		if whole := r.Resume(list(x.manager)); whole != x.whole || r.recall.lacks == x.whole || (len(r.Registered().Aliases) == 1) != x.whole {
			t.Errorf("manager %v: whole %v, lacks %v, %v", x.manager, whole, r.recall.lacks, r.Registered().Aliases)
		}
	}
	bad := list(own + 1)
	bad.Registered.Aliases[0x44] = []ib.PortGUID{0x99}
	r.Lacks(true)
	if r.Resume(bad) || !r.recall.lacks {
		t.Error("a list that makes no sense is taken for whole")
	}
	if got := r.RegisteredHere(7); got.Manager != 0 || got.SAKey != 7 || len(got.Aliases) != 1 {
		t.Errorf("where some is not known: %+v", got)
	}
	r.Lacks(false)
	if got := r.RegisteredHere(7); got.Manager != own {
		t.Errorf("where all is known: %+v", got)
	}
	var heard hears
	r.watcher = &heard
	if r.Reregister("a test"); !r.recall.lacks || fmt.Sprint(heard) != "[a test: hosts are asked to register again]" {
		t.Errorf("lacks %v, said %q", r.recall.lacks, heard)
	}
	p, err := DemoPolicy()
	if err != nil {
		t.Fatal(err)
	}
	if got := PortOf(NewRunner(r.link, engine.Config{}, server.Config{}, p, unwatched{}).Engine()); got != 0 {
		t.Errorf("a manager that has read nothing has port %v", got)
	}
}
