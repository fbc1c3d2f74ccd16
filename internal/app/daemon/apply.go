package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Direction is which way a change goes.
type Direction uint8

// The directions.
const (
	Forward  Direction = iota // a new change, from a policy
	Resume                    // to the new end of the change in the journal
	Rollback                  // to its old end
)

// String names the direction as the flags do.
func (d Direction) String() string { return [...]string{"forward", "resume", "rollback"}[d] }

// ApplyOptions say how a change is carried out.
type ApplyOptions struct {
	Direction Direction
	// Policy is the new policy; not needed to go on with what a journal holds.
	Policy *policy.Policy
	// Batch is how many hosts are changed at a time, 0 for all at once.
	// Canary names the group of the policy that is changed first.
	Batch  int
	Canary string
	// Journal has to be there.
	Journal Journal
	// Approve is asked before anything is written; an error ends it all. When
	// it took its time (looked is true) what is to be written over is read
	// again, and has to be as it was shown.
	Approve func(*Proposal) (looked bool, err error)
	// Before is called when approved, before the first write: what has to be
	// kept from run to run is kept here. It may be nil.
	Before func(desired.Assigned) error
	// Step is told of every step that has held; it may be nil.
	Step func(Step)
}

// Proposal is a change that is about to begin.
type Proposal struct {
	Direction Direction
	Fabric    *observed.Fabric
	// Desired holds the tables to come, and of a policy what it means.
	Desired *desired.Result
	Plan    *plan.Plan
	// Status is how far a change of the journal has got.
	Status *plan.ChangeStatus
}

// Step is a part of a change that was carried out and proved.
type Step struct {
	Name   string `json:"name"`
	Hosts  int    `json:"hosts"`
	Writes int    `json:"writes"`
	// Waiting counts keys that are given later, since others still hold them.
	Waiting int               `json:"keys_waiting"`
	Verdict isolation.Verdict `json:"verdict"`
}

// Applied is how a change ended.
type Applied struct {
	// Nothing reports whether there was nothing to write.
	Nothing  bool
	Steps    []Step
	Failures []apply.Failure
	// Status is how far the change has got, by what was read back.
	Standing plan.ChangeStatus
	Proof    *isolation.Proof
	// Fabric is the snapshot, Writes what was sent in all.
	Fabric *observed.Fabric
	Writes int
}

// What ends an Apply before anything is written.
var (
	ErrUnfinished = errors.New("a change in the journal is not finished: resume it, or roll it back")
	ErrNoJournal  = errors.New("the journal holds no change")
	ErrDone       = errors.New("the change in the journal is finished: there is nothing to resume")
	ErrElsewhere  = errors.New("the fabric does not match the journal: it is in neither the old nor the new state, nor between them; nothing was written")
	ErrChanged    = errors.New("the fabric has changed since it was shown; nothing was written")
	ErrUnread     = errors.New("something that does not answer is behind a link that carries data, and may use a partition that is to be given to others; nothing was written")
	ErrStandby    = errors.New("another manager is master; nothing was written")
	ErrRefused    = errors.New("refused; nothing was written")
	ErrGroup      = errors.New("no such group")
)

// ErrStopped ends an Apply in the middle: something did not hold.
var ErrStopped = errors.New("stopped")

// Apply carries out a change, from what it reads to what it proves. Applied is
// nil when nothing was written.
func Apply(ctx context.Context, r *Runner, o ApplyOptions) (*Applied, error) {
	a := applier{ctx: ctx, engine: r.Engine(), runner: r, options: o}
	var out *Applied
	err := r.whileAnnounced(func() (err error) {
		out, err = a.run()
		return err
	})
	return out, err
}

type applier struct {
	ctx     context.Context
	engine  *engine.Engine
	runner  *Runner
	options ApplyOptions

	change  *plan.Change
	side    plan.ChangeSide
	full    *observed.Desired
	allowed []observed.Partition
	raw     isolation.Raw
	canary  map[ib.PortGUID]bool
	out     Applied
}

