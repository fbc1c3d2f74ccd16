package servicetest

import (
	"bufio"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/metrics"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// scrapeAccept is what Prometheus 2 says that it takes.
const scrapeAccept = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"

// counted counts bytes.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(b []byte) (n int, err error) {
	n, err = c.Reader.Read(b)
	c.n += n
	return n, err
}

// BenchmarkScrape is a scrape of /metrics of a manager of 3,456 hosts and 720 switches,
// whose counters have all been read, as Prometheus makes it: over HTTP, compressed.
// What is exported is what is by default, or all.
func BenchmarkScrape(b *testing.B) {
	b.Run("default", func(b *testing.B) { benchmarkScrape(b, false) })
	b.Run("all", func(b *testing.B) { benchmarkScrape(b, true) })
}

func benchmarkScrape(b *testing.B, everything bool) {
	link, err := daemon.Open("sim:fattree,radix=24,levels=3", 0)
	if err != nil {
		b.Fatal(err)
	}
	defer link.Close()
	s := &site{observer: metrics.NewObserver(), telemetry: telemetry.New(time.Now)}
	s.runner = daemon.NewRunner(link, engine.Config{Routing: routing.UpDown, Seed: daemon.Secret()}, server.Config{}, &policy.Policy{Default: policy.Limited}, s)
	limits := perfmgr.DefaultLimits()
	limits.Rate, limits.Share, limits.Hosts, limits.Details = 0, 0.9, everything, everything
	s.runner.ReadCounters(limits)
	server, err := s.telemetry.Listen("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	var rounds atomic.Uint64
	var copied atomic.Int64 // nanoseconds that the manager waited for its state to be copied
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- s.runner.Run(ctx, func() bool {
			rounds.Store(s.runner.Counters().Counts().Rounds)
			s.telemetry.Turn(telemetry.Status{Manager: "master", Verdict: "isolated"}, !s.runner.Engine().Settled(), func() *metrics.State {
				began := time.Now()
				state := s.runner.State(time.Now(), s.observer)
				state.Hosts = everything
				copied.Store(int64(time.Since(began)))
				return state
			})
			return false
		})
	}()
	for rounds.Load() < 1 {
		time.Sleep(10 * time.Millisecond)
	}
	var took, copying []time.Duration
	var last scraped
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	for range b.N {
		time.Sleep(telemetry.CopyEvery) // so that each has a copy of its own
		began := time.Now()
		last = scrapeOnce(b, server.Address())
		took = append(took, time.Since(began))
		copying = append(copying, time.Duration(copied.Load()))
	}
	b.StopTimer()
	runtime.ReadMemStats(&after)
	cancel()
	<-ended
	slices.Sort(took)
	slices.Sort(copying)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(0, "ns/op") // it has the waiting
	b.ReportMetric(ms(took[len(took)/2]), "median-ms")
	b.ReportMetric(ms(took[len(took)-1]), "max-ms")
	b.ReportMetric(ms(copying[len(copying)/2]), "copy-ms")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/1e6, "alloc-MB/op")
	b.ReportMetric(float64(last.samples), "samples")
	b.ReportMetric(float64(last.plain)/1e6, "MB")
	b.ReportMetric(float64(last.wire)/1e6, "gzip-MB")
}

// scraped is what a scrape came to: samples, bytes of text, and bytes on the way.
type scraped struct{ samples, plain, wire int }

func scrapeOnce(b *testing.B, address string) (s scraped) {
	r, err := http.NewRequest("GET", "http://"+address+"/metrics", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Accept", scrapeAccept)
	r.Header.Set("Accept-Encoding", "gzip")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	wire := &counted{Reader: answer.Body}
	body, err := gzip.NewReader(wire)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("status %d: %v", answer.StatusCode, err)
	}
	plain := &counted{Reader: body}
	lines := bufio.NewScanner(plain)
	for lines.Scan() {
		if line := lines.Bytes(); len(line) > 0 && line[0] != '#' {
			s.samples++
		}
	}
	if lines.Err() != nil {
		b.Fatal(lines.Err())
	}
	s.plain, s.wire = plain.n, wire.n
	return s
}
