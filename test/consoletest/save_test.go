package consoletest

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	browserdomain "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// saved presses the button that saves something as a kind of file, and returns the file.
func (p *page) saved(what, kind, name string) []byte {
	p.Helper()
	dir := p.TempDir()
	tab := chromedp.FromContext(p.ctx)
	if _, err := cdp.Call(p.ctx, tab.Browser, browserdomain.SetDownloadBehavior, browserdomain.SetDownloadBehaviorParams{Behavior: "allow", BrowserContextID: tab.BrowserContextID, DownloadPath: dir}); err != nil {
		p.Fatal(err)
	}
	p.evaluate(fmt.Sprintf(`(() => { for (const d of document.querySelectorAll('details')) if (d.querySelector('[data-save=%q]')) d.open = true; })()`, what+" as "+strings.ToUpper(kind)), nil)
	p.find("button", strings.ToUpper(kind)+" of "+what).click()
	var content []byte
	p.eventually("the file "+name+" is saved", func() (err error) {
		content, err = os.ReadFile(filepath.Join(dir, name))
		if err == nil && len(content) == 0 {
			err = errors.New("it is empty")
		}
		return err
	})
	return content
}

// rows are those of a CSV file, the titles first.
func rows(t *testing.T, text []byte) [][]string {
	t.Helper()
	list, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return list
}

