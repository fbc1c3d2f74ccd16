package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// Revision is an accepted change.
type Revision struct {
	Number  uint64    `json:"revision"`
	At      time.Time `json:"at"`
	By      string    `json:"by,omitempty" doc:"who made it: the ID of a token, or a user of this machine; only the caller's tenant and the provider are told"`
	Tenant  string    `json:"tenant,omitempty" doc:"for which tenant"`
	Action  string    `json:"action"`
	Why     string    `json:"why,omitempty"`
	Words   []string  `json:"words" doc:"what it changed, in sentences"`
	Edits   []Edit    `json:"edits,omitempty" doc:"the objects before and after; not in lists"`
	Outcome *Outcome  `json:"outcome,omitempty" doc:"what became of it on the fabric"`
}

// Edit is one object before and after a change.
type Edit struct {
	Key    string `json:"key"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
}

// Outcome is what became of a revision on the fabric.
type Outcome struct {
	State    string    `json:"state" enum:"pending,proved,failed,refused" doc:"failed: written, and not proved; refused: the fabric cannot take it, and nothing was written"`
	Verdict  string    `json:"verdict,omitempty"`
	At       time.Time `json:"at"`
	Seconds  float64   `json:"seconds,omitempty" doc:"from the change to the verdict"`
	Writes   int       `json:"writes" doc:"blocks of tables that were written"`
	Failures int       `json:"failures,omitempty"`
	Reasons  []string  `json:"reasons,omitempty" doc:"for the provider"`
}

func outcomeOf(o *service.Outcome, c resource.Caller) *Outcome {
	if o == nil {
		return nil
	}
	out := &Outcome{State: string(o.State), At: o.At, Seconds: o.Seconds, Writes: o.Writes, Failures: o.Failures}
	if o.State != service.Pending {
		out.Verdict = o.Verdict.String()
	}
	if c.IsProvider() {
		out.Reasons = o.Reasons
	}
	return out
}

// revisionOf is a revision as a caller sees it. A tenant is told of his own part of a
// change that others have a part in, and not who of them made it.
func (a *api) revisionOf(r *service.Record, c resource.Caller, edits bool) Revision {
	out := Revision{Number: r.Number, At: r.At, By: r.By, Tenant: r.Tenant, Action: r.Action, Why: r.Why, Words: r.Words, Outcome: outcomeOf(r.Outcome, c)}
	if now := a.service.Outcome(r.Number); now != nil {
		out.Outcome = outcomeOf(now, c)
	}
	foreign := !c.IsProvider() && c.Tenant != r.Tenant
	if foreign {
		out.By, out.Why = "", ""
		if r.Tenant != resource.Provider {
			out.Tenant = ""
		}
	}
	if foreign || !c.IsProvider() && slices.ContainsFunc(r.Concerns, func(t string) bool { return t != c.Tenant }) {
		out.Words = nil
	}
	for _, e := range r.Edits {
		if !concerns(e, c) {
			continue
		}
		if out.Words == nil || foreign {
			out.Words = append(out.Words, inWords(e))
		}
		if edits {
			out.Edits = append(out.Edits, shown(e))
		}
	}
	if out.Words == nil {
		out.Words = []string{}
	}
	return out
}

// concerns reports whether a caller may see an edit.
func concerns(e service.Edit, c resource.Caller) (yes bool) {
	if c.IsProvider() {
		return true
	}
	for _, data := range []json.RawMessage{e.Before, e.After} {
		if len(data) == 0 {
			continue
		}
		o, err := resource.Decode(e.Key, data)
		yes = yes || err == nil && resource.SeesObject(c, o)
	}
	return yes
}

func inWords(e service.Edit) string {
	switch {
	case len(e.Before) == 0:
		return e.Key + " is made"
	case len(e.After) == 0:
		return e.Key + " is removed"
	}
	return e.Key + " is changed"
}

// shown is an edit without the sums of tokens, and without who removed a member.
func shown(e service.Edit) Edit {
	out := Edit{Key: e.Key}
	for _, x := range []struct {
		data json.RawMessage
		to   *any
	}{{e.Before, &out.Before}, {e.After, &out.After}} {
		var fields map[string]any
		if len(x.data) == 0 || json.Unmarshal(x.data, &fields) != nil {
			continue
		}
		delete(fields, "sum")
		if kind, _, _ := cut(e.Key); kind == string(resource.KindRemoved) {
			delete(fields, "by")
		}
		*x.to = fields
	}
	return out
}

func (a *api) revisions() {
	type listInput struct {
		PageParams
		Oldest bool `query:"oldest_first" doc:"the oldest first; else the newest"`
	}
	register(a, operation(http.MethodGet, "/revisions", "list-revisions", "Accepted changes that the caller sees, the newest first"),
		func(ctx context.Context, in *listInput) (*Output[List[Revision]], error) {
			return a.history(ctx, in.PageParams, in.Oldest)
		})
	type one struct {
		Number uint64 `path:"revision" minimum:"1" maximum:"9007199254740991"`
	}
	op := operation(http.MethodGet, "/revisions/{revision}", "get-revision", "One change, with its objects before and after and its outcome", http.StatusGone)
	register(a, op, func(ctx context.Context, in *one) (*Output[Single[Revision]], error) {
		caller := callerOf(ctx)
		r, err := a.service.Revision(ctx, caller, in.Number)
		if err != nil {
			return nil, err
		}
		out := &Output[Single[Revision]]{}
		out.Body.Item = a.revisionOf(r, caller, true)
		old := a.service.Read(func(s *resource.State) { out.Body.Revision = s.Last() })
		out.aged(&out.Body.Reading, old)
		return out, nil
	})
}

func (a *api) history(ctx context.Context, p PageParams, oldest bool) (*Output[List[Revision]], error) {
	r, done, err := p.numbered(oldest, p.limit()+1)
	if err != nil {
		return nil, err
	}
	out := &Output[List[Revision]]{}
	out.Body.Items = []Revision{}
	old := a.service.Read(func(s *resource.State) { out.Body.Revision = s.Last() })
	out.aged(&out.Body.Reading, old)
	if done || r.From > out.Body.Revision || out.Body.Revision == 0 {
		return out, nil
	}
	caller := callerOf(ctx)
	records, err := a.service.History(ctx, caller, r)
	if err != nil {
		return nil, err
	}
	for i := range records {
		if len(out.Body.Items) == p.limit() {
			out.Body.Next = cursor(strconv.FormatUint(records[i-1].Number, 10))
			break
		}
		out.Body.Items = append(out.Body.Items, a.revisionOf(&records[i], caller, false))
	}
	return out, nil
}
