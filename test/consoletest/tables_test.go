package consoletest

import (
	"fmt"
	"strings"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

const (
	manyRows  = 10000 // ports of one tenant
	drawnMost = 80    // rows of them that are in the document at once
	firstMany = 0x1000
)

// manyPorts is the demonstration fabric with a tenant of 10,000 ports that are not there yet, all of
// them members of its partition.
func manyPorts(t *testing.T) *site {
	t.Helper()
	s := newSite(t, topology.Demo())
	s.do("PUT", "/tenants/many", js{"keys": js{"first": "0x0200", "last": "0x020f"}}, "If-None-Match", "*")
	var ports, members []js
	for i := range manyRows {
		guid := fmt.Sprintf("0x%016x", firstMany+i)
		ports = append(ports, js{"guid": guid})
		members = append(members, js{"port": guid, "membership": "full"})
	}
	s.do("POST", "/ports/assign", js{"tenant": "many", "ports": ports})
	s.do("POST", "/partitions?wait=proved", js{"name": "crowd", "owner": "many", "pkey": "0x0200", "members": members})
	return s
}

// tableOf is, in the page, the table with a caption.
func tableOf(caption string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('.tablebox')].find(e => e.querySelector('caption')?.textContent === %q)`, caption)
}

// drawn are the rows of a table that are in the document: how many, the place of the first and the
// last among all, and the text of the first row in view.
type drawn struct {
	Rows, All, First, Last int
	Text                   string
}

func (p *page) drawn(caption string) (d drawn) {
	p.Helper()
	p.evaluate(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
		const box = `+tableOf(caption)+`, view = box.querySelector('.table'), rows = [...box.querySelectorAll('tbody tr[aria-rowindex]')];
		const seen = rows.find(r => r.getBoundingClientRect().bottom > view.getBoundingClientRect().top + box.querySelector('thead').offsetHeight);
		done({rows: rows.length, all: Number(box.querySelector('table').getAttribute('aria-rowcount')) - 1, first: Number(rows[0]?.getAttribute('aria-rowindex')) - 1,
			last: Number(rows.at(-1)?.getAttribute('aria-rowindex')) - 1, text: seen ? seen.innerText : ''});
	})))`, &d)
	if d.Rows > drawnMost {
		p.Errorf("%s: %d rows are in the document: want at most %d", caption, d.Rows, drawnMost)
	}
	return d
}

// wantDrawn fails the test unless a table has so many rows, of which the first in view has a text.
func (p *page) wantDrawn(what, caption string, all int, text string) {
	p.Helper()
	p.eventually(what, func() error {
		if d := p.drawn(caption); d.All != all || !strings.Contains(d.Text, text) {
			return fmt.Errorf("it is %+v: want %d rows, %s first", d, all, text)
		}
		return nil
	})
}

