package api

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestRequestsAreObserved: each request is told once, by its operation and its status, and
// nothing that a client writes becomes a name.
func TestRequestsAreObserved(t *testing.T) {
	s := newStand(t)
	var mu sync.Mutex
	var seen []string
	s.api.options.Observe = func(operation string, status int, took time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if took < 0 {
			t.Errorf("%s took %v", operation, took)
		}
		seen = append(seen, fmt.Sprint(operation, " ", status))
	}
	path := socketIn(t)
	l := s.serves(Where{Socket: path}, defaultLimits)
	client := unixClient(path)
	want := []string{}
	for _, x := range []struct{ method, path, token, body, seen string }{
		{"GET", Prefix + "/partitions", "", "", "list-partitions 200"},
		{"GET", Prefix + "/partitions?limit=-1", "", "", "list-partitions 422"},
		{"GET", Prefix + "/partitions/0x0123", "", "", "get-partition 404"},
		{"GET", Prefix + "/partitions", "ibw_wrong", "", "none 401"},
		{"GET", Prefix + "/nothing/evil%22name", "", "", "none 404"},
		{"PATCH", Prefix + "/partitions", "", "", "none 405"},
		{"POST", Prefix + "/partitions", "", strings.Repeat(" ", BodyMax+1), "none 413"},
		{"GET", "/ufmRest/resources/pkeys", "", "", "ufm 200"},
		{"GET", Prefix + "/openapi.json", "", "", "none 200"},
	} {
		r, _ := http.NewRequest(x.method, "http://ibwarden"+x.path, bytes.NewReader([]byte(x.body)))
		if x.token != "" {
			r.Header.Set("Authorization", "Bearer "+x.token)
		}
		if x.body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if x.body != "" && !answer.Close {
			t.Error("a connection with a body that is too long stays open")
		}
		want = append(want, x.seen)
	}
	if open, all, peer := l.Connections(); open < 1 || all+peer > 0 {
		t.Errorf("%d connections are open, %d and %d were refused", open, all, peer)
	}
	client.CloseIdleConnections()
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(seen, want) {
		t.Errorf("seen %q\nwant %q", seen, want)
	}
}
