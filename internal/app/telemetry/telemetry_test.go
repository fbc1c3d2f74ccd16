package telemetry

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/metrics"
	"github.com/ibwarden/ibwarden/test/need"
)

// clock is a clock that stands until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newClock() *clock { return &clock{now: time.Unix(1_000_000, 0)} }

func ask(t *testing.T, h http.Handler, method, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Code, w.Body.String()
}

func TestHealth(t *testing.T) {
	c := newClock()
	x := New(c.read)
	want := func(path string, code int, texts ...string) {
		t.Helper()
		got, body := ask(t, x.Handler(), "GET", path)
		if got != code || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s, want %d", path, got, body, code)
		}
		for _, text := range texts {
			if !strings.Contains(body, text) {
				t.Errorf("%s: %s, want %s in it", path, body, text)
			}
		}
	}
	turn := func(s Status) {
		x.Turn(s, false, func() *metrics.State { t.Error("nobody asked for a copy"); return nil })
	}
	want("/healthz", 200, `"reasons":[]`)
	want("/readyz", 503, "no verdict yet")
	turn(Status{Manager: "master", Phase: "prove"})
	want("/readyz", 503, "master, prove, no verdict yet")
	turn(Status{Manager: "standby", Phase: "watch"})
	want("/readyz", 200, `"manager":"standby"`)
	turn(Status{Manager: "discovering", Verdict: "isolated"})
	want("/readyz", 503)
	turn(Status{Manager: "master", Verdict: "violated", Phase: "watch"}) // it works: the verdict is for alerts
	want("/readyz", 200, `"verdict":"violated"`)
	fault := error(nil)
	x.AddCheck(Check{"store", func() error { return fault }})
	want("/readyz", 200)
	fault = errors.New("disk full")
	want("/readyz", 503, "store: disk full")
	want("/healthz", 200)
	fault = nil
	c.move(HungAfter + time.Second)
	want("/healthz", 503, "the engine loop has not turned for 1m1s")
	want("/readyz", 503, "has not turned")
	turn(Status{Manager: "master", Verdict: "isolated"})
	want("/healthz", 200)
	for path, code := range map[string]int{"/": 404, "/metrics/x": 404, "/debug/pprof/": 404} {
		if got, _ := ask(t, x.Handler(), "GET", path); got != code {
			t.Errorf("GET %s: %d", path, got)
		}
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		if got, _ := ask(t, x.Handler(), "POST", path); got != 405 {
			t.Errorf("POST %s: %d", path, got)
		}
	}
}

// TestCopies: the loop copies the state when somebody asked, at most once a second, and
// more seldom while it is at work; who asks a loop that hangs gets the last copy.
func TestCopies(t *testing.T) {
	c := newClock()
	x := New(c.read)
	copies := 0
	turn := func(busy bool) int {
		before := copies
		x.Turn(Status{}, busy, func() *metrics.State { copies++; return &metrics.State{Made: c.read()} })
		return copies - before
	}
	scrape := func() <-chan string {
		done := make(chan string, 1)
		go func() {
			_, body := ask(t, x.Handler(), "GET", "/metrics")
			done <- body
		}()
		return done
	}
	wanted := func() {
		t.Helper()
		need.Eventually(t, need.Patience, "a copy is wanted", x.wanted.Load)
	}
	if turn(false) != 0 {
		t.Error("a copy that nobody asked for")
	}
	first := scrape()
	wanted()
	if turn(true) != 1 { // even at work: there is none yet
		t.Error("no copy")
	}
	if body := <-first; !strings.Contains(body, "ibwarden_snapshot_age_seconds 0") {
		t.Error("the scrape did not get the copy")
	}
	<-scrape() // at once: the last copy is new
	if turn(false) != 0 {
		t.Error("a copy within a second of the last")
	}
	c.move(CopyEvery)
	second := scrape()
	wanted()
	if turn(true) != 0 {
		t.Error("a copy while the manager is at work")
	}
	if body := <-second; !strings.Contains(body, "ibwarden_snapshot_age_seconds 1") { // after askWait
		t.Error("the scrape did not get the last copy")
	}
	c.move(copyBusy)
	if turn(true) != 1 {
		t.Error("no copy for ever while the manager is at work")
	}
}

