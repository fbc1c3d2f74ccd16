package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// describesItself is the description's own entry in it. Anybody may read it.
func describesItself() *huma.PathItem {
	op := streams(huma.Operation{OperationID: "get-description", Summary: "This description"}, "application/openapi+json", "OpenAPI 3.1")
	op.Responses["200"].Content["application/openapi+json"].Schema = &huma.Schema{Type: "object"}
	op.Security = []map[string][]string{{}}
	return &huma.PathItem{Get: &op}
}

// operationsOf are the operations of a path.
func operationsOf(item *huma.PathItem) []*huma.Operation {
	all := []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete}
	return slices.DeleteFunc(all, func(op *huma.Operation) bool { return op == nil })
}

// sharedProblems has every operation refer to one description of problems.
func (a *api) sharedProblems() {
	d := a.huma.OpenAPI()
	d.Components.Responses = map[string]*huma.Response{}
	for _, item := range d.Paths {
		for _, op := range operationsOf(item) {
			for status, r := range op.Responses {
				if status >= "400" && r.Ref == "" {
					shared := *r
					shared.Description = "a problem: its reason says why in a word, its errors name the fields"
					d.Components.Responses["Problem"] = &shared
					op.Responses[status] = &huma.Response{Ref: "#/components/responses/Problem"}
				}
			}
		}
	}
}

// groups are the tags of operations, with the first words of the paths that they are for.
var groups = []struct {
	name, about string
	of          []string
}{
	{"tenants", "tenants, their ports, ranges of partitions, tokens, and what waits for consent", []string{"tenants", "ports", "pools", "tokens", "approvals"}},
	{"partitions", "partitions and their members", []string{"partitions"}},
	{"history", "what was changed, by whom, and back; the audit log, backup and export", []string{"revisions", "rollback", "audit-log", "backup", "export", "store"}},
	{"proof", "who can talk with whom and why, what is wrong, and what an audit finds", []string{"proof", "alarms", "audit", "why", "peers", "matrix", "past"}},
	{"fabric", "devices, cables, routes, counters, and switches out of service", []string{"nodes", "links", "cables", "routes", "multicast-groups", "map", "snapshot", "counters", "drains"}},
	{"service", "the service itself: its state, policy, managers, sweeps, events, logins, and this description", []string{"status", "policy", "managers", "sweeps", "events", "watch", "logins", "session", "openapi.json"}},
}

// grouped gives every operation the tag of its path.
func (a *api) grouped() {
	d := a.huma.OpenAPI()
	tags := map[string][]string{}
	for _, g := range groups {
		d.Tags = append(d.Tags, &huma.Tag{Name: g.name, Description: g.about})
		for _, word := range g.of {
			tags[word] = []string{g.name}
		}
	}
	for path, item := range d.Paths {
		word, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		for _, op := range operationsOf(item) {
			op.Tags = tags[word]
		}
	}
}

// description returns the handler that serves the description, which is made at the first request.
func (a *api) description() http.HandlerFunc {
	made := sync.OnceValues(func() ([]byte, error) { return json.Marshal(a.huma.OpenAPI()) })
	return func(w http.ResponseWriter, _ *http.Request) {
		data, err := made()
		if err != nil {
			refuse(w, problem(http.StatusInternalServerError, reasonInternal, "the description cannot be made"))
			return
		}
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(data) // the client may be gone
	}
}

// Description is the OpenAPI description of the handlers, as JSON.
func Description(version string) ([]byte, error) {
	return json.MarshalIndent(build(nil, Options{Version: version}).huma.OpenAPI(), "", "  ")
}
