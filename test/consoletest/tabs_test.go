package consoletest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"

	"github.com/ibwarden/ibwarden/test/need"
)

// stored is what a tab keeps, but for the colours.
const stored = `sessionStorage.length + document.cookie.length + Object.keys(localStorage).filter(k => k !== 'ibwarden-theme').length`

// shut closes a tab as a person does.
func (p *page) shut() {
	p.Helper()
	must(p, cdppage.Close, struct{}{})
}

// loggedIn opens the console in another tab of the browser, which logs in by itself.
func (p *page) loggedIn(hash string) *page {
	p.Helper()
	next := p.tab(p.base)
	next.visit("/console/" + hash)
	next.ready()
	return next
}

// asksToLogIn opens the console in another tab of the browser, which does not.
func (p *page) asksToLogIn() *page {
	p.Helper()
	next := p.tab(p.base)
	next.visit("/console/")
	next.find("textbox", "Token")
	if kept := next.text(stored); kept != "0" {
		p.Errorf("a tab that is not logged in keeps %s things", kept)
	}
	return next
}

// loginAs logs in with a token on a page that asks for it.
func (p *page) loginAs(token string) {
	p.Helper()
	p.find("textbox", "Token").fill(token)
	p.find("button", "Log in").click()
	p.ready()
}

// TestTabs: a link that is opened in another tab does not ask to log in again; who logs out in one
// tab has logged out in all; a session that ended is handed on to nobody, and with the last tab it
// is gone.
func TestTabs(t *testing.T) {
	need.Long(t, "opens a dozen tabs")
	s := demonstration(t)
	first := s.open(t)
	second := first.loggedIn("#/why?from=" + s.guid("red-1") + "&to=" + s.guid("blue-4"))
	second.says("They share no partition")
	third := second.loggedIn("#/history")
	if all := s.sessionsOf(first, second, third); len(all) != 1 {
		t.Errorf("the three tabs have %d sessions: want one", len(all))
	}
	first.shut()
	third.find("button", "Log out").click()
	third.says("You have logged out")
	second.says("You have logged out in another tab")
	second.accessible("logged out in another tab")
	for _, p := range []*page{second, third} {
		if kept := p.text(stored); kept != "0" {
			t.Errorf("after logging out a tab keeps %s things", kept)
		}
	}
	// Whoever logs in again does so for tabs that are opened from then on.
	fourth := third.asksToLogIn()
	fourth.loginAs(s.token("green"))
	fifth := fourth.loggedIn("")
	fifth.says("tenant green")
	fourth.expect("status of 401")
	fifth.expect("status of 401")
	for _, token := range s.items("/tokens?tenant=green") {
		s.do("DELETE", "/tokens/"+token["id"].(string), nil)
	}
	fourth.says("Your session has ended")
	fifth.says("Your session has ended")
	last := fifth.asksToLogIn()
	last.loginAs(s.token("green"))
	last.shut()
	fifth.asksToLogIn()
}

// sessionsOf are the secrets of the sessions of tabs.
func (s *site) sessionsOf(tabs ...*page) map[string]bool {
	all := map[string]bool{}
	for _, p := range tabs {
		all[p.text(`JSON.parse(sessionStorage.getItem('ibwarden-session')).session`)] = true
	}
	return all
}

// TestTabsOfTwo: where the tabs of a browser are of several callers, a new one is of none of them,
// and each stays who it is; logging out in one ends the sessions of both, at the service too.
func TestTabsOfTwo(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := demonstration(t)
	tenant := s.openAs(t, s.token("green"))
	provider := tenant.tab(tenant.base)
	provider.visit("/console/#code=" + s.do("POST", "/logins", js{})["code"].(string))
	provider.ready()
	provider.says(`provider \(`)
	provider.reload()
	provider.says(`provider \(`)
	tenant.says("tenant green")
	third := tenant.asksToLogIn()
	third.says("logged in as different callers")
	third.accessible("tabs of two callers")
	provider.shut()
	again := third.loggedIn("#/events")
	again.says("tenant green")
	other := again.tab(again.base)
	other.visit("/console/#code=" + s.do("POST", "/logins", js{})["code"].(string))
	other.ready()
	var secret string
	other.evaluate(`JSON.parse(sessionStorage.getItem('ibwarden-session')).session`, &secret)
	again.find("button", "Log out").click()
	again.says("You have logged out")
	tenant.says("You have logged out in another tab")
	other.says("You have logged out in another tab")
	s.eventually("the session of the provider has ended at the service too", func() error { return s.refused(secret) })
}

// refused is an error as long as the service takes a session.
func (s *site) refused(secret string) error {
	q, err := http.NewRequest("GET", s.base()+"/api/v1/session", nil)
	if err != nil {
		return err
	}
	q.Header.Set("Authorization", "Bearer "+secret)
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("the service answers %s", answer.Status)
	}
	return nil
}

// listening has a page ask the other tabs as the console does, and note all that comes.
const listening = `(() => {
	window.heard = [];
	window.channel = new BroadcastChannel('ibwarden');
	channel.addEventListener('message', e => heard.push(JSON.stringify(e.data)));
	channel.postMessage({ask: 'me'});
})()`

// TestTabsOfOthers: a page of another origin in the same browser asks as a tab of the console
// does, and is told nothing; a page of this one would be, so that the test has seen it. What is no
// message of the console changes nothing, nor does a session that nobody asked for.
func TestTabsOfOthers(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := demonstration(t)
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!DOCTYPE html><html lang="en"><title>another origin</title><link rel="icon" href="data:,"><p>another origin`))
	}))
	defer foreign.Close()
	p := s.open(t)
	away := p.tab(foreign.URL)
	away.visit("/")
	away.evaluate(listening, nil)
	// The same, where it is heard.
	spy := p.loggedIn("#/events")
	spy.evaluate(listening, nil)
	spy.until(`heard.some(m => m.includes('ibws_'))`)
	away.evaluate(`channel.postMessage({ask: 'me'})`, nil)
	spy.evaluate(`heard.length = 0`, nil)
	for _, message := range []string{`null`, `7`, `{}`, `{answer: 'x', has: {session: 'forged'}}`, `{answer: undefined, has: 1}`, `{over: 'another session'}`, `{over: ''}`} {
		spy.evaluate(`channel.postMessage(`+message+`)`, nil)
	}
	next := p.loggedIn("#/why")
	next.says("provider")
	spy.until(`heard.some(m => m.includes('ibws_'))`)
	away.evaluate(`new Promise(done => setTimeout(() => done(1), 500))`, new(int))
	if heard := away.text(`JSON.stringify(heard)`); heard != "[]" {
		t.Errorf("a page of another origin is told %s", heard)
	}
	for _, tab := range []*page{p, spy, next} {
		if n := len(s.sessionsOf(p, tab)); n != 1 {
			t.Errorf("after messages that are none, two tabs have %d sessions", n)
		}
	}
	spy.evaluate(`heard.length = 0`, nil)
	p.find("button", "Log out").click()
	p.says("You have logged out")
	spy.evaluate(`channel.postMessage({ask: 'me'})`, nil)
	time.Sleep(quietFor)
	if heard := spy.text(`heard.filter(m => m.includes('"has"'))`); heard != "" {
		t.Errorf("after logging out, tabs answer with %s", heard)
	}
}
