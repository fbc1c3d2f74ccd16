package consoletest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// shown is a device on the map: the class that its colour stands for, that colour, and the
// colour of the screen where it is.
type shown struct {
	GUID, Key, Colour, Pixel string
	Hollow                   bool
}

// colouring is what the map shows now, once its last frame is drawn.
func (p *page) colouring() (nodes []shown) {
	p.Helper()
	p.evaluate(`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
		const m = window.ibwarden.map, c = m.canvas.getContext('2d'), {scale, x, y} = m.view, ratio = m.size.ratio;
		done(window.ibwarden.drawn().nodes.map((n, i) => {
			const tall = m.map.nodes.type[i] === 1 ? 0.72 : 0.84;
			// What is most of the device: letters and cables may lie over it.
			const w = m.at.w[i] * 0.84, box = [(n.x - w / 2 - x) * scale * ratio, (n.y - tall / 2 - y) * scale * ratio, w * scale * ratio, tall * scale * ratio].map(Math.round);
			const {data} = c.getImageData(...box), seen = new Map();
			for (let k = 0; k < data.length; k += 4) {
				const colour = '#' + [...data.slice(k, k + 3)].map(v => v.toString(16).padStart(2, '0')).join('');
				seen.set(colour, (seen.get(colour) ?? 0) + 1);
			}
			const [pixel] = [...seen].reduce((most, e) => e[1] > most[1] ? e : most);
			return {guid: n.guid, key: n.key, colour: n.colour, hollow: m.classes.list[m.classes.of[i]].hollow || ['unread', 'missing'].includes(m.map.states[m.map.nodes.state[i]]), pixel};
		}));
	})))`, &nodes)
	return nodes
}

// columns are the nodes of GET /map, by GUID: whose they are and how, in words.
func (s *site) columns() map[string]map[string]string {
	s.Helper()
	m := s.do("GET", "/map", nil)
	nodes := m["nodes"].(js)
	out := map[string]map[string]string{}
	word := func(list string, i int) string { return m[list].([]any)[i].(string) }
	for i, guid := range nodes["guid"].([]any) {
		number := func(column string) int { return int(nodes[column].([]any)[i].(float64)) }
		whose := func(column, list string) string {
			switch o := number(column); {
			case number("type") == 1:
				return "switch"
			case o == -1:
				return "nobody"
			case o == -2:
				return "several"
			default:
				return column + " " + word(list, o)
			}
		}
		out[guid.(string)] = map[string]string{"owner": whose("owner", "owners"), "party": whose("party", "parties"), "state": word("states", number("state")), "verdict": word("verdicts", number("verdict"))}
	}
	return out
}

// coloured compares every device on the map with what the API says, by class and by the
// colour of its pixels, for each mode.
func (s *site) coloured(t *testing.T, p *page) {
	t.Helper()
	p.expect("willReadFrequently") // of this test, which reads the canvas
	p.size(wide.width, wide.height, wide.scale)
	p.goTo("#/fabric")
	for _, mode := range []string{"party", "owner", "state", "verdict"} {
		p.find("combobox", "Colour by").choose(map[string]string{"party": "Who shares keys", "owner": "Owner", "state": "State", "verdict": "Verdict"}[mode])
		want := s.columns()
		nodes := p.colouring()
		if len(nodes) != len(want) || len(nodes) < 20 {
			t.Fatalf("the map shows %d devices, the API has %d", len(nodes), len(want))
		}
		colours := map[string]string{}
		for _, n := range nodes {
			if w := want[n.GUID][mode]; n.Key != w {
				t.Errorf("by %s, the map shows %s as %s: the API says %s", mode, n.GUID, n.Key, w)
			}
			if !n.Hollow && strings.HasPrefix(n.Colour, "#") && n.Pixel != n.Colour {
				t.Errorf("by %s, %s has the colour %s on the screen: want %s", mode, n.GUID, n.Pixel, n.Colour)
			}
			if before, has := colours[n.Key]; has && before != n.Colour {
				t.Errorf("by %s, %s has the colours %s and %s", mode, n.Key, before, n.Colour)
			}
			colours[n.Key] = n.Colour
		}
		t.Logf("by %s: %v", mode, colours)
	}
}

