package views

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
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
	Writes   int       `json:"writes" doc:"blocks of tables that were written, for this and other revisions; for the provider"`
	Failures int       `json:"failures,omitempty" doc:"for the provider"`
	Reasons  []string  `json:"reasons,omitempty" doc:"for the provider"`
}

// OutcomeOf is what became of a revision as a caller sees it; nil for none.
func OutcomeOf(o *service.Outcome, c resource.Caller) *Outcome {
	if o == nil {
		return nil
	}
	out := &Outcome{State: string(o.State), At: o.At, Seconds: o.Seconds}
	if o.State != service.Pending {
		out.Verdict = o.Verdict.String()
	}
	if c.IsProvider() {
		out.Writes, out.Failures, out.Reasons = o.Writes, o.Failures, o.Reasons
	}
	return out
}

// RevisionOf is a revision as a caller sees it, by the number by which he knows it, with its edits or without; now is its
// outcome where that is newer than the record, or nil. A tenant is told of his own part of
// a change that others have a part in, and not who of them made it.
func RevisionOf(s *resource.State, r *service.Record, now *service.Outcome, c resource.Caller, edits bool) Revision {
	out := Revision{Number: s.NumberFor(c, r.Number), At: r.At, By: r.By, Tenant: r.Tenant, Action: r.Action, Why: r.Why, Words: r.Words, Outcome: OutcomeOf(r.Outcome, c)}
	if now != nil {
		out.Outcome = OutcomeOf(now, c)
	}
	foreign := !c.IsProvider() && c.Tenant != r.Tenant
	if foreign {
		out.By, out.Why = "", ""
		if r.Tenant != resource.Provider {
			out.Tenant = ""
		}
		switch out.Action {
		case (resource.DeleteTenant{}).Action(), (resource.DeleteToken{}).Action():
			out.Action = (resource.Reject{}).Action() // it ended an offer: with what, is not for the other tenant
		}
	}
	// The sentences were made for who made the change, and are about all of it.
	apart := foreign || !c.IsProvider() && slices.ContainsFunc(r.Concerns, func(t string) bool { return t != c.Tenant })
	if apart {
		out.Words = []string{}
	}
	for _, e := range r.Edits {
		if !concerns(e, c) {
			continue
		}
		if apart {
			out.Words = append(out.Words, inWords(e))
		}
		if edits {
			out.Edits = append(out.Edits, shown(s, e, c))
		}
	}
	if out.Words == nil {
		out.Words = []string{}
	}
	return out
}

// concerns reports whether a caller may see an edit.
func concerns(e service.Edit, c resource.Caller) bool {
	return c.IsProvider() || sees(e.Key, e.Before, c) || sees(e.Key, e.After, c)
}

// sees reports whether a caller may see an object as it was; not of none.
func sees(key string, data json.RawMessage, c resource.Caller) bool {
	if len(data) == 0 {
		return false
	}
	o, err := resource.Decode(key, data)
	return err == nil && resource.SeesObject(c, o)
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

// revisions are the fields of objects that hold a revision.
var revisions = []string{"released", "seen", "revision"}

// shown is an edit as a caller sees it: without the sums of tokens, and without who removed a
// member. Whose a port is that is asked for, and of which host, is for its owner and the provider.
// Its revisions are those that the caller knows.
func shown(s *resource.State, e service.Edit, c resource.Caller) Edit {
	out := Edit{Key: e.Key}
	for _, x := range []struct {
		data json.RawMessage
		to   *any
	}{{e.Before, &out.Before}, {e.After, &out.After}} {
		var fields map[string]any
		d := json.NewDecoder(bytes.NewReader(x.data))
		d.UseNumber()
		if len(x.data) == 0 || !c.IsProvider() && !sees(e.Key, x.data, c) || d.Decode(&fields) != nil {
			continue
		}
		for _, name := range revisions {
			if n, is := fields[name].(json.Number); is && !c.IsProvider() {
				revision, err := strconv.ParseUint(n.String(), 10, 64)
				if fields[name] = s.NumberFor(c, revision); err != nil {
					delete(fields, name)
				}
			}
		}
		delete(fields, "sum")
		switch kind, _, _ := strings.Cut(e.Key, "/"); resource.Kind(kind) {
		case resource.KindApproval:
			if c.IsProvider() {
				break
			}
			delete(fields, "change") // its words say that, without the numbers of the store
			if from, offer := fields["from"]; offer && from != c.Tenant {
				for _, name := range []string{"by", "maker", "keys", "why"} {
					delete(fields, name)
				}
			}
		case resource.KindRemoved:
			delete(fields, "by")
		case resource.KindToken: // the list of tokens says it, as far as it concerns the caller
			delete(fields, "by")
		case resource.KindMember:
			if !c.IsProvider() && fields["port_owner"] != c.Tenant {
				delete(fields, "port_owner")
				delete(fields, "host")
			}
		}
		*x.to = fields
	}
	return out
}
