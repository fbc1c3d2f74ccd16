package consoletest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// answers are the bodies of all answers of the API that the page got and that do not
// stream.
func (p *page) answers() (bodies map[string]string) {
	p.Helper()
	p.mu.Lock()
	asked := slices.Clone(p.asks)
	p.mu.Unlock()
	bodies = map[string]string{}
	for _, a := range asked {
		body, err := command(p, network.GetResponseBody, network.GetResponseBodyParams{RequestID: a.id})
		if err != nil {
			continue // an answer that had none, as it was known
		}
		bodies[a.path+" "+string(a.id)] = string(body.Body)
	}
	return bodies
}

// TestTenantsWorld: a page with the session of a tenant shows nothing of the others, and
// was told nothing of them: neither names nor GUIDs of their hosts, nor of switches.
func TestTenantsWorld(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := demonstrationWith(t, "--racks", racksFile(t, "/./ pod=northhall rack=17"))
	s.tenant("violet", "0x200", "blue-6", "red-4")
	s.proved()
	p := s.openAs(t, s.token("green"))
	views := append(p.pages(), "#/managers", "#/tenants?name=violet", "#/tenants?name=provider", "#/why?from="+s.guid("red-5")+"&to="+s.guid("red-6"), "#/why?from="+s.guid("red-5")+"&to="+s.guid("blue-6"), "#/fabric?node="+s.node("leaf-1").GUID.String())
	own := []string{"red-5", "red-6", "blue-5"}
	var foreign []string
	for _, n := range s.server.Topology().Nodes {
		if strings.HasPrefix(n.ID, "leaf") { // a tenant may know where its own ports are: to which GUID they are cabled
			foreign = append(foreign, n.ID)
		} else if !slices.Contains(own, n.ID) {
			foreign = append(foreign, n.ID, n.GUID.String())
			if n.Type == ib.NodeCA {
				foreign = append(foreign, n.Ports[1].GUID.String())
			}
		}
	}
	foreign = append(foreign, "violet", "northhall", "rack 17")
	p.goTo("#/fabric")
	if got := p.text(`window.ibwarden.map.map.nodes.name.map(n => n.split(' ')[0]).sort().join(' ')`); got != "blue-5 red-5 red-6" {
		t.Errorf("the map of the tenant has %s: want its own hosts", got)
	}
	p.expect("status of (403|404)") // of what this test asks for in its address
	told := 0
	for _, view := range views {
		p.goTo(view)
		shown := p.text(`document.querySelector('main').innerHTML + [...document.querySelectorAll('input, textarea')].map(e => e.value).join(' ')`)
		for _, x := range foreign {
			if strings.Contains(shown, x) && !strings.Contains(view, x) {
				t.Errorf("%s shows %s: %s", view, x, around(shown, x))
			}
		}
	}
	for path, body := range p.answers() {
		told++
		for _, x := range foreign {
			if strings.Contains(body, x) && !strings.Contains(path, x) {
				t.Errorf("%s tells of %s: %s", path, x, around(body, x))
			}
		}
	}
	if told < len(views) {
		t.Errorf("%d answers were looked at for %d pages", told, len(views))
	}
}

// around is where a text is in another.
func around(text, x string) string {
	i := strings.Index(text, x)
	return fmt.Sprintf("%q", text[max(0, i-80):min(len(text), i+len(x)+40)])
}

// TestHostileTexts: what devices and people say is text on every page, whatever is in it,
// and cannot be taken for more than it is.
func TestHostileTexts(t *testing.T) {
	s := newSite(t, topology.Demo(), "--policy", demonstrationPolicy(t), "--sweep-interval", "1s", "--drift-period", "1s")
	s.tenant("green", "0x100", "red-5", "red-6", "blue-5")
	s.on(func(f *fabric.Fabric) (err error) {
		for i, n := range s.server.Topology().Nodes {
			if i %= len(hostile) + 1; i == len(hostile) {
				err = errors.Join(err, f.SetFault(n.GUID, fabric.Fault{Alter: junk}), f.SetDescription(n.GUID, "junk"))
				continue
			}
			err = errors.Join(err, f.SetDescription(n.GUID, hostile[i]))
		}
		return err
	})
	for i, said := range hostile {
		plain := strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return '.'
			}
			return r
		}, said)
		s.do("PUT", "/tenants/green", js{"keys": js{"first": "0x0100", "last": "0x010f"}, "quota": js{"members": 100 + i}}, "If-Match", s.etag("/tenants/green"), "Why", plain)
		s.do("POST", "/tokens", js{"tenant": "green", "note": plain})
	}
	s.eventually("the manager has read the names", func() error {
		for _, n := range s.items("/nodes") {
			if strings.Contains(n["description"].(string), "<script>") {
				return nil
			}
		}
		return errors.New("there is no script among them")
	})
	p := s.open(t)
	for _, view := range append(s.views(p), "#/tenants?name=green", "#/fabric?node="+s.node("red-5").GUID.String()) {
		p.goTo(view)
		if made := p.text(`[...document.querySelectorAll('main script, main img, main iframe, main object, main embed, main base, main meta, main link, main [onerror], main [onload], main [onclick], main [srcdoc], main [href^="javascript:"], main [href*="tracker.example"]')].map(e => e.outerHTML).join(' ')`); made != "" {
			t.Errorf("%s: a name became markup: %s", view, made)
		}
		if left := p.text(`[...document.querySelectorAll('body *')].filter(e => [...e.childNodes].some(n => n.nodeType === 3 && /(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(n.data))).map(e => e.outerHTML.slice(0, 120)).join(' ')`); left != "" {
			t.Errorf("%s: characters that change how others are read are left: %q", view, left)
		}
		p.looksRight(view, false)
	}
	shown := 0
	for _, view := range p.pages() {
		p.goTo(view)
		if strings.Contains(p.text(`document.querySelector('main').textContent`), "<script>alert(") {
			shown++
		}
	}
	if shown < 2 {
		t.Errorf("%d pages show the name with <script> as text: want two at least, so that this test has seen it", shown)
	}
}

// etag is the ETag of an object.
func (s *site) etag(path string) string {
	s.Helper()
	return fmt.Sprintf(`"%.0f"`, s.item(path)["changed"])
}
