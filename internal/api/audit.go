package api

import (
	"bufio"
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

func (a *api) audit() {
	type listInput struct {
		PageParams
		Oldest   bool   `query:"oldest_first" doc:"the oldest first; else the newest"`
		Decision string `query:"decision" enum:"accepted,refused" doc:"those with this decision"`
	}
	register(a, operation(http.MethodGet, "/audit-log", "list-audit-log", "Decisions on the changes of the caller's tenant, refusals included; all for the provider", http.StatusGone),
		func(ctx context.Context, in *listInput) (*Output[List[views.Entry]], error) {
			return a.decisions(ctx, in.PageParams, in.Oldest, in.Decision)
		})
	register(a, streams(operation(http.MethodGet, "/audit-log/export", "export-audit-log", "The whole audit log as JSON lines, with its hashes; for the provider"), "application/jsonl", "one entry a line"),
		func(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			return &huma.StreamResponse{Body: func(c huma.Context) {
				c.SetHeader("Content-Type", "application/jsonl")
				if _, err := store.Export(c.BodyWriter(), a.options.Store.Audit(ctx, store.Range{})); err != nil {
					a.cut(ctx, err)
				}
			}}, nil
		})
}

func (a *api) verifies() {
	type input struct {
		Head []string `query:"head" maxItems:"50" doc:"heads that were written down, SEQUENCE:HASH: the chain has to pass through them"`
	}
	register(a, operation(http.MethodGet, "/audit-log/verify", "verify-audit-log", "Check the hash chain of the audit log, and compare the objects with the revisions; for the provider"),
		func(ctx context.Context, in *input) (*Output[Single[views.Verified]], error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			var heads []store.Head
			for _, text := range in.Head {
				h, err := store.ParseHead(text)
				if err != nil {
					return nil, fault(http.StatusUnprocessableEntity, "invalid", "query.head", err.Error())
				}
				heads = append(heads, h)
			}
			v, err := views.Verify(ctx, a.options.Store, heads)
			if err != nil {
				return nil, err
			}
			return readOne(ctx, a, "", func(s *resource.State) (views.Verified, uint64, error) { return v, s.Last(), nil })
		})
}

// streams describes an answer that is no JSON.
func streams(op huma.Operation, contentType, what string) huma.Operation {
	op.Responses = map[string]*huma.Response{"200": {
		Description: what,
		Content:     map[string]*huma.MediaType{contentType: {Schema: &huma.Schema{Type: "string"}}},
	}}
	return op
}

// cut ends an answer that has begun and cannot be ended well, so that the client takes
// it for what it is: not whole.
func (a *api) cut(ctx context.Context, err error) {
	a.log.ErrorContext(ctx, "an answer was cut off", "request", requestOf(ctx).id, "error", err)
	panic(http.ErrAbortHandler)
}

func (a *api) decisions(ctx context.Context, p PageParams, oldest bool, decision string) (*Output[List[views.Entry]], error) {
	caller := callerOf(ctx)
	next := Cursor
	if !caller.IsProvider() {
		var err error
		if p.Cursor, err = a.sealed.Open(p.Cursor, caller.Tenant); err != nil {
			return nil, err
		}
		next = func(key string) string { return a.sealed.Seal(Cursor(key), caller.Tenant) }
	}
	r, done, err := p.Numbered(oldest, 0)
	if err != nil {
		return nil, err
	}
	out := &Output[List[views.Entry]]{}
	out.Body.Items = []views.Entry{}
	old := a.service.Read(func(s *resource.State) { out.Body.Revision = s.LastFor(caller) })
	out.Aged(caller, &out.Body.Reading, old)
	if done {
		return out, nil
	}
	var found []store.Entry
	for e, err := range a.options.Store.Audit(ctx, r) {
		if err != nil {
			return nil, err
		}
		if !caller.IsProvider() && e.Tenant != caller.Tenant || decision != "" && string(e.Decision) != decision {
			continue
		}
		if len(found) == p.Most() {
			out.Body.Next = next(fmt.Sprintf("%020d", found[len(found)-1].Sequence)) // of one length, as that is seen
			break
		}
		found = append(found, e)
	}
	a.service.Read(func(s *resource.State) {
		for _, e := range found {
			out.Body.Items = append(out.Body.Items, views.EntryOf(s, e, caller))
		}
	})
	return out, nil
}

// lifetime is backups, and what a store that was restored from one needs.
func (a *api) lifetime() {
	register(a, operation(http.MethodPost, "/store/accept-restored", "accept-restored-store", "Accept the store as it is, though it was rolled back and revisions are missing in it that a manager has seen; the provider may, of the manager that writes the store"),
		func(ctx context.Context, in *views.Reason) (*ChangedOutput, error) {
			r, err := a.service.AcceptRestored(ctx, service.Request{By: callerOf(ctx), Why: in.Why, ID: requestOf(ctx).id})
			if err != nil {
				return nil, err
			}
			return a.changed(ctx, r, &WriteParams{}), nil
		})
	a.verifies()
	register(a, streams(operation(http.MethodGet, "/backup", "get-backup", "The whole store as one file, with secrets (sums of tokens); for the provider"), "application/octet-stream", "a backup, for ibwarden store restore"),
		func(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
			if err := provider(ctx); err != nil {
				return nil, err
			}
			return &huma.StreamResponse{Body: func(c huma.Context) {
				c.SetHeader("Content-Type", "application/octet-stream")
				w := bufio.NewWriter(c.BodyWriter())
				_, err := store.Backup(ctx, a.options.Store, w)
				if err == nil {
					err = w.Flush()
				}
				if err != nil {
					a.cut(ctx, err)
				}
			}}, nil
		})
}
