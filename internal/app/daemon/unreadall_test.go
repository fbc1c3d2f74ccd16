package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

const movedPolicy = `version: 1
default: limited
partitions:
  - {name: red, pkey: 0x0010, members: {full: [{port: 0x0000000000100009}]}}
  - {name: blue, pkey: 0x0020, members: {full: [{port: 0x000000000010000b}, {port: 0x000000000010000d}]}}
`

func mustRead(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, err := policyfile.ReadYAML([]byte(text), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// broughtUp is a small fabric that a manager has brought up and left.
func broughtUp(t *testing.T) link.Link {
	t.Helper()
	topology, err := topology.Generate("fattree,radix=4,levels=2")
	if err != nil {
		t.Fatal(err)
	}
	config := fabric.DefaultConfig()
	config.Jitter = 0 // every reading goes by the same ways
	fabric, err := fabric.New(topology, config)
	if err != nil {
		t.Fatal(err)
	}
	link, err := inproc.New(fabric, 0x100000, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	r := daemon.NewRunner(link, engine.Config{Routing: routing.UpDown}, server.Config{}, mustRead(t, unreadPolicy), silent{})
	if err := r.Run(context.Background(), r.Engine().Settled); err != nil {
		t.Fatal(err)
	}
	return link
}

// asked lists the questions that do asks on a link.
func asked(t *testing.T, inner link.Link, do func(link.Link)) []string {
	t.Helper()
	link := &deaf{Link: inner, asked: map[string]mad.AttributeID{}}
	do(link)
	out := make([]string, 0, len(link.asked))
	for q := range link.asked {
		out = append(out, q)
	}
	slices.Sort(out)
	return out
}

var everything = sweep.Options{Forwarding: true, QoS: true, Audit: true, Multicast: true}

func snap(t *testing.T, link link.Link, o sweep.Options) *snapshot.Snapshot {
	t.Helper()
	s, _, err := daemon.Snapshot(context.Background(), link, "sim", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// auditOf is what an audit says of a snapshot, as ibwarden audit asks it.
func auditOf(s *snapshot.Snapshot, o audit.Options) *audit.Report {
	for _, f := range s.Faults {
		o.Unread = append(o.Unread, audit.Unread{Where: f.Where, What: f.Why})
	}
	return audit.Audit(s.Fabric, audit.Intent{}, o)
}

// Of every read the answer is lost in turn: an audit fails by what it does not
// know, from the fabric and from a file alike, and a plan says that it may not be all.
func TestUnreadFailsAuditAndPlan(t *testing.T) {
	inner := broughtUp(t)
	defer inner.Close()
	questions := asked(t, inner, func(l link.Link) { snap(t, l, everything) })
	share := 8
	for i, q := range questions {
		if i%share != 0 {
			continue
		}
		s := snap(t, &deaf{Link: inner, lost: q}, everything)
		report := auditOf(s, audit.Options{Profile: audit.Strict})
		if report.Counts.Unknown == 0 || !report.Fails(audit.Critical) {
			t.Errorf("%s lost: an audit passes: %+v", q, report.Counts)
		}
		var file bytes.Buffer
		if err := snapshot.Write(&file, s); err != nil {
			t.Fatal(err)
		}
		kept, err := snapshot.Read(&file)
		if err != nil {
			t.Fatal(err)
		}
		if again := auditOf(kept, audit.Options{Profile: audit.Strict}); !reflect.DeepEqual(report, again) {
			t.Errorf("%s lost: of the file the audit says something else", q)
		}
		before, after := isolation.Prove(s.Fabric, isolation.AsTables(s.Fabric)), isolation.Prove(kept.Fabric, isolation.AsTables(kept.Fabric))
		if before.Verdict != after.Verdict {
			t.Errorf("%s lost: %s, and %s of the file", q, before.Verdict, after.Verdict)
		}
	}
	next := mustRead(t, movedPolicy)
	reading := (&engine.Config{Routing: routing.UpDown}).Reading(next)
	plans := asked(t, inner, func(l link.Link) {
		if r, err := daemon.Read(t.Context(), l, reading); err != nil || len(r.Faults) > 0 {
			t.Fatalf("%v, %v", err, r.Faults)
		}
	})
	for _, q := range plans {
		r, err := daemon.Read(t.Context(), &deaf{Link: inner, lost: q}, reading)
		if err == nil && len(r.Faults) == 0 {
			t.Errorf("%s lost: a plan would pass for whole", q)
		}
	}
	t.Logf("%d questions, one of %d lost in turn; %d of a plan", len(questions), share, len(plans))
	if len(questions) < 100 || len(plans) < 50 {
		t.Errorf("only %d and %d questions", len(questions), len(plans))
	}
}

// A snapshot in which parts were never asked for is no better than one that
// lost them, and one that is too old is not known.
func TestMissingAndOldPartsAreUnknown(t *testing.T) {
	inner := broughtUp(t)
	defer inner.Close()
	whole := auditOf(snap(t, inner, everything), audit.Options{})
	if whole.Counts.Unknown > 1 { // no manager is there any more to tell its SM_Key
		t.Fatalf("unknown before anything was left out: %+v", whole.Findings)
	}
	less := auditOf(snap(t, inner, sweep.Options{}), audit.Options{})
	if less.Counts.Unknown <= whole.Counts.Unknown || slices.Contains(less.Passed, "route-broken") {
		t.Errorf("without forwarding tables the audit passes %v", less.Passed)
	}
	old := auditOf(snap(t, inner, everything), audit.Options{Age: time.Hour, MaxAge: time.Minute})
	if !old.Fails(audit.Critical) || slices.Contains(old.Passed, "not-read") {
		t.Errorf("an old reading passes: %+v", old.Counts)
	}
	f := snap(t, inner, everything).Fabric
	proof := isolation.Prove(f, isolation.AsTables(f))
	if proof.Outdate(time.Hour, time.Minute); proof.Verdict != isolation.Unknown {
		t.Errorf("an old reading is %s", proof.Verdict)
	}
}

// kept is a journal in memory.
type kept struct{ entry *daemon.Entry }

func (k *kept) Load() (*daemon.Entry, error) { return k.entry, nil }
func (k *kept) Begin(e *daemon.Entry) error  { k.entry = e; return nil }
func (k *kept) Note(n daemon.Note) error     { k.entry.Notes = append(k.entry.Notes, n); return nil }

// changed applies the moved policy over a link.
func changed(t *testing.T, link link.Link) (*daemon.Applied, error) {
	t.Helper()
	journal, next := &kept{}, mustRead(t, movedPolicy)
	config, err := daemon.HeldConfig(engine.Config{Routing: routing.UpDown}, journal)
	if err != nil {
		t.Fatal(err)
	}
	r := daemon.NewRunner(link, config, server.Config{}, next, silent{})
	return daemon.Apply(t.Context(), r, daemon.ApplyOptions{
		Policy: next, Journal: journal, Approve: func(*daemon.Proposal) (bool, error) { return false, nil },
	})
}

// Whichever answer is lost, apply does not say that the change is made and
// proved unless it is: what devices then hold is asked with nothing lost.
func TestApplyWithoutAnAnswer(t *testing.T) {
	first := broughtUp(t)
	questions := asked(t, first, func(l link.Link) {
		if out, err := changed(t, l); err != nil || out.Proof.Verdict != isolation.Unguarded { // no port has an M_Key
			t.Fatalf("nothing lost: %v", err)
		}
	})
	defer first.Close()
	claimed, refused := 0, 0
	for i, q := range questions {
		if i%5 != 0 {
			continue
		}
		inner := broughtUp(t)
		link := &deaf{Link: inner, lost: q}
		out, err := changed(t, link)
		if err != nil || !out.Proof.Verdict.Holds() {
			if refused++; err != nil && errors.Is(err, context.Canceled) {
				t.Errorf("%s lost: %v", q, err)
			}
			inner.Close()
			continue
		}
		claimed++
		f := snap(t, inner, sweep.Options{Forwarding: true}).Fabric
		s, err := desired.Predict(desired.Input{Fabric: f, Routing: routing.UpDown}, mustRead(t, movedPolicy))
		if err != nil {
			t.Fatal(err)
		}
		if p := isolation.Prove(f, s.Resolution.Partitions); p.Verdict != isolation.Isolated || p.Counts.Missing > 0 {
			t.Errorf("%s lost: said to be done and proved, and it is %s with %d keys missing", q, p.Verdict, p.Counts.Missing)
		}
		inner.Close()
	}
	t.Logf("%d questions, one of 5 lost in turn: %d times not done, %d times done for all that", len(questions), refused, claimed)
	if refused == 0 {
		t.Error("no answer was needed")
	}
}
