package views

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
)

// idle is a manager that carries nothing out.
type idle struct{ service.SubnetManager }

func (idle) SetPolicy(uint64, *policy.Policy) {}

// TestVerify: an object that was changed, deleted or added behind the service's back is named with the
// revision that wrote it, and the log holds still; what was not compared is said.
func TestVerify(t *testing.T) {
	db, err := bolt.Open(t.TempDir() + "/store")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := service.Open(t.Context(), service.Config{Store: db, Manager: idle{}, Owner: "test", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []resource.Change{
		resource.PutTenant{Tenant: resource.Tenant{Name: "red"}}, resource.PutTenant{Tenant: resource.Tenant{Name: "blue"}},
		resource.PutTenant{Tenant: resource.Tenant{Name: "zinc"}}, resource.DeleteTenant{Name: "zinc"},
	} {
		if _, err := s.Do(t.Context(), service.Request{Change: c, By: resource.Caller{Name: "uid 0", Tenant: resource.Provider}, Seen: resource.Unseen}); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	v, err := Verify(t.Context(), db, nil)
	if err != nil || !v.Holds || v.Objects != 2 || v.Differ != 0 || v.Reason != "" || v.Head == "" || v.Entries != 4 || len(v.NotCompared) != 1 || !strings.HasPrefix(v.NotCompared[0], "4 that the history does not have") {
		t.Errorf("untouched: %+v: %v", v, err)
	}
	now, err := db.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	change := store.Commit{Epoch: now.Epoch, After: now.Revision, Deletes: []string{"tenant/blue"}}
	for _, key := range []string{"tenant/red", "tenant/zinc", "tenant/new"} {
		change.Puts = append(change.Puts, store.Object{Key: key, Value: []byte(`{"revision":1,"object":{}}`)})
	}
	if _, err := db.Commit(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	v, err = Verify(t.Context(), db, nil)
	if err != nil || v.Holds || v.Objects != 0 || v.Differ != 4 || v.Reason != "objects that are not what the revisions wrote: 4" || v.Head != now.Audit.String() || v.Sequence != 4 {
		t.Errorf("changed: %+v: %v", v, err)
	}
	var words []string
	for _, d := range v.Differences {
		words = append(words, d.String())
	}
	if d := cmp.Diff([]string{
		"tenant/blue was deleted: revision 2 wrote it last",
		"tenant/new was added: no revision wrote it",
		"tenant/red was changed: it is not what revision 1 wrote",
		"tenant/zinc was added: revision 4 deleted it",
	}, words); d != "" {
		t.Errorf("(-want +said)\n%s", d)
	}
	// A head that the chain does not pass through: nothing is compared, and that is said.
	wrong := now.Audit
	wrong.Hash[0] ^= 1
	v, err = Verify(t.Context(), db, []store.Head{wrong})
	if err != nil || v.Holds || v.Sequence != 4 || v.Head != "" || v.Objects+v.Differ != 0 || len(v.NotCompared) != 1 || !strings.HasPrefix(v.NotCompared[0], "all objects") {
		t.Errorf("another head: %+v: %v", v, err)
	}
}
