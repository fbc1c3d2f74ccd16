package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/form"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/store"
)

// Approval is a change that takes something away and waits for a second person.
type Approval struct {
	ID      string    `json:"id"`
	Tenant  string    `json:"tenant"`
	By      string    `json:"by" doc:"who asked for it: somebody else has to approve it"`
	At      time.Time `json:"at"`
	Expires time.Time `json:"expires"`
	Why     string    `json:"why,omitempty"`
	Action  string    `json:"action"`
	Words   []string  `json:"words" doc:"what it would do, in sentences"`
}

func approvalOf(a *resource.Approval) Approval {
	return Approval{a.ID, a.Tenant, a.By, a.At, a.Expires, a.Why, a.Action, append([]string{}, a.Words...)}
}

func (a *api) approvals() {
	type listInput struct{ PageParams }
	register(a, operation(http.MethodGet, "/approvals", "list-approvals", "Changes of the caller's tenant that wait for a second person; all for the provider"),
		func(ctx context.Context, in *listInput) (*Output[List[Approval]], error) {
			caller := callerOf(ctx)
			return readList(a, in.PageParams, func(s *resource.State) []*resource.Approval { return sortedBy(s.Approvals(), approvalID) }, approvalID,
				func(_ *resource.State, x *resource.Approval) bool { return resource.SeesObject(caller, x) },
				func(_ *resource.State, x *resource.Approval) Approval { return approvalOf(x) })
		})
	type one struct {
		WriteParams
		ID string `path:"id" maxLength:"64"`
	}
	end := func(c func(id string) resource.Change) func(context.Context, *one) (*ChangedOutput, error) {
		return func(ctx context.Context, in *one) (*ChangedOutput, error) {
			ctx = ending(ctx)
			r, err := a.do(ctx, &in.WriteParams, c(in.ID), a.matches(ctx, &in.WriteParams, (&resource.Approval{ID: in.ID}).Key()))
			if err != nil {
				return nil, err
			}
			return changed(ctx, r, &in.WriteParams), nil
		}
	}
	register(a, operation(http.MethodPost, "/approvals/{id}/approve", "approve", "Carry out a change that waits; not for who asked for it"),
		end(func(id string) resource.Change { return resource.Approve{ID: id} }))
	register(a, operation(http.MethodPost, "/approvals/{id}/reject", "reject", "End a change that waits"),
		end(func(id string) resource.Change { return resource.Reject{ID: id} }))
}

func approvalID(a *resource.Approval) string { return a.ID }

// Pool is a range of GUIDs that the provider gave to a tenant.
type Pool struct {
	First    string `json:"first"`
	Last     string `json:"last"`
	Owner    string `json:"owner" doc:"empty for one between two owners"`
	Released uint64 `json:"released,omitempty" doc:"the revision that took it from its last owner"`
}

// PoolBody gives a range of GUIDs to a tenant.
type PoolBody struct {
	Tenant string `json:"tenant" minLength:"1" maxLength:"40"`
	First  GUID   `json:"first"`
	Last   GUID   `json:"last"`
}

func (a *api) pools() {
	type listInput struct{ PageParams }
	key := func(p *resource.Pool) string { return p.First.String() }
	register(a, operation(http.MethodGet, "/pools", "list-pools", "Ranges of GUIDs that were given to tenants, for virtual functions: the caller's; all for the provider"),
		func(ctx context.Context, in *listInput) (*Output[List[Pool]], error) {
			caller := callerOf(ctx)
			return readList(a, in.PageParams, func(s *resource.State) []*resource.Pool { return sortedBy(s.Pools(""), key) }, key,
				func(_ *resource.State, p *resource.Pool) bool { return resource.SeesObject(caller, p) },
				func(_ *resource.State, p *resource.Pool) Pool {
					return Pool{p.First.String(), p.Last.String(), p.Owner, p.Released}
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
			list, err := form.Ports([]GUID{in.Body.First, in.Body.Last})
			if err != nil {
				return nil, err
			}
			r, err := a.do(ctx, &in.WriteParams, resource.AssignPool{Tenant: in.Body.Tenant, First: list[0], Last: list[1]}, a.matches(ctx, &in.WriteParams, (&resource.Pool{First: list[0]}).Key()))
			if err != nil {
				return nil, err
			}
			return changed(ctx, r, &in.WriteParams), nil
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
			return changed(ctx, r, &in.WriteParams), nil
		})
}

// RollbackBody says to which revision.
type RollbackBody struct {
	To     uint64 `json:"to" minimum:"0" maximum:"9007199254740991" doc:"the revision"`
	Tenant string `json:"tenant,omitempty" maxLength:"40" doc:"this tenant's part alone; a tenant's caller gets his own in any case"`
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

// rollBack tries a rollback once; stale tells that another writer came between.
func (a *api) rollBack(ctx context.Context, b RollbackBody, w *WriteParams) (out *ChangedOutput, stale bool, err error) {
	var last uint64
	a.service.Read(func(s *resource.State) { last = s.Last() })
	seen, err := w.condition()
	again := w.Repeat != "" && a.service.Repeats(callerOf(ctx), w.Repeat) // it is answered without a plan
	if err == nil && !again {
		err = seen.Holds(true, last) // of all that there is, the last revision is the ETag
	}
	if err != nil {
		return nil, false, err
	}
	var later []resource.Diff
	if b.To < last && !again {
		if last-b.To > rollbackMost {
			return nil, false, fault(http.StatusUnprocessableEntity, "invalid", "body.to", fmt.Sprintf("%d revisions are after it: want %d at most", last-b.To, rollbackMost))
		}
		// What others changed counts too: the rules decide what the caller may bring back.
		all := resource.Caller{Name: "the service", Tenant: resource.Provider}
		records, err := a.service.History(ctx, all, store.Range{From: last, Newest: true, Limit: int(last - b.To)})
		if err != nil {
			return nil, false, err
		}
		if n := len(records); n > 0 && records[n-1].Number != b.To+1 {
			return nil, false, problem(http.StatusGone, reasonTrimmed, "revision "+strconv.FormatUint(b.To+1, 10)+" is not kept any more")
		}
		for i := range records {
			d := resource.Diff{}
			for _, e := range records[i].Edits {
				edit := resource.Edit{Key: e.Key}
				if len(e.Before) > 0 {
					if edit.Before, err = resource.Decode(e.Key, e.Before); err != nil {
						return nil, false, err
					}
				}
				if len(e.After) > 0 {
					if edit.After, err = resource.Decode(e.Key, e.After); err != nil {
						return nil, false, err
					}
				}
				d.Edits = append(d.Edits, edit)
			}
			later = append(later, d)
		}
	}
	r, err := a.once(ctx, w, resource.NewRollback(b.To, b.Tenant, later), last, func(s *resource.State) (uint64, error) {
		return last, seen.Holds(true, s.Last())
	})
	if err != nil {
		p, is := a.failed(ctx, err).(*Problem)
		return nil, is && p.Status == http.StatusPreconditionFailed, err
	}
	return changed(ctx, r, w), false, nil
}
