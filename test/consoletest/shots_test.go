package consoletest

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/need"
)

// screenshot looks at the page: something has to be on the picture. With
// IBWARDEN_SCREENSHOTS it is kept in that directory.
func (p *page) screenshot(name string) {
	p.Helper()
	data := p.picture(true)
	drawn, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		p.Fatalf("screenshot %s: %v", name, err)
	}
	if n := colours(drawn, 3); n < 3 {
		p.Errorf("screenshot %s has %d colours: nothing is on it", name, n)
	}
	dir := os.Getenv("IBWARDEN_SCREENSHOTS")
	if dir == "" {
		return
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644); err != nil {
		p.Fatal(err)
	}
}

// colours counts the colours of a picture, up to enough of them.
func colours(drawn image.Image, enough int) int {
	seen := map[[4]uint32]bool{}
	for y := drawn.Bounds().Min.Y; y < drawn.Bounds().Max.Y; y++ {
		for x := drawn.Bounds().Min.X; x < drawn.Bounds().Max.X && len(seen) < enough; x++ {
			r, g, b, a := drawn.At(x, y).RGBA()
			seen[[4]uint32{r, g, b, a}] = true
		}
	}
	return len(seen)
}

// TestShots takes screenshots: of every page, in light and dark, on a phone, a tablet and a wide screen, where
// IBWARDEN_SCREENSHOTS names a directory (make console-shots), and else of a few, to see
// that something is on them.
func TestShots(t *testing.T) {
	need.Long(t, "draws every page many times")
	s := twoPartitions(t)
	s.tenant("violet", "0x200", "blue-6", "red-4")
	s.do("POST", "/drains", js{"switch": "spine-2"}, "Why", "a fan")
	s.proved()
	kept := s.moments(2) // 10 s and 20 s after the start
	stamp := func(at any) string { return time.Unix(int64(at.(float64)), 0).UTC().Format(time.RFC3339) }
	past := "?at=" + stamp(kept[1]) + "&with=" + stamp(kept[0])
	p := s.open(t)
	traffic := withErrors(t).open(t) // where the manager may read counters
	traffic.goTo("#/traffic")        // where plots begin
	views := []struct{ name, hash string }{
		{"overview", "#/overview"}, {"fabric", "#/fabric"}, {"device", "#/fabric?node=" + s.node("leaf-2").GUID.String()},
		{"tenants", "#/tenants"}, {"tenant", "#/tenants?name=green"},
		{"change", "#/change?partition=0x0101&add=" + s.guid("red-5")}, {"move", "#/change?task=move&ports=" + s.guid("red-5") + "&partition=0x0101"},
		{"why", "#/why?from=" + s.guid("red-1") + "&to=" + s.guid("blue-4")}, {"why-talk", "#/why?from=" + s.guid("red-1") + "&to=" + s.guid("red-3")}, {"proof", "#/proof"},
		{"history", "#/history"}, {"revision", "#/history?revision=3"}, {"rollback", "#/history?rollback=4"},
		{"managers", "#/managers"}, {"events", "#/events"},
		{"past-overview", "#/overview" + past}, {"past-fabric", "#/fabric" + past}, {"past-tenants", "#/tenants" + past},
	}
	schemes, widths := []string{"light", "dark"}, []int64{390, 820, 1440}
	if os.Getenv("IBWARDEN_SCREENSHOTS") == "" {
		views, schemes = views[:3], schemes[:1]
	}
	for _, scheme := range schemes {
		p.scheme(scheme)
		for _, width := range widths {
			p.size(width, 900, 1)
			for _, v := range views {
				p.goTo(v.hash)
				if v.name == "change" || v.name == "move" {
					p.find("button", "Show the plan").click()
					p.until(`document.querySelector('[data-flow]')?.dataset.flow === 'planned'`)
				}
				p.screenshot(fmt.Sprintf("%s-%s-%d", v.name, scheme, width))
			}
			traffic.scheme(scheme)
			traffic.size(width, 900, 1)
			traffic.quiet()
			traffic.screenshot(fmt.Sprintf("traffic-%s-%d", scheme, width))
			login := newPage(t, s.base())
			login.scheme(scheme)
			login.size(width, 900, 1)
			login.visit("/console/")
			login.find("button", "Log in")
			login.screenshot(fmt.Sprintf("login-%s-%d", scheme, width))
		}
	}
}
