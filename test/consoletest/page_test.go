package consoletest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// page is a tab in a browser context of its own. What goes wrong in it (exceptions,
// errors and warnings on its console, breaches of its content security policy, dialogs,
// requests to another host) fails the test.
type page struct {
	testing.TB
	ctx      context.Context
	base     string // http://HOST:PORT
	steps    int    // that a person made: clicks, fields, keys
	mu       sync.Mutex
	problems []string
	expected []*regexp.Regexp
	requests map[string]int               // by path
	bytes    int64                        // that came over the network
	waiting  map[network.RequestID]string // requests without an answer so far: their paths
	asks     []ask                        // of the API, that do not stream
	answered time.Time                    // when the last request began or ended
}

// ask is a request of the API.
type ask struct {
	id   network.RequestID
	path string
}

// newPage opens a tab for the server at base, as if in a browser of its own.
func newPage(t testing.TB, base string) *page {
	t.Helper()
	return newTab(t, chromium(t), base, chromedp.WithNewBrowserContext())
}

// tab opens another tab of the browser of a page, for the server at base.
func (p *page) tab(base string) *page {
	p.Helper()
	return newTab(p.TB, p.ctx, base)
}

func newTab(t testing.TB, parent context.Context, base string, options ...chromedp.ContextOption) *page {
	t.Helper()
	p := &page{TB: t, base: base, requests: map[string]int{}, waiting: map[network.RequestID]string{}}
	var end context.CancelFunc
	p.ctx, end = chromedp.NewContext(parent, options...)
	t.Cleanup(func() {
		if t.Failed() {
			p.Logf("the page is at %s and says:\n%s", p.text("location.href"), p.said())
		}
		end()
		for _, problem := range p.found() {
			t.Errorf("in the page: %s", problem)
		}
	})
	if err := chromedp.Listen(p.ctx, p.hear); err != nil { // which opens the tab
		t.Fatal(err)
	}
	must(p, log.Enable, cdp.Empty{})
	must(p, audits.Enable, cdp.Empty{})
	must(p, network.Enable, network.EnableParams{})
	p.size(1440, 900, 1)
	return p
}

// command gives the browser a command for this page.
func command[P, R any](p *page, c cdp.Command[P, R], params P) (R, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Call(ctx, c, params)
}

// must is command, where an error ends the test.
func must[P, R any](p *page, c cdp.Command[P, R], params P) R {
	p.Helper()
	r, err := command(p, c, params)
	if err != nil {
		p.Fatalf("%s: %v", c.Method, err)
	}
	return r
}

// do runs actions in the page.
func (p *page) do(actions ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, actions...)
}

// hear notes what happens in the page.
func (p *page) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.problem("exception: %s", thrown(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			var words []string
			for _, a := range e.Args {
				words = append(words, string(a.Value)+a.Description)
			}
			p.problem("console.%s: %s", e.Type, strings.Join(words, " "))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			p.problem("log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *audits.EventIssueAdded:
		if e.Issue.Details.ContentSecurityPolicyIssueDetails != nil {
			d := e.Issue.Details.ContentSecurityPolicyIssueDetails
			p.problem("content security policy: %s: %s", d.ViolatedDirective, d.BlockedURL)
		}
	case *cdppage.EventJavascriptDialogOpening:
		p.problem("dialog: %s", e.Message)
		go func() { // a command waits until this event is done with
			_, _ = command(p, cdppage.HandleJavaScriptDialog, cdppage.HandleJavaScriptDialogParams{})
		}()
	case *network.EventRequestWillBeSent:
		p.asked(e.RequestID, e.Request.URL)
	case *cdppage.EventFrameNavigated: // of what the page before waited for, nothing more is told
		p.mu.Lock()
		clear(p.waiting)
		p.mu.Unlock()
	case *network.EventLoadingFinished:
		p.ended(e.RequestID, int64(e.EncodedDataLength))
	case *network.EventLoadingFailed:
		p.ended(e.RequestID, 0)
	}
}

func (p *page) asked(id network.RequestID, address string) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "data" && u.Scheme != "blob" && u.Scheme+"://"+u.Host != p.base {
		p.problem("request to another host: %s", address)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests[u.Path]++
	p.waiting[id], p.answered = u.Path, time.Now()
	if strings.HasPrefix(u.Path, "/api/") && !strings.HasSuffix(u.Path, "/events") {
		p.asks = append(p.asks, ask{id, u.RequestURI()})
	}
}

func (p *page) ended(id network.RequestID, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, id)
	p.bytes += bytes
	p.answered = time.Now()
}

