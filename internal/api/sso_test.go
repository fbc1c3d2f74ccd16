package api

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/api/sso"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/need"
)

// person logs somebody in with a provider, through its form, and enters his session as token NAME.
func (s *stand) person(console string, p *need.OpenIDProvider, name, as string) {
	s.Helper()
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar, CheckRedirect: func(q *http.Request, _ []*http.Request) error {
		if code, is := strings.CutPrefix(q.URL.Fragment, "code="); is {
			s.tokens["code"] = code
			return http.ErrUseLastResponse
		}
		return nil
	}}
	form, err := browser.Get(console + "/login/begin?as=" + as)
	if err != nil {
		s.Fatal(err)
	}
	text, _ := io.ReadAll(form.Body)
	form.Body.Close()
	id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindSubmatch(text)
	if id == nil {
		s.Fatalf("no form in %s\n%s", text, s.log)
	}
	answer, err := browser.PostForm(p.Issuer+"/login/username", url.Values{"id": {string(id[1])}, "username": {name}, "password": {"pw"}})
	if err != nil {
		s.Fatal(err)
	}
	answer.Body.Close()
	made := s.want(201, call{as: "code", method: "POST", path: "/session"})
	if at, _ := made["logout_url"].(string); !strings.HasPrefix(at, p.Issuer+"/end_session?") {
		s.Errorf("logout at %q", at)
	}
	s.tokens[name] = made["session"].(string)
}

// TestPeople: a session that a provider began may what its tenant may, but make tokens and other
// sessions; the history says who it was; it ends with its tenant, and when the provider ends it.
func TestPeople(t *testing.T) {
	need.Long(t, "builds a provider")
	s := newStand(t)
	s.tenants()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	console := "http://" + l.Addr().String()
	anna := need.OpenIDPerson{Name: "anna", Password: "pw", Groups: []string{"reds", "admins"}}
	otto := need.OpenIDPerson{Name: "otto", Password: "pw", Groups: []string{"readers"}}
	p := need.StartOpenIDProvider(t, console, anna, otto)
	service := sso.New(sso.Config{
		Issuer: p.Issuer, ClientID: p.Client, ClientSecret: p.Secret, Name: "Example", Claim: "groups", Scopes: []string{"profile", "groups", "offline_access"}, Console: console,
		Grants: []sso.Grant{{Group: "reds", Tenant: "red"}, {Group: "readers", Tenant: "red", ReadOnly: true}, {Group: "admins", Tenant: resource.Provider}, {Group: "greens", Tenant: "green"}},
	}, time.Now, slog.New(slog.NewTextHandler(s.log, nil)))
	s.api.options.SSO = service
	service.Use(s.api.ssoHooks())
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: s.handler}}
	server.Start()
	defer server.Close()

	s.person(console, p, "anna", "red")
	name := "anna (id-anna at " + p.Issuer + ")"
	if me := s.want(200, whoAmI.by("anna")); me["name"] != name || me["tenant"] != "red" || me["provider"] != false {
		t.Errorf("it is %v", me)
	}
	if text := s.log.String(); !strings.Contains(text, `caller="`+name+`" tenant=red by=sso`) {
		t.Errorf("the log has not who began the session:\n%s", text)
	}
	s.want(201, call{as: "anna", method: "PUT", path: "/partitions/0x0100", body: js{"name": "training"}})
	if r := s.want(200, call{method: "GET", path: "/revisions?limit=1"})["items"].([]any)[0].(js); r["by"] != name {
		t.Errorf("the history has %v", r["by"])
	}
	if r := s.want(200, call{method: "GET", path: "/audit-log?limit=1"})["items"].([]any)[0].(js); r["caller"] != name {
		t.Errorf("the audit log has %v", r["caller"])
	}
	s.want(403, call{as: "anna", method: "POST", path: "/tokens", body: js{}})
	for _, path := range []string{"/session", "/logins"} {
		s.want(403, call{as: "anna", method: "POST", path: path})
	}
	s.want(403, call{as: "anna", method: "PUT", path: "/tenants/green", body: js{}})
	s.want(404, call{as: "anna", method: "GET", path: "/tenants/blue"})
	s.person(console, p, "otto", "")
	s.want(200, call{as: "otto", method: "GET", path: "/partitions/0x0100"})
	s.want(403, call{as: "otto", method: "DELETE", path: "/partitions/0x0100"})

	service.Check(t.Context())
	s.want(200, whoAmI.by("anna"))
	p.Set(anna, need.OpenIDPerson{Name: "otto", Password: "pw"})
	service.Check(t.Context())
	s.want(401, whoAmI.by("otto"))
	s.want(200, whoAmI.by("anna"))
	if text := s.log.String(); strings.Count(text, "event="+listen.SessionRevoked) != 1 {
		t.Errorf("the log:\n%s", text)
	}
	s.want(204, call{as: "anna", method: "DELETE", path: "/session"})
	s.want(401, whoAmI.by("anna"))

	s.person(console, p, "anna", resource.Provider)
	s.want(201, call{as: "anna", method: "PUT", path: "/tenants/green", body: js{}})
	// With its tenant a session ends.
	p.Set(anna, need.OpenIDPerson{Name: "gina", Password: "pw", Groups: []string{"greens"}})
	s.person(console, p, "gina", "")
	s.want(200, whoAmI.by("gina"))
	s.want(200, call{as: "anna", method: "DELETE", path: "/tenants/green"})
	s.want(401, whoAmI.by("gina"))
}
