package telemetry

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"

	"github.com/ibwarden/ibwarden/internal/metrics"
)

// scrapesMax is how many scrapes are answered at once: on a large fabric each takes
// memory and time.
const scrapesMax = 2

// scrape answers with all samples, in the text format. It is done here and not by
// promhttp because those of the fabric are too many for client_golang.
func (t *Telemetry) scrape(w http.ResponseWriter, r *http.Request) {
	select {
	case t.scrapes <- struct{}{}:
		defer func() { <-t.scrapes }()
	default:
		http.Error(w, strconv.Itoa(scrapesMax)+" scrapes are being answered; try again later", http.StatusServiceUnavailable)
		return
	}
	t.refresh(r.Context())
	families, err := t.samples.Gather()
	if err != nil {
		http.Error(w, "a fault in the program: "+err.Error(), http.StatusInternalServerError)
		return
	}
	header := w.Header()
	header.Set("Content-Type", metrics.TextType)
	header.Set("Vary", "Accept-Encoding")
	out := io.Writer(w)
	if takesGzip(r.Header) {
		header.Set("Content-Encoding", "gzip")
		// Text so repetitive becomes small at any level.
		compressed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
		defer compressed.Close()
		out = compressed
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(out, f); err != nil {
			return // the client is gone
		}
	}
	_ = metrics.WriteFabric(out, t.latest.Load())
}

// takesGzip reports whether a client accepts gzip.
func takesGzip(h http.Header) bool {
	for _, coding := range strings.Split(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if strings.TrimSpace(name) != "gzip" {
			continue
		}
		q, given := strings.CutPrefix(strings.TrimSpace(weight), "q=")
		v, err := strconv.ParseFloat(q, 64)
		return !given || err == nil && v > 0
	}
	return false
}
