package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ibwarden/ibwarden/internal/resource"
)

const (
	watchPartitions = "/watch/partitions"
	// watchApart is the least time between two looks of a watch.
	watchApart = 100 * time.Millisecond
)

// watchInput is what a watch is asked.
type watchInput struct {
	After    uint64 `query:"after" doc:"the revision of the list, or of the last bookmark, that the reader has seen; 0 for none"`
	Last     string `header:"Last-Event-ID" maxLength:"20" doc:"the same: the id of the last bookmark"`
	Once     bool   `query:"once" doc:"one look only: the stream ends with its bookmark"`
	Selector string `query:"selector" maxLength:"1024" doc:"only those whose labels are so; one that is chosen no longer is gone"`
}

// watches are the operations that follow a collection: each look takes what the list has.
func (a *api) watches() {
	watch(a, watchPartitions, "watch-partitions", Partitions)
	watch(a, "/watch/tenants", "watch-tenants", Tenants)
}

// watch adds the watch of a collection.
func watch[V any](a *api, path, id string, look Look[V]) {
	op := streams(operation(http.MethodGet, path, id, "Follow what the caller sees of a collection from a revision on (server-sent events)"), "text/event-stream",
		"events; the data of each is in JSON, and the id of a bookmark is the revision to go on after")
	a.huma.OpenAPI().Components.Schemas.Schema(typeOf[Event[V]](), true, "")
	register(a, op, func(ctx context.Context, in *watchInput) (*huma.StreamResponse, error) {
		chosen, err := Selector(in.Selector)
		if err != nil {
			return nil, err
		}
		if in.Last != "" {
			if in.After, err = strconv.ParseUint(in.Last, 10, 64); err != nil {
				return nil, fault(http.StatusUnprocessableEntity, "invalid", "header.Last-Event-ID", "want the id of a bookmark")
			}
		}
		return a.streaming(func(w http.ResponseWriter) {
			a.send(ctx, w, ": watch", func(ctx context.Context, say func(string) bool) {
				for reader := After(in.After); ctx.Err() == nil; {
					stirred := a.service.Stirred()
					var texts []string
					resolved := a.resolved(ctx)
					a.service.Read(func(s *resource.State) { texts = Texts(reader, s, callerOf(ctx), chosen, resolved, look) })
					for _, text := range texts {
						if !say(text) {
							return
						}
					}
					if in.Once {
						return
					}
					select {
					case <-ctx.Done():
					case <-stirred:
						time.Sleep(watchApart)
					case <-time.After(limitsOf(ctx).alive): // the state may be another without an event
					}
				}
			})
		})
	})
}
