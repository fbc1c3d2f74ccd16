package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/service"
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
		want := 200
		if i == 0 {
			want = 201
		} else {
			s.want(200, c)
		}
		again := s.want(want, c)
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

// reopened is the service after its program was started again, on the same store.
func (s *stand) reopened() {
	s.Helper()
	s.service.Close()
	var err error
	s.service, err = service.Open(s.Context(), service.Config{Store: s.store, Manager: s.manager, Base: &policy.Policy{Default: policy.Limited}, Owner: "test", Now: time.Now})
	if err != nil {
		s.Fatal(err)
	}
	s.manager.tell = s.service
	options := s.api.options
	options.Judge = newSnapshotJudge(s.service, nil)
	s.api = build(s.service, options)
	s.handler = s.api.front()
}

// answerOf is an answer as a client keeps it: the status, the headers that matter, and the
// body without what only the first or only a repeated one has.
func answerOf(t testing.TB, w *httptest.ResponseRecorder) string {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	delete(body, "repeated")
	delete(body, "secret")
	data, _ := json.Marshal(body)
	return fmt.Sprintf("%d Location %q ETag %q %s", w.Code, w.Header().Get("Location"), w.Header().Get("ETag"), data)
}

// TestARepeatedWriteIsAnsweredAsTheFirst: every kind of write, sent again with its
// Idempotency-Key, gets the first answer: status, Location, ETag, number, words, revision and
// outcome. At once, after other changes of the same objects, and after a restart. Of another
// caller, of the same tenant too, the key is nothing; with another body it is an error.
func TestARepeatedWriteIsAnsweredAsTheFirst(t *testing.T) {
	s := newStand(t)
	s.tenants()
	s.tokens["red 2"] = s.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": "red"}})["secret"].(string)
	tag := func(as, path string) string {
		return s.want(200, call{as: as, method: "GET", path: path})["etag"].(string)
	}
	doomed := s.want(201, call{as: "red", method: "POST", path: "/tokens", body: js{}})["token"].(js)["id"].(string)
	steps := []struct {
		call
		match string // path of what If-Match is of
	}{
		{call{as: "red", method: "POST", path: "/partitions", body: js{"name": "one"}}, ""},
		{call{as: "red", method: "PUT", path: "/partitions/0x0105", body: js{"name": "two"}}, ""},
		{call{as: "red", method: "PUT", path: "/partitions/0x0105", body: js{"name": "three"}}, "/partitions/0x0105"},
		{call{as: "red", method: "PUT", path: "/partitions/0x0105", body: js{"name": "three"}}, "/partitions/0x0105"}, // changes nothing
		{call{as: "red", method: "POST", path: "/partitions/0x0105/members", body: joins("full", s.hosts[:3]...)}, ""},
		{call{as: "red", method: "PUT", path: "/partitions/0x0105/members/" + s.hosts[3], body: js{"membership": "limited"}}, ""},
		{call{as: "blue", method: "PUT", path: "/partitions/0x0105/members/" + s.hosts[4], body: js{"membership": "limited"}}, ""}, // he does not see it: refused
		{call{as: "red", method: "PUT", path: "/partitions/0x0105/members/" + s.hosts[4], body: js{"membership": "limited"}}, ""},  // of blue: waits
		{call{as: "blue", method: "PUT", path: "/partitions/0x0105/members/" + s.hosts[4], body: js{"membership": "limited"}}, ""}, // agrees
		{call{as: "red", method: "PUT", path: "/partitions/0x0105/members/" + s.hosts[5], body: js{"membership": "limited"}}, ""},  // waits
		{call{as: "blue", method: "POST", path: "/partitions/0x0105/members/" + s.hosts[5] + "/refuse"}, ""},
		{call{as: "red", method: "PUT", path: "/partitions/0x0105/members", body: joins("full", s.hosts[:2]...)}, "/partitions/0x0105"},
		{call{as: "red", method: "DELETE", path: "/partitions/0x0105/members/" + s.hosts[0]}, ""},
		{call{as: "red", method: "DELETE", path: "/partitions/0x0105/members?port=" + s.hosts[1]}, ""},
		{call{as: "red", method: "POST", path: "/tokens", body: js{"note": "for CI"}}, ""},
		{call{as: "red", method: "DELETE", path: "/tokens/" + doomed}, ""},
		{call{method: "PUT", path: "/tenants/green", body: js{"keys": js{"first": "0x0300", "last": "0x03ff"}}}, ""},
		{call{method: "PUT", path: "/tenants/green", body: js{}}, "/tenants/green"},
		{call{method: "DELETE", path: "/tenants/green"}, ""},
		{call{method: "POST", path: "/ports/assign", body: js{"tenant": "red", "ports": []js{{"guid": s.hosts[9]}}}}, ""},
		{call{method: "POST", path: "/ports/release", body: js{"ports": []string{s.hosts[9]}}}, ""},
		{call{method: "POST", path: "/pools", body: js{"tenant": "red", "first": "0x0000000000f00000", "last": "0x0000000000f0ffff"}}, ""},
		{call{method: "DELETE", path: "/pools/0x0000000000f00000"}, ""},
		{call{method: "PUT", path: "/policy", body: js{"name": "p.yaml", "text": "version: 1\ndefault: limited\n"}}, ""},
		{call{as: "red", method: "DELETE", path: "/partitions/0x0100"}, ""},
		{call{method: "POST", path: "/rollback", body: js{"to": 5}}, ""},
	}
	type kept struct {
		call
		answer string
	}
	var all []kept
	repeat := func(when string, k kept) {
		w := s.do(k.call)
		if got := answerOf(t, w); got != k.answer || !strings.Contains(w.Body.String(), `"repeated":true`) || strings.Contains(w.Body.String(), `"secret"`) {
			t.Errorf("%s %s as %q again, %s:\n%s\nwant\n%s", k.method, k.path, k.as, when, got, k.answer)
		}
	}
	for i, step := range steps {
		c := step.call
		c.header = map[string]string{"Idempotency-Key": fmt.Sprint("key-", i)}
		if step.match != "" {
			c.header["If-Match"] = tag(c.as, step.match)
		}
		w := s.do(c)
		if w.Code >= 300 {
			if c.as != "blue" || i != 6 {
				t.Fatalf("%s %s as %q: %d %s", c.method, c.path, c.as, w.Code, w.Body)
			}
			continue // what was refused is tried again
		}
		k := kept{c, answerOf(t, w)}
		all = append(all, k)
		before := s.want(200, call{method: "GET", path: "/revisions"})["revision"]
		repeat("at once", k)
		other := c
		other.body = js{"name": "other", "note": "other"}
		if w := s.do(other); w.Code != 409 && w.Code != 422 {
			t.Errorf("%s %s with another body: %d %s", c.method, c.path, w.Code, w.Body)
		}
		if after := s.want(200, call{method: "GET", path: "/revisions"})["revision"]; after != before {
			t.Errorf("%s %s again made revision %v", c.method, c.path, after)
		}
	}
	for _, k := range all {
		repeat("after all others", k)
	}
	s.reopened()
	for _, k := range all {
		repeat("after a restart", k)
		for _, as := range []string{"red", "red 2", "blue", "reader", "provider"} {
			if as == k.as {
				continue
			}
			if w := s.do(k.call.by(as)); strings.Contains(w.Body.String(), `"repeated":true`) {
				t.Errorf("%s %s of %q gets %q the answer %s", k.method, k.path, k.as, as, w.Body)
			}
		}
	}
}

