package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/store"
)

func (a *api) approvals() {
	type listInput struct{ PageParams }
	register(a, operation(http.MethodGet, "/approvals", "list-approvals", "Changes of the caller's tenant that wait for a second person, and offers of ports by it and to it; all for the provider"),
		func(ctx context.Context, in *listInput) (*Output[List[Approval]], error) {
			caller := callerOf(ctx)
			return readList(ctx, a, in.PageParams, func(s *resource.State) []*resource.Approval { return sortedBy(s.Approvals(), approvalID) }, approvalID,
				func(_ *resource.State, x *resource.Approval) bool { return resource.SeesObject(caller, x) },
				func(_ *resource.State, x *resource.Approval) Approval { return ApprovalOf(x, caller) })
		})
	type one struct {
		WriteParams
		ID string `path:"id" maxLength:"64"`
	}
	type approve struct {
		WriteParams
		ID   string `path:"id" maxLength:"64"`
		Body *ApproveBody
	}
	register(a, operation(http.MethodPost, "/approvals/{id}/approve", "approve", "Carry out a change that waits; not for who asked for it. Ports that were offered go into partitions of the tenant that accepts them"),
		func(ctx context.Context, in *approve) (*ChangedOutput, error) {
			c := resource.Approve{ID: in.ID}
			if in.Body != nil {
				var err error
				if c.Into, err = intoOf(in.Body.Into); err != nil {
					return nil, err
				}
			}
			return a.end(ctx, &in.WriteParams, in.ID, c)
		})
	register(a, operation(http.MethodPost, "/approvals/{id}/reject", "reject", "End a change that waits, or an offer of ports"),
		func(ctx context.Context, in *one) (*ChangedOutput, error) {
			return a.end(ctx, &in.WriteParams, in.ID, resource.Reject{ID: in.ID})
		})
}

// end ends an approval.
func (a *api) end(ctx context.Context, w *WriteParams, id string, c resource.Change) (*ChangedOutput, error) {
	r, err := a.do(ctx, w, c, a.matches(ctx, w, (&resource.Approval{ID: id}).Key()))
	if err != nil {
		return nil, err
	}
	out := a.changed(ctx, r, w)
	if p := out.Body.Plan; p != nil && !callerOf(ctx).IsProvider() && slices.ContainsFunc(r.Edits, isOffer) {
		out.Body.Plan = &Plan{Changes: p.Changes} // the numbers are of the tenant's partitions too that offers the ports
	}
	return out, nil
}

func isOffer(e resource.Edit) bool {
	a, is := e.Before.(*resource.Approval)
	return is && a.From != ""
}

func approvalID(a *resource.Approval) string { return a.ID }

func (a *api) pools() {
	type listInput struct{ PageParams }
	key := func(p *resource.Pool) string { return p.First.String() }
	register(a, operation(http.MethodGet, "/pools", "list-pools", "Ranges of GUIDs that were given to tenants, for virtual functions: the caller's; all for the provider"),
		func(ctx context.Context, in *listInput) (*Output[List[Pool]], error) {
			caller := callerOf(ctx)
			return readList(ctx, a, in.PageParams, func(s *resource.State) []*resource.Pool { return sortedBy(s.Pools(""), key) }, key,
				func(_ *resource.State, p *resource.Pool) bool { return resource.SeesObject(caller, p) },
				func(_ *resource.State, p *resource.Pool) Pool {
					return Pool{First: p.First.String(), Last: p.Last.String(), Owner: p.Owner, Released: p.Released}
				})
		})
	type assign struct {
		WriteParams
		Body PoolBody
	}
	register(a, operation(http.MethodPost, "/pools", "assign-pool", "Give a range of GUIDs to a tenant; the provider may"),
		func(ctx context.Context, in *assign) (*ChangedOutput, error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			list, err := Ports([]GUID{in.Body.First, in.Body.Last})
			if err != nil {
				return nil, err
			}
			r, err := a.do(ctx, &in.WriteParams, resource.AssignPool{Tenant: in.Body.Tenant, First: list[0], Last: list[1]}, a.matches(ctx, &in.WriteParams, (&resource.Pool{First: list[0]}).Key()))
			if err != nil {
				return nil, err
			}
			return a.changed(ctx, r, &in.WriteParams), nil
		})
	type release struct {
		WriteParams
		First GUID `path:"first"`
	}
	register(a, operation(http.MethodDelete, "/pools/{first}", "release-pool", "Take a range of GUIDs from its tenant, and its ports out of all partitions; the provider may"),
		func(ctx context.Context, in *release) (*ChangedOutput, error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			g, err := in.First.Port()
			if err != nil {
				return nil, err
			}
			r, err := a.do(ctx, &in.WriteParams, resource.ReleasePool{First: g}, a.matches(ctx, &in.WriteParams, (&resource.Pool{First: g}).Key()))
			if err != nil {
				return nil, err
			}
			return a.changed(ctx, r, &in.WriteParams), nil
		})
}

