package sso

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// TestLogin: what the provider is asked, and whom it names.
func TestLogin(t *testing.T) {
	r := newRig(t)
	asked, cookies := r.begun(beginPath)
	for name, want := range map[string]string{"response_type": "code", "client_id": "ibwarden", "redirect_uri": "http://127.0.0.1:8443/login/callback", "scope": "openid groups", "code_challenge_method": "S256"} {
		if asked.Get(name) != want {
			t.Errorf("%s is %q: want %q", name, asked.Get(name), want)
		}
	}
	answer := r.get(callbackPath+"?code=c&state="+asked.Get("state"), cookies...)
	if at := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther || !strings.HasPrefix(at, "/console/#code=ibwc_") {
		t.Fatalf("%d to %q, refused %q", answer.StatusCode, at, r.refused)
	}
	if sum := sha256.Sum256([]byte(r.fake.asked.Get("code_verifier"))); base64.RawURLEncoding.EncodeToString(sum[:]) != asked.Get("code_challenge") {
		t.Errorf("the verifier %q is not that of the challenge", r.fake.asked.Get("code_verifier"))
	}
	_, who, in := r.login()
	want := resource.Caller{Name: "anna (u1 at " + r.fake.URL + ")", Tenant: "green"}
	if !in || who.Caller != want || who.Shown != listen.ShownSSO || len(who.Sums) != 1 {
		t.Fatalf("%+v, want %+v", who, want)
	}
	if c, known := r.CallerOf(who.Sums[0]); !known || c != want {
		t.Errorf("held is %+v, %v", c, known)
	}
	out, err := url.Parse(who.Logout)
	if q := out.Query(); err != nil || out.Path != "/end" || q.Get("post_logout_redirect_uri") != "http://127.0.0.1:8443/console/" || q.Get("client_id") != "ibwarden" || strings.Count(q.Get("id_token_hint"), ".") != 2 {
		t.Errorf("logout at %q", who.Logout)
	}
	r.fake.claims = func(c js) { c["padding"] = strings.Repeat("x", hintMax) }
	if _, long, _ := r.login(); long.Logout == "" || strings.Contains(long.Logout, "hint") {
		t.Errorf("logout with a long token at %.200q", long.Logout)
	}
	r.fake.claims, r.fake.discovery, r.found = nil, func(d js) { delete(d, "end_session_endpoint") }, nil
	if _, other, in := r.login(); !in || other.Logout != "" {
		t.Errorf("logout where there is none at %q", other.Logout)
	}
	r.clock = listen.SessionLife
	if _, known := r.CallerOf(who.Sums[0]); known {
		t.Error("it lasts for ever")
	}
	if (*Service)(nil).Name() != "" {
		t.Error("no service has a name")
	}
}

