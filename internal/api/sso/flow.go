package sso

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Paths of a login.
const (
	Prefix       = "/login/"
	beginPath    = Prefix + "begin"
	callbackPath = Prefix + "callback"
	consolePath  = "/console/"
)

// flow is a login that waits for the browser to come back from the provider. The browser keeps it, in
// a cookie that is sealed: so it is the same browser that comes back, and no number of logins
// that begin takes room here.
type flow struct {
	State, Nonce, Verifier string
	As                     string    // the tenant for whom it is to be; "" for the only one
	Until                  time.Time // when it is over
}

// sealedFor says what is sealed: a cursor is no flow.
const sealedFor = "login"

// ServeHTTP serves the paths below Prefix. The front of the API has looked at the header Host.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	query, err := url.ParseQuery(r.URL.RawQuery)
	for _, values := range query {
		if len(values) > 1 { // two programs could read it differently
			err = errors.New("a parameter is there twice")
		}
	}
	if err != nil || len(r.URL.RawQuery) > listen.QueryMax {
		s.page(w, http.StatusBadRequest, "The address of this login cannot be read.")
		return
	}
	switch {
	case r.Method != http.MethodGet:
		h.Set("Allow", http.MethodGet)
		s.page(w, http.StatusMethodNotAllowed, "A login is read with GET.")
	case r.URL.Path == beginPath:
		s.begin(w, r)
	case r.URL.Path == callbackPath:
		s.callback(w, r)
	default:
		s.page(w, http.StatusNotFound, "There is nothing here.")
	}
}

// begin leads a browser to the provider.
func (s *Service) begin(w http.ResponseWriter, r *http.Request) {
	as := r.URL.Query().Get("as")
	if as != "" && !slices.ContainsFunc(s.config.Grants, func(g Grant) bool { return g.Tenant == as }) {
		s.refuse(w, r, http.StatusForbidden, "No group may log in as that tenant.", "a login as "+plainSubject(as)+", whom no group may be")
		return
	}
	p, err := s.provider()
	if err != nil {
		s.unanswered(w, r, err)
		return
	}
	f := flow{State: listen.NewSecret(""), Nonce: listen.NewSecret(""), Verifier: oauth2.GenerateVerifier(), As: as, Until: s.now().Add(FlowLife)}
	text, _ := json.Marshal(f) // of texts and a time
	s.cookie(w, s.sealed.Seal(string(text), sealedFor), int(FlowLife/time.Second))
	http.Redirect(w, r, p.oauth.AuthCodeURL(f.State, oauth2.S256ChallengeOption(f.Verifier), oidc.Nonce(f.Nonce)), http.StatusSeeOther)
}

