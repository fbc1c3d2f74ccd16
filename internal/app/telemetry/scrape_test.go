package telemetry

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/metrics"
)

// TestCompressed: who accepts gzip gets it, and the same samples as who does not.
func TestCompressed(t *testing.T) {
	c := newClock()
	x := New(c.read)
	x.latest.Store(&metrics.State{
		Made:    c.read(),
		Devices: []metrics.Device{{Identity: &metrics.Identity{GUID: "0x1", Kind: "SW", Name: "leaf"}, Ports: []metrics.Port{{Num: "1", State: 4}}}},
	})
	for accept, want := range map[string]bool{
		"": false, "identity": false, "gzip": true, "deflate, gzip": true, "zstd;q=1.0, gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "gzipped": false,
	} {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Header.Set("Accept-Encoding", accept)
		w := httptest.NewRecorder()
		x.Handler().ServeHTTP(w, r)
		body, got := io.Reader(w.Body), w.Header().Get("Content-Encoding") == "gzip"
		if got != want || w.Header().Get("Vary") != "Accept-Encoding" || w.Header().Get("Content-Type") != metrics.TextType {
			t.Errorf("Accept-Encoding %q: %v", accept, w.Header())
		}
		if got {
			var err error
			if body, err = gzip.NewReader(w.Body); err != nil {
				t.Fatal(err)
			}
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		for _, sample := range []string{"\nibwarden_port_state{guid=\"0x1\",port=\"1\"} 4\n", "\nibwarden_snapshot_age_seconds 0\n", "\ngo_goroutines "} {
			if !strings.Contains(string(text), sample) {
				t.Errorf("Accept-Encoding %q: no sample %q", accept, sample)
			}
		}
	}
}

// stuck is a client that reads nothing.
type stuck struct {
	*httptest.ResponseRecorder
	reached, release chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	s.reached <- struct{}{}
	<-s.release
	return len(b), nil
}

// TestScrapesAtOnce: as many scrapes as may be answered at once keep others out, and no
// longer than they take.
func TestScrapesAtOnce(t *testing.T) {
	c := newClock()
	x := New(c.read)
	x.latest.Store(&metrics.State{Made: c.read()})
	s := &stuck{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	ended := make(chan struct{})
	for range scrapesMax {
		go func() {
			x.Handler().ServeHTTP(&stuck{httptest.NewRecorder(), s.reached, s.release}, httptest.NewRequest("GET", "/metrics", nil))
			ended <- struct{}{}
		}()
		<-s.reached
	}
	if code, body := ask(t, x.Handler(), "GET", "/metrics"); code != http.StatusServiceUnavailable {
		t.Errorf("one more: %d %s", code, body)
	}
	close(s.release)
	for n := 0; n < scrapesMax; {
		select {
		case <-s.reached:
		case <-ended:
			n++
		}
	}
	if code, _ := ask(t, x.Handler(), "GET", "/metrics"); code != http.StatusOK {
		t.Errorf("after they ended: %d", code)
	}
}
