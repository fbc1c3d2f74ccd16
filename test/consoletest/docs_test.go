package consoletest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// docsPolicy is what a server of the documentation may tell browsers: nothing but its own
// pictures, style and scripts, which are those of the search.
const docsPolicy = "default-src 'none'; img-src 'self'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// TestDocs opens pages of the documentation as a site, one of each kind: axe finds nothing in them,
// light and dark, and they fit a telephone.
func TestDocs(t *testing.T) {
	need.Long(t, "makes the whole site")
	need.Program(t, "chromium")
	dir := t.TempDir()
	make := exec.Command("go", "run", ".", "-o", dir)
	make.Dir = "../../website"
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("make site: %v\n%s", err, out)
	}
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", docsPolicy)
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	p := newPage(t, server.URL)
	const telephone = 360
	for _, name := range []string{
		"", "reference.html", "console.html", "run.html", "commands/ibwarden-device-led.html", "api-reference/proof.html", "files/scenarios/router.ibs.html",
	} {
		p.scheme("light")
		p.size(telephone, 740, 1)
		p.visit("/" + name)
		p.fits(name, telephone)
		p.accessible(name + ", narrow, light")
		p.scheme("dark")
		p.size(1440, 900, 1)
		p.accessible(name + ", wide, dark")
	}
	p.size(telephone, 740, 1)
	for _, name := range []string{ // long ones, and those with wide tables
		"benchmarks.html", "conformance.html", "json.html", "metrics.html", "verbs.html", "api-schemas.html",
	} {
		p.visit("/" + name)
		p.fits(name, telephone)
	}
	p.size(1440, 900, 1)
	p.visit("/")
	const column = 700
	var wide int
	if p.evaluate("document.querySelector('main').offsetWidth", &wide); wide < column {
		t.Errorf("the text of the home page is %d wide, want %d at least", wide, column)
	}
	p.visit("/commands/ibwarden-device-led.html") // from a folder, the index is elsewhere
	p.find("searchbox", "Search these pages").fill("two managers")
	p.eventually("the search shows where two managers are set up", func() error {
		var first string
		err := p.tryEvaluate("document.querySelector('#found a')?.href || ''", &first)
		if err == nil && first != server.URL+"/managers.html#set-up-two-managers" {
			err = fmt.Errorf("the first is %q", first)
		}
		return err
	})
	p.accessible("with what was found, wide, dark")
}

// fits fails the test if the page is wider than the screen.
func (p *page) fits(name string, width int) {
	p.Helper()
	var has int
	if p.evaluate("document.documentElement.scrollWidth", &has); has > width {
		p.Errorf("%s is %d wide on a screen of %d", name, has, width)
	}
}
