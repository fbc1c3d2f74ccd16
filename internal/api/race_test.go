package api

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestOneOfManyStaleWritersWins: of writers who have seen the same, one changes it,
// however close together they come.
func TestOneOfManyStaleWritersWins(t *testing.T) {
	s := newStand(t)
	const rounds, writers = 60, 8
	policy := func(n int) any {
		return js{"name": "p.yaml", "text": fmt.Sprintf("version: 1\npartitions:\n  - {name: p%d, pkey: 0x%04x}\n", n, 0x200+n)}
	}
	for _, x := range []struct {
		path string
		body func(n int) any
	}{
		{"/tenants/many", func(n int) any { return js{"quota": js{"members": n + 1}} }},
		{"/policy", policy},
	} {
		n, tag := 0, ""
		for round := range rounds {
			header := map[string]string{"If-Match": tag}
			if tag == "" {
				header = map[string]string{"If-None-Match": "*"}
			}
			var all sync.WaitGroup
			var mu sync.Mutex
			won := 0
			for range writers {
				n++
				body := x.body(n)
				all.Go(func() {
					r := s.do(call{method: "PUT", path: x.path, body: body, header: header})
					mu.Lock()
					defer mu.Unlock()
					switch r.Code {
					case http.StatusOK, http.StatusCreated, http.StatusAccepted:
						won++
						tag = r.Header().Get("ETag")
					case http.StatusPreconditionFailed:
					default:
						t.Errorf("%s: %d %s", x.path, r.Code, strings.TrimSpace(r.Body.String()))
					}
				})
			}
			all.Wait()
			if won != 1 {
				t.Fatalf("%s, round %d: %d of %d writers that have seen the same replace it", x.path, round, won, writers)
			}
		}
	}
}