// TestForgedTokens: each token but the right one is refused, and nobody gets a code.
func TestForgedTokens(t *testing.T) {
	now := time.Now().Unix()
	set := func(name string, v any) func(*fake) {
		return func(f *fake) { f.claims = func(c js) { c[name] = v } }
	}
	for name, x := range map[string]struct {
		attack func(*fake)
		in     bool
		status int // 0 for 403
	}{
		"control":                   {func(*fake) {}, true, 303},
		"no nonce":                  {func(f *fake) { f.claims = func(c js) { delete(c, "nonce") } }, false, 0},
		"nonce of another login":    {set("nonce", "other"), false, 0},
		"another issuer":            {set("iss", "https://evil.example"), false, 0},
		"issuer with a slash":       {func(f *fake) { f.claims = func(c js) { c["iss"] = f.URL + "/" } }, false, 0},
		"another audience":          {set("aud", "other"), false, 0},
		"audience in a list":        {set("aud", []string{"ibwarden"}), true, 303},
		"two audiences, no azp":     {set("aud", []string{"ibwarden", "other"}), false, 0},
		"azp of another":            {set("azp", "other"), false, 0},
		"azp of the wrong type":     {set("azp", []string{"ibwarden"}), false, 0},
		"azp":                       {set("azp", "ibwarden"), true, 303},
		"expired":                   {set("exp", now-1), false, 0},
		"expired long ago":          {set("exp", 1), false, 0},
		"no expiry":                 {func(f *fake) { f.claims = func(c js) { delete(c, "exp") } }, false, 0},
		"not valid yet":             {set("nbf", now+int64(SkewMax/time.Second)+30), false, 0},
		"clock ahead within bounds": {set("nbf", now+int64(SkewMax/time.Second)-30), true, 303},
		"issued in the future":      {set("iat", now+int64(SkewMax/time.Second)+30), false, 0},
		"issued soon":               {set("iat", now+int64(SkewMax/time.Second)-30), true, 303},
		"no subject":                {set("sub", ""), false, 0},
		"subject in other letters":  {func(f *fake) { f.claims = func(c js) { c["Sub"] = "root" } }, false, 0},
		"audience in other letters": {func(f *fake) { f.claims = func(c js) { c["AUD"] = "ibwarden" } }, false, 0},
		"alg none": {func(f *fake) {
			f.header = func(h js) { h["alg"] = "none" }
			f.sign = func(string) []byte { return nil }
		}, false, 0},
		"alg None": {func(f *fake) {
			f.header = func(h js) { h["alg"] = "None" }
			f.sign = func(string) []byte { return nil }
		}, false, 0},
		"HS256 with the public key":    {func(f *fake) { f.header = func(h js) { h["alg"] = "HS256" }; f.sign = f.hmacWithPublicKey }, false, 0},
		"RS256 said, HS256 done":       {func(f *fake) { f.sign = f.hmacWithPublicKey }, false, 0},
		"no signature":                 {func(f *fake) { f.sign = func(string) []byte { return nil } }, false, 0},
		"a key that came along":        {func(f *fake) { f.header = func(h js) { h["jku"] = "https://evil.example/keys"; h["kid"] = "evil" } }, false, 0},
		"no ID token":                  {func(f *fake) { f.noIDToken = true }, false, 0},
		"no refresh token":             {func(f *fake) { f.noRefresh = true }, false, 503},
		"groups as one text":           {set("groups", "greens"), false, 0},
		"groups as numbers":            {set("groups", []int{1}), false, 0},
		"groups as an object":          {set("groups", js{"greens": true}), false, 0},
		"no groups":                    {func(f *fake) { f.claims = func(c js) { delete(c, "groups") } }, false, 0},
		"groups null":                  {set("groups", nil), false, 0},
		"other groups":                 {set("groups", []string{"", "strangers", "green", "provider"}), false, 0},
		"case":                         {set("groups", []string{"Greens", "GREENS"}), false, 0},
		"blanks":                       {set("groups", []string{" greens", "greens ", "greens\x00", "greens=green"}), false, 0},
		"a letter that looks the same": {set("groups", []string{"gre\u0435ns", "greens\u200b", "ｇreens"}), false, 0},
		"too many groups":              {set("groups", append(make([]string, GroupsMax), "greens")), false, 0},
		"many groups":                  {set("groups", append(make([]string, GroupsMax-1), "greens")), true, 303},
		"an answer that is too long":   {set("padding", strings.Repeat("x", AnswerMax)), false, 503},
		"the provider's page of an error": {func(f *fake) {
			f.answer = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", 500) }
		}, false, 503},
		"the code is not taken": {func(f *fake) {
			f.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(400)
				fmt.Fprint(w, `{"error":"invalid_grant"}`)
			}
		}, false, 0},
		"the answer leads on": {func(f *fake) {
			f.answer = func(w http.ResponseWriter, r *http.Request) {
				f.answer = nil
				http.Redirect(w, r, "/token", http.StatusTemporaryRedirect)
			}
		}, false, 503},
	} {
		r := newRig(t)
		x.attack(r.fake)
		answer, who, in := r.login()
		if x.status == 0 {
			x.status = http.StatusForbidden
		}
		if in != x.in || answer.StatusCode != x.status || in && who.Caller.Tenant != "green" || len(r.held) > 0 != x.in {
			t.Errorf("%s: %d, in %v as %+v, held %d, refused %q: want %d", name, answer.StatusCode, in, who, len(r.held), r.refused, x.status)
		}
		if !x.in && len(r.refused) != 1 {
			t.Errorf("%s: refused %q: want it logged once", name, r.refused)
		}
	}
}

