package consoletest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ibwarden/ibwarden/test/need"
)

// window is how much of a page is seen at once.
type window struct {
	name          string
	width, height int64
	scale         float64
}

// The windows in which every page is looked at. At 200 % a window of 1440 pixels has room
// for 720 of CSS, each of two by two.
var (
	wide   = window{"wide", 1440, 900, 1}
	zoomed = window{"at 200 %", 720, 450, 2}
	narrow = window{"narrow", 360, 740, 2}
)

// views are the pages, with what is seen of one thing on them.
func (s *site) views(p *page) []string {
	s.Helper()
	list := p.pages()
	ports := s.items("/ports?found=true")
	guids := []string{}
	for _, port := range ports {
		guids = append(guids, port["guid"].(string))
	}
	if len(guids) > 5 {
		list = append(list, "#/why?from="+guids[1]+"&to="+guids[len(guids)-1], "#/why?from="+guids[2]+"&to="+guids[3])
	}
	if tenants := s.items("/tenants"); len(tenants) > 1 {
		list = append(list, "#/tenants?name="+tenants[len(tenants)-1]["name"].(string))
	}
	return list
}

// looksRight fails the test where a page is wider than its window, has no heading, shows a
// fault, or has something that axe finds.
func (p *page) looksRight(where string, axe bool) {
	p.Helper()
	var is struct {
		Wide, Window int
		H1, Fault    []string
		Main         string
	}
	p.evaluate(`({
		wide: document.documentElement.scrollWidth, window: document.documentElement.clientWidth,
		h1: [...document.querySelectorAll('h1')].map(e => e.textContent),
		fault: [...document.querySelectorAll('.fault, #notices .bad')].map(e => e.textContent).filter(t => t),
		main: document.querySelector('main .page').innerText,
	})`, &is)
	if is.Wide > is.Window {
		p.Errorf("%s: the page is %d pixels wide, the window %d: %s", where, is.Wide, is.Window, p.text(`[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !e.parentElement.closest('.table')).slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join(' | ')`))
	}
	if len(is.H1) != 1 || is.H1[0] == "" {
		p.Errorf("%s: the headings of the first level are %q: want one", where, is.H1)
	}
	if len(is.Fault) > 0 {
		p.Errorf("%s: it shows the faults %q", where, is.Fault)
	}
	if strings.TrimSpace(is.Main) == "" {
		p.Errorf("%s: nothing is on the page", where)
	}
	if axe {
		p.accessible(where)
	}
}

// everyPage opens every page in light and dark, narrow, and at 200 %; of fabrics that
// differ in what is on the pages only, not all of these together.
func (s *site) everyPage(t *testing.T, all bool) {
	p := s.open(t)
	views := s.views(p)
	for _, look := range []struct {
		scheme string
		window
		axe, always bool
	}{{"light", wide, true, true}, {"light", zoomed, false, false}, {"light", narrow, true, false}, {"dark", narrow, false, true}, {"dark", wide, true, false}} {
		if !all && !look.always {
			continue
		}
		p.scheme(look.scheme)
		p.size(look.width, look.height, look.scale)
		for _, view := range views {
			p.goTo(view)
			p.looksRight(fmt.Sprintf("%s, %s, %s", view, look.scheme, look.name), look.axe)
		}
	}
}

func TestEveryPage(t *testing.T) {
	t.Run("demonstration", func(t *testing.T) { demonstration(t).everyPage(t, !testing.Short()) })
	need.Long(t, "opens every page of other fabrics too")
	t.Run("faults", func(t *testing.T) { faulty(t).everyPage(t, false) })
	t.Run("40 tenants", func(t *testing.T) { manyTenants(t).everyPage(t, false) })
}

// focusable has what the keyboard is to reach on a page: of radio buttons of one name, the
// one that is chosen.
const focusable = `(() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')].filter(e =>
	e.tabIndex >= 0 && !e.disabled && e.checkVisibility({visibilityProperty: true}) && !e.closest('[inert]') &&
	!(e.type === 'radio' && !e.checked && document.querySelector('input[type=radio][name="' + CSS.escape(e.name) + '"]:checked'))))()`

// key tells one control from the next, also when the page has drawn it again.
const key = `(e => [e.tagName, e.id.replace(/[0-9]+/, ''), e.getAttribute('href'), e.getAttribute('aria-label'), e.name,
	(document.getElementById(e.getAttribute('aria-labelledby')) || e).textContent.slice(0, 60)].join('|'))`

// TestKeyboard: Tab reaches every control of every page, which shows that it has the focus,
// and Enter on a link leads to its page, whose heading has the focus then.
func TestKeyboard(t *testing.T) {
	need.Long(t, "walks through every page")
	s := demonstration(t)
	p := s.open(t)
	for _, view := range s.views(p) {
		p.goTo(view)
		p.tabThrough(view)
	}
	for i, hash := range p.pages() {
		p.evaluate(fmt.Sprintf(`document.querySelectorAll('nav.pages a')[%d].focus()`, i), nil)
		p.press(kb.Enter)
		p.until(fmt.Sprintf(`location.hash === %q && document.querySelector('main').dataset.page === %q`, hash, strings.TrimPrefix(hash, "#/")))
		p.ready()
		if on := p.text(`document.activeElement.tagName`); on != "H1" {
			t.Errorf("after Enter on the link to %s, %s has the focus: want the heading", hash, p.text(`document.activeElement.outerHTML.slice(0, 100)`))
		}
	}
}

// tabMost is how often Tab is pressed on a page at most.
const tabMost = 400

func (p *page) tabThrough(where string) {
	p.Helper()
	reached := map[string]bool{}
	ends := 0 // how often the last control was passed: from the heading to the end, and then from the beginning
	for range tabMost {
		p.press(kb.Tab)
		var at struct {
			Body, Seen bool
			Key        string
		}
		p.evaluate(`(() => {
			const e = document.activeElement, style = getComputedStyle(e);
			return {body: e === document.body, key: `+key+`(e),
				seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== 'none'};
		})()`, &at)
		if at.Body {
			if ends++; ends == 2 {
				break
			}
			continue
		}
		if !at.Seen && !reached[at.Key] {
			p.Errorf("%s: nothing shows that %s has the focus", where, at.Key)
		}
		reached[at.Key] = true
	}
	var all []string
	p.evaluate(focusable+`.map(`+key+`)`, &all)
	if len(all) < 10 {
		p.Errorf("%s: %d controls: want those of the frame at least", where, len(all))
	}
	all = slices.DeleteFunc(all, func(k string) bool { return reached[k] })
	if len(all) > 0 && len(reached) < tabMost {
		p.Errorf("%s: Tab does not reach %d of the controls: %q", where, len(all), all[:min(5, len(all))])
	}
}
