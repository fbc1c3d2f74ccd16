package consoletest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
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

// keysWritten is how long it takes until the keys of all ports are written.
const keysWritten = 30 * time.Second

// idleFor is for how long it is measured what the service takes when nobody asks.
const idleFor = 5 * time.Second

// BenchmarkPages is what each page costs over the network on a fabric of 11,664 hosts, where one tenant
// has 10,000 of them and 100 tenants have 16 each: bytes as they are sent, and time from the address to
// the last answer, and time of processors, which says more on a busy machine. Of the service it has the
// memory too.
func BenchmarkPages(b *testing.B) {
	s := newSiteOn(b, "sim:fattree,radix=36,levels=3")
	s.start()
	for late := time.Now().Add(bringUp); s.item("/status")["verdict"] == "unknown" && time.Now().Before(late); {
		time.Sleep(time.Second)
	}
	var guids []string
	for _, port := range s.items("/ports?found=true") {
		if node, _ := port["node"].(string); strings.HasPrefix(node, "H") {
			guids = append(guids, port["guid"].(string))
		}
	}
	s.tenantOf("big", 0x1000, guids[1:10001]) // the first is the manager's
	for i := range 100 {
		s.tenantOf(fmt.Sprintf("t%02d", i), 0x2000+16*i, guids[10001+16*i:][:16])
	}
	time.Sleep(keysWritten)
	s.verdict("isolated.*")
	p := newPage(b, s.base())
	p.visit("/console/#code=" + s.do("POST", "/logins", js{})["code"].(string))
	p.until(`document.querySelector('main .page[data-ready=true]')`)
	p.wait()
	for _, page := range []string{"overview", "fabric", "tenants", "tenants?name=big", "change?partition=0x1000", "change?task=take", "why?from=" + guids[1], "why?from=" + guids[1] + "&to=" + guids[2], "proof", "history", "managers", "traffic"} {
		b.Run(page, func(b *testing.B) {
			for b.Loop() {
				p.visit("/console/?" + url.QueryEscape(page) + "#/events") // which forgets what other pages have read
				p.wait()
				p.until(`document.querySelector('main .page[data-ready=true]')`)
				idle := s.processor(b)
				time.Sleep(idleFor)
				idle = (s.processor(b) - idle) / idleFor.Seconds() // what guarding the fabric takes
				bytes, service, browser, began := p.carried(), s.processor(b), renderers(b), time.Now()
				p.evaluate(fmt.Sprintf(`(() => { document.querySelector('main .page').dataset.ready = ''; location.hash = '#/%s'; })()`, page), nil)
				p.until(`document.querySelector('main .page[data-ready=true]')`)
				b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms")
				b.ReportMetric((s.processor(b)-service-idle*time.Since(began).Seconds())*1e3, "ms-of-the-service")
				b.ReportMetric((renderers(b)-browser)*1e3, "ms-of-the-page")
				p.wait() // for an audit too, which takes seconds
				b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-to-the-last-answer")
				b.ReportMetric((p.carried()-bytes)/1e3, "kB")
				b.ReportMetric(s.resident(b), "MB-of-the-service")
			}
			b.ReportMetric(0, "ns/op") // it says nothing
		})
	}
}

// processor is the time of processors that the service took so far, in seconds.
func (s *site) processor(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	const userField, perSecond = 11, 100 // of what follows the name; clock ticks
	fields, ticks := strings.Fields(rest), 0
	for _, f := range fields[userField:][:2] {
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return float64(ticks) / perSecond
}

// renderers is the same of the processes that hold pages.
func renderers(b *testing.B) float64 { return worked(b, "renderer") }

// worked is the same of the processes of the browser of a type, or of all.
func worked(b *testing.B, types ...string) (sum float64) {
	b.Helper()
	ctx, cancel := context.WithTimeout(chromium(b), patience)
	defer cancel()
	got, err := chromedp.CallBrowser(ctx, systeminfo.GetProcessInfo, struct{}{})
	if err != nil {
		b.Fatal(err)
	}
	for _, process := range got.ProcessInfo {
		if len(types) == 0 || slices.Contains(types, process.Type) {
			sum += process.CPUTime
		}
	}
	return sum
}

// carried are the bytes that came over the network so far.
func (p *page) carried() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return float64(p.bytes)
}

// wait is quiet with more patience.
func (p *page) wait() {
	is := func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, path := range p.waiting {
			if !strings.HasSuffix(path, "/events") {
				return false
			}
		}
		return time.Since(p.answered) > quietFor
	}
	for late := time.Now().Add(bringUp); !is() && time.Now().Before(late); {
		time.Sleep(quietFor)
	}
}

// tenantOf makes a tenant with 16 keys, ports, and a partition of them.
func (s *site) tenantOf(name string, first int, guids []string) {
	s.Helper()
	var ports, members []js
	for _, g := range guids {
		ports, members = append(ports, js{"guid": g}), append(members, js{"port": g, "membership": "full"})
	}
	s.do("PUT", "/tenants/"+name, js{"keys": js{"first": fmt.Sprintf("0x%04x", first), "last": fmt.Sprintf("0x%04x", first+15)}}, "If-None-Match", "*")
	s.do("POST", "/ports/assign", js{"tenant": name, "ports": ports})
	s.do("POST", "/partitions", js{"name": name + "-net", "owner": name, "pkey": fmt.Sprintf("0x%04x", first), "members": members})
}

// resident is what the service takes of memory, the simulated fabric in it too, in MB.
func (s *site) resident(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib * 1024 / 1e6
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
