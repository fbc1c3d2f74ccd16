package consoletest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ibwarden/ibwarden/test/need"
)

// racksFile is a file for --racks.
func racksFile(t testing.TB, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "racks")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pods is a fat tree of 2,000 hosts in 20 pods of 10 racks, and two planes, large enough that its boxes are
// folded at first.
func pods(t testing.TB) *site {
	t.Helper()
	s := newSiteOn(t, "sim:fattree,radix=20,levels=3", "--racks", racksFile(t,
		`/^[HEA](?<pod>\d+)_/`, `/^[HE]\d+_(?<rack>\d+)/`, `/^C\d*[02468]$/ plane=even`, `/^C/ plane=odd`))
	s.start()
	s.verdict("isolated.*")
	return s
}

// folded are the boxes that are folded.
func (p *page) folded() (list []string) {
	p.Helper()
	p.evaluate(`ibwarden.drawn().folded`, &list)
	return list
}

// unfolded waits until every box is folded but for some.
func (p *page) unfolded(want ...string) {
	p.Helper()
	p.eventually(fmt.Sprintf("%v are unfolded", want), func() error {
		if list := p.folded(); len(list)+len(want) != 22 || slices.ContainsFunc(want, func(w string) bool { return slices.Contains(list, w) }) {
			return fmt.Errorf("folded are %v", list)
		}
		return nil
	})
}

// pressBox clicks at the middle of a box on the map.
func (p *page) pressBox(name string) {
	p.Helper()
	var at struct{ X, Y float64 }
	p.evaluate(fmt.Sprintf(`(() => {
		const m = ibwarden.map, b = m.at.boxes.find(b => m.map.groups[b.group].name === %q), place = m.canvas.getBoundingClientRect();
		return {x: place.x + (b.x + b.width / 2 - m.view.x) * m.view.scale, y: place.y + (b.y + b.height / 2 - m.view.y) * m.view.scale};
	})()`, name), &at)
	if err := p.do(chromedp.MouseClickXY(at.X, at.Y)); err != nil {
		p.Fatal(err)
	}
}

const (
	spoken  = `document.querySelector('.page-fabric > [aria-live]').textContent`
	heading = `document.querySelector('.side h2').textContent`
)

// TestFold: boxes of a large fabric are folded and say what is in them; mouse, keyboard, search and address
// unfold them.
func TestFold(t *testing.T) {
	need.Long(t, "seconds of a browser, and a fabric of 2,000 hosts")
	s := pods(t)
	p := s.open(t)
	p.size(wide.width, wide.height, wide.scale)
	p.goTo("#/fabric")
	p.unfolded()
	if got := p.text(`JSON.stringify(ibwarden.map.inside[ibwarden.map.map.groups.findIndex(g => g.name === 'pod 3')])`); !strings.HasPrefix(got, `{"hosts":100,"switches":20,"faults":0,"violated":0,"shares":[[`) {
		t.Errorf("pod 3 has %s", got)
	}
	if got := p.text(`ibwarden.map.bundles.length + ' ' + ibwarden.map.bundles.every(b => b.folded && b.links.length === 50) + ' ' + ibwarden.map.single.length`); got != "40 true 0" {
		t.Errorf("cables between boxes: %s, want those of 20 pods to 2 planes", got)
	}

	t.Log("mouse")
	p.pressBox("pod 3")
	p.unfolded("pod 3")
	p.until(heading + ` === 'pod 3' && location.hash.includes('open=pod+3')`)
	p.reload()
	p.unfolded("pod 3")
	if racks := p.text(`ibwarden.map.at.racks.map(r => r.name).join(' ')`); racks != "rack 0 rack 1 rack 2 rack 3 rack 4 rack 5 rack 6 rack 7 rack 8 rack 9" {
		t.Errorf("in pod 3 are the racks %s", racks)
	}
	p.find("button", "Fold").click()
	p.unfolded()
	p.evaluate(`history.back()`, nil)
	p.unfolded("pod 3")
	p.evaluate(`history.back()`, nil)
	p.unfolded()

	t.Log("keyboard")
	p.evaluate(`document.querySelector('main canvas').focus()`, nil)
	p.press(kb.ArrowRight)
	p.press(kb.ArrowRight)
	box := p.text(spoken)
	name, rest, _ := strings.Cut(box, ", ")
	if rest != "folded: 100 hosts, 20 switches" {
		t.Fatalf("the keyboard hears %q", box)
	}
	p.press(kb.Enter)
	p.unfolded(name)
	p.until(heading + ` === ` + fmt.Sprintf("%q", name))
	p.press(kb.ArrowRight)
	p.until(spoken + `.includes(', active')`)
	p.press("f")
	p.unfolded()
	p.press("f")
	p.unfolded(name)
	p.find("button", "Unfold all").click()
	p.until(`ibwarden.drawn().folded.length === 0 && location.hash.includes('open=all')`)
	p.evaluate(`[...document.querySelectorAll('.maptools button')].find(b => b.textContent === 'Fold all').focus()`, nil)
	p.press(kb.Enter)
	p.unfolded()
	p.until(`!location.hash.includes('open=')`)

	t.Log("search")
	p.find("searchbox", "Search").fill("H7_4_2")
	p.press(kb.Enter)
	p.unfolded("pod 7")
	p.until(heading + `.startsWith('H7_4_2') && location.hash.includes('open=pod+7')`)

	t.Log("way")
	guid := func(host string) string {
		return s.item("/nodes/" + p.text(fmt.Sprintf(`ibwarden.map.map.nodes.guid[ibwarden.map.map.nodes.name.findIndex(n => n.startsWith(%q))]`, host)))["ports"].([]any)[0].(js)["guid"].(string)
	}
	from, to := guid("H7_4_2"), guid("H0_0_0") // the manager's host, which everybody reaches
	p.goTo("#/why?from=" + from + "&to=" + to)
	p.eventually("the way of a packet is seen", func() error {
		if list := p.folded(); len(list) != 19 || slices.Contains(list, "pod 7") || slices.Contains(list, "pod 0") {
			return fmt.Errorf("folded are %v", list)
		}
		return nil
	})
	for _, bad := range []string{"open=nothing", "open=%7C%7C", "open=none", "open=pod+1%7Cpod+999%7C%3Cb%3E"} {
		p.goTo("#/fabric?" + bad)
		if n := len(p.folded()); n != 22 && !(n == 21 && strings.Contains(bad, "pod+1%7C")) {
			t.Errorf("%s: %d boxes are folded", bad, n)
		}
	}
}

