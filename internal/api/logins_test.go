package api

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// clocked gives the sessions of a stand a clock of their own, and returns what moves it.
func (s *stand) clocked() (pass func(time.Duration)) {
	var mu sync.Mutex
	at := time.Now()
	s.api.sessions = listen.NewSessions(func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return at
	}, s.api.holder)
	return func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(d)
	}
}

// login begins a session, and calls it as.
func (s *stand) login(with, as string) map[string]any {
	s.Helper()
	made := s.want(201, call{as: with, method: "POST", path: "/session"})
	s.tokens[as], _ = made["session"].(string)
	return made
}

// code makes a code, and calls it as.
func (s *stand) code(with, as string) map[string]any {
	s.Helper()
	made := s.want(201, call{as: with, method: "POST", path: "/logins"})
	s.tokens[as], _ = made["code"].(string)
	return made
}

var whoAmI = call{method: "GET", path: "/session"}

func (c call) by(as string) call {
	c.as = as
	return c
}

// TestLogin: a code begins one session, of whoever made it, and the session is worth what
// he is: the history has his name.
func TestLogin(t *testing.T) {
	s := newStand(t)
	s.tenants()
	s.api.options.Address = "https://fabric.example:8443"
	pass := s.clocked()
	for _, x := range []struct {
		with, name, tenant string
		provider, readOnly bool
	}{
		{"", "uid 0", resource.Provider, true, false},
		{"uid:4321", "uid 4321", resource.Provider, true, false},
		{"red", s.idOf("red"), "red", false, false},
		{"reader", s.idOf("reader"), "red", false, true},
	} {
		made := s.code(x.with, "code")
		if made["address"] != "https://fabric.example:8443" || !listen.IsSecret(listen.Code, s.tokens["code"]) {
			t.Errorf("%v", made)
		}
		first := s.login("code", "first")
		s.login(x.with, "second") // without a code
		for _, as := range []string{"first", "second"} {
			me := s.want(200, whoAmI.by(as))
			if me["name"] != x.name || me["tenant"] != x.tenant || me["provider"] != x.provider || me["read_only"] != x.readOnly || me["expires_at"] == nil || me["idle_seconds"] != 1800.0 {
				t.Errorf("the %s session of %q is %v", as, x.with, me)
			}
			for _, k := range []string{"name", "tenant", "provider", "read_only"} {
				if first[k] != me[k] {
					t.Errorf("%s: %v when it began, %v later", k, first[k], me[k])
				}
			}
		}
		if !x.readOnly {
			s.want(201, call{as: "first", method: "POST", path: "/partitions", body: js{"name": "by-" + strings.ReplaceAll(x.name, " ", "-")}})
			entry := items(s.want(200, call{method: "GET", path: "/audit-log?limit=1"}))[0].(map[string]any)
			if entry["caller"] != x.name || entry["tenant"] != x.tenant || entry["decision"] != "accepted" {
				t.Errorf("the audit log has %v, want %s", entry, x.name)
			}
		} else if w := s.do(call{as: "first", method: "POST", path: "/partitions", body: js{"name": "no"}}); w.Code != 403 {
			t.Errorf("a session of a token that may only read writes: %d %s", w.Code, w.Body)
		}
		if w := s.do(call{as: "first", method: "DELETE", path: "/session"}); w.Code != 204 || w.Body.Len() > 0 {
			t.Errorf("%d %s: want 204", w.Code, w.Body)
		}
		s.want(401, whoAmI.by("first"))
		s.want(200, whoAmI.by("second"))
		pass(listen.BegunWithin)
	}
	// Nothing of a secret is in the log.
	for name, secret := range s.tokens {
		if text := s.log.String(); strings.Contains(text, secret[5:]) || strings.Contains(text, listen.SecretSum([]byte(secret))) {
			t.Errorf("the secret of %s is in the log", name)
		}
	}
	if text := s.log.String(); strings.Count(text, "event="+listen.SessionBegun) != 8 || !strings.Contains(text, `caller="uid 0" tenant=provider by=code`) {
		t.Errorf("want 8 sessions in the log: %s", text)
	}
}

// idOf is the ID of a token of the stand.
func (s *stand) idOf(name string) string {
	caller, _ := s.api.holder([]string{listen.SecretSum([]byte(s.tokens[name]))})
	return caller.Name
}

