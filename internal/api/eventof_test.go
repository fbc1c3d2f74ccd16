package api

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// A sentence of a change is for the tenant that made it where nobody else has a part in it, and for
// the provider. Others hear that something of theirs changed.
func TestSentencesOfEventsAreForWhoMadeTheChangeAlone(t *testing.T) {
	const words, others = "port 17 of blue is a member", "revision 3 changed something of yours"
	s := resource.New(nil)
	for _, tenant := range []string{"red", "blue"} {
		s.Numbers[tenant] = []uint64{1, 7, 9} // each knows 9 as its third
	}
	for _, x := range []struct {
		kind     service.EventKind
		by       string
		tenants  []string
		provider string
		red      string
		blue     string
	}{
		{service.EventRevision, "red", []string{"red"}, words, words, others},
		{service.EventRevision, "red", []string{"blue", "red"}, words, others, others},
		{service.EventRevision, "red", []string{"red", "zinc"}, words, others, others},
		{service.EventRevision, "blue", []string{"red"}, words, others, others},
		{service.EventRevision, resource.Provider, []string{"red"}, words, others, others},
		{service.EventRevision, resource.Provider, []string{resource.Provider, "red"}, words, others, others},
		{service.EventOutcome, "", []string{"blue", "red"}, words, words, words},
		{service.EventReset, "", nil, words, words, words},
	} {
		e := service.Event{ID: "r-1", Kind: x.kind, Revision: 9, Text: words, Tenants: x.tenants, By: x.by}
		for tenant, want := range map[string]string{resource.Provider: x.provider, "red": x.red, "blue": x.blue} {
			number := map[bool]uint64{true: 9, false: 3}[tenant == resource.Provider]
			if got := views.EventOf(s, e, resource.Caller{Name: "x", Tenant: tenant}); got.Text != want || got.Revision != number || got.ID != "r-1" || got.Kind != string(x.kind) {
				t.Errorf("%s of %q about %q: %s hears %+v, want %q", x.kind, x.by, x.tenants, tenant, got, want)
			}
		}
	}
}

// What the provider's rollback leaves as it is of others, and why the manager took a change back,
// no tenant hears in its events.
func TestEventsOfAProvidersRollback(t *testing.T) {
	w := newLair(t)
	theirs := w.ports[13] // of smaragd, in a partition of saphir
	w.want(200, call{as: saphir, method: "DELETE", path: "/partitions/0x0200/members/" + theirs.guid})
	w.want(200, call{as: rubin, method: "DELETE", path: "/partitions/0x0100/members/" + w.ports[5].guid})
	out := w.want(200, call{method: "POST", path: "/rollback", body: js{"to": w.want(200, call{method: "GET", path: "/status"})["revision"].(float64) - 2}})
	if words, _ := out["words"].([]any); len(words) < 2 {
		t.Fatalf("the rollback says %v", words)
	}
	for _, tenant := range []string{rubin, saphir} {
		body := w.do(call{as: tenant, method: "GET", path: "/events?kept=true"}).Body.String()
		if strings.Contains(body, "takes the consent of others") || tenant == rubin && strings.Contains(body, theirs.guid) {
			t.Errorf("%s hears of what was not brought back: %s", tenant, body)
		}
		if !strings.Contains(body, "changed something of yours") {
			t.Errorf("%s hears nothing of the rollback: %s", tenant, body)
		}
	}
}
