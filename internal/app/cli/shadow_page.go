package cli

import (
	"fmt"
	"html"
	"io"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/judge/shadow"
)

// pageRowsMax bounds the rows of a part of the page; --json has all.
const pageRowsMax = 1000

// minBar is the least width of a bar on the time line, in percent of it, so that it can be seen.
const minBar = 0.2

// page is the text of the page. All that devices say of themselves is added by list and cell, which
// escape it, and the page may run nothing and fetch nothing. html/template would keep all methods
// there are in the program: an eighth of its size.
type page struct {
	strings.Builder
	since, until time.Time
}

func (p *page) add(format string, numbers ...any) { fmt.Fprintf(p, format, numbers...) }

func (p *page) cell(open, text, end string) {
	p.WriteString(open + html.EscapeString(text) + end)
}

func (p *page) list(texts []string) {
	p.add("<ul>")
	for _, text := range texts {
		p.cell("<li>", text, "</li>")
	}
	p.add("</ul>\n")
}

// bar draws a stretch of the time line.
func (p *page) bar(class string, from, until time.Time) {
	whole := p.until.Sub(p.since).Seconds()
	left := min(max(from.Sub(p.since).Seconds()/whole, 0), 1) * 100
	right := min(max(until.Sub(p.since).Seconds()/whole, 0), 1) * 100
	p.add(`<i class="%s" style="left:%.2f%%;width:%.2f%%"></i>`, class, min(left, 100-minBar), max(right-left, minBar))
}

// printShadowPage writes the page.
func printShadowPage(w io.Writer, s *shadow.Summary) error {
	p := &page{since: s.Since, until: s.Until}
	p.add("%s<h1>Shadow report</h1>\n", pageHead)
	p.list(shadowLines(s))
	p.cell("<h2>Readings</h2>\n<div class=\"ends\"><span>", clock(s.Since), "</span>")
	p.cell("<span>", clock(s.Until), "</span></div>\n<div class=\"line\">")
	var gaps []string
	for _, g := range s.Gaps {
		p.bar("gap", g.From, g.Until)
		gaps = append(gaps, terminal.Plain(clock(g.From)+" to "+clock(g.Until)+": "+g.Why))
	}
	p.add("</div>\n")
	if len(gaps) > 0 {
		p.add("<p>No reading:</p>")
		p.list(gaps)
	}
	for _, t := range shadowTitles {
		p.part(t.title, spansOf(s, t.kind))
	}
	p.add("<h2>What ibwarden would write</h2>\n")
	p.list(writesText(s.Writes))
	p.add("</body></html>\n")
	_, err := io.WriteString(w, p.String())
	return err
}

// spansOf are the spans of a kind.
func spansOf(s *shadow.Summary, k shadow.Kind) (list []*shadow.Span) {
	for i := range s.Spans {
		if s.Spans[i].Kind == k {
			list = append(list, &s.Spans[i])
		}
	}
	return list
}

func (p *page) part(title string, list []*shadow.Span) {
	if len(list) == 0 {
		return
	}
	p.cell("<h2>", title, "</h2>\n<table><tr><th>Found</th><th>Gone</th><th>What</th><th>When (red: still so)</th></tr>\n")
	for _, x := range list[:min(len(list), pageRowsMax)] {
		row, until, class := rowOf(x), x.Ended, ""
		if x.Ended.IsZero() {
			until, class = p.until, "open"
		}
		p.cell(`<tr><td class="t">`, row.Found, "</td>")
		p.cell(`<td class="t">`, row.Gone, "</td>")
		p.cell(`<td>`, row.What, `</td><td><div class="line">`)
		p.bar(class, x.Began, until)
		p.add("</div></td></tr>\n")
	}
	p.add("</table>")
	if more := len(list) - pageRowsMax; more > 0 {
		p.add("<p>%d more are in the JSON document.</p>", more)
	}
	p.add("\n")
}

const pageHead = `<!DOCTYPE html>
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
`
