package consoletest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// TestTour: the tour of ibwarden demo goes through its ten steps, forward and back, on pages that find what
// they are asked for, is where it was when the page is loaded again, and is gone when it is left.
func TestTour(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := demonstration(t)
	p := s.open(t)
	if p.text(`!!document.querySelector('.tour')`) != "false" {
		t.Error("there is a tour that nobody asked for")
	}
	p.evaluate(`history.replaceState(null, '', '?tour=1' + location.hash)`, nil)
	p.reload()
	const steps = 10
	hashes := map[string]bool{}
	step := func(n int) {
		p.until(fmt.Sprintf(`document.querySelector('.tour h2').textContent.startsWith('%d of %d: ')`, n, steps))
		p.ready()
		p.quiet()
		hashes[p.text(`location.hash`)] = true
		if fault := p.text(`[...document.querySelectorAll('main .fault, main [role=alert]')].map(e => e.textContent).join('')`); fault != "" {
			t.Errorf("step %d: %s", n, fault)
		}
	}
	for n := 1; n <= steps; n++ {
		step(n)
		p.accessible(fmt.Sprint("step ", n))
		switch n {
		case 4:
			p.reload()
			step(4)
			p.find("button", "Back").click()
			step(3)
			p.find("button", "Next").click()
			step(4)
		case 5, 6:
			want := map[int]string{5: "cannot talk", 6: "can talk"}[n]
			p.says(want)
		case steps:
			continue
		}
		p.find("button", "Next").click()
	}
	if len(hashes) < steps-1 { // the first page is there twice
		t.Errorf("the steps show %v", hashes)
	}
	p.find("button", "End the tour").click()
	p.until(`!document.querySelector('.tour') && location.search === ''`)
	if at := p.text(`location.hash`); !strings.HasPrefix(at, "#/history") {
		t.Errorf("at the end the page is %s", at)
	}
	for _, bad := range []string{"0", "-3", "NaN", "1e9", "%3Cscript%3E"} {
		p.evaluate(fmt.Sprintf(`history.replaceState(null, '', '?tour=%s' + location.hash)`, bad), nil)
		p.reload()
		if title := p.text(`document.querySelector('.tour h2')?.textContent || ''`); title != "" && !strings.HasPrefix(title, "10 of 10: ") {
			t.Errorf("tour=%s shows %s", bad, title)
		}
	}
}
