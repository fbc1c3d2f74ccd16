package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/judge/shadow"
)

// kept makes a data directory with records of every kind, in which what a device, a policy or an
// error may say is name.
func kept(t testing.TB, name string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	store, err := files.OpenShadow(filepath.Join(dir, shadowDir))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	records := []shadow.Record{
		{At: now.Add(-time.Hour), Gap: &shadow.Gap{From: now.Add(-2 * time.Hour), Until: now.Add(-time.Hour), Why: name}},
		{At: now, Round: &shadow.Round{Complete: true, Reads: 100, Took: time.Second}},
		{At: now, Writes: &shadow.Writes{Blocks: 1, By: []shadow.AttributeWrites{{Attribute: "PKeyTable", Blocks: 1}}, First: []string{name}}},
	}
	for i, k := range shadowTitles {
		p := shadow.Port{GUID: 1, Name: name, Switch: 2, Partitions: []string{name}}
		s := shadow.Span{Fact: shadow.Fact{Kind: k.kind, A: p, B: p, Text: name}, Began: now.Add(-time.Minute)}
		if i%2 == 0 {
			s.Ended = now
		}
		records = append(records, shadow.Record{At: now, Span: &s})
	}
	if err := store.Append(now, records, func() []shadow.Record { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// reported runs the command.
func reported(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	if status := Main(append([]string{"show", "shadow"}, args...), &out, &errs); status != 0 {
		t.Fatalf("exit status %d: %s", status, errs.String())
	}
	return out.String()
}

// TestShadowReportEscapes: what a device calls itself steers neither a terminal nor a browser, in
// any part of a report.
func TestShadowReportEscapes(t *testing.T) {
	tags := regexp.MustCompile(`<[^>]*>`)
	page := func(dir string) (string, []string) {
		file := filepath.Join(dir, "page.html")
		reported(t, "--data", dir, "--html", file)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, tag := range tags.FindAllString(string(text), -1) {
			if !strings.HasPrefix(tag, "<i ") { // its place depends on the time
				found = append(found, tag)
			}
		}
		return string(text), found
	}
	_, want := page(kept(t, "host-1"))
	for _, name := range []string{
		"<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onmouseover='alert(1)", "</style><script>", "</title>", "<!--", "{{.}}", "a&lt;b",
		"\x1b[2J\x1b]0;owned\x07", "\u009b31m", "red\r\nexposure\tgone", "\u202egnp.exe", "\xff\xfe", strings.Repeat("<b>", 2000),
	} {
		dir := kept(t, name)
		text, json := reported(t, "--data", dir), reported(t, "--data", dir, "--json")
		html, got := page(dir)
		if !slices.Equal(got, want) {
			t.Errorf("%q: tags %q, want %q", name, got, want)
		}
		for what, out := range map[string]string{"text": text, "page": html} {
			if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%q: the %s has %q", name, what, out[i:min(i+10, len(out))])
			}
			if a, b := strings.Count(out, "\n"), strings.Count(name, "\n"); a > 200 {
				t.Errorf("%q: the %s has %d lines, the name %d", name, what, a, b)
			}
		}
		if strings.ContainsAny(json, "\x1b\x07<>") {
			t.Errorf("%q: the document has it as it is", name)
		}
	}
}

// TestShadowReport: the text and the document say what was kept.
func TestShadowReport(t *testing.T) {
	dir := kept(t, "host-1")
	text := reported(t, "--data", dir, "--since", "1d")
	for _, want := range []string{"1 reading, 0 of them not read entirely; 100 requests, 100 a second at most", "still so", "ibwarden would write 1 block: 1 PKeyTable; the first:", "\n  host-1\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, x := range shadowTitles {
		if !strings.Contains(text, "\n"+x.title+":\n") {
			t.Errorf("no %q in\n%s", x.title, text)
		}
	}
	var d shadow.Summary
	if err := json.Unmarshal([]byte(reported(t, "--data", dir, "--json")), &d); err != nil || len(d.Spans) != len(shadowTitles) || len(d.Gaps) != 1 || d.Rounds != 1 {
		t.Errorf("%v: %+v", err, d)
	}
	for _, args := range [][]string{{"--since", "7w"}, {"--since", "0d"}, {"--since", "-1h"}, {"--since", fmt.Sprint(files.Days+1, "d")}, {"--data", t.TempDir()}, {"--html", "x", "--json"}} {
		var out, errs strings.Builder
		if status := Main(append([]string{"show", "shadow", "--data", dir}, args...), &out, &errs); status != 2 {
			t.Errorf("%v: exit status %d, want 2: %s", args, status, errs.String())
		}
	}
}

// A fabric that is open has more pairs than a terminal has lines.
func TestShadowReportIsBounded(t *testing.T) {
	s := shadow.Summary{Spans: make([]shadow.Span, textRowsMax+3)}
	for i := range s.Spans {
		s.Spans[i].Fact = shadow.Fact{Kind: shadow.Exposure, Text: fmt.Sprint("pair ", i)}
	}
	var b strings.Builder
	if err := printShadow(&b, &s); err != nil {
		t.Fatal(err)
	}
	if out := b.String(); strings.Count(out, "pair ") != textRowsMax || !strings.Contains(out, "and 3 more: --json or --html") {
		t.Errorf("%d of %d pairs in\n%s", strings.Count(out, "pair "), len(s.Spans), out)
	}
}