// TestSessionAttacks: what was used, what is old, and what is of another kind.
func TestSessionAttacks(t *testing.T) {
	s := newStand(t)
	s.tenants()
	pass := s.clocked()
	// A code twice, and after 60 s.
	s.code("red", "code")
	s.login("code", "session")
	s.want(401, call{as: "code", method: "POST", path: "/session"})
	s.code("red", "old")
	pass(listen.CodeLife)
	s.want(401, call{as: "old", method: "POST", path: "/session"})
	// A code is for nothing else, and is not used up by that.
	s.code("red", "code")
	for _, c := range []call{whoAmI, {method: "GET", path: "/partitions"}, {method: "DELETE", path: "/session"}, {method: "POST", path: "/logins"}} {
		s.want(401, c.by("code"))
	}
	s.want(404, call{as: "code", method: "POST", path: "/session/"})
	s.want(400, call{as: "code", method: "POST", path: "/session?x=1&x=2"})
	s.login("code", "another")
	// A session begins no session and makes no code: it could last for ever.
	for _, path := range []string{"/session", "/logins"} {
		s.want(403, call{as: "session", method: "POST", path: path})
	}
	// Its secret is no code and no token, whatever stands before it.
	rest := strings.TrimPrefix(s.tokens["session"], listen.SessionPrefix)
	for _, secret := range []string{listen.Code + rest, listen.TokenPrefix + rest, rest, listen.SessionPrefix + rest + "A", listen.SessionPrefix, listen.SessionPrefix + strings.Repeat("A", 43)} {
		s.tokens["made"] = secret
		s.want(401, whoAmI.by("made"))
		s.want(401, call{as: "made", method: "POST", path: "/session", header: map[string]string{"Ibwarden-Background": "true"}})
		pass(listen.FailuresWithin)
	}
	// A client cannot choose its secret.
	chosen := listen.NewSecret(listen.SessionPrefix)
	s.tokens["chosen"] = chosen
	w := s.do(call{as: "red", method: "POST", path: "/session", header: map[string]string{"Cookie": "session=" + chosen, "Session": chosen}})
	if w.Code != 201 || strings.Contains(w.Body.String(), chosen) || len(w.Result().Cookies()) > 0 {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	s.want(422, call{as: "red", method: "POST", path: "/session?session=" + chosen})
	s.want(401, whoAmI.by("chosen"))
	// UFM's calls take no session and no code.
	s.code("red", "code")
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	for _, as := range []string{"session", "code"} {
		for _, auth := range []string{"Bearer " + s.tokens[as], "Basic " + s.tokens[as], basic("red", s.tokens[as]), basic(s.tokens[as], "")} {
			if w := s.ufmAsk("GET", "/ufmRest/app/ufm_version", auth, "", nil); w.Code != 401 {
				t.Errorf("UFM takes a %s: %d %s", as, w.Code, w.Body)
			}
		}
	}
	// Who is bound to some partitions has no console.
	s.tokens["bound"] = s.want(201, call{as: "red", method: "POST", path: "/tokens", body: js{"keys": js{"first": "0x0100", "last": "0x0101"}}})["secret"].(string)
	for _, c := range []call{{method: "POST", path: "/session"}, {method: "POST", path: "/logins"}, whoAmI} {
		s.want(403, c.by("bound"))
	}
}

// TestSessionsEndWithTheirTokens: also for a stream that is open.
func TestSessionsEndWithTheirTokens(t *testing.T) {
	s := newStand(t)
	s.tenants()
	pass := s.clocked()
	// Deleted.
	s.login("red", "session")
	s.code("red", "code")
	s.want(200, call{method: "DELETE", path: "/tokens/" + s.idOf("red")})
	s.want(401, whoAmI.by("session"))
	s.want(401, call{as: "code", method: "POST", path: "/session"})
	// Its time is over.
	ends := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	s.tokens["short"] = s.want(201, call{as: "blue", method: "POST", path: "/tokens", body: js{"expires": ends}})["secret"].(string)
	if made := s.login("short", "session"); made["expires_at"] != ends.Format(time.RFC3339) {
		t.Errorf("it ends at %v, its token at %v", made["expires_at"], ends)
	}
	// Idle: a page that asks by itself does not keep it, nor does a stream.
	background := call{as: "session", method: "GET", path: "/session", header: map[string]string{listen.BackgroundHeader: "true"}}
	kept := call{as: "session", method: "GET", path: "/events?kept=true"}
	pass(listen.Idle - time.Second)
	s.want(200, background)
	if w := s.do(kept); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.want(200, whoAmI.by("session"))
	for _, c := range []call{background, kept} {
		s.login("blue", "session")
		pass(listen.Idle - time.Second)
		if w := s.do(c); w.Code != 200 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		pass(time.Second)
		s.want(401, c)
	}
	// 8 hours.
	s.login("blue", "session")
	for range 32 {
		s.want(200, whoAmI.by("session"))
		pass(listen.SessionLife / 32)
	}
	s.want(401, whoAmI.by("session"))
	// A client certificate.
	c := &x509.Certificate{Raw: []byte("0the bytes of a certificate"), NotAfter: ends.Add(-time.Minute)}
	s.change(resource.PutToken{Token: resource.Token{ID: "crt-1", Tenant: "blue", Sum: listen.SecretSum(c.Raw), Expires: ends}})
	r := s.request(call{as: "nobody", method: "POST", path: "/session"})
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}, VerifiedChains: [][]*x509.Certificate{{c}}}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code != 201 || !strings.Contains(w.Body.String(), fmt.Sprintf(`"expires_at":%q`, c.NotAfter.Format(time.RFC3339))) {
		t.Errorf("%d %s: want it to end with the certificate, %v", w.Code, w.Body, c.NotAfter)
	}
}