// TestFlows: a login ends only in the browser in which it began, once, and in time; where it ends is
// not up to the address.
func TestFlows(t *testing.T) {
	r := newRig(t)
	asked, cookies := r.begun(beginPath + "?as=green")
	back := callbackPath + "?code=c&state=" + asked.Get("state")
	other, otherCookies := r.begun(beginPath)
	r.fake.nonce = asked.Get("nonce")
	cursor := &http.Cookie{Name: cookies[0].Name, Value: r.sealed.Seal(`{"State":"x"}`, "green")}
	for name, x := range map[string]struct {
		path    string
		cookies []*http.Cookie
	}{
		"login CSRF: the address in another browser": {back, nil},
		"the state of another login":                 {callbackPath + "?code=c&state=" + other.Get("state"), cookies},
		"the cookie of another login":                {back, otherCookies},
		"no state":                                   {callbackPath + "?code=c", cookies},
		"two cookies":                                {back, append(otherCookies[:1:1], cookies...)},
		"two cookies, the right one first":           {back, append(cookies[:1:1], otherCookies...)},
		"a cookie that was made up":                  {back, []*http.Cookie{{Name: cookies[0].Name, Value: "e30"}}},
		"a cursor as a cookie":                       {callbackPath + "?code=c&state=x", []*http.Cookie{cursor}},
	} {
		answer := r.get(x.path, x.cookies...)
		if answer.StatusCode != http.StatusForbidden || len(r.codes) > 0 || r.fake.tokens > 0 {
			t.Errorf("%s: %d, codes %d, asked %d times", name, answer.StatusCode, len(r.codes), r.fake.tokens)
		}
		if set := answer.Cookies(); len(set) != 1 || set[0].MaxAge >= 0 {
			t.Errorf("%s: the cookie stays: %v", name, set)
		}
	}
	// Whatever else the address says, it ends at the console.
	answer := r.get(back+"&session_state=&next=https://evil.example&redirect_uri=https://evil.example", cookies...)
	if at := answer.Header.Get("Location"); answer.StatusCode != 303 || !strings.HasPrefix(at, "/console/#code=ibwc_") || len(at) != len("/console/#code=ibwc_")+43 {
		t.Errorf("it ends at %d %q", answer.StatusCode, at)
	}
	if answer = r.get(back, cookies...); answer.StatusCode != http.StatusForbidden || len(r.codes) != 1 || r.fake.tokens != 1 {
		t.Errorf("the same once more: %d, codes %d", answer.StatusCode, len(r.codes))
	}
	asked, cookies = r.begun(beginPath)
	r.clock = FlowLife
	if answer = r.get(callbackPath+"?code=c&state="+asked.Get("state"), cookies...); answer.StatusCode != http.StatusForbidden || r.fake.tokens != 1 {
		t.Errorf("too late: %d", answer.StatusCode)
	}
	r.clock = 0
	for _, more := range []string{"&iss=https://evil.example", "&error=access_denied", "&error=" + url.QueryEscape("<script>alert(1)</script>")} {
		asked, cookies = r.begun(beginPath)
		answer = r.get(callbackPath+"?code=c&state="+asked.Get("state")+more, cookies...)
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusForbidden || strings.Contains(string(text), "alert") || len(r.codes) != 1 {
			t.Errorf("%s: %d %s", more, answer.StatusCode, text)
		}
	}
	for path, want := range map[string]int{beginPath + "?as=red": 403, beginPath + "?as=%3Cb%3E": 403, Prefix + "other": 404, Prefix + "../begin": 404, beginPath + "?as=green&as=blue": 400, callbackPath + "?state=" + strings.Repeat("x", listen.QueryMax): 400, beginPath + "?as=%zz": 400, beginPath + "?as=": 303} {
		if got := r.get(path).StatusCode; got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}

// TestCookie: over TLS the cookie is of this host alone.
func TestCookie(t *testing.T) {
	for console, want := range map[string]string{
		"http://127.0.0.1:8443":   "ibwarden-login; Path=/; Max-Age=600; HttpOnly; SameSite=Lax",
		"https://ib.example:8443": "__Host-ibwarden-login; Path=/; Max-Age=600; HttpOnly; Secure; SameSite=Lax",
	} {
		r := newRig(t, func(c *Config) { c.Console = console })
		answer := r.get(beginPath)
		name, rest, _ := strings.Cut(answer.Header.Get("Set-Cookie"), "=")
		_, rest, _ = strings.Cut(rest, ";")
		if got := name + ";" + rest; got != want {
			t.Errorf("%s: %s, want %s", console, got, want)
		}
		for _, h := range []string{"Content-Security-Policy", "Referrer-Policy"} {
			if answer.Header.Get(h) == "" {
				t.Errorf("no %s", h)
			}
		}
	}
}

// TestRogueDiscovery: a discovery document of another issuer, or one that leads where nothing is
// encrypted, is not followed.
func TestRogueDiscovery(t *testing.T) {
	for name, change := range map[string]func(js){
		"another issuer":           func(d js) { d["issuer"] = "https://evil.example" },
		"no issuer":                func(d js) { delete(d, "issuer") },
		"issuer with a slash":      func(d js) { d["issuer"] = d["issuer"].(string) + "/" },
		"plain token endpoint":     func(d js) { d["token_endpoint"] = "http://evil.example/token" },
		"plain keys":               func(d js) { d["jwks_uri"] = "http://192.0.2.1/keys" },
		"no keys":                  func(d js) { delete(d, "jwks_uri") },
		"script to log in":         func(d js) { d["authorization_endpoint"] = "javascript:alert(1)" },
		"script to log out":        func(d js) { d["end_session_endpoint"] = "javascript:alert(1)" },
		"file to log out":          func(d js) { d["end_session_endpoint"] = "file:///etc/passwd" },
		"user info with a user":    func(d js) { d["userinfo_endpoint"] = "https://a:b@id.example" },
		"something that is no URL": func(d js) { d["token_endpoint"] = "://" },
		"endless":                  func(d js) { d["padding"] = strings.Repeat("x", AnswerMax) },
		"of the wrong type":        func(d js) { d["end_session_endpoint"] = 7 },
	} {
		r := newRig(t)
		r.fake.discovery = change
		answer := r.get(beginPath)
		if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Location") != "" || len(answer.Cookies()) > 0 {
			t.Errorf("%s: %d to %q", name, answer.StatusCode, answer.Header.Get("Location"))
		}
		r.fake.discovery = nil // it is asked again
		if answer, _, in := r.login(); !in {
			t.Errorf("%s: the right one after it: %d, %q", name, answer.StatusCode, r.refused)
		}
	}
}

