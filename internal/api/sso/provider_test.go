package sso

import (
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// TestRealProvider: a provider of another project logs in, confirms, and ends; revoked and disabled
// people lose what they have at the next check, and while it is down nobody does.
func TestRealProvider(t *testing.T) {
	need.Long(t, "builds a provider")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	console := "http://" + l.Addr().String()
	anna := need.OpenIDPerson{Name: "anna", Password: "pw", Groups: []string{"greens"}}
	p := need.StartOpenIDProvider(t, console, anna)
	r := newRig(t, func(c *Config) {
		c.Issuer, c.ClientID, c.ClientSecret, c.Console = p.Issuer, p.Client, p.Secret, console
		c.Scopes = []string{"profile", "email", "groups", "offline_access"}
	})
	server := httptest.NewUnstartedServer(r.Service)
	server.Listener.Close()
	server.Listener = l
	server.Start()
	defer server.Close()
	login := func() string {
		t.Helper()
		jar, _ := cookiejar.New(nil)
		code := ""
		browser := &http.Client{Jar: jar, CheckRedirect: func(q *http.Request, _ []*http.Request) error {
			if q.URL.Path == consolePath {
				code = strings.TrimPrefix(q.URL.Fragment, "code=")
				return http.ErrUseLastResponse
			}
			return nil
		}}
		form, err := browser.Get(console + beginPath)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(form.Body)
		form.Body.Close()
		id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindSubmatch(text)
		if id == nil {
			t.Fatalf("no form in %s\n%s", text, &r.log)
		}
		answer, err := browser.PostForm(p.Issuer+"/login/username", url.Values{"id": {string(id[1])}, "username": {"anna"}, "password": {"pw"}})
		if err != nil {
			t.Fatal(err)
		}
		text, _ = io.ReadAll(answer.Body)
		answer.Body.Close()
		who, in := r.codes[code]
		if !in {
			t.Fatalf("not logged in: %s, refused %q", text, r.refused)
		}
		if want := "anna (id-anna at " + p.Issuer + ")"; who.Caller.Name != want || who.Caller.Tenant != "green" {
			t.Errorf("it is %+v, want %s", who.Caller, want)
		}
		return who.Sums[0]
	}
	lasts := func(sum string, want bool, why string) {
		t.Helper()
		r.Check(t.Context())
		if _, known := r.CallerOf(sum); known != want {
			t.Errorf("%s: lasts %v, want %v\n%s", why, known, want, &r.log)
		}
	}
	sum := login()
	lasts(sum, true, "nothing has changed")
	lasts(sum, true, "with the second refresh token")
	p.Set(need.OpenIDPerson{Name: "anna", Password: "pw", Groups: []string{"others"}})
	lasts(sum, false, "out of the group")
	p.Set(anna)
	lasts(sum, false, "in it again, but it has ended")

	sum = login()
	p.Set(need.OpenIDPerson{Name: "anna", Password: "pw", Groups: anna.Groups, Disabled: true})
	lasts(sum, false, "disabled")
	p.Set(anna)

	sum = login()
	r.mu.Lock()
	token := r.held[sum].refresh
	r.mu.Unlock()
	form := url.Values{"token": {token}, "token_type_hint": {"refresh_token"}, "client_id": {p.Client}, "client_secret": {p.Secret}}
	if answer, err := http.PostForm(p.Issuer+"/revoke", form); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("revoke: %v, %v", answer, err)
	}
	lasts(sum, false, "revoked")

	sum = login()
	p.Stop()
	lasts(sum, true, "the provider is down")
	lasts(sum, true, "still down")
	p.Start() // it knows nobody of before
	lasts(sum, false, "the provider is back, and does not know it")
	sum = login()
	lasts(sum, true, "logged in again")
}
