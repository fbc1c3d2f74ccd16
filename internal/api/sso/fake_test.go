package sso

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"math/big"
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

type js = map[string]any

// fake is a provider that does what a test says: an attacker's, or a broken one.
type fake struct {
	*httptest.Server
	key *rsa.PrivateKey
	// discovery, header and claims change what it says; answer is in the place of what the token
	// endpoint answers. nil for nothing.
	discovery      func(js)
	claims, header func(js)
	sign           func(signed string) []byte // nil for RS256
	answer         http.HandlerFunc
	userinfo       js // nil for no such endpoint
	noRefresh      bool
	noIDToken      bool

	mu     sync.Mutex
	asked  url.Values // of the last request to the token endpoint
	tokens int        // requests to it
	nonce  string
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // of maps of texts
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

var fakeKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newFake(t testing.TB) *fake {
	t.Helper()
	key, err := fakeKey()
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{key: key}
	mux := http.NewServeMux()
	say := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		doc := js{"issuer": f.URL, "authorization_endpoint": f.URL + "/auth", "token_endpoint": f.URL + "/token", "jwks_uri": f.URL + "/keys",
			"end_session_endpoint": f.URL + "/end", "id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}}
		if f.userinfo != nil {
			doc["userinfo_endpoint"] = f.URL + "/userinfo"
		}
		if f.discovery != nil {
			f.discovery(doc)
		}
		say(w, doc)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, r *http.Request) {
		say(w, js{"keys": []js{{"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256",
			"n": base64.RawURLEncoding.EncodeToString(f.key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(f.key.E)).Bytes())}}})
	})
	mux.HandleFunc("/userinfo", func(w http.ResponseWriter, r *http.Request) { say(w, f.userinfo) })
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		f.mu.Lock()
		f.asked = r.PostForm
		f.tokens++
		f.mu.Unlock()
		if f.answer != nil {
			f.answer(w, r)
			return
		}
		out := js{"access_token": "a", "token_type": "Bearer", "expires_in": 60}
		if !f.noRefresh {
			out["refresh_token"] = "r"
		}
		if !f.noIDToken {
			out["id_token"] = f.token(r.PostForm.Get("grant_type") == "authorization_code")
		}
		say(w, out)
	})
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

// token is an ID token of anna, who is in the group greens.
func (f *fake) token(first bool) string {
	now := time.Now().Unix()
	header, claims := js{"alg": "RS256", "kid": "k"}, js{"iss": f.URL, "sub": "u1", "aud": "ibwarden", "exp": now + 60, "iat": now, "preferred_username": "anna", "groups": []string{"greens"}}
	if first {
		claims["nonce"] = f.nonce
	}
	if f.header != nil {
		f.header(header)
	}
	if f.claims != nil {
		f.claims(claims)
	}
	signed := encoded(header) + "." + encoded(claims)
	if f.sign != nil {
		return signed + "." + base64.RawURLEncoding.EncodeToString(f.sign(signed))
	}
	sum := sha256.Sum256([]byte(signed))
	sig, err := rsa.SignPKCS1v15(nil, f.key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err) // of a key that was made for it
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(sig)
}

// hmacWithPublicKey signs with the public key as if it were a secret.
func (f *fake) hmacWithPublicKey(signed string) []byte {
	der, _ := x509.MarshalPKIXPublicKey(&f.key.PublicKey)
	m := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	m.Write([]byte(signed))
	return m.Sum(nil)
}

// rig is a Service with the provider and the tenants green and blue.
type rig struct {
	testing.TB
	*Service
	fake    *fake
	log     bytes.Buffer
	codes   map[string]listen.Account
	inUse   map[string]bool
	refused []string
	clock   time.Duration // how far the Service's clock is ahead
}

func newRig(t testing.TB, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{TB: t, fake: newFake(t), codes: map[string]listen.Account{}, inUse: map[string]bool{}}
	c := Config{Issuer: r.fake.URL, ClientID: "ibwarden", ClientSecret: "s", Name: "Example", Claim: "groups", Scopes: []string{"groups"}, Console: "http://127.0.0.1:8443"}
	for _, text := range []string{"greens=green", "blues=blue", "admins=provider", "readers=green:read-only"} {
		g, err := ParseGrant(text)
		if err != nil {
			t.Fatal(err)
		}
		c.Grants = append(c.Grants, g)
	}
	for _, f := range change {
		f(&c)
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	r.Service = New(c, func() time.Time { return time.Now().Add(r.clock) }, slog.New(slog.NewTextHandler(&r.log, nil)))
	r.Use(Hooks{
		Code: func(who listen.Account) string {
			code := listen.NewSecret(listen.Code)
			r.codes[code] = who
			r.inUse[who.Sums[0]] = true
			return code
		},
		Refused: func(_ *http.Request, why string) bool { r.refused = append(r.refused, why); return false },
		Exists: func(tenant string) bool {
			return tenant == "green" || tenant == "blue" || tenant == resource.Provider
		},
		InUse: func() map[string]bool { return r.inUse },
	})
	return r
}

func (r *rig) get(path string, cookies ...*http.Cookie) *http.Response {
	q := httptest.NewRequest("GET", path, nil)
	for _, c := range cookies {
		q.AddCookie(c)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, q)
	return w.Result()
}

// begun is a login that has begun: what the provider is asked, and the cookies of the browser.
func (r *rig) begun(path string) (url.Values, []*http.Cookie) {
	r.Helper()
	answer := r.get(path)
	to, err := answer.Location()
	if err != nil || answer.StatusCode != http.StatusSeeOther || to.Scheme+"://"+to.Host+to.Path != r.fake.URL+"/auth" {
		r.Fatalf("%d to %v, %v, refused %q", answer.StatusCode, to, err, r.refused)
	}
	r.fake.nonce = to.Query().Get("nonce")
	return to.Query(), answer.Cookies()
}

// login goes all the way, and returns the answer and who has got a code by it.
func (r *rig) login() (answer *http.Response, who listen.Account, in bool) {
	r.Helper()
	asked, cookies := r.begun(beginPath)
	answer = r.get(callbackPath+"?code=c&state="+asked.Get("state"), cookies...)
	_, code, _ := strings.Cut(answer.Header.Get("Location"), "/console/#code=")
	who, in = r.codes[code]
	return answer, who, in
}