// TestAStreamEndsWithItsSession, and with nothing that another session does.
func TestAStreamEndsWithItsSession(t *testing.T) {
	s := newStand(t)
	s.tenants()
	s.login("red", "session")
	s.login("red", "other")
	l := s.serves(Where{Listen: "127.0.0.1:0"}, short)
	r, _ := http.NewRequest("GET", l.Describe[0]+Prefix+"/events", nil)
	r.Header.Set("Authorization", "Bearer "+s.tokens["session"])
	client := &http.Client{Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("%v, %v", answer, err)
	}
	defer answer.Body.Close()
	in := bufio.NewScanner(answer.Body)
	alive := func() bool {
		for in.Scan() {
			if in.Text() == ": alive" {
				return true
			}
		}
		return false
	}
	s.do(call{as: "other", method: "DELETE", path: "/session"})
	for range 2 {
		if !alive() {
			t.Fatalf("the stream has ended: %v", in.Err())
		}
	}
	s.do(call{as: "session", method: "DELETE", path: "/session"})
	for range 100 {
		if !alive() {
			return
		}
	}
	t.Error("the stream goes on after its session")
}

// TestTooManyLoginsFail: those that are wrong are told so, and the right one comes in.
func TestTooManyLoginsFail(t *testing.T) {
	s := newStand(t)
	s.tenants()
	pass := s.clocked()
	s.tokens["wrong"] = listen.NewSecret(listen.TokenPrefix)
	for n := range 3 * listen.FailuresMax {
		want := 401
		if n >= listen.FailuresMax {
			want = 429
		}
		w := s.do(call{as: []string{"wrong", "nobody"}[n%2], method: "POST", path: "/session"})
		if w.Code != want || (want == 429) != (w.Header().Get("Retry-After") == "60") {
			t.Fatalf("login %d: %d %v %s, want %d", n, w.Code, w.Header(), w.Body, want)
		}
	}
	if n := strings.Count(s.log.String(), "event="+listen.LoginRefused); n != listen.FailuresMax || !strings.Contains(s.log.String(), "from=192.0.2.1") {
		t.Errorf("%d of them are in the log, want %d: %s", n, listen.FailuresMax, s.log)
	}
	s.login("red", "session") // from the same address
	s.want(401, call{as: "uid:65534", method: "POST", path: "/session"})
	pass(listen.FailuresWithin)
	s.want(401, call{as: "wrong", method: "POST", path: "/session"})
	for n := 1; ; n++ {
		if w := s.do(call{as: "red", method: "POST", path: "/session"}); w.Code == 429 {
			if n != listen.BegunMax+1 {
				t.Errorf("session %d is too many, want %d", n, listen.BegunMax+1)
			}
			break
		} else if w.Code != 201 || n > listen.BegunMax {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
}

// TestWhoIsNobodyIsLogged: a login of UFM's calls that fails is counted with those to the
// console, and logged; other requests of nobody are logged once a minute from one address.
// None of it is in the audit log.
func TestWhoIsNobodyIsLogged(t *testing.T) {
	s := newStand(t)
	s.tenants()
	pass := s.clocked()
	entries := func() int { return len(items(s.want(200, call{method: "GET", path: "/audit-log?limit=1000"}))) }
	before := entries()
	dologin := func(user, password string) int {
		form := url.Values{"httpd_username": {user}, "httpd_password": {password}}.Encode()
		return s.ufmAsk("POST", "/dologin", "-", form, func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }).Code
	}
	if got := dologin("red", s.tokens["red"]); got != 200 || strings.Count(s.log.String(), "event="+listen.SessionBegun) != 1 || !strings.Contains(s.log.String(), "by=password") {
		t.Errorf("%d, and in the log %s", got, s.log)
	}
	for n := range 2 * listen.FailuresMax {
		want := 401
		if n >= listen.FailuresMax {
			want = 429
		}
		got := 0
		if n%2 == 0 {
			got = dologin("red", "ibw_wrong")
		} else {
			got = s.do(call{as: "nobody", method: "POST", path: "/session"}).Code
		}
		if got != want {
			t.Errorf("login %d: %d, want %d", n, got, want)
		}
	}
	if n := strings.Count(s.log.String(), "event="+listen.LoginRefused); n != listen.FailuresMax {
		t.Errorf("%d refused logins are in the log, want %d", n, listen.FailuresMax)
	}
	if got := dologin("red", s.tokens["red"]); got != 200 { // from the same address
		t.Errorf("the right login: %d", got)
	}
	s.tokens["wrong"] = listen.NewSecret(listen.TokenPrefix)
	for minute := 1; minute < 3; minute++ {
		for range 50 {
			s.want(401, call{as: "wrong", method: "PUT", path: "/partitions/0x0100", body: js{"name": "x"}})
			s.want(401, call{as: "nobody", method: "GET", path: "/partitions"})
			s.ufmAsk("POST", "/ufmRest/resources/pkeys/add", "Basic x", `{"pkey":5}`, nil)
		}
		if n := strings.Count(s.log.String(), "event="+listen.CallerUnknown); n != minute {
			t.Errorf("in minute %d requests of nobody are in the log %d times", minute, n)
		}
		pass(listen.FailuresWithin)
	}
	if strings.Contains(s.log.String(), s.tokens["wrong"]) {
		t.Error("a secret is in the log")
	}
	if now := entries(); now != before {
		t.Errorf("the audit log has %d entries more", now-before)
	}
}

// TestOtherSites: a browser sends nothing for the page of another site that is taken, and
// nothing to a name of another site that came to stand for an address of ours.
func TestOtherSites(t *testing.T) {
	s := newStand(t)
	s.tenants()
	for name, header := range map[string]map[string]string{
		"Origin":         {"Origin": "https://evil.example"},
		"another port":   {"Origin": "http://127.0.0.1:9999"},
		"null":           {"Origin": "null"},
		"Sec-Fetch-Site": {"Sec-Fetch-Site": "cross-site"},
		"same site":      {"Sec-Fetch-Site": "same-site"},
	} {
		for _, as := range []string{"", "red", "provider"} {
			for _, c := range []call{
				{method: "POST", path: "/session"}, {method: "POST", path: "/logins"}, {method: "POST", path: "/partitions", body: js{"name": "evil"}},
				{method: "PUT", path: "/tenants/evil", body: js{}}, {method: "DELETE", path: "/tenants/red"},
			} {
				c.as, c.header = as, header
				s.want(403, c)
			}
		}
		w := s.ufmAsk("POST", "/ufmRest/resources/pkeys/add", "Bearer "+s.tokens["red"], `{"pkey":"0x0102"}`, func(r *http.Request) {
			for k, v := range header {
				r.Header.Set(k, v)
			}
		})
		if w.Code != 403 {
			t.Errorf("UFM, %s: %d %s", name, w.Code, w.Body)
		}
	}
	for _, header := range []map[string]string{{"Origin": "http://127.0.0.1:8443"}, {"Origin": "http://127.0.0.1:8443", "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}} {
		s.want(201, call{as: "red", method: "POST", path: "/session", header: header})
	}
	plainHTTP := s.serves(Where{Listen: "127.0.0.1:0"}, defaultLimits)
	cert, key := newAuthority(t).issue(t, "server", "")
	withTLS := s.serves(Where{Listen: "127.0.0.1:0", Certificate: cert, Key: key}, defaultLimits)
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for host, want := range map[string]int{
		"127.0.0.1": 200, "127.0.0.1:8443": 200, "localhost:1": 200, "LOCALHOST": 200, "console.localhost": 200, "[::1]:8443": 200, "[::1]": 200, "127.1.2.3": 200,
		"evil.example": 421, "evil.example:8443": 421, "127.0.0.1.evil.example": 421, "localhost.evil.example": 421, "10.0.0.1": 421, "0.0.0.0": 421, "xlocalhost": 421, "[2001:db8::1]:80": 421,
	} {
		for _, path := range []string{Prefix + "/session", Prefix + "/openapi.json", "/ufmRest/app/ufm_version"} {
			if want == 200 && path == Prefix+"/openapi.json" {
				continue // it is long
			}
			for _, l := range []*Listeners{plainHTTP, withTLS} {
				r, _ := http.NewRequest("GET", l.Describe[0]+path, nil)
				r.Host = host
				r.Header.Set("Authorization", "Bearer "+s.tokens["provider"])
				answer, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := io.ReadAll(answer.Body)
				answer.Body.Close()
				is := want
				if l == withTLS {
					is = 200
				}
				if answer.StatusCode != is || is == 421 && !strings.Contains(string(text), "Host") {
					t.Errorf("%s%s with Host %s: %d %s, want %d", l.Describe[0], path, host, answer.StatusCode, text, is)
				}
			}
		}
	}
}
