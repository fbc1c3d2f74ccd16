package views

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

// edit is an object before and after a change, as the history keeps it.
func edit(t *testing.T, before, after resource.Object) service.Edit {
	t.Helper()
	var e service.Edit
	for _, x := range []struct {
		o  resource.Object
		to *json.RawMessage
	}{{before, &e.Before}, {after, &e.After}} {
		if x.o != nil {
			data, err := json.Marshal(x.o)
			if err != nil {
				t.Fatal(err)
			}
			e.Key, *x.to = x.o.Key(), data
		}
	}
	return e
}

// shared is a change by red that concerns red and blue: blue's port in a partition of red, by the
// name of its host, a partition of red, and a token and a port of blue.
func shared(t *testing.T, by string) *service.Record {
	member := &resource.Member{PKey: 0x100, Port: 0x22, Membership: policy.Full, Host: "blue-host", ByPartition: true, Owner: "red", PortOwner: "blue"}
	agreed := *member
	agreed.ByPort = true
	return &service.Record{
		Number: 7, By: "tok-1", Tenant: by, Action: "set members", Why: "a secret reason", Words: []string{"port 0x22 of blue joins", "red-net is made"}, Concerns: []string{"blue", "red"},
		Edits: []service.Edit{
			edit(t, member, &agreed),
			edit(t, nil, &resource.Partition{PKey: 0x101, Name: "red-net", Owner: "red"}),
			edit(t, nil, &resource.Token{ID: "tok-blue", Tenant: "blue", Sum: "0123sum"}),
			edit(t, &resource.Port{GUID: 0x22, Owner: "blue"}, &resource.Port{GUID: 0x22, Owner: "red"}),
			edit(t, nil, &resource.Removed{PKey: 0x100, Port: 0x23, Owner: "red", By: "tok-of-blue"}),
		},
	}
}

// A change that concerns two tenants is told to each as far as it is its own; to neither in the
// sentences that were made for who made it. A third sees no edit of it.
func TestAChangeThatConcernsTwoTenants(t *testing.T) {
	for _, x := range []struct {
		tenant, by      string
		words, keys     []string
		never, there    []string // in the edits
		told, toldWhose bool     // who made it, and for which tenant
	}{
		{"red", "red", []string{"member/0x0100/0x0000000000000022 is changed", "partition/0x0101 is made", "port/0x0000000000000022 is changed", "removed/0x0100/0x0000000000000023 is made"},
			[]string{"member", "partition", "port", "removed"}, []string{"blue", "0123sum", "tok-of-blue"}, []string{`"owner":"red"`}, true, true},
		{"blue", "red", []string{"member/0x0100/0x0000000000000022 is changed", "token/tok-blue is made", "port/0x0000000000000022 is changed"},
			[]string{"member", "token", "port"}, []string{"0123sum", "red-net", "tok-of-blue"}, []string{`"port_owner":"blue"`, `"host":"blue-host"`}, false, false},
		{"blue", resource.Provider, []string{"member/0x0100/0x0000000000000022 is changed", "token/tok-blue is made", "port/0x0000000000000022 is changed"},
			[]string{"member", "token", "port"}, []string{"0123sum"}, nil, false, true},
		{"zinc", "red", []string{}, nil, []string{"blue", "red"}, nil, false, false},
		{resource.Provider, "red", []string{"port 0x22 of blue joins", "red-net is made"}, []string{"member", "partition", "token", "port", "removed"},
			[]string{"0123sum", "tok-of-blue"}, []string{`"port_owner":"blue"`, `"host":"blue-host"`}, true, true},
	} {
		name := fmt.Sprintf("%s of a change by %s", x.tenant, x.by)
		r := shared(t, x.by)
		c := resource.Caller{Name: "x", Tenant: x.tenant}
		out := RevisionOf(numbered(), r, nil, c, true)
		if !slices.Equal(out.Words, x.words) {
			t.Errorf("%s: words %q, want %q", name, out.Words, x.words)
		}
		var keys []string
		for _, e := range out.Edits {
			kind, _, _ := strings.Cut(e.Key, "/")
			keys = append(keys, kind)
		}
		data, _ := json.Marshal(out.Edits)
		if !slices.Equal(keys, x.keys) {
			t.Errorf("%s: edits of %q, want %q", name, keys, x.keys)
		}
		for _, secret := range x.never {
			if strings.Contains(string(data), secret) {
				t.Errorf("%s: %q is in %s", name, secret, data)
			}
		}
		for _, want := range x.there {
			if !strings.Contains(string(data), want) {
				t.Errorf("%s: %q is not in %s", name, want, data)
			}
		}
		if (out.By != "") != x.told || (out.Why != "") != x.told || (out.Tenant != "") != x.toldWhose {
			t.Errorf("%s: by %q for %q, as %q", name, out.By, out.Tenant, out.Why)
		}
		if list := RevisionOf(numbered(), r, nil, c, false); list.Edits != nil || !slices.Equal(list.Words, x.words) {
			t.Errorf("%s: in a list %+v", name, list)
		}
	}
	// Of a change that is its own alone, who made it has the sentences, and nobody else.
	own := shared(t, "red")
	own.Concerns, own.Edits = []string{"red"}, own.Edits[1:2]
	if out := RevisionOf(numbered(), own, nil, resource.Caller{Tenant: "red"}, true); !slices.Equal(out.Words, own.Words) || len(out.Edits) != 1 || out.By == "" {
		t.Errorf("%+v", out)
	}
	own.Tenant = resource.Provider
	if out := RevisionOf(numbered(), own, nil, resource.Caller{Tenant: "red"}, true); !slices.Equal(out.Words, []string{"partition/0x0101 is made"}) || out.By != "" || out.Why != "" {
		t.Errorf("%+v", out)
	}
	removed := service.Record{Tenant: "red", Concerns: []string{"red", "blue"}, Edits: []service.Edit{edit(t, &resource.Partition{PKey: 0x101, Owner: "red"}, nil)}}
	if out := RevisionOf(numbered(), &removed, nil, resource.Caller{Tenant: "red"}, true); !slices.Equal(out.Words, []string{"partition/0x0101 is removed"}) {
		t.Errorf("%+v", out)
	}
}