// drive lets the engine go on until it rests with nothing under way.
func (a *applier) drive() error {
	return a.runner.drive(a.ctx, a.engine, func() bool {
		return a.engine.Settled() && a.engine.Idle()
	})
}

func (a *applier) run() (*Applied, error) {
	entry, err := a.options.Journal.Load()
	if err != nil {
		return nil, err
	}
	switch {
	case a.options.Direction == Forward && entry != nil && !entry.Finished():
		return nil, ErrUnfinished
	case a.options.Direction != Forward && entry == nil:
		return nil, ErrNoJournal
	case a.options.Direction == Resume && entry.Finished():
		return nil, ErrDone
	}
	if err := a.drive(); err != nil {
		return nil, err
	}
	if !a.engine.Held() {
		if a.engine.Fabric() == nil || a.engine.Fabric().Self == nil {
			return nil, ErrRefused
		}
		return nil, ErrStandby
	}
	proposal, err := a.propose(entry)
	if err == nil {
		err = a.refuseUnknown(proposal)
	}
	if err != nil {
		return nil, err
	}
	if proposal.Plan.Len() == 0 {
		return a.nothing(entry)
	}
	if err := a.approved(proposal); err != nil {
		return nil, err
	}
	if a.options.Direction == Forward {
		err = a.options.Journal.Begin(&Entry{Change: a.change, Allowed: a.allowed, Raw: a.raw})
	} else {
		err = a.options.Journal.Note(Note{NoteBegun, a.options.Direction.String()})
	}
	if err != nil {
		return nil, err
	}
	return a.carry()
}

// refuseUnknown refuses a change that gives a port a partition which a device that
// was not found may use.
func (a *applier) refuseUnknown(p *Proposal) error {
	doubtful := map[ib.PKeyBase]bool{}
	for _, b := range observed.StrangersPartitions(p.Fabric, a.full, nil) {
		doubtful[b] = true
	}
	for _, s := range p.Plan.Stages {
		for _, op := range s.Ops {
			if op.Attribute != smp.AttrPKeyTable {
				continue
			}
			w, err := p.Plan.Fill(op)
			switch {
			case err != nil:
				return err
			case w.WidensOf(doubtful):
				return fmt.Errorf("%w (%s was to get some of %v)", ErrUnread, op.Port, w.Adds)
			}
		}
	}
	return nil
}

// propose works out where the change leads.
func (a *applier) propose(entry *Entry) (*Proposal, error) {
	f := a.engine.Fabric()
	p := &Proposal{Direction: a.options.Direction, Fabric: f}
	if a.options.Direction != Forward {
		standing := entry.Change.Compare(f)
		p.Status, a.out.Standing = &standing, standing
		if standing.Position == plan.Elsewhere {
			return nil, fmt.Errorf("%w: %s", ErrElsewhere, standing.Elsewhere[0])
		}
		a.change, a.side, a.allowed, a.raw = entry.Change, plan.NewSide, entry.Allowed, entry.Raw
		if a.options.Direction == Rollback { // what the old policy said is not known
			a.side, a.allowed, a.raw = plan.OldSide, nil, min(entry.Raw, isolation.RawDenied)
		}
		full, err := a.change.Target(f, a.side)
		if err != nil {
			return nil, err
		}
		a.full = full
		p.Desired = &desired.Result{Tables: full, Resolution: &policy.Resolution{Partitions: a.allowed}}
		p.Plan = plan.Diff(f, full)
		return p, nil
	}
	s, err := a.engine.Predict(a.options.Policy)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	groups, err := s.Groups()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err := a.findCanary(groups); err != nil {
		return nil, err
	}
	a.full, a.allowed, a.raw, a.side = s.Tables, s.Resolution.Partitions, s.Raw(), plan.NewSide
	p.Desired, p.Plan = s, plan.Diff(f, s.Tables)
	a.change, err = plan.ChangeOf(f, s.Tables, p.Plan)
	return p, err
}