// telemetryListen starts a server on a free port.
func telemetryListen(t *testing.T) *Server {
	t.Helper()
	x := New(time.Now)
	x.Turn(Status{Manager: "standby"}, false, nil)
	s, err := x.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestAddresses(t *testing.T) {
	x := New(time.Now)
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:9316", "example.com:9316", "[2001:db8::1]:0", "localhost.example:0", "127.0.0.1.example:0"} {
		if _, err := x.Listen(address); !errors.Is(err, ErrNotLoopback) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"9316", "127.0.0.1", "", "127.0.0.1:99999"} {
		if _, err := x.Listen(address); err == nil {
			t.Errorf("%s: served", address)
		}
	}
	s, err := x.Listen("localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := net.Dial("tcp", s.Address()); err == nil {
		t.Error("it listens after Close")
	}
}

func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// status sends bytes and returns the status of the answer; 0 for none.
func status(c net.Conn, text string) int {
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	_, _ = io.WriteString(c, text)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	r.Body.Close()
	return r.StatusCode
}

func TestHostsAndHeaders(t *testing.T) {
	t.Parallel()
	s := telemetryListen(t)
	for host, want := range map[string]int{
		s.Address(): 200, "localhost:1": 200, "[::1]:1": 200, "127.0.0.1": 200, "evil.example": 421, "evil.example:9316": 421, "192.0.2.1": 421,
	} {
		if got := status(dial(t, s), "GET /healthz HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); got != want {
			t.Errorf("host %s: %d, want %d", host, got, want)
		}
	}
	huge := "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n"
	if got := status(dial(t, s), huge); got != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("64 KiB of headers: %d", got)
	}
	if got := status(dial(t, s), "GET /"+strings.Repeat("x", 64<<10)+" HTTP/1.1\r\n\r\n"); got < 400 {
		t.Errorf("an address of 64 KiB: %d", got)
	}
	if got := status(dial(t, s), "\x16\x03\x01 hello\r\n\r\n"); got != 400 {
		t.Errorf("TLS to a listener without: %d", got)
	}
	// A body is not read: there is nothing to say to a GET.
	body := "GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n"
	if got := status(dial(t, s), body); got != 200 {
		t.Errorf("a body that never comes: %d", got)
	}
}

// TestSlowClients: as many connections as there may be that say nothing, or one byte
// now and then, keep an honest client waiting for no longer than a request's headers may
// take, and are closed.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	s := telemetryListen(t)
	var slow []net.Conn
	for i := range ConnectionsMax {
		c := dial(t, s)
		slow = append(slow, c)
		if i%2 == 0 {
			continue // half open
		}
		go func() {
			for _, b := range []byte("GET /healthz HTTP/1.1\r\nHost: " + strings.Repeat("x", 1000)) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		}()
	}
	if got := status(dial(t, s), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); got != 200 {
		t.Errorf("an honest client: %d", got)
	}
	for i, c := range slow {
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.Copy(io.Discard, c); err != nil && errors.Is(err, errTimeout(err)) {
			t.Errorf("slow connection %d is still open", i)
		}
	}
}

// errTimeout is err where that is a time-out, else nothing that it could be.
func errTimeout(err error) error {
	var n net.Error
	if errors.As(err, &n) && n.Timeout() {
		return err
	}
	return fmt.Errorf("no time-out")
}

// TestCopiesAtTheirEdge: a copy that is wanted is made as soon as the last one is old enough, and
// not before: of a manager at rest, and of one at work.
func TestCopiesAtTheirEdge(t *testing.T) {
	for busy, every := range map[bool]time.Duration{false: CopyEvery, true: copyBusy} {
		c := newClock()
		x := New(c.read)
		made := 0
		turn := func() int {
			x.Turn(Status{}, busy, func() *metrics.State { made++; return &metrics.State{Made: c.read()} })
			return made
		}
		x.wanted.Store(true)
		for i, step := range []time.Duration{0, 0, every - 1, 1, every} {
			c.move(step)
			want := []int{1, 1, 1, 2, 3}[i]
			if got := turn(); got != want || x.wanted.Load() != (i == 1 || i == 2) {
				t.Errorf("busy %v, step %d: %d copies, want %d; wanted %v", busy, i, got, want, x.wanted.Load())
			}
			if i != 1 {
				x.wanted.Store(true)
			}
		}
	}
}