// TestManyRows: of 10,000 rows those in view are drawn; all of them are sorted, filtered, chosen, saved
// and printed.
func TestManyRows(t *testing.T) {
	need.Long(t, "seconds of a browser, and a tenant of 10,000 ports")
	s := manyPorts(t)
	p := s.open(t)
	p.goTo("#/tenants?name=many")
	p.wantDrawn("at first", "Ports", manyRows, "0x0000000000001000")
	p.evaluate(tableOf("Ports")+`.querySelector('.table').scrollTop = 200000`, nil)
	if d := p.drawn("Ports"); d.First < 1000 || d.Last > 9000 {
		t.Errorf("scrolled to the middle, %+v is drawn", d)
	}
	p.evaluate(tableOf("Ports")+`.querySelector('thead button').focus()`, nil)

	// Order and filter are in the address.
	p.evaluate(tableOf("Ports")+`.querySelectorAll('thead button')[1].click()`, nil)
	p.evaluate(tableOf("Ports")+`.querySelectorAll('thead button')[1].click()`, nil)
	p.wantDrawn("sorted by GUID, downwards", "Ports", manyRows, "0x000000000000370f")
	if got := p.text(tableOf("Ports") + `.querySelector('[aria-sort=descending]').textContent`); got != "GUID" {
		t.Errorf("sorted by %s", got)
	}
	p.find("searchbox", "Filter: Ports").fill("not 0x00000000000012")
	p.wantDrawn("filtered", "Ports", 256, "0x00000000000012ff")
	p.goTo(p.text("location.hash"))
	p.wantDrawn("filtered and sorted by the address", "Ports", 256, "0x00000000000012ff")
	if csv := rows(t, p.saved("Ports", "csv", "ibwarden-ports.csv")); len(csv) != 257 || csv[0][1] != "GUID" || csv[1][1] != "0x00000000000012ff" || csv[256][1] != "0x0000000000001200" {
		t.Errorf("%d rows are saved, first %q", len(csv), csv[:2])
	}

	// The second to the fifth, and then all that the filter leaves.
	p.evaluate(`(boxes => { boxes[1].click(); boxes[4].dispatchEvent(new MouseEvent('click', {bubbles: true, shiftKey: true})); })(`+tableOf("Ports")+`.querySelectorAll('[data-pick]'))`, nil)
	p.says("256 of 10,000 rows, 4 chosen")
	p.find("checkbox", "Choose all: Ports").click()
	p.says("256 of 10,000 rows, 256 chosen")
	p.find("searchbox", "Filter: Ports").fill("")
	p.says("10,000 rows, 256 chosen")
	p.wantDrawn("without filter", "Ports", manyRows, "0x000000000000370f")
	if csv := rows(t, p.saved("Ports", "csv", "ibwarden-ports.csv")); len(csv) != manyRows+1 || csv[manyRows][1] != "0x0000000000001000" {
		t.Errorf("%d rows are saved, last %q", len(csv), csv[len(csv)-1])
	}
	if got := p.text(`(() => {
		dispatchEvent(new Event('beforeprint'));
		const n = ` + tableOf("Ports") + `.querySelectorAll('tbody tr').length;
		dispatchEvent(new Event('afterprint'));
		return n;
	})()`); got != fmt.Sprint(manyRows) {
		t.Errorf("%s rows are printed", got)
	}
	p.wantDrawn("after printing", "Ports", manyRows, "0x000000000000370f")
	for _, w := range []window{wide, {"narrow", 390, 844, 2}} {
		p.size(w.width, w.height, w.scale)
		for _, scheme := range []string{"light", "dark"} {
			p.scheme(scheme)
			p.evaluate(tableOf("Ports")+`.scrollIntoView()`, nil)
			p.wantDrawn("in a window that is "+w.name, "Ports", manyRows, "")
			p.looksRight("10,000 ports, "+w.name+", "+scheme, true)
			p.screenshot("ports-" + w.name + "-" + scheme)
		}
	}
	p.size(wide.width, wide.height, 1)
	p.find("button", "Take…").click()
	p.says("256 ports chosen")
	p.looksRight("256 ports to take", true)
	p.screenshot("ports-to-take")
	p.find("button", "Show the plan").click()
	p.says("Take 256 ports from many")
}

// TestManyMembers: members are filtered, chosen with the keyboard alone, and changed together.
func TestManyMembers(t *testing.T) {
	need.Long(t, "seconds of a browser, and a partition of 10,000 members")
	s := manyPorts(t)
	p := s.open(t)
	const caption = "Members of crowd (0x0200)"
	p.goTo("#/change?partition=0x0200")
	p.wantDrawn("at first", caption, manyRows, "0x0000000000001000")
	p.evaluate(tableOf(caption)+`.querySelector('[data-filter]').focus()`, nil)
	must(p, cdppage.BringToFront, struct{}{})
	p.press("12")
	p.press("3")
	p.wantDrawn("filtered", caption, 16+3, "") // 0x1230 to 0x123f, and 0x1123 to 0x3123
	for range len("123") {
		p.press(kb.Backspace)
	}
	p.wantDrawn("without filter", caption, manyRows, "0x0000000000001000")
	p.reach(`document.activeElement.dataset.pick === '0'`)
	p.press(" ")
	for range 100 { // to rows that are not drawn at first
		p.press(kb.ArrowDown)
	}
	if got := p.text(`document.activeElement.dataset.pick`); got != "100" {
		t.Fatalf("the focus is at %s: want row 100", got)
	}
	p.drawn(caption)
	if err := p.do(chromedp.KeyEvent(" ", chromedp.KeyModifiers(chromedp.ModifierShift))); err != nil {
		t.Fatal(err)
	}
	p.says("10,000 rows, 101 chosen")
	p.press(kb.Escape)
	if got := p.text(`document.activeElement.textContent`); got != "Save "+caption {
		t.Errorf("after Escape %q has the focus", got)
	}
	p.evaluate(`document.activeElement.closest('.tablebox').querySelector('[data-filter]').focus()`, nil)
	p.reach(`document.activeElement.dataset.act === 'Make them limited'`)
	p.press(kb.Enter)
	p.says("0 to add, 0 to remove, 101 to change")
	p.find("button", "Show the plan").click()
	p.find("button", "Apply").click()
	p.says("The change is made and proved")
	limited := 0
	for _, m := range s.items("/partitions/0x0200/members") {
		if m["membership"] == "limited" {
			limited++
		}
	}
	if limited != 101 {
		t.Errorf("%d members are limited: want 101", limited)
	}
}

// reach presses Tab until something has the focus.
func (p *page) reach(is string) {
	p.Helper()
	for range 40 {
		if p.text(is) == "true" {
			return
		}
		p.press(kb.Tab)
	}
	p.Fatalf("40 presses of Tab do not lead to %s, but to %s", is, p.text(`document.activeElement.outerHTML.slice(0, 200)`))
}
