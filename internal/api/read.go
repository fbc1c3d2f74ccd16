package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// notModified lets an operation answer 304.
func notModified(op huma.Operation) huma.Operation {
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	op.Responses["304"] = &huma.Response{Description: "the caller has it already"}
	return op
}

// readOne reads one object: what it is, and the revision that last changed it, by the number of the
// store; resource.Unseen for what no revision of the store changes, and which has no ETag.
func readOne[V any](ctx context.Context, a *api, ifNone string, find func(*resource.State) (V, uint64, error)) (*Output[Single[V]], error) {
	c, err := listen.ReadCondition("", ifNone)
	if err != nil {
		return nil, err
	}
	out := &Output[Single[V]]{}
	var number uint64
	caller := callerOf(ctx)
	old := a.service.Read(func(s *resource.State) {
		var revision uint64
		out.Body.Item, revision, err = find(s)
		number, out.Body.Revision = s.NumberFor(caller, revision), s.LastFor(caller)
	})
	if err != nil {
		return nil, err
	}
	out.Aged(caller, &out.Body.Reading, old)
	if number == resource.Unseen {
		return out, nil
	}
	out.ETag = listen.ETag(number)
	if c.Has(number) {
		return nil, Unmodified{Header: http.Header{"Etag": {out.ETag}}}
	}
	return out, nil
}

// readList reads a page of a list: all objects, sorted by key, those that pass the
// filter, each as the caller sees it.
func readList[T, V any](ctx context.Context, a *api, p PageParams, all func(*resource.State) []T, key func(T) string,
	keep func(*resource.State, T) bool, view func(*resource.State, T) V) (*Output[List[V]], error) {
	out := &Output[List[V]]{}
	var err error
	old := a.service.Read(func(s *resource.State) {
		var kept []T
		for _, x := range all(s) {
			if keep(s, x) {
				kept = append(kept, x)
			}
		}
		out.Body.Items, out.Body.Next, err = Page(p, kept, key, func(x T) V { return view(s, x) })
		out.Body.Revision = s.LastFor(callerOf(ctx))
	})
	if err != nil {
		return nil, err
	}
	out.Aged(callerOf(ctx), &out.Body.Reading, old)
	return out, nil
}

func cutPrefix(s, prefix string) (string, bool) { return strings.CutPrefix(s, prefix) }

// cut splits the key of an object.
func cut(key string) (kind, id string, found bool) { return strings.Cut(key, "/") }

// sortedBy is a sorted copy of a list.
func sortedBy[T any](list []T, key func(T) string) []T {
	type keyed struct {
		key  string
		item T
	}
	all := make([]keyed, len(list))
	for i, x := range list {
		all[i] = keyed{key(x), x}
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return strings.Compare(a.key, b.key) })
	out := make([]T, len(list))
	for i, x := range all {
		out[i] = x.item
	}
	return out
}
