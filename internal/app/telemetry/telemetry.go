package telemetry

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/ibwarden/ibwarden/internal/metrics"
)

const (
	// CopyEvery is the least time between two copies of the manager's state.
	CopyEvery = time.Second
	// copyBusy is the same while the manager is at work, which goes first.
	copyBusy = 10 * time.Second
	// askWait is how long a scrape waits for a new copy before it gets the last one.
	askWait = 2 * time.Second
	// HungAfter is after how long without a turn the engine loop is not healthy.
	HungAfter = 60 * time.Second
)

// Status is what /readyz and systemd are told.
type Status struct {
	// Manager is the state of this manager, such as master or standby.
	Manager string `json:"manager"`
	// Verdict is the last one; empty before the first.
	Verdict string `json:"verdict"`
	// Phase is what the manager is doing.
	Phase string `json:"phase"`
}

// ready reports whether the manager serves its purpose.
func (s Status) ready() bool {
	return s.Manager == "master" && s.Verdict != "" || s.Manager == "standby"
}

// Text is the status in one line.
func (s Status) Text() string {
	if s.Verdict == "" {
		return s.Manager + ", " + s.Phase + ", no verdict yet"
	}
	return s.Manager + ", " + s.Phase + ", verdict: " + s.Verdict
}

// Check is something that the service needs, and that may fail: its store, for example.
type Check struct {
	Name string
	// Test says why it is not usable. It must be quick, and safe for any goroutine.
	Test func() error
}

// Telemetry is what is told of one manager.
type Telemetry struct {
	now    func() time.Time
	turned atomic.Int64 // when the loop last turned, in nanoseconds
	status atomic.Pointer[Status]
	latest atomic.Pointer[metrics.State]
	wanted atomic.Bool
	handle http.Handler
	// samples are what /metrics is made of, besides those of devices and ports.
	samples *prometheus.Registry
	scrapes chan struct{} // of those that are being answered

	mu     sync.Mutex
	news   chan struct{} // closed with the next copy
	checks []Check
}

// New returns a Telemetry; now is the clock.
func New(now func() time.Time) *Telemetry {
	t := &Telemetry{now: now, news: make(chan struct{}), scrapes: make(chan struct{}, scrapesMax)}
	t.status.Store(&Status{Manager: "discovering", Phase: "start"})
	t.turned.Store(now().UnixNano())
	t.samples = prometheus.NewRegistry()
	t.samples.MustRegister(
		&metrics.Collector{Latest: t.latest.Load, Turned: t.LastTurn, Now: now, Events: EngineIDs()},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", t.scrape)
	mux.HandleFunc("GET /healthz", t.healthz)
	mux.HandleFunc("GET /readyz", t.readyz)
	t.handle = mux
	return t
}

// Handler serves /metrics, /healthz and /readyz.
func (t *Telemetry) Handler() http.Handler { return t.handle }

// AddCheck makes /readyz depend on a check.
func (t *Telemetry) AddCheck(c Check) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checks = append(t.checks, c)
}

// Collect adds samples to /metrics. A collector that has metrics of another is a fault in
// the program.
func (t *Telemetry) Collect(c prometheus.Collector) { t.samples.MustRegister(c) }

// LastTurn is when the engine loop last turned.
func (t *Telemetry) LastTurn() time.Time { return time.Unix(0, t.turned.Load()) }

// Turn is called by the engine loop whenever it turns. busy says that the manager is at
// work; state is called if a copy of its state is wanted.
func (t *Telemetry) Turn(s Status, busy bool, state func() *metrics.State) {
	now := t.now()
	t.turned.Store(now.UnixNano())
	if s != *t.status.Load() {
		changed := s // the parameter itself would be allocated at every turn
		t.status.Store(&changed)
	}
	if !t.wanted.Load() {
		return
	}
	every := CopyEvery
	if busy {
		every = copyBusy
	}
	if last := t.latest.Load(); last != nil && now.Sub(last.Made) < every {
		return
	}
	t.latest.Store(state())
	t.wanted.Store(false)
	t.mu.Lock()
	close(t.news)
	t.news = make(chan struct{})
	t.mu.Unlock()
}

// refresh asks for a new copy and waits a while for it, if the last one is old.
func (t *Telemetry) refresh(ctx context.Context) {
	if last := t.latest.Load(); last != nil && t.now().Sub(last.Made) < CopyEvery {
		return
	}
	t.mu.Lock()
	news := t.news
	t.mu.Unlock()
	t.wanted.Store(true)
	wait := time.NewTimer(askWait)
	defer wait.Stop()
	select {
	case <-news:
	case <-wait.C:
	case <-ctx.Done():
	}
}

// health is what /healthz and /readyz answer.
type health struct {
	OK bool `json:"ok"`
	// Reasons say why it is not.
	Reasons []string `json:"reasons"`
	*Status
}

func answer(w http.ResponseWriter, h health) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	h.OK = len(h.Reasons) == 0
	if !h.OK {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(h)
}

// hung says that the engine loop does not turn.
func (t *Telemetry) hung() []string {
	if age := t.now().Sub(t.LastTurn()); age > HungAfter {
		return []string{"the engine loop has not turned for " + age.Truncate(time.Second).String()}
	}
	return []string{}
}

func (t *Telemetry) healthz(w http.ResponseWriter, _ *http.Request) {
	answer(w, health{Reasons: t.hung()})
}

func (t *Telemetry) readyz(w http.ResponseWriter, _ *http.Request) {
	h := health{Reasons: t.hung(), Status: t.status.Load()}
	if !h.ready() {
		h.Reasons = append(h.Reasons, "manager: "+h.Text())
	}
	t.mu.Lock()
	checks := t.checks
	t.mu.Unlock()
	for _, c := range checks {
		if err := c.Test(); err != nil {
			h.Reasons = append(h.Reasons, c.Name+": "+err.Error())
		}
	}
	answer(w, h)
}
