package consoletest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/test/need"
)

// TestOverview: the first page says how old the verdict is, what is wrong and whom it concerns with
// a way to more, what waits, what changed, and what room is left; to a tenant its own part alone.
func TestOverview(t *testing.T) {
	s := demonstration(t)
	s.tenant("violet", "0x200", "blue-6")
	token := s.token("green")
	s.do("POST", "/partitions/0x0200/members", js{"members": []js{{"port": s.guid("red-5"), "membership": "full"}}}, "Authorization", "Bearer "+s.token("violet"))
	s.proved()
	p := s.open(t)
	p.says(`checked \d+ s ago, proved \d+ (s|min) ago`)
	p.says("isolated(?s:.*)It rests on \\d+ pairs of \\d+ partitions and \\d+ end ports")
	p.says(`violet-all of violet: 1 member waits for the other owner`)
	p.says(`(?s)What changed.*revision \d+.*` + reason)
	p.says(`(?s)Room left.*violet\s+1 of 16`)
	if n := p.text(`[...document.querySelectorAll('time[datetime]')].filter(e => !/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d here, \d{4}-.*Z$/.test(e.title)).length`); n != "0" {
		t.Errorf("%s times have no full time in their title", n)
	}

	s.on(func(f *fabric.Fabric) error { return f.Unlink(s.node("red-5").GUID, 1) }) // green's
	p.says(`(?s)high\s+green\s+leaf-\d.*On the map`)
	p.find("link", "On the map").click()
	p.until(`document.querySelector('main').dataset.page === 'fabric'`)

	own := s.openAs(t, token)
	own.says(`(?s)medium\s+you\s+0x[0-9a-f]{16}: the port was not found`)
	own.says(`(?s)Room left\s.*green\s+1 of 16`)
	own.find("button", "Acknowledge .*").click()
	own.find("textbox", "Note").fill("it is at the workshop")
	own.find("button", "Acknowledge").click()
	own.says(`(?s)1 thing wrong, 1 acknowledged.*it is at the workshop.*ends in 24 h`)
	for _, foreign := range []string{"leaf-", "violet-all\n", "blue"} {
		if said := own.said(); strings.Contains(said, foreign) {
			t.Errorf("green is told of %q:\n%s", foreign, said)
		}
	}
	need.Long(t, "looks at both pages in every window")
	for i, x := range []*page{p, own} {
		x.goTo("#/overview")
		for _, look := range []struct {
			scheme string
			window
		}{{"light", wide}, {"light", window{"phone", 390, 844, 2}}, {"dark", window{"phone", 390, 844, 2}}, {"dark", wide}} {
			x.scheme(look.scheme)
			x.size(look.width, look.height, look.scale)
			x.looksRight(look.scheme+" "+look.name, true)
			x.screenshot(fmt.Sprintf("overview-%d-%s-%s", i, look.scheme, look.name))
		}
	}
}
