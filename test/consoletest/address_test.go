package consoletest

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ibwarden/ibwarden/test/need"
)

// reload loads the page again, as its address is.
func (p *page) reload() {
	p.Helper()
	p.evaluate(`(() => { window.before = true; location.reload(); })()`, nil)
	p.until(`!window.before && document.querySelector('main .page[data-ready=true]')`)
	p.quiet()
}

// addressed are what somebody can choose on a page: afterwards shows is true.
var addressed = []struct {
	name, page string
	choose     func(*page)
	shows      string
	typed      bool // a choice without a step of its own for Back: that leads to the page before
}{
	{"colour", "#/fabric", func(p *page) { p.find("combobox", "Colour by").choose("State") }, `ibwarden.map.mode === 'state' && document.querySelector('.maptools select').value === 'state'`, false},
	{"one colour alone", "#/fabric?colour=owner", func(p *page) { p.find("button", `green \(3\)`).click() }, `ibwarden.map.dim === 'owner green' && document.querySelector('.legends [aria-pressed=true]')`, false},
	{"device", "#/fabric", func(p *page) {
		p.find("searchbox", "Search").fill("red-1")
		p.press(kb.Enter)
	}, `document.querySelector('.side h2').textContent.startsWith('red-1 ')`, false},
	{"port", "#/fabric", func(p *page) {
		p.find("searchbox", "Search").fill("leaf-1")
		p.press(kb.Enter)
		p.find("button", "3").click()
	}, `document.querySelector('.side h3')?.textContent === 'Port 3'`, false},
	{"search of the map", "#/fabric", func(p *page) { p.find("searchbox", "Search").fill("storage") }, `document.querySelectorAll('#found button').length > 1`, true},
	{"cell", "#/tenants", func(p *page) { p.find("gridcell", "green and ports in blue.*").click() }, `document.querySelector('[data-cell] h3')?.textContent.startsWith('green and ports in blue')`, false},
	{"ports of a cell", "#/tenants", func(p *page) {
		p.find("gridcell", "green and ports in blue.*").click()
		p.find("button", "Port by port").click()
	}, `document.querySelector('[data-ports] [data-talk]')`, false},
	{"order of a table", "#/tenants", func(p *page) { p.find("button", "Ports").click() }, `document.querySelector('th[aria-sort=descending]')?.textContent === 'Ports'`, false},
	{"partition", "#/change", func(p *page) { p.find("combobox", "Partition").choose("A new partition…") }, `document.querySelector('[data-task] select').value === 'new'`, false},
	{"ports to move", "#/change?task=move", func(p *page) { p.find("checkbox", "Choose red-5 .*").click() }, `document.querySelectorAll('[data-chosen]').length === 1`, true},
	{"partition to move to", "#/change?task=move", func(p *page) { p.find("combobox", "To the partition").choose("green-all .*") }, `document.querySelector('[data-task] select')?.value === '0x0100' && location.hash.includes('0x0100')`, true},
	{"tenant to give to", "#/change?task=give", func(p *page) { p.find("combobox", "Tenant").choose("the provider itself") }, `[...document.querySelectorAll('[data-task] select')].some(e => e.value === 'provider')`, true},
	{"verdict", "#/proof", func(p *page) { p.find("combobox", "Verdict").choose("violated") }, `document.querySelector('[data-part=pairs] select').value === 'violated'`, false},
	{"severity", "#/proof", func(p *page) { p.find("combobox", "Severity").choose("high") }, `document.querySelectorAll('[data-part=audit] select')[1].value === 'high'`, false},
	{"since", "#/history", func(p *page) { p.find("combobox", "Since").choose("the last day") }, `document.querySelector('[data-part=changes] select').value === 'day'`, false},
	{"who", "#/history?since=day", func(p *page) { p.find("searchbox", "Who").fill("nobody") }, `document.body.innerText.includes('No such change') && document.querySelector('[data-part=changes] select').value === 'day'`, true},
	{"decision", "#/history", func(p *page) { p.find("combobox", "Decision").choose("refused") }, `document.body.innerText.includes('No such entry')`, false},
	{"kind", "#/events", func(p *page) { p.find("combobox", "Kind").choose("changes") }, `document.querySelector('[data-part=events] select').value === 'revision'`, false},
	{"traffic", "#/traffic", func(p *page) { p.find("combobox", "First").choose("by name") }, `document.querySelector('[data-part=ports] select').value === 'place'`, false},
}

// TestAddress: what is chosen on a page stands in its address: it is there when the page is loaded
// again, Back takes it back, and Forward brings it again.
func TestAddress(t *testing.T) {
	need.Long(t, "chooses on every page, and goes back and forward")
	s := demonstration(t)
	p := s.open(t)
	for _, x := range addressed {
		t.Log(x.name)
		p.goTo("#/managers")
		p.goTo(x.page)
		if p.text("!!("+x.shows+")") != "false" {
			t.Fatalf("before it is chosen, %s is true", x.shows)
		}
		x.choose(p)
		p.until(x.shows)
		p.reload()
		p.until(x.shows)
		p.evaluate(`history.back()`, nil)
		p.until("!(" + x.shows + ")")
		// The address changes before the page does.
		p.until(fmt.Sprintf("(document.querySelector('main').dataset.page === 'managers') === %t", x.typed))
		p.evaluate(`history.forward()`, nil)
		p.until(x.shows)
	}
}

// TestAddressOfView: the part of the map that is seen, and how near, is the same when the page is
// loaded again, and about the same device in a window of another shape.
func TestAddressOfView(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := demonstration(t)
	p := s.open(t)
	p.goTo("#/fabric")
	for range 4 {
		p.find("button", "Nearer").click()
	}
	p.evaluate(`document.querySelector('main canvas').focus()`, nil)
	for range 3 {
		p.press(kb.ArrowRight)
	}
	p.until(`location.hash.includes('view=')`)
	p.until(`location.hash.includes(new URLSearchParams({view: ibwarden.map.where()}).toString())`)
	const seen = `JSON.stringify([ibwarden.map.view.scale, ibwarden.map.view.x, ibwarden.map.view.y].map(n => +n.toFixed(1)))`
	before, device := p.text(seen), p.text(`ibwarden.map.first()`)
	p.reload()
	if after := p.text(seen); after != before {
		t.Errorf("the map shows %s, before it was loaded again %s", after, before)
	}
	p.size(telephone, 740, 2)
	p.reload()
	if after := p.text(`ibwarden.map.first()`); after != device {
		t.Errorf("in a narrow window device %s is in the middle: want %s", after, device)
	}
	p.find("button", "The whole").click()
	p.until(`!location.hash.includes('view=')`)
	for _, bad := range []string{"view=nonsense", "view=0x1,2,3,4", "view=" + s.node("red-1").GUID.String() + ",1e999,NaN,-1", "colour=load%22", "alone=%3Cscript%3E", "box=nothing", "node=0x1&port=x"} {
		p.goTo("#/fabric?" + bad)
		if scale := p.text(`Number.isFinite(ibwarden.map.view.scale + ibwarden.map.view.x) && ibwarden.map.view.scale > 0`); scale != "true" {
			t.Errorf("%s breaks the view", bad)
		}
	}
}
