package consoletest

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ibwarden/ibwarden/test/need"
)

// telephone is the width of one, in pixels.
const telephone = 390

// palette opens the palette with its keys, types a text, and waits until all is read.
func (p *page) palette(text string) {
	p.Helper()
	if err := p.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl))); err != nil {
		p.Fatal(err)
	}
	p.until(`document.querySelector('dialog.palette[open]')`)
	must(p, input.InsertText, input.InsertTextParams{Text: text})
	p.until(`!document.querySelector('.palette [role=status]').textContent.includes('Reading')`)
	p.steps += 2
}

// choices are what the palette offers, each with what stands beside it.
func (p *page) choices() (list []string) {
	p.Helper()
	p.evaluate(`[...document.querySelectorAll('.palette [role=option]')].map(o => [...o.children].map(c => c.textContent).join(': '))`, &list)
	return list
}

// TestPalette: by the keyboard alone, whatever has a name or a number is found and shown, and
// what can be done begins; the palette is read out and fits a telephone.
func TestPalette(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := demonstration(t)
	p := s.open(t)
	red, blue, spine := s.node("red-1"), s.node("blue-4"), s.node("spine-1")
	lid := s.item("/ports/" + s.guid("red-1"))["lid"]
	onMap := "#/fabric?node=" + red.GUID.String()
	for _, x := range []struct{ text, first, to string }{
		{"red-1", "red-1 HCA-1: host " + red.GUID.String() + ".*", onMap},
		{red.GUID.String(), "red-1 HCA-1: host .*", onMap},
		{strings.ToUpper(strings.TrimPrefix(s.guid("red-1"), "0x")), "red-1 HCA-1:1: end port " + s.guid("red-1") + ".*", onMap + "&port=1"},
		{fmt.Sprintf("lid %v", lid), "red-1 HCA-1: host .*", onMap},
		{"spine-1", "spine-1.*: switch .*", "#/fabric?node=" + spine.GUID.String()},
		{"GREEN", "green: tenant", "#/tenants?name=green"},
		{"0x8100", "green-all: partition 0x0100, of green", "#/tenants?name=green"},
		{"revision 2", "Revision 2: .*", "#/history?revision=2"},
		{"hist", "History: page", "#/history"},
		{"roll back", "Roll back: action.*", "#/history?rollback=which"},
		{"move ports", "Move ports: action", "#/change?task=move"},
		{"move red-1", "Move it: red-1 HCA-1: .*", "#/change?task=move&ports=" + s.guid("red-1")},
		{"why red-1 blue-4", "Why: red-1 HCA-1 and blue-4 HCA-1: .*", "#/why?from=" + s.guid("red-1") + "&to=" + blue.Ports[1].GUID.String()},
	} {
		p.palette(x.text)
		if list := p.choices(); len(list) == 0 || !matches(x.first, list[0]) {
			t.Errorf("%q finds %q: want %q first", x.text, list, x.first)
		}
		p.press(kb.Enter)
		p.until(fmt.Sprintf(`location.hash.startsWith(%q) && !document.querySelector('dialog')`, strings.ReplaceAll(x.to, ",", "%2C")))
		p.ready()
	}
	p.find("button", "Find …").click()
	p.find("combobox", "Find").fill("no such thing")
	p.says("Nothing is called so")
	p.press(kb.Escape)
	p.until(`!document.querySelector('dialog') && document.activeElement.textContent === 'Find …'`)
	p.size(telephone, 740, 2)
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		p.palette("red")
		p.press(kb.ArrowDown)
		p.until(`document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).matches('[aria-selected=true]:nth-child(2)')`)
		p.accessible("the palette, " + scheme)
		p.fits("the palette", telephone)
		p.press(kb.Escape)
		p.until(`!document.querySelector('dialog')`)
	}
}

// TestPaletteOfTenant: a tenant finds what is his, and is offered nothing that he may not do.
func TestPaletteOfTenant(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := demonstration(t)
	s.tenant("violet", "0x200", "blue-6", "red-4")
	p := s.openAs(t, s.token("green", "read_only", true))
	offered := regexp.MustCompile(`Managers|Traffic|Move|Give|Roll back|Members of|blue-6|violet|spine`)
	for _, text := range []string{"", "move red-5", "blue-6", s.guid("blue-6"), s.node("spine-1").GUID.String(), "violet", "0x0200", "spine"} {
		p.palette(text)
		list := p.choices()
		if i := slices.IndexFunc(list, offered.MatchString); i >= 0 {
			t.Errorf("a tenant who only reads is offered %q for %q", list[i], text)
		}
		if text == "" && len(list) < 7 {
			t.Errorf("a tenant is offered %q: want the pages", list)
		}
		if said := p.text(`document.querySelector('.palette [role=status]').textContent`); strings.Contains(said, "Not all") {
			t.Errorf("%q: %s", text, said)
		}
		p.press(kb.Escape)
		p.until(`!document.querySelector('dialog')`)
	}
	p.palette("red-5")
	if list := p.choices(); len(list) != 2 {
		t.Errorf("red-5 is %q: want the host and its port", list)
	}
	p.find("option", "red-5 HCA-1 ?host .*").click()
	p.until(`location.hash.startsWith('#/fabric?node=')`)
}

// TestKeys: ? lists the keys, those that docs/console.md has.
func TestKeys(t *testing.T) {
	need.Long(t, "seconds of a browser")
	p := demonstration(t).open(t)
	p.goTo("#/fabric")
	p.evaluate(`document.querySelector('main canvas').focus()`, nil)
	p.press("?")
	p.find("dialog", "Keys")
	p.accessible("the keys")
	var listed [][]string
	p.evaluate(`[...document.querySelectorAll('dialog tbody tr')].map(tr => [...tr.cells].map(c => c.textContent))`, &listed)
	text, err := os.ReadFile("../../docs/console.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Keys\n")
	var documented [][]string
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\| (.*?) \\| (.*?) \\|$").FindAllStringSubmatch(section, -1) {
		documented = append(documented, []string{strings.ReplaceAll(row[1], "`", ""), row[2], row[3]})
	}
	if len(listed) < 8 || !slices.EqualFunc(listed, documented, slices.Equal) {
		t.Errorf("? lists\n%q\nand docs/console.md has\n%q", listed, documented)
	}
	p.find("button", "Close").click()
	p.until(`!document.querySelector('dialog')`)
}
