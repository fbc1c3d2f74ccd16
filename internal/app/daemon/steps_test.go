package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/lab/golden"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

const groupedPolicy = `version: 1
default: limited
groups:
  first: [{port: 0x0000000000100009}]
  nobody: [{port: 0x000000000010000f}]
partitions:
  - {name: red, pkey: 0x0010, members: {full: [{port: 0x0000000000100009}]}}
  - {name: blue, pkey: 0x0020, members: {full: [{port: 0x000000000010000b}, {port: 0x000000000010000d}]}}
`

// TestChangesInSteps: a change is carried out as its options say, goes on from the journal when
// it was stopped, is undone by it, and is refused where nothing may be written, with the reason.
// What is written and said at each step is what it was when the file below testdata was written.
func TestChangesInSteps(t *testing.T) {
	type options = daemon.ApplyOptions
	for _, x := range []struct {
		name string
		runs []func(*options, context.CancelFunc)
	}{
		{"at once", []func(*options, context.CancelFunc){func(*options, context.CancelFunc) {}, func(*options, context.CancelFunc) {},
			func(o *options, _ context.CancelFunc) { o.Direction = daemon.Resume },
			func(o *options, _ context.CancelFunc) { o.Direction = daemon.Rollback },
			func(o *options, _ context.CancelFunc) { o.Direction = daemon.Rollback }}},
		{"in batches", []func(*options, context.CancelFunc){func(o *options, _ context.CancelFunc) { o.Batch = 1 }, func(o *options, _ context.CancelFunc) { o.Direction, o.Batch = daemon.Rollback, 2 }}},
		{"canary", []func(*options, context.CancelFunc){
			func(o *options, _ context.CancelFunc) { o.Canary = "fist" },
			func(o *options, _ context.CancelFunc) { o.Canary = "red" },
			func(o *options, _ context.CancelFunc) { o.Canary = "first" }}},
		{"canary and batches", []func(*options, context.CancelFunc){func(o *options, _ context.CancelFunc) { o.Canary, o.Batch = "first", 2 }}},
		{"a canary that is not touched", []func(*options, context.CancelFunc){func(o *options, _ context.CancelFunc) { o.Canary = "nobody" }}},
		{"without a journal", []func(*options, context.CancelFunc){
			func(o *options, _ context.CancelFunc) { o.Direction = daemon.Resume },
			func(o *options, _ context.CancelFunc) { o.Direction = daemon.Rollback }}},
		{"stopped and resumed", []func(*options, context.CancelFunc){
			func(o *options, stop context.CancelFunc) { o.Batch, o.Step = 1, func(daemon.Step) { stop() } },
			func(*options, context.CancelFunc) {},
			func(o *options, _ context.CancelFunc) { o.Direction = daemon.Resume },
			func(o *options, _ context.CancelFunc) { o.Direction = daemon.Resume }}},
		{"stopped and undone", []func(*options, context.CancelFunc){
			func(o *options, stop context.CancelFunc) { o.Batch, o.Step = 2, func(daemon.Step) { stop() } },
			func(o *options, _ context.CancelFunc) { o.Direction = daemon.Rollback }}},
		{"refused by who is asked", []func(*options, context.CancelFunc){
			func(o *options, _ context.CancelFunc) {
				o.Approve = func(*daemon.Proposal) (bool, error) { return false, errors.New("no") }
			},
			func(o *options, _ context.CancelFunc) {
				o.Approve = func(*daemon.Proposal) (bool, error) { return true, errors.New("no") }
			},
			func(o *options, _ context.CancelFunc) {
				o.Before = func(desired.Assigned) error { return errors.New("no room") }
			}}},
		{"looked at", []func(*options, context.CancelFunc){func(o *options, _ context.CancelFunc) {
			o.Approve = func(*daemon.Proposal) (bool, error) { return true, nil }
		}}},
		{"a policy that does not fit", []func(*options, context.CancelFunc){func(o *options, _ context.CancelFunc) {
			o.Policy = mustRead(t, strings.ReplaceAll(groupedPolicy, "0x0000000000100009", "0x00000000000000AA"))
		}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			to := broughtUp(t)
			defer to.Close()
			var s golden.Story
			journal := &kept{}
			for i, change := range x.runs {
				s.Add(fmt.Sprint("run ", i), applied(t, to, journal, change))
			}
			s.Check(t, "steps/"+x.name+".txt")
		})
	}
}

// applied carries out a change, and is all that is said of it.
func applied(t *testing.T, to link.Link, journal *kept, change func(*daemon.ApplyOptions, context.CancelFunc)) string {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var text bytes.Buffer
	o := daemon.ApplyOptions{Policy: mustRead(t, groupedPolicy), Journal: journal,
		Approve: func(p *daemon.Proposal) (bool, error) {
			fmt.Fprintf(&text, "proposed: %v, %d writes, status %+v\n", p.Direction, p.Plan.Len(), p.Status)
			return false, nil
		},
		Before: func(a desired.Assigned) error {
			fmt.Fprintf(&text, "keeps %d LIDs\n", len(a.LIDs))
			return nil
		},
		Step: func(s daemon.Step) { fmt.Fprintf(&text, "step %+v\n", s) },
	}
	change(&o, stop)
	config, err := daemon.HeldConfig(engine.Config{Routing: routing.UpDown}, journal)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&text, "held %v, reads lanes %v, aliases %v, waits %v\n", config.Hold, config.ReadLanes, config.ReadAliases, config.Pause)
	r := daemon.NewRunner(to, config, server.Config{}, o.Policy, silent{})
	out, err := daemon.Apply(ctx, r, o)
	report := daemon.NewReport(out, err, r)
	fmt.Fprintf(&text, "%s: %s\n", report.Outcome, report.Reason)
	if err := report.Print(&text, "j"); err != nil {
		t.Fatal(err)
	}
	for _, end := range []error{daemon.ErrUnfinished, daemon.ErrNoJournal, daemon.ErrDone, daemon.ErrElsewhere, daemon.ErrRefused, daemon.ErrGroup, daemon.ErrStopped, context.Canceled} {
		fmt.Fprint(&text, errors.Is(err, end), " ")
	}
	if journal.entry != nil {
		fmt.Fprint(&text, "journal: ", journal.entry.Notes, journal.entry.Finished(), journal.entry.Allowed, len(journal.entry.Change.Blocks))
	}
	return text.String()
}
