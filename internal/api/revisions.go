package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

func (a *api) revisions() {
	type listInput struct {
		PageParams
		Oldest bool `query:"oldest_first" doc:"the oldest first; else the newest"`
	}
	register(a, operation(http.MethodGet, "/revisions", "list-revisions", "Accepted changes that the caller sees, the newest first"),
		func(ctx context.Context, in *listInput) (*Output[List[views.Revision]], error) {
			return a.changes(ctx, in.PageParams, in.Oldest)
		})
	type one struct {
		Number uint64 `path:"revision" minimum:"1" maximum:"9007199254740991"`
	}
	op := operation(http.MethodGet, "/revisions/{revision}", "get-revision", "One change, with its objects before and after and its outcome", http.StatusGone)
	register(a, op, func(ctx context.Context, in *one) (*Output[Single[views.Revision]], error) {
		caller := callerOf(ctx)
		r, err := a.service.Revision(ctx, caller, in.Number)
		if err != nil {
			return nil, err
		}
		out := &Output[Single[views.Revision]]{}
		outcome := a.service.Outcome(r.Number)
		old := a.service.Read(func(s *resource.State) {
			out.Body.Item, out.Body.Revision = views.RevisionOf(s, r, outcome, caller, true), s.LastFor(caller)
		})
		out.Aged(caller, &out.Body.Reading, old)
		return out, nil
	})
}

func (a *api) changes(ctx context.Context, p PageParams, oldest bool) (*Output[List[views.Revision]], error) {
	r, done, err := p.Numbered(oldest, p.Most()+1)
	if err != nil {
		return nil, err
	}
	out := &Output[List[views.Revision]]{}
	out.Body.Items = []views.Revision{}
	caller := callerOf(ctx)
	old := a.service.Read(func(s *resource.State) { out.Body.Revision = s.LastFor(caller) })
	out.Aged(caller, &out.Body.Reading, old)
	if done || r.From > out.Body.Revision || out.Body.Revision == 0 {
		return out, nil
	}
	records, err := a.service.History(ctx, caller, r)
	if err != nil {
		return nil, err
	}
	outcomes := make([]*service.Outcome, len(records))
	for i := range records {
		outcomes[i] = a.service.Outcome(records[i].Number)
	}
	a.service.Read(func(s *resource.State) {
		for i := range records {
			if n := len(out.Body.Items); n == p.Most() {
				out.Body.Next = Cursor(strconv.FormatUint(out.Body.Items[n-1].Number, 10))
				break
			}
			out.Body.Items = append(out.Body.Items, views.RevisionOf(s, &records[i], outcomes[i], caller, false))
		}
	})
	return out, nil
}