// TestFoldLooks: axe finds nothing on a map that is folded, or partly, in light and dark, and narrow.
func TestFoldLooks(t *testing.T) {
	need.Long(t, "seconds of a browser, and a fabric of 2,000 hosts")
	s := pods(t)
	p := s.open(t)
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		for _, width := range []int64{1440, 390} {
			p.size(width, 800, 1)
			for _, open := range []string{"", "?open=pod+1%7Cplane+odd&box=pod+1", "?open=all&colour=state"} {
				p.goTo("#/fabric" + open)
				p.looksRight(fmt.Sprintf("#/fabric%s, %s, %d", open, scheme, width), true)
			}
		}
	}
}

// TestFoldedWords: what a box says of what is in it, and what a line says of its cables: the highest load, the
// sum of the errors, the worst state.
func TestFoldedWords(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := demonstration(t)
	p := s.open(t)
	const setup = `const m = {groups: [{name: 'a'}, {name: 'b'}], states: ['active', 'inactive', 'drained'], verdicts: ['kept-apart', 'violated'], link_states: ['active', 'inactive', 'missing'],
		nodes: {guid: ['1', '2', '3', '4'], type: [1, 0, 0, 1], group: [0, 0, 0, 1], state: [2, 1, 0, 0], verdict: [0, 1, 0, 0]}, links: {a: [0, 1, 0], b: [3, 3, 1], state: [0, 2, 0]}};
		const at = {folded: [1, 1], boxes: [{group: 1, folded: true}, {group: 0, folded: true}]}, f = await import('/console/map/fold.js');`
	in := func(expression string) (got string) {
		p.evaluate(`(async () => {`+setup+expression+`})()`, &got)
		return got
	}
	for expression, want := range map[string]string{
		`return f.told(f.summaries(m, [1, 1], {of: [0, 1, 1, 0], list: [{key: 'switch'}, {key: 'x'}]})[0])`:                                      "2 hosts, 1 switch, 1 not active, 1 violated",
		`return JSON.stringify(f.summaries(m, [1, 0], {of: [0, 1, 1, 0], list: [{key: 'switch'}, {key: 'x'}]}).map(s => s && s.shares))`:         `[[[1,2]],null]`,
		`const {bundles: [b], single} = f.bundlesOf(m, at); return [b.links, b.worst, b.folded, single].join(' ')`:                               "0,1 missing true ",
		`at.folded = [0, 1]; at.boxes[1].folded = false; const {bundles: [b], single} = f.bundlesOf(m, at); return [b.folded, single].join(' ')`: "false 0,1,2",
		`const {bundles} = f.bundlesOf(m, at), lines = {of: [0, 0, 0], list: [{key: 'k', colour: 'red'}]}; const c = (mode, load, alone) => { f.weigh(bundles, lines, mode, load, alone); return bundles[0].colour; };
			const {cableEntry: e} = await import('/console/map/colours.js');
			return [c('load', {percent: [30, 61]}) === e('load', 61).colour, c('load', {percent: [-1, 0]}) === e('load', 0).colour, c('errors', {errors: [60, 60]}) === e('errors', 120).colour, c('errors', {errors: [-1, -1]}) === e('errors', -1).colour, c('load', null, 'k'), c('load', null, 'other')].join(' ')`: "true true true true red ",
	} {
		if got := in(expression); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}
