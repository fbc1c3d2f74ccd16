package api

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// ufmAsk sends one of UFM's calls through the front of the API.
func (s *stand) ufmAsk(method, path, auth, body string, with func(*http.Request)) *httptest.ResponseRecorder {
	s.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8443"
	if auth != "-" {
		r.Header.Set("Authorization", auth)
	}
	if with != nil {
		with(r)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code >= 300 && w.Code < 400 || !json.Valid(w.Body.Bytes()) {
		s.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w
}

func (s *stand) change(c resource.Change) {
	s.Helper()
	boss := resource.Caller{Name: "uid 0", Tenant: resource.Provider}
	if _, err := s.service.Do(s.Context(), service.Request{Change: c, By: boss, Seen: resource.Unseen}); err != nil {
		s.Fatalf("%s: %v", c.Action(), err)
	}
}

// TestUFMCalls: UFM's calls are served next to the API, to the same callers. A
// certificate and a URI are no secrets: knowing one does not make a caller its holder.
func TestUFMCalls(t *testing.T) {
	s := newStand(t)
	s.change(resource.PutTenant{Tenant: resource.Tenant{Name: "red", Keys: resource.KeyRange{First: 1, Last: 99}}})
	secret := listen.NewSecret(listen.TokenPrefix)
	uri, _ := url.Parse("spiffe://site/red")
	certificate := &x509.Certificate{Raw: []byte("0the bytes of a certificate"), URIs: []*url.URL{uri}}
	for id, bytes := range map[string][]byte{"red-1": []byte(secret), "red-2": certificate.Raw, "red-3": []byte(listen.URIPrefix + uri.String())} {
		s.change(resource.PutToken{Token: resource.Token{ID: id, Tenant: "red", Sum: listen.SecretSum(bytes)}})
	}
	withCertificate := func(c *x509.Certificate) func(*http.Request) {
		return func(r *http.Request) {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}, VerifiedChains: [][]*x509.Certificate{{c}}}
		}
	}
	peer := func(uid uint32) func(*http.Request) {
		return func(r *http.Request) { *r = *r.WithContext(WithPeer(r.Context(), Peer{UID: uid})) }
	}
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	for _, c := range []struct {
		auth   string
		with   func(*http.Request)
		status int
		who    string
	}{
		{"Basic " + secret, nil, 200, "red"},
		{"Bearer " + secret, nil, 200, "red"},
		{basic("red", secret), nil, 200, "red"},
		{basic("red-1", secret), nil, 200, "red"},
		{basic(secret, ""), nil, 200, "red"},
		{basic("red", secret), peer(0), 200, "red"},
		{"", withCertificate(certificate), 200, "red"},
		{"-", withCertificate(certificate), 200, "red"},
		{"-", withCertificate(&x509.Certificate{Raw: []byte("0another"), URIs: certificate.URIs}), 200, "red"},
		{"-", withCertificate(&x509.Certificate{Raw: []byte("0another")}), 401, ""},
		{"", peer(0), 200, "provider"},
		{"-", peer(ownUID), 200, "provider"},
		{"-", peer(7), 401, ""},
		{"-", nil, 401, ""},
		{"", nil, 401, ""},
		{"Basic " + string(certificate.Raw), nil, 401, ""},
		{basic("red", string(certificate.Raw)), nil, 401, ""},
		{basic("red-2", string(certificate.Raw)), nil, 401, ""},
		{basic("red", listen.URIPrefix+uri.String()), nil, 401, ""},
		{basic(listen.URIPrefix+uri.String(), ""), nil, 401, ""},
		{"Bearer " + listen.URIPrefix + uri.String(), nil, 401, ""},
		{basic("red", secret+"x"), peer(0), 401, ""},
	} {
		for _, path := range []string{"/ufmRest/app/tokens", "/ufmRestV3/app/tokens/", "//ufmRestV2//app/tokens"} {
			w := s.ufmAsk("GET", path, c.auth, "", c.with)
			if w.Code != c.status || c.who == "red" && !strings.Contains(w.Body.String(), `"username":"red"`) || c.who == "provider" && strings.Contains(w.Body.String(), "red") {
				t.Errorf("%s with %q: %d %s: want %d as %q", path, c.auth, w.Code, w.Body, c.status, c.who)
			}
		}
	}
	// What a call did is what the API shows, and the API itself is where it was.
	s.change(resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: s.manager.snap.Fabric.EndPorts()[0].GUID}}})
	guid := strings.TrimPrefix(s.manager.snap.Fabric.EndPorts()[0].GUID.String(), "0x")
	if w := s.ufmAsk("POST", "/ufmRest/resources/pkeys/", basic("red", secret), `{"pkey":"0x5","guids":["`+guid+`"]}`, nil); w.Code != 200 || w.Body.String() != "{}" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	got := s.want(200, call{method: "GET", path: "/partitions/0x0005"})
	if item, _ := got["item"].(map[string]any); item["name"] != "api_pkey_0x5" || item["owner"] != "red" {
		t.Errorf("the API shows %v", got)
	}
	var made struct {
		Secret string `json:"access_token"`
	}
	if err := json.Unmarshal(s.ufmAsk("POST", "/ufmRest/app/tokens", basic("red", secret), "", nil).Body.Bytes(), &made); err != nil || !listen.IsSecret(listen.TokenPrefix, made.Secret) {
		t.Errorf("made the secret %q, %v", made.Secret, err)
	}
	s.tokens["made"] = made.Secret
	s.want(200, call{as: "made", method: "GET", path: "/partitions/0x0005"})
	if w := s.ufmAsk("GET", "/ufmRest/app/ufm_version", basic("red", secret), "", nil); !strings.Contains(w.Body.String(), `"ibwarden_version":"test"`) {
		t.Errorf("%s", w.Body)
	}
}
