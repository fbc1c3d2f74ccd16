package consoletest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/ibwarden/ibwarden/test/need"
)

// The policy of the console's pages: nothing but its own files.
const strict = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'"

// served is a page for tests of the tests: with a body, and the script of the same name.
func served(t *testing.T, body, script string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Security-Policy", strict)
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, `<!DOCTYPE html><html lang="en"><head><title>a page</title><script src="/it.js" defer></script></head><body><main><h1>A page</h1>%s</main></body></html>`, body)
		case "/it.js":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprint(w, script)
		case "/favicon.ico":
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestWhatIsWrongIsSeen: a page that does what the console must not is found out, so that
// no test of the console passes for want of looking.
func TestWhatIsWrongIsSeen(t *testing.T) {
	need.Long(t, "opens a page for each fault")
	for _, wrong := range []struct{ name, body, script, want string }{
		{"exception", "", "throw new Error('oh')", "exception: Uncaught Error: oh"},
		{"rejection", "", "Promise.reject(new Error('no'))", "exception: Uncaught (in promise) Error: no"},
		{"error", "", "console.error('bad', 7)", `console.error: "bad" 7`},
		{"inline script", "<script>document.title = 'changed'</script>", "", "content security policy: script-src"},
		{"inline style", `<p style="color: red">red</p>`, "", "content security policy: style-src"},
		{"eval", "", "try { eval('1') } catch {}", "content security policy: "},
		{"markup", "", "try { document.body.innerHTML = '<b>x</b>' } catch {}", "content security policy: "},
		{"another host", "", "fetch('http://192.0.2.1/').catch(() => {})", "http://192.0.2.1/"},
		{"another port", "", "fetch('http://127.0.0.1:1/').catch(() => {})", "http://127.0.0.1:1/"},
		{"a name", `<img alt="" src="http://tracker.example/a.png">`, "", "http://tracker.example/a.png"},
		{"dialog", "", "alert('boo')", "dialog: boo"},
		{"not found", "", "fetch('/nothing')", "log: Failed to load resource: the server responded with a status of 404"},
	} {
		t.Run(wrong.name, func(t *testing.T) {
			p := newPage(t, served(t, wrong.body, wrong.script))
			p.expect(".")
			p.visit("/")
			p.eventually("it is seen", func() error {
				p.mu.Lock()
				defer p.mu.Unlock()
				for _, problem := range p.problems {
					if strings.Contains(problem, wrong.want) {
						return nil
					}
				}
				return fmt.Errorf("seen are %q: want %q", p.problems, wrong.want)
			})
		})
	}
}

func TestAxeSees(t *testing.T) {
	p := newPage(t, served(t, `<p>A <input type="text"> and <button></button></p><img src="/favicon.ico">`, ""))
	p.visit("/")
	got := map[string]bool{}
	for _, f := range p.axe().Violations {
		got[f.ID] = true
	}
	for _, want := range []string{"label", "button-name", "image-alt"} {
		if !got[want] {
			t.Errorf("axe finds %v: want %s", got, want)
		}
	}
}

// TestControls: controls are found by role and name, clicked where they can be, filled,
// chosen, and pressed; each is a step.
func TestControls(t *testing.T) {
	p := newPage(t, served(t, `
		<label>Name <input id="name" value="old"></label>
		<label>Size <select id="size"><option value="s">small</option><option value="l">large</option></select></label>
		<button id="add">Add it</button><p role="status" id="out"></p>`, `
		const out = document.querySelector('#out'), of = id => document.querySelector(id).value;
		document.querySelector('#add').addEventListener('click', () => { out.textContent = 'added ' + of('#name') + ' ' + of('#size'); });
		document.querySelector('#name').addEventListener('keydown', e => { if (e.key === 'Enter') out.textContent = 'entered ' + of('#name'); });`))
	p.visit("/")
	p.find("textbox", "Name").fill("red-1")
	p.find("combobox", "Size").choose("large")
	p.find("button", "Add .*").click()
	p.says("added red-1 l")
	p.find("textbox", "Name").fill("blue")
	p.press(kb.Enter)
	p.says("entered blue")
	if p.steps != 5 {
		t.Errorf("%d steps: want 5", p.steps)
	}
	if all, err := p.all("button", "Remove"); err != nil || len(all) > 0 {
		t.Errorf("found %v, %v: want nothing", all, err)
	}
}

// TestLooks: a page that is in order is so for axe, and looks as the system wants it.
func TestLooks(t *testing.T) {
	p := newPage(t, served(t, `<p>All is <em>well</em>.</p>`, `
		window.dark = () => matchMedia('(prefers-color-scheme: dark)').matches;`))
	p.visit("/")
	p.accessible("a page")
	p.scheme("dark")
	p.until("dark()")
	p.size(360, 800, 2)
	var width int
	if p.evaluate("innerWidth * devicePixelRatio", &width); width != 720 {
		t.Errorf("the window has %d pixels: want 720", width)
	}
	p.screenshot("a page")
}