func (p *page) problem(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// expect says of what kind of problem this test is: such are none.
func (p *page) expect(pattern string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = append(p.expected, regexp.MustCompile(pattern))
}

// found are the problems that nobody expected.
func (p *page) found() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.problems), func(problem string) bool {
		return slices.ContainsFunc(p.expected, func(e *regexp.Regexp) bool { return e.MatchString(problem) })
	})
}

// visit goes to a path of the server.
func (p *page) visit(path string) {
	p.Helper()
	if err := p.do(chromedp.Navigate(p.base + path)); err != nil {
		p.Fatalf("visit %s: %v", path, err)
	}
}

// size gives the page so many pixels of CSS, each of so many of the screen.
func (p *page) size(width, height int64, scale float64) {
	p.Helper()
	must(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: scale})
}

// scheme is "light" or "dark".
func (p *page) scheme(name string) {
	p.Helper()
	must(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// evaluate has the value of an expression, awaited, in the page's own world.
func (p *page) evaluate(expression string, to any) {
	p.Helper()
	if err := p.tryEvaluate(expression, to); err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
}

func (p *page) tryEvaluate(expression string, to any) error {
	yes := true
	got, err := command(p, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, AwaitPromise: &yes, ReturnByValue: &yes})
	if err != nil {
		return err
	}
	if got.ExceptionDetails != nil {
		return errors.New(thrown(got.ExceptionDetails))
	}
	if to == nil {
		return nil
	}
	if len(got.Result.Value) == 0 {
		return errors.New("it is undefined")
	}
	return json.Unmarshal(got.Result.Value, to)
}

// thrown is what was thrown, in words.
func thrown(d *runtime.ExceptionDetails) string {
	words := d.Text
	if d.Exception != nil {
		words += " " + d.Exception.Description + string(d.Exception.Value)
	}
	return fmt.Sprintf("%s (%s:%d)", words, d.URL, d.LineNumber+1)
}

// text is the value of an expression as text, or why there is none.
func (p *page) text(expression string) string {
	var s string
	if err := p.tryEvaluate("String("+expression+")", &s); err != nil {
		return err.Error()
	}
	return s
}

// said is the text that the page shows.
func (p *page) said() string { return p.text("document.body.innerText") }

// eventually waits until something is so.
func (p *page) eventually(what string, is func() error) {
	p.Helper()
	eventually(p, what, is)
}

func eventually(t testing.TB, what string, is func() error) {
	t.Helper()
	late := time.Now().Add(patience)
	for {
		err := is()
		if err == nil {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("not so after %v: %s: %v", patience, what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// matches reports whether a pattern matches the whole text.
func matches(pattern, text string) bool {
	return regexp.MustCompile("^(?:" + pattern + ")$").MatchString(text)
}

// until waits until an expression is true.
func (p *page) until(expression string) {
	p.Helper()
	p.eventually(expression, func() error {
		var is bool
		if err := p.tryEvaluate("!!("+expression+")", &is); err != nil {
			return err
		}
		if !is {
			return errors.New("it is false")
		}
		return nil
	})
}

// says waits until the page shows a text that a pattern matches.
func (p *page) says(pattern string) {
	p.Helper()
	r := regexp.MustCompile(pattern)
	p.eventually("the page says "+pattern, func() error {
		if text := p.said(); !r.MatchString(text) {
			return errors.New("it does not")
		}
		return nil
	})
}

// picture is the whole page, or what the window shows of it, as PNG.
func (p *page) picture(whole bool) (png []byte) {
	p.Helper()
	return must(p, cdppage.CaptureScreenshot, cdppage.CaptureScreenshotParams{Format: cdppage.CaptureScreenshotFormatPng, CaptureBeyondViewport: &whole}).Data
}
