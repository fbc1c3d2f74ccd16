package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// watcher reads the events of a watch.
type watcher struct {
	*stand
	lines *bufio.Scanner
	end   func()
}

func (s *stand) watch(as, path string) *watcher {
	s.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := s.request(call{as: as, method: "GET", path: path})
		s.handler.ServeHTTP(w, q.WithContext(joined{r.Context(), q.Context()}))
	}))
	r, err := http.Get(server.URL)
	if err != nil || r.StatusCode != 200 {
		s.Fatalf("%s as %q: %v %v", path, as, r, err)
	}
	w := &watcher{s, bufio.NewScanner(r.Body), func() { r.Body.Close(); server.Close() }}
	w.lines.Buffer(nil, 1<<20)
	s.Cleanup(w.end)
	return w
}

// joined ends with the first context and has the values of the second.
type joined struct {
	context.Context
	values context.Context
}

func (j joined) Value(k any) any { return j.values.Value(k) }

// look is what the next look says, in one line, up to its bookmark, and the id of that.
func (w *watcher) look() (text, id string) {
	w.Helper()
	for w.lines.Scan() {
		if l := w.lines.Text(); strings.HasPrefix(l, "id: ") {
			id = l[4:]
		}
		data, is := strings.CutPrefix(w.lines.Text(), "data: ")
		if !is {
			continue
		}
		var e Event[map[string]any]
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			w.Fatal(err)
		}
		if e.Kind == Bookmark {
			return strings.TrimSpace(text), id
		}
		if text += " " + e.Kind + " " + e.Key + strings.Join(e.Keys, ","); e.Item != nil {
			text += fmt.Sprintf("(%v %v)", (*e.Item)["name"], (*e.Item)["members"])
		}
	}
	w.Fatalf("the watch ended: %v", w.lines.Err())
	return "", ""
}

// TestWatch: a watch tells each caller what its list has, from a revision by his own number on, as it
// changes; what he ceases to see is gone; what concerns others alone moves nothing of his.
func TestWatch(t *testing.T) {
	s := newStand(t)
	s.tenants()
	put := func(as, k, name string) string {
		return s.want(201, call{as: as, method: "PUT", path: "/partitions/" + k, body: js{"name": name, "labels": js{"of": name}}})["etag"].(string)
	}
	put("red", "0x0100", "one")
	second := strings.Trim(put("red", "0x0101", "two"), `"`)
	put("blue", "0x0200", "other")
	red, chosen := s.watch("red", "/watch/partitions"), s.watch("red", "/watch/partitions?selector=of%3Dthree")
	blue, provider := s.watch("blue", "/watch/partitions"), s.watch("", "/watch/partitions")
	resumed := s.watch("red", "/watch/partitions?after="+second)
	expect := func(w *watcher, want string) string {
		t.Helper()
		got, id := w.look()
		if got != want {
			t.Fatalf("a watch says %q, want %q", got, want)
		}
		return id
	}
	until := func(w *watcher, last string) { // changes come one by one, or together
		for text := ""; !strings.HasSuffix(text, last); text, _ = w.look() {
		}
	}
	at := expect(red, "all 0x0100,0x0101 put 0x0100(one 0) put 0x0101(two 0)")
	expect(resumed, "all 0x0100,0x0101")
	expect(chosen, "all")
	expect(blue, "all 0x0200 put 0x0200(other 0)")
	expect(provider, "all 0x0100,0x0101,0x0200 put 0x0100(one 0) put 0x0101(two 0) put 0x0200(other 0)")
	if at != second {
		t.Errorf("the bookmark is %s, want red's own number %s", at, second)
	}
	s.want(200, call{as: "red", method: "PUT", path: "/partitions/0x0100/members/" + s.hosts[4], body: js{"membership": "limited"}}) // of blue
	expect(red, "put 0x0100(one 1)")
	expect(resumed, "put 0x0100(one 1)")
	expect(blue, "put 0x0100(one 1)") // he is asked
	expect(provider, "put 0x0100(one 1)")
	expect(chosen, "")
	s.want(200, call{as: "blue", method: "POST", path: "/partitions/0x0100/members/" + s.hosts[4] + "/refuse"})
	expect(blue, "gone 0x0100")
	put("red", "0x0102", "three")
	until(provider, "put 0x0102(three 0)")
	until(chosen, "put 0x0102(three 0)")
	s.want(200, call{as: "red", method: "PATCH", path: "/partitions/0x0102", body: js{"labels": nil}})
	put("blue", "0x0201", "more")
	expect(blue, "put 0x0201(more 0)")
	until(chosen, "gone 0x0102")
	tenants := s.watch("", "/watch/tenants")
	expect(tenants, "all blue,provider,red put blue(blue <nil>) put provider(provider <nil>) put red(red <nil>)")
	s.want(201, call{method: "PUT", path: "/tenants/green", body: js{}})
	expect(tenants, "put green(green <nil>)")
	expect(s.watch("blue", "/watch/tenants"), "all blue put blue(blue <nil>)")
	for _, path := range []string{"/watch/partitions?selector=%3D", "/watch/partitions?after=x"} {
		s.want(422, call{method: "GET", path: path})
	}
	s.want(401, call{as: "nobody", method: "GET", path: "/watch/partitions"})
}
