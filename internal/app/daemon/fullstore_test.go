package daemon_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

var errFull = errors.New("no room")

// full is a journal that fails from some call on: Load, Begin and each Note count.
type full struct {
	kept
	calls, from int
}

func (f *full) fails() error {
	if f.calls++; f.calls > f.from {
		return errFull
	}
	return nil
}
func (f *full) Load() (*daemon.Entry, error) { return f.entry, f.fails() }
func (f *full) Begin(e *daemon.Entry) error  { f.entry = e; return f.fails() }
func (f *full) Note(n daemon.Note) error {
	if err := f.fails(); err != nil {
		return err
	}
	return f.kept.Note(n)
}

// A change whose journal cannot be written goes no further, and says so: nothing is written
// to devices before it has begun there.
func TestJournalWithoutRoom(t *testing.T) {
	for from := range 6 {
		to := broughtUp(t)
		j, next := &full{from: from}, mustRead(t, movedPolicy)
		r := daemon.NewRunner(to, engine.Config{Hold: true, Routing: routing.UpDown}, server.Config{}, next, silent{})
		out, err := daemon.Apply(t.Context(), r, daemon.ApplyOptions{
			Policy: next, Journal: j, Batch: 2, Approve: func(*daemon.Proposal) (bool, error) { return false, nil },
		})
		to.Close()
		// Load, Begin, and a note of the first batch, of the last, of all, and of the end.
		if lacks := from < 5; (out == nil) != (from < 2) || errors.Is(err, errFull) != lacks || !lacks && err != nil {
			t.Errorf("room for %d calls: %v, begun %v, %d notes", from, err, out != nil, len(j.entryNotes()))
		}
		if done := slices.ContainsFunc(j.entryNotes(), func(n daemon.Note) bool { return n.State == daemon.NoteDone }); done != (from >= 5) {
			t.Errorf("room for %d calls: done by the journal: %v", from, done)
		}
	}
}

func (f *full) entryNotes() []daemon.Note {
	if f.entry == nil {
		return nil
	}
	return f.entry.Notes
}
