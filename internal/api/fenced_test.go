package api

import (
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

// TestAMasterThatWasFenced: its API refuses changes, shows what the other manager wrote,
// marked, and takes changes again when the store was regained. Nothing that either
// acknowledged is lost.
func TestAMasterThatWasFenced(t *testing.T) {
	s := newStandOn(t, true)
	lead := func(x *service.Service, master bool) {
		t.Helper()
		if err := x.Lead(t.Context(), master); err != nil {
			t.Fatal(err)
		}
	}
	put := func(want int, key, repeat string) map[string]any {
		t.Helper()
		return s.want(want, call{
			method: "PUT", path: "/partitions/" + key, body: js{"name": "p" + key},
			header: map[string]string{"If-None-Match": "*", "Idempotency-Key": repeat},
		})
	}
	lead(s.service, true)
	put(201, "0x0005", "first")
	other, err := service.Open(t.Context(), service.Config{
		Store: s.store.Store, Manager: &manager{snap: s.manager.snap}, Base: &policy.Policy{Default: policy.Limited}, Owner: "the other", Now: time.Now, Shared: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	lead(other, true)
	for _, c := range []resource.Change{
		resource.PutPartition{Partition: resource.Partition{PKey: 6, Name: "six"}}, resource.DeletePartition{PKey: 5},
	} {
		by := resource.Caller{Name: "uid 0", Tenant: resource.Provider}
		if _, err := other.Do(t.Context(), service.Request{Change: c, By: by, Seen: resource.Unseen}); err != nil {
			t.Fatal(err)
		}
	}
	refusal := put(503, "0x0007", "second")
	if text := refusal["detail"].(string); !strings.Contains(text, "nothing is changed") || !strings.Contains(text, "the other, with epoch 2, and this is epoch 1") {
		t.Errorf("a refusal that says %q", text)
	}
	for late := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		w := s.do(call{method: "GET", path: "/partitions"})
		if old := w.Header().Get("Ibwarden-Old"); strings.Contains(old, "revision 3") && strings.Contains(w.Body.String(), `"six"`) && !strings.Contains(w.Body.String(), `"p0x0005"`) {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("it does not show what the other one wrote: %v %s", w.Header(), w.Body)
		}
	}
	if err := s.service.Regain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := put(201, "0x0007", "second"); got["revision"].(float64) != 4 {
		t.Errorf("%v: want revision 4", got)
	}
	if w := s.do(call{method: "GET", path: "/partitions"}); w.Header().Get("Ibwarden-Old") != "" {
		t.Errorf("reads are marked: %v", w.Header())
	}
	if list := s.want(200, call{method: "GET", path: "/revisions"})["items"].([]any); len(list) != 4 {
		t.Errorf("%d revisions, want 4", len(list))
	}
	if _, _, err := store.VerifyStore(t.Context(), s.store, nil); err != nil {
		t.Error(err)
	}
}