// cookie keeps a flow in the browser, or with a negative age removes it. It comes back with the
// navigation from the provider, which is another site, and with no other request of other sites.
func (s *Service) cookie(w http.ResponseWriter, value string, age int) {
	http.SetCookie(w, &http.Cookie{Name: s.cookieName(), Value: value, Path: "/", MaxAge: age, Secure: s.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// cookieName is the name of the cookie. With the prefix a browser takes it from this host alone, by TLS.
func (s *Service) cookieName() string {
	if s.secure {
		return "__Host-ibwarden-login"
	}
	return "ibwarden-login"
}

// flowOf is the flow with which a browser comes back; false for none that it may come back with.
func (s *Service) flowOf(r *http.Request) (f flow, ok bool) {
	list := r.CookiesNamed(s.cookieName())
	if len(list) != 1 {
		return f, false
	}
	text, err := s.sealed.Open(list[0].Value, sealedFor)
	if err != nil || json.Unmarshal([]byte(text), &f) != nil || !s.now().Before(f.Until) {
		return f, false
	}
	if subtle.ConstantTimeCompare([]byte(f.State), []byte(r.URL.Query().Get("state"))) != 1 {
		return f, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, was := s.used[f.State]
	for state := range s.used { // the provider takes no code twice: a flood may end what this is for, but no login
		if len(s.used) < heldMax {
			break
		}
		delete(s.used, state)
	}
	s.used[f.State] = f.Until
	return f, !was
}

var goodError = regexp.MustCompile(`^[a-z_]{1,40}$`)

// callback takes a browser that comes back from the provider.
func (s *Service) callback(w http.ResponseWriter, r *http.Request) {
	s.cookie(w, "", -1)
	q := r.URL.Query()
	f, ok := s.flowOf(r)
	if !ok {
		s.refuse(w, r, http.StatusForbidden, fmt.Sprintf("This login was not begun in this browser, was used before, or took longer than %v: begin it again.", FlowLife), "no login that was begun in this browser")
		return
	}
	if iss := q.Get("iss"); iss != "" && iss != s.config.Issuer {
		s.refuse(w, r, http.StatusForbidden, "Another service than "+s.config.Name+" sent you here: begin the login again.", "another issuer")
		return
	}
	if e := q.Get("error"); e != "" || q.Get("code") == "" {
		if !goodError.MatchString(e) {
			e = "an error"
		}
		s.refuse(w, r, http.StatusForbidden, s.config.Name+" did not log you in: "+e+".", "the provider: "+e)
		return
	}
	select {
	case s.exchanging <- struct{}{}:
		defer func() { <-s.exchanging }()
	default:
		s.refuse(w, r, http.StatusServiceUnavailable, "Too many people log in just now: try again soon.", "too many logins at once")
		return
	}
	p, err := s.provider()
	if err != nil {
		s.unanswered(w, r, err)
		return
	}
	ctx, done := context.WithTimeout(oidc.ClientContext(r.Context(), s.client), CheckTime)
	defer done()
	t, err := p.oauth.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(f.Verifier))
	var who person
	if err == nil {
		who, err = s.personOf(ctx, p, t, "")
	}
	if err == nil && subtle.ConstantTimeCompare([]byte(who.nonce), []byte(f.Nonce)) != 1 {
		err = fmt.Errorf("%w: the ID token is of another login (nonce)", errRefused)
	}
	if err == nil && t.RefreshToken == "" {
		err = errors.New("the provider gave no refresh token, without which it cannot end a session: have it give this client one (scope offline_access)")
	}
	switch {
	case refused(err):
		s.refuse(w, r, http.StatusForbidden, s.config.Name+" did not log you in: its answer is not as it has to be.", reason(err))
	case err != nil:
		s.unanswered(w, r, err)
	default:
		s.enter(w, r, p, f, who, t)
	}
}

// enter logs in somebody whom the provider has named, if one of his groups may.
func (s *Service) enter(w http.ResponseWriter, r *http.Request, p *provider, f flow, who person, t *oauth2.Token) {
	choices := slices.DeleteFunc(s.config.choices(who.groups), func(g Grant) bool { return f.As != "" && g.Tenant != f.As || !s.hooks.Exists(g.Tenant) })
	shown, _, _ := strings.Cut(who.name, " (")
	switch {
	case len(choices) == 0:
		why := shown + " is in no group that may use this console."
		if f.As != "" {
			why = shown + " is in no group that may use this console as " + f.As + "."
		}
		s.refuse(w, r, http.StatusForbidden, why, fmt.Sprintf("%s may not: his groups (%d) give him nothing", who.name, len(who.groups)))
		return
	case len(choices) > 1:
		s.page(w, http.StatusOK, shown+" may use this console in several ways.", choices...)
		return
	}
	now := s.now()
	h := &held{
		caller: resource.Caller{Name: who.name, Tenant: choices[0].Tenant, ReadOnly: choices[0].ReadOnly}, subject: who.subject, nonce: who.nonce,
		refresh: t.RefreshToken, since: now, ends: now.Add(listen.SessionLife), provider: p,
	}
	sum := listen.SecretSum(listen.SecretBytes(32))
	s.mu.Lock()
	room := len(s.held) < heldMax
	if room {
		s.held[sum] = h
	}
	s.mu.Unlock()
	if !room {
		s.refuse(w, r, http.StatusServiceUnavailable, "Too many people have logged in just now: try again soon.", "too many logins")
		return
	}
	raw, _ := t.Extra("id_token").(string)
	code := s.hooks.Code(listen.Account{Caller: h.caller, Sums: []string{sum}, Until: h.ends, Shown: listen.ShownSSO, Logout: s.logout(p, raw)})
	http.Redirect(w, r, consolePath+"#code="+code, http.StatusSeeOther)
}

// refuse says and logs that somebody may not log in.
func (s *Service) refuse(w http.ResponseWriter, r *http.Request, status int, text, why string) {
	if s.hooks.Refused(r, why) {
		status, text = http.StatusTooManyRequests, "Too many logins from your address failed: wait a minute. "+text
	}
	s.page(w, status, text)
}

// unanswered says and logs that the provider does not answer as it has to.
func (s *Service) unanswered(w http.ResponseWriter, r *http.Request, err error) {
	s.refuse(w, r, http.StatusServiceUnavailable, s.config.Name+" does not answer as it has to, and the log of the service says more: log in with a token, or by ibwarden show console.", "the OpenID provider: "+reason(err))
}

// pageHead begins the one page that this package shows: a sentence, and ways to go on. html/template
// would keep all methods there are in the program.
const pageHead = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Log in · ibwarden</title>
<link rel="icon" href="/console/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/console/style.css">
</head>
<body>
<main class="center"><div class="panel">
<h1>ibwarden</h1>
`

// page shows a sentence, and the ways to log in of which one is to be chosen.
func (s *Service) page(w http.ResponseWriter, status int, text string, choices ...Grant) {
	var page strings.Builder
	page.WriteString(pageHead + "<p>" + html.EscapeString(text) + "</p>\n")
	if len(choices) > 0 {
		page.WriteString("<ul>\n")
		for _, g := range choices {
			words := "Log in for tenant " + g.Tenant
			if g.Tenant == resource.Provider {
				words = "Log in for the provider"
			}
			if g.ReadOnly {
				words += ", read only"
			}
			fmt.Fprintf(&page, "<li><a href=\"%s?as=%s\">%s</a></li>\n", beginPath, url.QueryEscape(g.Tenant), html.EscapeString(words))
		}
		page.WriteString("</ul>\n")
	}
	page.WriteString("<p><a href=\"/console/\">Back to the login page</a></p>\n</div></main>\n</body>\n</html>\n")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, page.String()) // the browser may be gone
}
