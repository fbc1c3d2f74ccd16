package cli

import (
	"html/template"
	"io"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/judge/shadow"
)

// pageRowsMax bounds the rows of a part of the page; --json has all.
const pageRowsMax = 1000

// bar is a stretch of the time line, in percent of it.
type bar struct{ Left, Width float64 }

// minBar is the least width of a bar, in percent, so that it can be seen.
const minBar = 0.2

type pageRow struct {
	spanRow
	Bar  bar
	Open bool
}

type pagePart struct {
	Title string
	Rows  []pageRow
	More  int
}

type pageGap struct {
	bar
	Text string
}

// printShadowPage writes the page. All that devices say of themselves is text that the template
// escapes, and the page may run nothing and fetch nothing.
func printShadowPage(w io.Writer, s *shadow.Summary) error {
	d := struct {
		Lines, Writes []string
		From, Until   string
		Gaps          []pageGap
		Parts         []pagePart
	}{Lines: shadowLines(s), Writes: writesText(s.Writes), From: clock(s.Since), Until: clock(s.Until)}
	on := func(from, until time.Time) bar {
		whole := s.Until.Sub(s.Since).Seconds()
		left := min(max(from.Sub(s.Since).Seconds()/whole, 0), 1) * 100
		right := min(max(until.Sub(s.Since).Seconds()/whole, 0), 1) * 100
		return bar{min(left, 100-minBar), max(right-left, minBar)}
	}
	for _, g := range s.Gaps {
		d.Gaps = append(d.Gaps, pageGap{on(g.From, g.Until), terminal.Plain(clock(g.From) + " to " + clock(g.Until) + ": " + g.Why)})
	}
	for _, t := range shadowTitles {
		p := pagePart{Title: t.title}
		for i := range s.Spans {
			switch x := &s.Spans[i]; {
			case x.Kind != t.kind:
			case len(p.Rows) == pageRowsMax:
				p.More++
			default:
				until := s.Until
				if !x.Ended.IsZero() {
					until = x.Ended
				}
				p.Rows = append(p.Rows, pageRow{rowOf(x), on(x.Began, until), x.Ended.IsZero()})
			}
		}
		if p.Rows != nil {
			d.Parts = append(d.Parts, p)
		}
	}
	return template.Must(template.New("page").Parse(shadowPage)).Execute(w, d)
}

const shadowPage = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>ibwarden: what shadow mode found</title>
<style>
body{font:14px/1.45 sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.25rem .6rem .25rem 0;border-bottom:1px solid #ddd;vertical-align:top;overflow-wrap:anywhere}
td.t{white-space:nowrap}
.line{position:relative;height:.9rem;min-width:16rem;background:#f0f0f0}
.line i{position:absolute;top:0;bottom:0;background:#1f5fa8}
.line i.open{background:#b3261e}
.line i.gap{background:#999}
.ends{display:flex;justify-content:space-between}
</style></head><body>
<h1>Shadow report</h1>
<ul>{{range .Lines}}<li>{{.}}</li>{{end}}</ul>
<h2>Readings</h2>
<div class="ends"><span>{{.From}}</span><span>{{.Until}}</span></div>
<div class="line">{{range .Gaps}}<i class="gap" style="left:{{.Left}}%;width:{{.Width}}%"></i>{{end}}</div>
{{if .Gaps}}<p>No reading:</p><ul>{{range .Gaps}}<li>{{.Text}}</li>{{end}}</ul>{{end}}
{{range .Parts}}<h2>{{.Title}}</h2>
<table><tr><th>Found</th><th>Gone</th><th>What</th><th>When (red: still so)</th></tr>
{{range .Rows}}<tr><td class="t">{{.Found}}</td><td class="t">{{.Gone}}</td><td>{{.What}}</td><td><div class="line"><i {{if .Open}}class="open" {{end}}style="left:{{.Bar.Left}}%;width:{{.Bar.Width}}%"></i></div></td></tr>
{{end}}</table>{{if .More}}<p>{{.More}} more are in the JSON document.</p>{{end}}
{{end}}<h2>What ibwarden would write</h2>
<ul>{{range .Writes}}<li>{{.}}</li>{{end}}</ul>
</body></html>
`