// TestColours: what the map shows is what the API says, also of a fabric with faults.
func TestColours(t *testing.T) {
	need.Long(t, "seconds of a browser")
	t.Run("demonstration", func(t *testing.T) {
		s := demonstration(t)
		s.do("POST", "/drains", js{"switch": "spine-2"})
		s.proved()
		s.coloured(t, s.open(t))
	})
	t.Run("faults", func(t *testing.T) {
		s := faulty(t)
		p := s.open(t)
		s.coloured(t, p)
		p.says("missing|moved")
		for _, c := range s.items("/cables") {
			p.says(fmt.Sprintf(`(?s)%v port %v`, c["name"], c["port"]))
		}
	})
}

// TestMapByKeyboard: the arrow keys go over the map, say what is there, and Enter shows it.
func TestMapByKeyboard(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := demonstration(t)
	p := s.open(t)
	p.goTo("#/fabric")
	p.evaluate(`document.querySelector('main canvas').focus()`, nil)
	said := map[string]bool{}
	for _, key := range []string{kb.ArrowRight, kb.ArrowRight, kb.ArrowUp, kb.ArrowLeft, kb.ArrowDown, kb.ArrowDown, kb.ArrowRight} {
		p.press(key)
		said[p.text(`document.querySelector('.page-fabric > [aria-live]').textContent`)] = true
	}
	if len(said) < 4 {
		t.Errorf("on its way over the map the keyboard hears %v", said)
	}
	p.press(kb.Enter)
	p.quiet()
	if at := p.text(`document.querySelector('.panel h2').textContent`); !slices.ContainsFunc(s.server.Topology().Nodes, func(n *topology.Node) bool { return strings.Contains(at, n.ID) }) {
		t.Errorf("Enter shows %q: want a device", at)
	}
}

// TestLoadOfCables: cables have the colours of what the API says that they carry, and of their errors;
// boxes have none of it. A class that is pressed is shown alone.
func TestLoadOfCables(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := withErrors(t)
	p := s.open(t)
	p.goTo("#/fabric")
	for _, mode := range []string{"load", "errors"} {
		p.find("combobox", "Colour by").choose(map[string]string{"load": "Load of cables", "errors": "Errors on cables"}[mode])
		p.until(fmt.Sprintf(`ibwarden.drawn().mode === %q && ibwarden.drawn().cables.some(k => k !== 'not read')`, mode))
		var shown struct {
			Cables []string
			Load   map[string]any
		}
		p.evaluate(`({cables: ibwarden.drawn().cables, load: ibwarden.map.load})`, &shown) // of one moment: what is carried changes
		asked := s.item("/map/load")
		column, got := shown.Load[map[string]string{"load": "percent", "errors": "errors"}[mode]].([]any), shown.Cables
		if shown.Load["map"] != asked["map"] || len(column) != len(asked["errors"].([]any)) || len(column) != len(got) || !reflect.DeepEqual(shown.Load["errors"], asked["errors"]) {
			t.Fatalf("the page has %v, the API %v", shown.Load, asked)
		}
		classes := map[string]int{}
		for i, n := range column {
			want := "not read"
			switch n := n.(float64); {
			case n >= 0 && mode == "load":
				want = fmt.Sprint("load ", math.Ceil(n/20))
			case n >= 100:
				want = "errors 2"
			case n > 0:
				want = "errors 1"
			case n == 0:
				want = "errors 0"
			}
			if classes[want]++; got[i] != want {
				t.Errorf("%s: cable %d is shown as %q, want %q", mode, i, got[i], want)
			}
		}
		if mode == "errors" && classes["errors 1"] != 1 {
			t.Errorf("%v: want one cable with errors", classes)
		}
		p.says(map[string]string{"load": "of its rate|carries nothing", "errors": "no errors"}[mode])
	}
	p.evaluate(`document.querySelector('[data-class="errors 1"]').click()`, nil)
	var dim string
	p.evaluate(`ibwarden.map.dim`, &dim)
	if dim != "errors 1" {
		t.Errorf("%q is shown alone", dim)
	}
}
