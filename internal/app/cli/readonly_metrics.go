// readonly*.go: watches a fabric that others manage: it audits it again and again, says
// what is new and what is gone, and tells systemd and Prometheus. It writes nothing to the
// fabric, whatever it finds; what reads the fabric is its caller's.

package cli

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
)

// plain is text of a device, without what a terminal would obey.
func plain(s string) string { return terminal.Plain(s) }

// readings are what Prometheus is told.
type readings struct {
	now      func() time.Time
	registry *prometheus.Registry
	findings *prometheus.GaugeVec
	count    *prometheus.CounterVec
	last     prometheus.Gauge
	took     prometheus.Gauge
	good     atomic.Bool  // the last reading succeeded
	turnedAt atomic.Int64 // when the loop turned last, in nanoseconds
}

func newMetrics(now func() time.Time) *readings {
	m := &readings{
		now: now, registry: prometheus.NewRegistry(),
		findings: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ibwarden_audit_findings", Help: "Findings of the last audit of a fabric that is only read, by severity; unknown is what could not be read."}, []string{"severity"}),
		count:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ibwarden_audit_readings_total", Help: "Readings of a fabric that is only read, by result: read or failed."}, []string{"result"}),
		last:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "ibwarden_audit_last_reading_timestamp_seconds", Help: "When the last reading that succeeded ended, in seconds since 1970; 0 before the first."}),
		took:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "ibwarden_audit_reading_duration_seconds", Help: "How long the last reading that succeeded took, with the audit."}),
	}
	m.registry.MustRegister(m.findings, m.count, m.last, m.took, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, result := range []string{"read", "failed"} {
		m.count.WithLabelValues(result)
	}
	m.turned()
	return m
}

func (m *readings) turned() { m.turnedAt.Store(m.now().UnixNano()) }

func (m *readings) failed() {
	m.good.Store(false)
	m.count.WithLabelValues("failed").Inc()
}

func (m *readings) read(r *audit.Report, took time.Duration) {
	m.good.Store(true)
	m.count.WithLabelValues("read").Inc()
	m.last.Set(float64(m.now().UnixNano()) / 1e9)
	m.took.Set(took.Seconds())
	c := r.Counts
	for severity, n := range map[string]int{"critical": c.Critical, "high": c.High, "medium": c.Medium, "low": c.Low, "unknown": c.Unknown} {
		m.findings.WithLabelValues(severity).Set(float64(n))
	}
}

// handler serves /metrics; /healthz, which is good while the loop turns; and /readyz, which
// is good when the last reading succeeded.
func (m *readings) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if idle := m.now().Sub(time.Unix(0, m.turnedAt.Load())); idle > telemetry.HungAfter {
			http.Error(w, fmt.Sprintf("the loop has not turned for %v", idle.Round(time.Second)), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !m.good.Load() {
			http.Error(w, "the fabric has not been read", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}
