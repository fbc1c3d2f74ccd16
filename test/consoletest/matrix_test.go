package consoletest

import (
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// cell is a cell of the matrix as the page has it.
type cell struct {
	Row, Column, A, B    int
	Talk, Verdict, Label string
	Pairs, Talking       int
}

func (p *page) cells() (cells []cell) {
	p.Helper()
	p.until(`document.querySelector('[data-matrix] td[role=gridcell]')`)
	p.evaluate(`[...document.querySelectorAll('[data-matrix] td[role=gridcell]')].map(td => ({
		row: +td.dataset.row, column: +td.dataset.column, a: +td.dataset.a, b: +td.dataset.b, talk: td.dataset.talk, verdict: td.dataset.verdict ?? '',
		label: td.getAttribute('aria-label'), pairs: +td.dataset.pairs, talking: +td.dataset.talking}))`, &cells)
	return cells
}

// matrix compares every cell of the page with the API, and what the API says of two parties
// with why two of their ports can or cannot talk.
func (s *site) matrix(t *testing.T, violated bool) {
	p := s.open(t)
	p.goTo("#/tenants")
	cells := p.cells()
	m := s.do("GET", "/matrix", nil)
	parties := m["parties"].([]any)
	want := map[[2]int]js{}
	for _, c := range m["cells"].([]any) {
		want[[2]int{int(c.(js)["a"].(float64)), int(c.(js)["b"].(float64))}] = c.(js)
	}
	if len(cells) != len(parties)*len(parties) || len(parties) < 3 {
		t.Fatalf("the matrix has %d cells for %d parties", len(cells), len(parties))
	}
	talks, worst := map[string]int{}, 0
	for _, c := range cells {
		w := want[[2]int{min(c.Row, c.Column), max(c.Row, c.Column)}]
		if w == nil {
			t.Fatalf("the API has no cell %d %d", c.Row, c.Column)
		}
		if got, want := fmt.Sprint(c.Talk, c.Verdict, c.Pairs, c.Talking), fmt.Sprint(w["talk"], w["verdict"], w["pairs"], w["talking"]); got != want {
			t.Errorf("the cell %d %d has %s: the API says %s", c.Row, c.Column, got, want)
		}
		if c.Verdict == "violated" {
			worst++
		}
		talks[c.Talk]++
		if c.Row < c.Column && c.Pairs > 0 {
			s.agrees(t, parties[c.Row].(js), parties[c.Column].(js), c)
		}
	}
	if violated != (worst > 0) || talks["none"] == 0 {
		t.Errorf("%d cells are violated, and what the cells say is %v", worst, talks)
	}
	t.Logf("%d parties: %v, %d violated", len(parties), talks, worst)
	s.opened(t, p, cells)
}

// agrees compares a cell with the answer of GET /why for the examples of its parties.
func (s *site) agrees(t *testing.T, a, b js, c cell) {
	t.Helper()
	if c.Talk != "all" && c.Talk != "none" {
		return
	}
	if why, answer := s.share(a["example"], b["example"]); why != c.Talk && why != "unknown" {
		t.Errorf("%v and %v: the matrix says %s, and why: %v", a["name"], b["name"], c.Talk, answer["sentence"])
	}
}

// share is what GET /why says of the keys of two ports, in the words of the matrix.
func (s *site) share(from, to any) (talk string, answer js) {
	s.Helper()
	answer = s.item(fmt.Sprintf("/why?from=%v&to=%v", from, to))
	switch answer["cause"] {
	case "talk", "stopped": // they hold keys that match, whatever becomes of packets on their way
		return "all", answer
	case "no-partition", "both-limited":
		return "none", answer
	}
	return "unknown", answer
}

// opened opens a cell with the keyboard, and its ports, which are what the API says.
func (s *site) opened(t *testing.T, p *page, cells []cell) {
	t.Helper()
	at := cells[1]
	p.evaluate(fmt.Sprintf(`document.querySelector('[data-matrix] td[data-row="%d"][data-column="%d"]').focus()`, at.Row, at.Column), nil)
	p.evaluate(`document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))`, nil)
	p.until(fmt.Sprintf(`document.querySelector('[data-cell]')?.dataset.cell === '%d %d'`, at.Row, at.Column))
	p.find("button", "Port by port").click()
	p.until(`document.querySelector('[data-ports] [data-talk]')`)
	p.accessible("an opened cell")
	var ports []struct{ From, To, Talk string }
	p.evaluate(`[...document.querySelectorAll('[data-ports] [data-talk]')].map(e => ({from: e.dataset.from, to: e.dataset.to, talk: e.dataset.talk}))`, &ports)
	if len(ports) != at.Pairs && at.Row != at.Column {
		t.Errorf("%d cells are shown for %d pairs", len(ports), at.Pairs)
	}
	talking := 0
	for _, x := range ports[:min(len(ports), 60)] {
		if x.From == x.To {
			continue
		}
		why, answer := s.share(x.From, x.To)
		if why == "all" {
			talking++
		}
		if why != x.Talk && why != "unknown" {
			t.Errorf("%s and %s: the page says %s, and why: %v", x.From, x.To, x.Talk, answer["sentence"])
		}
	}
	t.Logf("of the pairs of %q, %d can talk", at.Label, talking)
}

// TestMatrix: the numbers of the matrix are the service's, and agree with what another part
// of it says of single ports.
func TestMatrix(t *testing.T) {
	need.Long(t, "seconds of a browser")
	t.Run("demonstration", func(t *testing.T) { demonstration(t).matrix(t, false) })
	need.Long(t, "the matrices of other fabrics too")
	t.Run("faults", func(t *testing.T) { faulty(t).matrix(t, true) })
	t.Run("40 tenants", func(t *testing.T) { manyTenants(t).matrix(t, false) })
}