func (a *applier) findCanary(groups []policy.ResolvedGroup) error {
	if a.options.Canary == "" {
		return nil
	}
	a.canary = map[ib.PortGUID]bool{}
	for _, g := range groups {
		if g.Name != a.options.Canary {
			continue
		}
		for _, port := range g.Ports {
			a.canary[port] = true
		}
		return nil
	}
	var all []string
	for _, g := range groups {
		all = append(all, g.Name)
	}
	return fmt.Errorf("--canary %q: %w in the policy%s", a.options.Canary, ErrGroup, names.DidYouMean(a.options.Canary, all))
}

// nothing ends a change that has nothing to write.
func (a *applier) nothing(entry *Entry) (*Applied, error) {
	a.out.Nothing = true
	a.prove(a.full)
	if a.options.Direction != Forward && !entry.Finished() {
		if err := a.finish(); err != nil {
			return &a.out, err
		}
	}
	return a.end(nil)
}

func (a *applier) approved(p *Proposal) error {
	looked, err := a.options.Approve(p)
	if err != nil {
		return err
	}
	if looked {
		if err := a.engine.Reread(p.Plan); err != nil {
			return err
		}
		if err := a.drive(); err != nil {
			return err
		}
		if changed := a.engine.Carried().Changed; len(changed) > 0 {
			return fmt.Errorf("%w: %w", ErrChanged, changed[0])
		}
		if !a.engine.Held() {
			return ErrStandby
		}
	}
	if a.options.Before != nil && a.options.Direction == Forward {
		return a.options.Before(p.Desired.Assigned)
	}
	return nil
}

// carry goes step by step: the canary, batches, and at last everything.
func (a *applier) carry() (*Applied, error) {
	f := a.engine.Fabric()
	done := map[*observed.Node]bool{}
	for _, batch := range a.batches() {
		for _, n := range batch.nodes {
			done[n] = true
		}
		want, waiting := plan.NextStep(f, a.full, done)
		step := Step{Name: batch.name, Hosts: len(batch.nodes), Waiting: waiting}
		if err := a.step(step, want); err != nil {
			return a.end(err)
		}
	}
	if err := a.step(Step{Name: "all", Hosts: len(plan.ChangedNodes(f, a.full))}, a.full); err != nil {
		return a.end(err)
	}
	if err := a.finish(); err != nil {
		return &a.out, err
	}
	return a.end(nil)
}

type batch struct {
	name  string
	nodes []*observed.Node
}

// batches are the steps before the last.
func (a *applier) batches() (out []batch) {
	if a.options.Batch <= 0 && a.canary == nil {
		return nil
	}
	nodes := plan.ChangedNodes(a.engine.Fabric(), a.full)
	isCanary := func(n *observed.Node) bool {
		return slices.ContainsFunc(n.Ports, func(p observed.Port) bool { return p.Reached && p.IsEnd() && a.canary[p.GUID] })
	}
	var first []*observed.Node
	for _, n := range nodes {
		if isCanary(n) {
			first = append(first, n)
		}
	}
	if len(first) > 0 {
		out = append(out, batch{"canary " + a.options.Canary, first})
		nodes = slices.DeleteFunc(nodes, isCanary)
	}
	if a.options.Batch <= 0 {
		return out
	}
	n := 0
	for part := range slices.Chunk(nodes, a.options.Batch) {
		n++
		out = append(out, batch{fmt.Sprintf("batch %d", n), part})
	}
	return out
}

