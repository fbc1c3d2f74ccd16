package consoletest

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
)

// watched has a page note when its map was drawn first, in ms since the navigation began.
const watched = `(() => {
	const look = () => {
		if (window.ibwarden?.map?.frames > 0) window.firstPicture = performance.now();
		else requestAnimationFrame(look);
	};
	requestAnimationFrame(look);
})()`

// panned moves the map for three seconds and counts the frames: as many a second, and the
// longest time between two, in ms. Where software draws them, a frame that takes longer
// than the screen's comes later.
const panned = `(near => new Promise(done => {
	const m = window.ibwarden.map;
	m.whole();
	if (near) m.zoom(near);
	let first = 0, last = 0, frames = 0, longest = 0;
	const step = now => {
		if (first) { frames++; longest = Math.max(longest, now - last); } else first = now;
		last = now;
		if (now - first > 3000) return done({rate: frames / (now - first) * 1000, longest});
		m.pan(frames % 120 < 60 ? -6 : 6, frames % 120 < 60 ? -2 : 2);
		requestAnimationFrame(step);
	};
	requestAnimationFrame(step);
}))`

// BenchmarkConsole is what the page Fabric costs in the browser, by the size of the fabric.
func BenchmarkConsole(b *testing.B) {
	for _, size := range []struct{ name, fabric string }{
		{"16 hosts", "sim"},
		{"648 hosts", "sim:fattree,radix=36,levels=2"},
		{"11664 hosts", "sim:fattree,radix=36,levels=3"},
		{"40960 hosts", "sim:fattree,radix=64,levels=3,pods=40"},
	} {
		b.Run(size.name, func(b *testing.B) {
			s := newSiteOn(b, size.fabric)
			s.start()
			for late := time.Now().Add(bringUp); time.Now().Before(late); time.Sleep(time.Second) {
				// Which a large fabric on few processors answers late.
				if a, err := s.call("GET", "/status", nil); err == nil && a["item"].(js)["verdict"] != "unknown" {
					break
				}
			}
			s.verdict("isolated.*")
			for b.Loop() {
				s.measure(b)
			}
			b.ReportMetric(0, "ns/op") // it says nothing
		})
	}
}

// bringUp is how long a manager may take for the largest fabric.
const bringUp = 15 * time.Minute

func (s *site) measure(b *testing.B) {
	p := newPage(b, s.base())
	before, _ := memory(b)
	p.visit("/console/")
	p.until("document.querySelector('form')")
	// Not to the Overview: its audit of a large fabric takes longer than the pages that are measured.
	p.evaluate(fmt.Sprintf("sessionStorage.setItem('ibwarden-wanted', '#/events'); location.hash = 'code=%s'", s.do("POST", "/logins", js{})["code"]), nil)
	p.until("document.querySelector('main').dataset.page === 'events'")
	p.ready()
	var files float64
	p.evaluate(`performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).filter(e => e.name.includes('/console/')).reduce((sum, e) => sum + e.transferSize, 0)`, &files)
	b.ReportMetric(files, "bytes-of-the-files")
	p.goTo("#/events")
	must(p, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: watched})
	p.visit("/console/?again#/fabric") // another address: it is loaded again
	p.until("window.firstPicture")
	p.ready()
	var ms float64
	p.evaluate("firstPicture", &ms)
	b.ReportMetric(ms, "ms-to-first-picture")
	p.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd", &ms)
	b.ReportMetric(ms, "ms-to-load")
	var got struct{ Bytes, Requests, Map float64 }
	p.evaluate(`(() => {
		const all = performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation')).filter(e => !e.name.includes('/events'));
		return {bytes: all.reduce((sum, e) => sum + e.transferSize, 0), requests: all.length,
			map: all.filter(e => e.name.includes('/map')).reduce((most, e) => Math.max(most, e.transferSize), 0)};
	})()`, &got)
	b.ReportMetric(got.Bytes, "bytes")
	b.ReportMetric(got.Map, "bytes-of-the-map")
	b.ReportMetric(got.Requests, "requests")
	for name, near := range map[string]string{"whole": "0", "near": "6", "nearest": "40"} {
		var frames struct{ Rate, Longest float64 }
		began := worked(b)
		p.evaluate(panned+"("+near+")", &frames)
		b.ReportMetric((worked(b)-began)*1000/(frames.Rate*3), "cpu-ms/frame-"+name)
		b.ReportMetric(frames.Rate, "frames/s-"+name)
		b.ReportMetric(frames.Longest, "ms-longest-frame-"+name)
	}
	must(p, runtime.GetHeapUsage, struct{}{})
	b.ReportMetric(must(p, runtime.GetHeapUsage, struct{}{}).UsedSize/1e6, "MB-of-heap")
	all, largest := memory(b)
	b.ReportMetric(largest, "MB-of-the-page")
	b.ReportMetric(all, "MB-of-the-browser")
	b.ReportMetric(before, "MB-of-the-browser-before")
}

// worked is the processor time that the processes of the browser have had together, in s.
func worked(b *testing.B) (sum float64) {
	b.Helper()
	ctx, cancel := context.WithTimeout(chromium(b), patience)
	defer cancel()
	got, err := chromedp.CallBrowser(ctx, systeminfo.GetProcessInfo, struct{}{})
	if err != nil {
		b.Fatal(err)
	}
	for _, process := range got.ProcessInfo {
		sum += process.CPUTime
	}
	return sum
}

// memory is what the processes of the browser take together, and the largest of those that
// hold pages, in MB; of what they share, each its share (PSS).
func memory(b *testing.B) (all, largest float64) {
	b.Helper()
	ctx, cancel := context.WithTimeout(chromium(b), patience)
	defer cancel()
	got, err := chromedp.CallBrowser(ctx, systeminfo.GetProcessInfo, struct{}{})
	if err != nil {
		b.Fatal(err)
	}
	for _, process := range got.ProcessInfo {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", process.ID))
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(text)) {
			kib, is := strings.CutPrefix(line, "Pss:")
			if !is {
				continue
			}
			n, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kib), "kB")), 64)
			if err != nil {
				b.Fatal(err)
			}
			all += n * 1024 / 1e6
			if process.Type == "renderer" {
				largest = max(largest, n*1024/1e6)
			}
		}
	}
	return all, largest
}