// TestGroups: members of several groups get no more than one of them gives, and choose which.
func TestGroups(t *testing.T) {
	r := newRig(t)
	for groups, want := range map[string]string{
		"greens": "green", "readers": "green:read-only", "readers greens": "green", "greens greens strangers": "green", "admins": "provider",
		"greens blues": "choose blue green", "greens admins": "choose green provider", "strangers": "", "": "",
	} {
		r.fake.claims = func(c js) { c["groups"] = strings.Fields(groups) }
		answer, who, in := r.login()
		text, _ := io.ReadAll(answer.Body)
		got := who.Caller.Tenant
		if who.Caller.ReadOnly {
			got += readOnly
		}
		if !in && answer.StatusCode == http.StatusOK {
			got = "choose"
			for _, tenant := range []string{"blue", "green", "provider"} {
				if strings.Contains(string(text), beginPath+"?as="+tenant) {
					got += " " + tenant
				}
			}
		} else if !in && !strings.Contains(string(text), "anna is in no group that may use this console.") {
			t.Errorf("%q: %s", groups, text)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", groups, got, want)
		}
	}
	r.fake.claims = func(c js) { c["groups"] = []string{"greens", "blues"} }
	for as, want := range map[string]bool{"green": true, "blue": true, "provider": false} {
		asked, cookies := r.begun(beginPath + "?as=" + as)
		answer := r.get(callbackPath+"?code=c&state="+asked.Get("state"), cookies...)
		_, code, _ := strings.Cut(answer.Header.Get("Location"), "#code=")
		if who, in := r.codes[code]; in != want || in && who.Caller.Tenant != as {
			t.Errorf("as %s: %+v, %d", as, who, answer.StatusCode)
		}
	}
	r.fake.claims = func(c js) { c["groups"] = []string{"greens"} }
	r.hooks.Exists = func(string) bool { return false } // the tenant was deleted
	if answer, _, in := r.login(); in || answer.StatusCode != http.StatusForbidden {
		t.Errorf("for a tenant that does not exist: %d", answer.StatusCode)
	}
}

// TestNames: whatever somebody calls himself, his name is not that of anybody else.
func TestNames(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("s", 255)
	for _, x := range []struct {
		shown   any
		subject string
		want    string // without the issuer
	}{
		{"anna", "u1", "anna (u1 at "}, {"uid 0", "u1", "uid 0 (u1 at "}, {"bert (u2 at https://id.example)", "u1", "bert (u2 at https:id.example) (u1 at "},
		{"an\u202ena\n\x00\u200b", "u1", "anna (u1 at "}, {strings.Repeat("ä", 100), "u1", strings.Repeat("ä", 32) + " (u1 at "}, {7, "u1", "anna@example.com (u1 at "}, {"", "u1", "anna@example.com (u1 at "},
		{"anna", "u (1)", "anna (sha256:" + listen.SecretSum([]byte("u (1)")) + " at "}, {"anna", long, "anna (sha256:" + listen.SecretSum([]byte(long)) + " at "},
	} {
		r.fake.claims = func(c js) { c["preferred_username"], c["sub"], c["email"] = x.shown, x.subject, "anna@example.com" }
		_, who, in := r.login()
		if want := x.want + r.fake.URL + ")"; !in || who.Caller.Name != want || len(who.Caller.Name) > resource.CallerMax {
			t.Errorf("%q, %q: %q, want %q", x.shown, x.subject, who.Caller.Name, want)
		}
	}
}
