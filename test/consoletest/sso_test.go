package consoletest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// withProvider is the demonstration, whose people log in with an OpenID provider.
func withProvider(t testing.TB, people ...need.OpenIDPerson) (*site, *need.OpenIDProvider) {
	t.Helper()
	need.Program(t, "chromium")
	secret := filepath.Join(t.TempDir(), "secret")
	address := freeAddress(t)
	p := need.StartOpenIDProvider(t, "http://"+address, people...)
	if err := os.WriteFile(secret, []byte(p.Secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, topology.Demo(), "--policy", demonstrationPolicy(t), "--listen", address, "--oidc-issuer", p.Issuer, "--oidc-client-id", p.Client, "--oidc-client-secret-file", secret,
		"--oidc-name", "Example", "--oidc-groups", "fabric-admins=provider,greens=green,auditors=provider:read-only")
	s.address = address
	s.tenant("green", "0x100", "red-5", "red-6", "blue-5")
	return s, p
}

// logInWith logs in at the form of the provider.
func (p *page) logInWith(name, password string) {
	p.Helper()
	p.find("button", "Log in with Example").click()
	p.find("textbox", "Username.*").fill(name)
	p.find("textbox", "Password.*").fill(password)
	p.find("button", "Login").click()
}

// TestLoginWithAProvider: a person logs in with a real provider through its form, comes back to the
// page that he asked for, and the history has him for what he changes; he logs out of both.
func TestLoginWithAProvider(t *testing.T) {
	need.Long(t, "seconds of a browser")
	anna := need.OpenIDPerson{Name: "anna", Password: "secret of anna", Groups: []string{"greens"}}
	s, provider := withProvider(t, anna, need.OpenIDPerson{Name: "bert", Password: "b", Groups: []string{"strangers"}})
	host := strings.TrimPrefix(provider.Issuer, "http://")
	p := newPage(t, s.base())
	p.expect(host)
	p.visit("/console/#/history")
	p.find("button", "Log in with Example") // the page asks other tabs first
	p.accessible("login with a provider")
	p.logInWith("anna", anna.Password)
	p.ready()
	p.says("tenant green \\(anna.*")
	if at := p.text("location.hash"); at != "#/history" {
		t.Errorf("the page is %s: want the one that was asked for", at)
	}
	if kept := p.text("document.cookie + JSON.stringify({...localStorage})"); kept != "{}" {
		t.Errorf("the browser keeps %s", kept)
	}
	p.evaluate(`fetch('/api/v1/partitions/0x0100', {method: 'PATCH', body: '{"sl": 0, "labels": {"by": "anna"}}',
		headers: {'Content-Type': 'application/merge-patch+json', Authorization: 'Bearer ' + JSON.parse(sessionStorage.getItem('ibwarden-session')).session}}).then(r => { window.status = String(r.status); })`, nil)
	p.until(`/^20\d$/.test(window.status)`)
	want := "anna (id-anna at " + provider.Issuer + ")"
	if by := s.do("GET", "/revisions?limit=1", nil)["items"].([]any)[0].(js)["by"]; by != want {
		t.Errorf("the change is by %q: want %q", by, want)
	}
	p.find("button", "Log out").click()
	p.until(`location.pathname === '/console/' && document.querySelector('form.login')`) // by way of the provider
	if kept := p.text(`sessionStorage.length + localStorage.length + document.cookie.length`); kept != "0" {
		t.Errorf("after logging out, the browser keeps %s", kept)
	}
	if n := strings.Count(s.log.String(), "end_session"); n > 0 {
		t.Error("the log has the address of the provider")
	}

	p = newPage(t, s.base())
	p.expect(host + "|status of 403")
	p.visit("/console/")
	p.logInWith("bert", "b")
	p.says("bert is in no group that may use this console.")
	p.accessible("nobody")
}
