package consoletest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// moments waits until so many moments are kept.
func (s *site) moments(n int) (at []any) {
	s.Helper()
	s.eventually(fmt.Sprint(n, " moments are kept"), func() error {
		if at = s.item("/past")["at"].([]any); len(at) < n {
			return fmt.Errorf("there are %d", len(at))
		}
		return nil
	})
	return at
}

// TestPast: from a page one looks back, goes from moment to moment with the keyboard, sees two side by side and what was
// lost between them, and comes back; nothing can be changed there, and what is older is in Prometheus.
func TestPast(t *testing.T) {
	need.Long(t, "waits until moments are kept, 10 s each")
	s := newSite(t, topology.Demo(), "--prometheus", "http://prometheus.example:9090/")
	s.tenant("green", "0x100", "red-5", "red-6", "blue-5")
	s.proved()
	before := s.do("GET", "/status", nil)["revision"].(float64)
	s.moments(1)
	s.eventually("a moment is kept, with loads", func() error {
		m := s.item("/past/moment?at=" + time.Now().UTC().Format(time.RFC3339))["moment"].(js)
		if m["revision"] != before || fmt.Sprint(m["percent"].([]any)[0]) == "-1" {
			return fmt.Errorf("the last is of revision %v, with loads %v", m["revision"], m["percent"])
		}
		return nil
	})
	s.do("DELETE", "/partitions/0x0100/members/"+s.guid("red-6"), nil, "Why", reason)
	s.proved()
	s.moments(len(s.moments(1)) + 2)

	p := s.open(t)
	p.find("button", "Look back …").click()
	p.says(`(?s)This is the past.*Nothing can be changed here`)
	p.says(`The worst of the period, under revision \d+. It rests on \d+ pairs? of 2 partitions`)
	p.says(`(?s)One end\s+Other end\s+Load`)
	if n := p.text(`[...document.querySelectorAll('main form, main dialog, main [data-do], main textarea')].length`); n != "0" {
		t.Errorf("there are %s controls that change something", n)
	}
	last := p.text(`location.hash`)
	p.find("slider", "Moment")
	p.evaluate(`document.querySelectorAll('input[type=range]')[0].focus()`, nil)
	p.press(kb.ArrowLeft)
	p.until(fmt.Sprintf(`location.hash !== %q && document.querySelector('[data-past]').dataset.past === new Date(new URLSearchParams(location.hash.split('?')[1]).get('at')).toISOString().replace('.000', '')`, last))
	p.press(kb.End)
	p.until(fmt.Sprintf(`location.hash === %q`, last))

	p.find("button", "Side by side").click()
	p.find("slider", "Beside it")
	p.evaluate(`document.querySelectorAll('input[type=range]')[1].focus()`, nil)
	p.press(kb.Home)
	const with = `new URLSearchParams(location.hash.split('?')[1]).get('with')`
	p.until(fmt.Sprintf(`(r => r.value === '0' && r.getAttribute('aria-valuetext').startsWith(%s.slice(0, 19).replace('T', ' ')))(document.querySelectorAll('input[type=range]')[1])`, with))
	// The minute in which the test began may have ended since: then its moment is the oldest, and
	// has the revision of its end. The next is the first of 10 s.
	if s.item("/past/moment?at=" + url.QueryEscape(p.text(with)))["moment"].(js)["revision"] != before {
		p.press(kb.ArrowRight)
	}
	p.says(`(?s)What differs.*1 membership lost.*green-all.*red-6`)
	p.says(`All that was changed between`)
	p.screenshot("past-overview")
	p.reload()
	p.says(`(?s)What differs.*1 membership lost`)
	p.find("link", "Fabric").click()
	p.says(`(?s)What differs.*carries nothing.*carries nothing`)
	p.until(`ibwarden.drawn() && ibwarden.drawn().mode === 'load' && ibwarden.drawn().cables.length > 0 && !ibwarden.drawn().cables.every(c => c === 'not read')`)
	p.screenshot("past-fabric")
	p.find("link", "Tenants").click()
	p.until(`document.querySelectorAll('[data-matrix]').length === 2 && document.querySelector('td[data-talk=all]')`)
	p.find("button", "One alone").click()
	p.until(`document.querySelectorAll('[data-matrix]').length === 1 && !location.hash.includes('with=')`)
	p.evaluate(`history.back()`, nil)
	p.until(`document.querySelectorAll('[data-matrix]').length === 2`)

	for _, view := range []string{"overview", "fabric", "tenants"} {
		p.goTo("#/" + view + p.text(`'?' + location.hash.split('?')[1]`))
		for _, look := range []window{wide, {"phone", 390, 844, 2}} {
			p.size(look.width, look.height, look.scale)
			p.looksRight(view+" in the past, "+look.name, true)
			p.screenshot("past-" + view + "-" + look.name)
		}
	}
	p.size(1440, 900, 1)
	p.find("button", "Now").click()
	p.until(`location.hash === '#/tenants' && !document.querySelector('[data-past]') && document.querySelector('[data-do=create]')`)

	p.goTo("#/overview?at=2020-01-01T00:00:00Z")
	p.says(`nothing is kept of 2020-01-01 .*: the oldest moment is 20`)
	p.find("link", "Older values are in Prometheus")
	to, err := url.Parse(p.text(`[...document.querySelectorAll('a')].find(a => a.textContent.includes('Prometheus')).href`))
	if err != nil || !strings.HasPrefix(to.String(), "http://prometheus.example:9090/graph?") || to.Query().Get("g0.end_input") != "2020-01-01 00:00:00" {
		t.Errorf("it leads to %v, %v", to, err)
	}

	// A tenant has no past: an address of one shows it how it is.
	own := s.openAs(t, s.token("green"))
	own.goTo("#/overview?at=2020-01-01T00:00:00Z")
	own.says(`Room left`)
	if got, _ := own.all("button", "Look back …"); len(got) > 0 {
		t.Error("a tenant can look back")
	}
}