// step carries out one part, and proves that the devices hold it.
func (a *applier) step(s Step, want *observed.Desired) error {
	if err := a.engine.Carry(want); err != nil {
		return err
	}
	if err := a.drive(); err != nil {
		return a.cutShort(s, err)
	}
	c := a.engine.Carried()
	s.Writes = c.Writes
	a.out.Writes += c.Writes
	a.out.Failures = append(a.out.Failures, c.Failures...)
	a.prove(want)
	s.Verdict = a.out.Proof.Verdict
	a.out.Steps = append(a.out.Steps, s)
	switch {
	case len(c.Failures) > 0:
		return fmt.Errorf("%w in step %q: %w", ErrStopped, s.Name, c.Failures[0])
	case c.Deposed:
		return fmt.Errorf("%w in step %q: another manager became master", ErrStopped, s.Name)
	case !s.Verdict.Holds():
		return fmt.Errorf("%w after step %q: %s", ErrStopped, s.Name, s.Verdict)
	}
	if err := a.options.Journal.Note(Note{NoteStep, s.Name}); err != nil {
		return err
	}
	if a.options.Step != nil {
		a.options.Step(s)
	}
	return nil
}

// prove holds what was read back against the policy, if this is the whole of
// it, and else against what the step wanted.
func (a *applier) prove(want *observed.Desired) {
	f := a.engine.Fabric()
	allowed := a.allowed
	if want != a.full || allowed == nil {
		allowed = wantedPartitions(f, want)
	}
	a.out.Fabric, a.out.Proof = f, isolation.Prove(f, allowed, a.raw)
	a.out.Proof.Rest(isolation.Changeable(f, a.engine.Cables().Declares()))
	a.out.Proof.Heed(isolation.Unnamed(f, a.engine.NamesManager))
}

// wantedPartitions are the partitions that tables make when they hold what is
// wanted, and elsewhere what was read.
func wantedPartitions(f *observed.Fabric, want *observed.Desired) []observed.Partition {
	by := map[ib.PKeyBase]*observed.Partition{}
	for _, p := range f.EndPorts() {
		table := want.Port(p).PKeys
		if table == nil {
			table = p.PKeys
		}
		for _, k := range table {
			if !k.IsValid() {
				continue
			}
			x := by[k.Base()]
			if x == nil {
				x = &observed.Partition{Name: k.Base().String(), Base: k.Base()}
				by[k.Base()] = x
			}
			if k.IsFull() {
				x.Full = append(x.Full, p.GUID)
			} else {
				x.Limited = append(x.Limited, p.GUID)
			}
		}
	}
	out := make([]observed.Partition, 0, len(by))
	for _, x := range by {
		out = append(out, *x)
	}
	slices.SortFunc(out, func(a, b observed.Partition) int { return int(a.Base) - int(b.Base) })
	return out
}

// finish records the end of the change.
func (a *applier) finish() error {
	state := NoteDone
	if a.side == plan.OldSide {
		state = NoteRolledBack
	}
	return a.options.Journal.Note(Note{state, a.out.Proof.Verdict.String()})
}

// end says where the fabric stands, and notes why it went no further.
func (a *applier) end(err error) (*Applied, error) {
	if a.change != nil {
		a.out.Standing = a.change.Compare(a.engine.Fabric())
	}
	if errors.Is(err, ErrStopped) {
		if e := a.options.Journal.Note(Note{NoteStopped, err.Error()}); e != nil {
			err = fmt.Errorf("%w; %w", err, e)
		}
	}
	return &a.out, err
}

// Quarantine is how long a new manager waits before it reads or writes a fabric, since
// packets of a killed manager may still be in flight: the longest packet lifetime.
func Quarantine() time.Duration { return transact.DefaultLimits().Lifetime }

// Fresh reports whether a --fabric flag names a fabric that nobody can have
// managed before: one that is made for this command.
func Fresh(spec string) bool {
	kind, _, _ := strings.Cut(spec, ":")
	return kind == "sim"
}

// HeldConfig makes a manager's configuration one for Apply. To continue a change that
// writes the tables of virtual lanes it has to read them, and after a manager that the
// journal says was killed it waits for the Quarantine at least.
func HeldConfig(c engine.Config, j Journal) (engine.Config, error) {
	c.Hold = true
	e, err := j.Load()
	if err == nil && e != nil {
		c.ReadLanes, c.ReadAliases = e.Change.HasLanes(), e.Change.HasAliases()
		if !e.Finished() {
			c.Pause = max(c.Pause, Quarantine())
		}
	}
	return c, err
}
