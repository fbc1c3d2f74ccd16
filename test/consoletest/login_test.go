package consoletest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/need"
)

// open is a page of the console with a session of the provider, by a code of one use as
// `ibwarden show console` prints it.
func (s *site) open(t testing.TB) *page {
	t.Helper()
	p := newPage(t, s.base())
	p.visit("/console/#code=" + s.do("POST", "/logins", js{})["code"].(string))
	p.ready()
	return p
}

// openAs is a page of the console with a session of the holder of a token, who types it.
func (s *site) openAs(t testing.TB, token string) *page {
	t.Helper()
	p := newPage(t, s.base())
	p.visit("/console/")
	p.find("textbox", "Token").fill(token)
	p.find("button", "Log in").click()
	p.ready()
	return p
}

// token makes a token and returns its secret.
func (s *site) token(tenant string, more ...any) string {
	s.Helper()
	body := js{"tenant": tenant, "note": "of a test"}
	for i := 0; i+1 < len(more); i += 2 {
		body[more[i].(string)] = more[i+1]
	}
	return s.do("POST", "/tokens", body)["secret"].(string)
}

// ready waits until a page of the console shows all that it asked for.
func (p *page) ready() {
	p.Helper()
	p.until(`document.querySelector('main .page[data-ready=true]')`)
	p.quiet()
}

// quietFor is how long no answer may be outstanding for a page to be called quiet.
const quietFor = 60 * time.Millisecond

// quiet waits until no answer but those that stream is outstanding.
func (p *page) quiet() {
	p.Helper()
	p.eventually("every request is answered", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		var waits []string
		for _, path := range p.waiting {
			if !strings.HasSuffix(path, "/events") {
				waits = append(waits, path)
			}
		}
		if len(waits) > 0 {
			return fmt.Errorf("%v wait", waits)
		}
		if time.Since(p.answered) < quietFor {
			return errors.New("an answer has just come")
		}
		return nil
	})
}

// goTo goes to a page of the console by its hash.
func (p *page) goTo(hash string) {
	p.Helper()
	p.evaluate(fmt.Sprintf(`(() => {
		for (const e of document.querySelectorAll('main .page')) delete e.dataset.ready;
		if (location.hash === %[1]q) dispatchEvent(new HashChangeEvent('hashchange')); else location.hash = %[1]q;
	})()`, hash), nil)
	p.ready()
}

// pages are the hashes of the pages that the navigation offers.
func (p *page) pages() (hashes []string) {
	p.Helper()
	p.evaluate(`[...document.querySelectorAll('nav.pages a')].map(a => a.getAttribute('href'))`, &hashes)
	return hashes
}

func TestLogin(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := demonstration(t)
	t.Run("code", func(t *testing.T) {
		p := s.open(t)
		if at := p.text("location.href"); strings.Contains(at, "ibwc_") {
			t.Errorf("the code is in the address %s, and in the history of the browser", at)
		}
		if n := p.text("history.length"); n != "2" { // about:blank and this
			t.Errorf("the history has %s places: want that of the code replaced", n)
		}
		want := []string{"#/overview", "#/fabric", "#/tenants", "#/change", "#/why", "#/proof", "#/history", "#/managers", "#/events", "#/traffic"}
		if got := p.pages(); !slices.Equal(got, want) {
			t.Errorf("the pages are %v: want %v", got, want)
		}
		p.find("button", "Log out").click()
		p.says("You have logged out")
		if kept := p.text(`sessionStorage.length + localStorage.length + document.cookie.length`); kept != "0" {
			t.Errorf("after logging out, the browser keeps %s", p.text(`JSON.stringify([{...sessionStorage}, {...localStorage}, document.cookie])`))
		}
	})
	t.Run("code used twice", func(t *testing.T) {
		code := s.do("POST", "/logins", js{})["code"].(string)
		p := newPage(t, s.base())
		p.visit("/console/#code=" + code)
		p.ready()
		p = newPage(t, s.base())
		p.expect("status of 401")
		p.visit("/console/#code=" + code)
		p.says("The code of the address was not taken: .*")
		p.accessible("login with a reason")
	})
	t.Run("token", func(t *testing.T) {
		p := s.openAs(t, s.token("green"))
		p.says(`tenant green`)
		if got := p.pages(); slices.Contains(got, "#/managers") {
			t.Errorf("a tenant is offered %v", got)
		}
		if kept := p.text(`JSON.stringify([{...sessionStorage}, {...localStorage}])`); strings.Contains(kept, "ibw_") {
			t.Errorf("the browser keeps the token: %s", kept)
		}
	})
	t.Run("not a token", func(t *testing.T) {
		p := newPage(t, s.base())
		p.expect("status of 401")
		p.visit("/console/")
		secret := p.find("textbox", "Token")
		p.accessible("login")
		secret.fill("let me in")
		p.find("button", "Log in").click()
		p.says("Want a token as ibwarden tenant token create prints it")
		p.find("textbox", "Token").fill("ibw_" + strings.Repeat("A", 43))
		p.find("button", "Log in").click()
		p.eventually("it says why not", func() error {
			if text := p.text(`document.querySelector('.fault').textContent`); text == "" || strings.Contains(text, "Want a token") {
				return fmt.Errorf("it says %q", text)
			}
			return nil
		})
		p.accessible("login with a fault")
	})
}

// TestSessionsEnd: a page says when its session ended, and that the service is away, and
// goes on as soon as it can.
func TestSessionsEnd(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := demonstration(t)
	t.Run("token deleted", func(t *testing.T) {
		p := s.openAs(t, s.token("green"))
		p.expect("status of 401")
		for _, token := range s.items("/tokens?tenant=green") {
			s.do("DELETE", "/tokens/"+token["id"].(string), nil)
		}
		p.says("Your session has ended")
		p.find("textbox", "Token")
		if kept := p.text(`sessionStorage.length`); kept != "0" {
			t.Errorf("the browser keeps the session")
		}
	})
	t.Run("restart", func(t *testing.T) {
		p := s.open(t)
		p.expect("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|status of 401|ERR_SOCKET_NOT_CONNECTED")
		p.says("live")
		s.stop()
		p.says("not live")
		p.says("the service does not answer")
		p.accessible("the service is away")
		s.start()
		s.verdict("isolated.*")
		p.says("Your session has ended") // it was in the memory of the process
		p.visit("/console/#code=" + s.do("POST", "/logins", js{})["code"].(string))
		p.ready()
		p.says("live")
	})
}