// Why the fabric did not take a change names ports and partitions of whomever: it is for the
// provider.
func TestReasonsOfOutcomesAreForTheProvider(t *testing.T) {
	o := &service.Outcome{State: service.Failed, Verdict: isolation.Violated, Writes: 3, Failures: 1, Reasons: []string{"leaf-1:3 did not answer"}}
	pending := &service.Outcome{State: service.Pending}
	for _, tenant := range []string{"red", resource.Provider} {
		c := resource.Caller{Tenant: tenant}
		if out := OutcomeOf(o, c); (out.Reasons != nil) != c.IsProvider() || out.State != "failed" || out.Verdict != "violated" || (out.Writes == 3 && out.Failures == 1) != c.IsProvider() {
			t.Errorf("%s: %+v", tenant, out)
		}
		if out := OutcomeOf(pending, c); out.Verdict != "" || OutcomeOf(nil, c) != nil {
			t.Errorf("%s: %+v", tenant, out)
		}
		record := &service.Record{Tenant: tenant, Outcome: pending}
		if out := RevisionOf(numbered(), record, o, c, false); out.Outcome.State != "failed" || (out.Outcome.Reasons != nil) != c.IsProvider() {
			t.Errorf("%s: %+v", tenant, out.Outcome)
		}
		if out := RevisionOf(numbered(), record, nil, c, false); out.Outcome.State != "pending" {
			t.Errorf("%s: %+v", tenant, out.Outcome)
		}
	}
}

// numbered is a state in which red knows revision 7 as its second.
func numbered() *resource.State {
	s := resource.New(nil)
	s.Numbers["red"] = []uint64{3, 7}
	return s
}

// TestNumbersInEdits: a tenant is told no revision by the number of the store, wherever in a change it
// is; nor the writes of a pass, which are for others too, and its place in the audit log.
func TestNumbersInEdits(t *testing.T) {
	red, provider := resource.Caller{Tenant: "red"}, resource.Caller{Tenant: resource.Provider}
	text := func(o resource.Object) []byte {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	r := &service.Record{
		Number: 7, Tenant: "red", Concerns: []string{"red"}, Outcome: &service.Outcome{State: service.Proved, Writes: 99, Failures: 98},
		Edits: []service.Edit{
			{Key: "approval/red-a2", After: text(&resource.Approval{ID: "red-a2", Tenant: "red", Change: []byte(`{"to":5}`), Seen: resource.Unseen, Revision: 6})},
			{Key: "port/0x0000000000000005", After: text(&resource.Port{GUID: 5, Owner: "red", Released: 7})},
		},
	}
	out := RevisionOf(numbered(), r, nil, red, true)
	approval, _ := out.Edits[0].After.(map[string]any)
	port, _ := out.Edits[1].After.(map[string]any)
	if out.Number != 2 || approval["revision"] != uint64(1) || approval["change"] != nil || port["released"] != uint64(2) || out.Outcome.Writes != 0 || out.Outcome.Failures != 0 {
		t.Errorf("red is told %+v, %+v", out, out.Outcome)
	}
	out = RevisionOf(numbered(), r, nil, provider, true)
	approval, _ = out.Edits[0].After.(map[string]any)
	if out.Number != 7 || fmt.Sprint(approval["revision"]) != "6" || approval["change"] == nil || out.Outcome.Writes != 99 || out.Outcome.Failures != 98 {
		t.Errorf("the provider is told %+v, %+v", out, out.Outcome)
	}
	e := store.Entry{Sequence: 40, Tenant: "red", Revision: 7}
	if x := EntryOf(numbered(), e, red); x.Sequence != 0 || x.Hash != "" || x.Revision != 2 {
		t.Errorf("red is told %+v", x)
	}
	if x := EntryOf(numbered(), e, provider); x.Sequence != 40 || x.Hash == "" || x.Revision != 7 {
		t.Errorf("the provider is told %+v", x)
	}
}