// RollbackBody says to which revision.
type RollbackBody struct {
	To     uint64 `json:"to" minimum:"0" maximum:"9007199254740991" doc:"the revision"`
	Tenant string `json:"tenant,omitempty" maxLength:"40" doc:"this tenant's part alone; a tenant's caller gets his own in any case"`
	Owners bool   `json:"owners,omitempty" doc:"give ports back to whom they belonged to, out of the partitions that they are in; for the provider, and for all"`
}

// rollbackMost is how many revisions one rollback goes back.
const rollbackMost = 10_000

// triesMax bounds how often a rollback is planned again because another writer came
// between.
const triesMax = 16

func (a *api) rollback() {
	type input struct {
		WriteParams
		Body RollbackBody
	}
	register(a, operation(http.MethodPost, "/rollback", "roll-back", "Bring partitions, members and the policy file back to how they were at a revision; try it with dry_run first", http.StatusGone),
		func(ctx context.Context, in *input) (*ChangedOutput, error) {
			for try := 0; ; try++ {
				r, stale, err := a.rollBack(ctx, in.Body, &in.WriteParams)
				if stale && try < triesMax {
					continue // another writer came between
				}
				if err != nil {
					return nil, err
				}
				return r, nil
			}
		})
}

// rollBack tries a rollback once; stale says that another writer came between.
func (a *api) rollBack(ctx context.Context, b RollbackBody, w *WriteParams) (out *ChangedOutput, stale bool, err error) {
	caller := callerOf(ctx)
	var last, number, to uint64
	var there bool
	a.service.Read(func(s *resource.State) {
		last, number = s.Last(), s.LastFor(caller)
		to, there = s.RevisionFor(caller, b.To)
	})
	seen, err := w.condition()
	again := w.Repeat != "" && a.service.Repeats(caller, w.Repeat) // it is answered without a plan
	if err == nil && !again {
		err = seen.Holds(true, number) // of all that there is, the last revision is the ETag
	}
	if err == nil && !again && number > b.To && number-b.To > rollbackMost {
		err = fault(http.StatusUnprocessableEntity, "invalid", "body.to", fmt.Sprintf("%d revisions are after it: want %d at most", number-b.To, rollbackMost))
	}
	if err != nil {
		return nil, false, err
	}
	var later []resource.Diff
	if there && !again {
		later, err = a.service.Since(ctx, caller, to, b.To, last)
		if errors.Is(err, store.ErrCompacted) {
			err = problem(http.StatusGone, reasonTrimmed, "revision "+strconv.FormatUint(b.To+1, 10)+" is not kept any more")
		}
		if err != nil {
			return nil, false, err
		}
	} else if to = b.To; !caller.IsProvider() { // the plan refuses it
		to = resource.Unseen
	}
	c := resource.NewRollback(to, b.Tenant, later)
	c.Owners = b.Owners
	r, err := a.once(ctx, w, c, last, func(s *resource.State) (uint64, error) {
		return last, seen.Holds(true, s.LastFor(caller))
	})
	if err != nil {
		p, is := a.failed(ctx, err).(*Problem)
		return nil, is && p.Status == http.StatusPreconditionFailed, err
	}
	return a.changed(ctx, r, w), false, nil
}