// TestSave: tables and pictures are saved as they are shown: filtered, in their order, for other
// programs to read.
func TestSave(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := demonstration(t)
	p := s.open(t)
	p.goTo("#/fabric")
	picture, err := png.Decode(bytes.NewReader(p.saved("Map of the fabric", "png", "ibwarden-map-of-the-fabric.png")))
	if err != nil {
		t.Fatal(err)
	}
	colours := map[any]bool{}
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			colours[picture.At(x, y)] = true
		}
	}
	if len(colours) < 5 {
		t.Errorf("the picture of the map has %d colours", len(colours))
	}
	p.accessible("with a control that saves opened")

	p.goTo("#/tenants")
	p.find("button", "Ports").click()
	list := rows(t, p.saved("Tenants", "csv", "ibwarden-tenants.csv"))
	want := [][]string{{"Tenant", "P_Keys", "Partitions", "Ports", "Members", "Partitions of a port", "Changes a minute", "Removals"}, {"green", "0x0100 to 0x010f", "1", "3", "3", "no limit", "no limit", "at once"}}
	if len(list) < 2 || !reflect.DeepEqual(list[0], want[0]) || !contains(list, want[1]) {
		t.Errorf("the tenants are saved as %q: want %q", list, want)
	}
	var objects []js
	if err := json.Unmarshal(p.saved("Tenants", "json", "ibwarden-tenants.json"), &objects); err != nil || len(objects) != len(list)-1 || objects[0]["Tenant"] != list[1][0] {
		t.Errorf("%v: the tenants are saved as %v: want the order of %q", err, objects, list)
	}
	for _, o := range objects {
		if o["Tenant"] == "green" && o["Ports"] != 3.0 {
			t.Errorf("green has %v ports in %v: want the number 3", o["Ports"], o)
		}
	}
	cells := rows(t, p.saved("Who can talk with whom", "csv", "ibwarden-who-can-talk-with-whom.csv"))
	parties := s.do("GET", "/matrix", nil)["parties"].([]any)
	if len(cells) != len(parties)+1 || cells[0][0] != "Party" || cells[0][1] != "green" || cells[1][0] != "green" || cells[1][1] != "all" || cells[1][2] != "none" {
		t.Errorf("the matrix is saved as %q", cells)
	}

	p.goTo("#/history")
	p.palette("export decisions")
	if list := p.choices(); len(list) != 2 || !strings.HasPrefix(list[0], "Save: Decisions, the newest first as CSV") {
		t.Errorf("for export the palette offers %q", list)
	}
	p.press(kb.Escape)
	p.until(`!document.querySelector('dialog')`)
	log := rows(t, p.saved("Decisions, the newest first", "csv", "ibwarden-decisions-the-newest-first.csv"))
	if len(log) < 4 || !matches(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z`, log[1][1]) || log[1][5] != "accepted" {
		t.Errorf("the audit log is saved as %q: want times in UTC, and words", log)
	}

	p.goTo("#/change?partition=0x0100&remove=" + s.guid("red-5"))
	p.find("button", "Show the plan").click()
	p.until(`document.querySelector('svg.reach')`)
	for _, scheme := range []string{"light", "dark"} {
		p.scheme(scheme)
		plan := p.saved("Who can talk with whom before the change", "svg", "ibwarden-who-can-talk-with-whom-before-the-change.svg")
		standsAlone(t, plan, "Who can talk with whom before the change")
		p.accessible("the plan, " + scheme)
	}
}

// TestSaveTraffic: the ports that a search leaves are saved, and a plot, which stands alone.
func TestSaveTraffic(t *testing.T) {
	need.Long(t, "waits until counters are read")
	s := withErrors(t)
	p := s.open(t)
	p.goTo("#/traffic?text=spine-1&order=place")
	p.says("leaf-1:5")
	ports := rows(t, p.saved("Ports", "csv", "ibwarden-ports.csv"))
	if len(ports) < 3 || ports[0][0] != "Port" {
		t.Errorf("the ports are saved as %q", ports)
	}
	for _, row := range ports[1:] {
		if !strings.Contains(row[0]+row[1], "spine-1") {
			t.Errorf("of a search for spine-1, %q is saved", row)
		}
	}
	p.goTo("#/traffic?node=" + s.node("leaf-1").GUID.String() + "&port=5")
	p.until(`document.querySelector('[data-save^="Plot"]')`)
	standsAlone(t, p.saved("Plot: What it sends and receives", "svg", "ibwarden-plot-what-it-sends-and-receives.svg"), "What it sends and receives, up to")
}

func contains(list [][]string, want []string) bool {
	for _, x := range list {
		if reflect.DeepEqual(x, want) {
			return true
		}
	}
	return false
}

// standsAlone fails the test unless a drawing is well-formed, says a text, and needs no style sheet.
func standsAlone(t *testing.T, drawing []byte, text string) {
	t.Helper()
	strokes, said := 0, false
	for d := xml.NewDecoder(bytes.NewReader(drawing)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, drawing)
		}
		switch x := token.(type) {
		case xml.StartElement:
			for _, a := range x.Attr {
				if a.Name.Local == "stroke" && strings.HasPrefix(a.Value, "rgb") {
					strokes++
				}
				if a.Name.Local == "class" || a.Name.Local == "style" || strings.Contains(a.Value, "var(") || strings.HasPrefix(a.Name.Local, "on") {
					t.Errorf("the drawing has %s=%q", a.Name.Local, a.Value)
				}
			}
		case xml.CharData:
			said = said || strings.Contains(string(x), text)
		}
	}
	if strokes == 0 || !said {
		t.Errorf("%d lines have a colour, and it says %q: %t: %s", strokes, text, said, drawing)
	}
}

// TestSaveHostile: what a device says is no formula in a spreadsheet, and no markup in a drawing.
func TestSaveHostile(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := newSite(t, topology.Demo(), "--policy", demonstrationPolicy(t))
	p := s.open(t)
	for _, x := range []struct{ expression, want string }{
		{`save.csv([['Name', '=1+1', '+1', '-1', '@SUM(A1)', '\t=1', ' =1', '＝1', 'a;=cmd|x', 'a=b', 'a "b"', 'a\nb', -5]])`,
			"\"Name\",\"'=1+1\",\"'+1\",\"'-1\",\"'@SUM(A1)\",\"'\t=1\",\"' =1\",\"'＝1\",\"a;'=cmd|x\",\"a=b\",\"a \"\"b\"\"\",\"a\nb\",\"'-5\"\r\n"},
		{`save.json([['__proto__', 'a', 'a'], ['x', 1, '</script>']])`, "[\n  {\n    \"__proto__\": \"x\",\n    \"a\": 1,\n    \"a (3)\": \"</script>\"\n  }\n]\n"},
		{`JSON.stringify(save.cells(made()))`, `[["Name","Number","Hop"],["one",1234,"x; y"],["one","1,2,x","on"],["two","1 of 3","2026-01-02T03:04:05.000Z"]]`},
	} {
		p.evaluate(`import('/console/save.js').then(async m => {
			window.save = m;
			const {h, time} = await import('/console/dom.js');
			window.made = () => h('table', {}, h('thead', {}, h('tr', {}, ['Name', 'Number', 'Hop'].map(t => h('th', {}, h('button', {class: 'plain'}, t))))), h('tbody', {},
				h('tr', {}, h('th', {rowspan: 2}, h('span', {'aria-hidden': 'true'}, '✓'), 'one', h('span', {class: 'hidden'}, ' more')), h('td', {class: 'number'}, '1,234'), h('td', {}, h('ul', {}, h('li', {}, 'x'), h('li', {}, 'y')))),
				h('tr', {}, h('td', {class: 'number'}, '1,2,x'), h('td', {}, h('select', {}, h('option', {}, 'on'), h('option', {}, 'off')), h('button', {}, 'Do it'))),
				h('tr', {}, h('td', {}, 'two'), h('td', {class: 'number'}, '1 of 3'), h('td', {}, time('2026-01-02T03:04:05Z')))));
			return 1;
		})`, new(int))
		if got := p.text(x.expression); got != x.want {
			t.Errorf("%s is\n%q, want\n%q", x.expression, got, x.want)
		}
	}
}
