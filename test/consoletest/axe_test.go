package consoletest

import (
	"encoding/json"
	"fmt"
	"strings"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/ibwarden/ibwarden/test/need"
)

// finding is a rule of axe with the elements that break it.
type finding struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
	}
}

func (f *finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s): %s", f.ID, f.Impact, f.Help)
	for i, n := range f.Nodes {
		if i == 5 {
			fmt.Fprintf(&b, "\n  and %d more", len(f.Nodes)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %.200s\n    %s", n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n    "))
	}
	return b.String()
}

// axed is what axe says of a page: the rules that it breaks, those of which axe cannot
// say, and how many it keeps.
type axed struct {
	Violations []*finding
	Incomplete []*finding
	Passes     int
}

// axe has axe-core look at the page as it is now, in a JavaScript world of its own: the
// page's policy stays in force, and its scripts see nothing of it. Of colours over a
// picture axe cannot say, which it lists as incomplete.
func (p *page) axe() (found axed) {
	p.Helper()
	source := need.Axe(p)
	frame := must(p, cdppage.GetFrameTree, struct{}{}).FrameTree.Frame.ID
	world := must(p, cdppage.CreateIsolatedWorld, cdppage.CreateIsolatedWorldParams{FrameID: frame, WorldName: "axe"}).ExecutionContextID
	yes := true
	for _, expression := range []string{source + "; 0", `axe.run(document, {resultTypes: ['violations', 'incomplete']}).then(r => ({
		passes: r.passes.length,
		violations: r.violations, incomplete: r.incomplete,
	}))`} {
		got := must(p, runtime.Evaluate, runtime.EvaluateParams{Expression: expression, ContextID: world, AwaitPromise: &yes, ReturnByValue: &yes})
		if got.ExceptionDetails != nil {
			p.Fatalf("axe: %s", thrown(got.ExceptionDetails))
		}
		if expression[0] == 'a' {
			if err := json.Unmarshal(got.Result.Value, &found); err != nil {
				p.Fatalf("axe: %v", err)
			}
		}
	}
	return found
}

// accessible fails the test if axe finds something on the page.
func (p *page) accessible(where string) {
	p.Helper()
	found := p.axe()
	if found.Passes < 10 {
		p.Errorf("%s: axe kept to %d rules only: it has not seen the page", where, found.Passes)
	}
	for _, f := range found.Violations {
		p.Errorf("%s: axe: %v", where, f)
	}
	for _, f := range found.Incomplete {
		p.Logf("%s: axe cannot say: %v", where, f)
	}
}
