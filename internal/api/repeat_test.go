package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/store"
)

// TestARepeatedWriteMeetsItself: a write that comes again with its Idempotency-Key, since
// the answer was lost, is answered as done, though its own precondition does not hold
// any more; without the key it is stale.
func TestARepeatedWriteMeetsItself(t *testing.T) {
	s := newStand(t)
	s.tenants()
	tag := s.want(201, call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "one"}, header: map[string]string{"If-None-Match": "*", "Idempotency-Key": "make"}})["revision"]
	writes := []call{
		{method: "PUT", path: "/partitions/0x0100", body: js{"name": "one"}, header: map[string]string{"If-None-Match": "*", "Idempotency-Key": "make"}},
		{method: "PUT", path: "/partitions/0x0100/members/" + s.hosts[0], body: js{"membership": "full"}, header: map[string]string{"If-Match": fmt.Sprintf(`"%.0f"`, tag), "Idempotency-Key": "join"}},
		{method: "DELETE", path: "/partitions/0x0100/members/" + s.hosts[0], header: map[string]string{"Idempotency-Key": "leave"}},
		{method: "DELETE", path: "/partitions/0x0100", header: map[string]string{"Idempotency-Key": "delete"}},
	}
	for i, c := range writes {
		c.as = "red"
		if i > 0 {
			s.want(200, c)
		}
		again := s.want(200, c)
		if again["repeated"] != true {
			t.Errorf("%s %s again: %v", c.method, c.path, again)
		}
		if i > 1 { // what takes away is done or not there
			continue
		}
		delete(c.header, "Idempotency-Key")
		s.want(412, c)
	}
	// Of somebody else it is no repetition.
	writes[1].as = "blue"
	s.want(404, writes[1])
}

// lostStore is a store that can be told to take no revision, or to take it and say nothing.
// What else is noted meanwhile it takes: the loss would show before the revision is tried.
type lostStore struct {
	store.Store
	takesNothing, saysNothing bool
}

func (l *lostStore) Commit(ctx context.Context, c store.Commit) (store.Committed, error) {
	if l.takesNothing && c.Revision != nil {
		return store.Committed{}, store.ErrUnavailable
	}
	done, err := l.Store.Commit(ctx, c)
	if l.saysNothing && c.Revision != nil {
		return store.Committed{}, store.ErrUnavailable
	}
	return done, err
}

// TestALostStoreIsNoPromise: a caller who is told that the store was lost is not told that
// nothing was changed; the same write again tells.
func TestALostStoreIsNoPromise(t *testing.T) {
	for _, after := range []bool{false, true} {
		s := newStand(t)
		s.tenants()
		s.store.takesNothing, s.store.saysNothing = !after, after
		c := call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "one"}, header: map[string]string{"If-None-Match": "*", "Idempotency-Key": "make"}}
		w := s.do(c)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "nothing is changed") || !strings.Contains(w.Body.String(), "not known") {
			t.Errorf("%d %s: want that it is not known", w.Code, w.Body)
		}
		s.store.takesNothing, s.store.saysNothing = false, false
		again := s.do(c)
		if after && (again.Code != 200 || !strings.Contains(again.Body.String(), `"repeated":true`)) || !after && again.Code != 201 {
			t.Errorf("stored %v: again %d %s", after, again.Code, again.Body)
		}
	}
}