// lostStore is a store that can be told to take no revision, or to take it and say nothing.
// What else is noted meanwhile it takes: the loss would show before the revision is tried.
type lostStore struct {
	store.Store
	takesNothing, saysNothing atomic.Bool // set while the service applies in the background
}

func (l *lostStore) Commit(ctx context.Context, c store.Commit) (store.Committed, error) {
	if l.takesNothing.Load() && c.Revision != nil {
		return store.Committed{}, store.ErrUnavailable
	}
	done, err := l.Store.Commit(ctx, c)
	if l.saysNothing.Load() && c.Revision != nil {
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
		s.store.takesNothing.Store(!after)
		s.store.saysNothing.Store(after)
		c := call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "one"}, header: map[string]string{"If-None-Match": "*", "Idempotency-Key": "make"}}
		w := s.do(c)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "nothing is changed") || !strings.Contains(w.Body.String(), "not known") {
			t.Errorf("%d %s: want that it is not known", w.Code, w.Body)
		}
		s.store.takesNothing.Store(false)
		s.store.saysNothing.Store(false)
		again := s.do(c)
		if after && (again.Code != 201 || !strings.Contains(again.Body.String(), `"repeated":true`)) || !after && again.Code != 201 {
			t.Errorf("stored %v: again %d %s", after, again.Code, again.Body)
		}
	}
}
