// Package sso lets people log in to the console as they do everywhere in their company: with
// OpenID Connect, by the authorization code flow with PKCE. It maps their groups to tenants, and asks
// the provider again every CheckEvery whether they still are who they were.
//
// What it gives a browser is a code of one use, as `ibwarden show console` prints it. The session that
// begins with it stands for a sum, like that of a token, whose holder this package knows.
package sso

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Limits of what the provider answers, and of logins.
const (
	AnswerTime = 10 * time.Second // for one answer of the provider
	AnswerMax  = 1 << 20          // bytes of one
	FlowLife   = 10 * time.Minute // from the login page to the way back from the provider
	// CheckEvery is the time between two questions to the provider about a session, and CheckTime how
	// long one may take: what the provider ends has ended here within a minute.
	CheckEvery   = 30 * time.Second
	CheckTime    = 20 * time.Second
	checksAtOnce = 32
	// SkewMax is how far the clock of the provider may be ahead of this one. Behind it may not be: a
	// token that has expired here has expired.
	SkewMax = 5 * time.Minute
	// GroupsMax is how many groups a person may be in.
	GroupsMax    = 2000
	exchangesMax = 64                                 // logins that wait for the provider at once
	heldMax      = 2 * (listen.Max + listen.CodesMax) // logins that are kept
)

// algorithms sign with a key that the provider alone has: none is not among them, nor HMAC, whose key
// could be taken to be the public one.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

// Hooks are what the API does for a Service.
type Hooks struct {
	// Code makes a code of one use for somebody who has logged in.
	Code func(listen.Account) string
	// Refused logs and counts a login that is refused, and reports whether there are too many from there.
	Refused func(r *http.Request, why string) (tooMany bool)
	// Exists reports whether there is a tenant.
	Exists func(tenant string) bool
	// InUse are the sums for which there is a session or a code.
	InUse func() map[string]bool
}

// Service logs people in. The nil Service logs nobody in. It may be used by several goroutines.
type Service struct {
	config Config
	now    func() time.Time
	log    *slog.Logger
	client *http.Client
	sealed listen.Cursors
	hooks  Hooks
	secure bool // the console is reached by TLS
	// exchanging has an entry for each login that waits for the provider.
	exchanging  chan struct{}
	discovering singleflight.Group

	mu    sync.Mutex
	found *provider            // nil until the provider has answered
	held  map[string]*held     // by sum
	used  map[string]time.Time // states of flows that came back, until when they could again
	count Counts

	away bool // the provider did not answer the last time; for Check alone
}

// Counts are how many checks there were, by what came of them.
type Counts struct{ Confirmed, Ended, Unanswered uint64 }

// New returns a Service. The configuration has passed Check, and Console is in it.
func New(c Config, now func() time.Time, log *slog.Logger) *Service {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if len(c.CA) > 0 {
		t.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		t.TLSClientConfig.RootCAs.AppendCertsFromPEM(c.CA)
	}
	return &Service{
		config: c, now: now, log: log, sealed: listen.NewCursors(), secure: strings.HasPrefix(c.Console, "https:"),
		client: &http.Client{Timeout: AnswerTime, Transport: bounded{t}, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			return fmt.Errorf("the provider leads on to %s://%s: want an answer", r.URL.Scheme, r.URL.Host)
		}},
		exchanging: make(chan struct{}, exchangesMax), held: map[string]*held{}, used: map[string]time.Time{},
	}
}

// Use tells a Service what the API does for it, before the first request.
func (s *Service) Use(h Hooks) {
	if s != nil {
		s.hooks = h
	}
}

// Name is what the login page calls the provider; "" for none.
func (s *Service) Name() string {
	if s == nil {
		return ""
	}
	return s.config.Name
}

// bounded ends answers that are too long.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, AnswerMax)
	}
	return answer, err
}

// provider is what the discovery document says.
type provider struct {
	*oidc.Provider
	verifier *oidc.IDTokenVerifier
	oauth    *oauth2.Config
	end      string // where a browser ends its session there; "" for nowhere
}

// provider is the provider, which is asked for its discovery document until it has answered once.
func (s *Service) provider() (*provider, error) {
	s.mu.Lock()
	found := s.found
	s.mu.Unlock()
	if found != nil {
		return found, nil
	}
	p, err, _ := s.discovering.Do("", func() (any, error) {
		p, err := s.discover(oidc.ClientContext(context.Background(), s.client))
		if err == nil {
			s.mu.Lock()
			s.found = p
			s.mu.Unlock()
		}
		return p, err
	})
	found, _ = p.(*provider)
	return found, err
}

func (s *Service) discover(ctx context.Context) (*provider, error) {
	found, err := oidc.NewProvider(ctx, s.config.Issuer) // which compares the issuer
	if err != nil {
		return nil, err
	}
	var more struct {
		Authorization string   `json:"authorization_endpoint"`
		Token         string   `json:"token_endpoint"`
		Keys          string   `json:"jwks_uri"`
		UserInfo      string   `json:"userinfo_endpoint"`
		End           string   `json:"end_session_endpoint"`
		Methods       []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&more); err != nil {
		return nil, err
	}
	plain := strings.HasPrefix(s.config.Issuer, "http:") // which is on a loopback address
	for _, x := range []struct {
		name, url string
		must      bool
	}{{"authorization_endpoint", more.Authorization, true}, {"token_endpoint", more.Token, true}, {"jwks_uri", more.Keys, true}, {"userinfo_endpoint", more.UserInfo, false}, {"end_session_endpoint", more.End, false}} {
		if u, err := url.Parse(x.url); (x.url != "" || x.must) && (err != nil || !safe(u, plain) || u.User != nil) {
			return nil, fmt.Errorf("the discovery document of %s: %s %q: want a URL with https", s.config.Issuer, x.name, x.url)
		}
	}
	endpoint := found.Endpoint()
	endpoint.AuthStyle = oauth2.AuthStyleInHeader // what there is where nothing is said
	if len(more.Methods) > 0 && !slices.Contains(more.Methods, "client_secret_basic") {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &provider{
		Provider: found, end: more.End,
		verifier: found.Verifier(&oidc.Config{ClientID: s.config.ClientID, SupportedSigningAlgs: algorithms, Now: s.now}),
		oauth: &oauth2.Config{
			ClientID: s.config.ClientID, ClientSecret: s.config.ClientSecret, Endpoint: endpoint,
			RedirectURL: s.config.Console + callbackPath, Scopes: append([]string{oidc.ScopeOpenID}, s.config.Scopes...),
		},
	}, nil
}

// logout is where a browser goes to end its session at the provider; "" for nowhere. The token says
// who he is, unless it is too long for an address.
func (s *Service) logout(p *provider, idToken string) string {
	u, err := url.Parse(p.end)
	if err != nil || p.end == "" {
		return ""
	}
	q := u.Query()
	q.Set("client_id", s.config.ClientID)
	q.Set("post_logout_redirect_uri", s.config.Console+consolePath)
	if len(idToken) <= hintMax {
		q.Set("id_token_hint", idToken)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// hintMax bounds a token in an address, in bytes.
const hintMax = 4 << 10

// errRefused is an answer of the provider that does not confirm a person, errNoGroup one by which he
// is in no group that he needs.
var (
	errRefused = errors.New("not confirmed")
	errNoGroup = fmt.Errorf("%w: in no group any more that may do this", errRefused)
)

// reasonMax bounds what is said of an error, in bytes: some have a whole answer in them.
const reasonMax = 300

// reason is an error in one line.
func reason(err error) string {
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, err.Error())
	return text[:min(len(text), reasonMax)]
}

// refused reports whether an error is an answer of the provider, by which it does not confirm
// somebody, rather than a sign that it cannot answer. An error of OAuth is one whatever its status:
// dex says server_error (500) of a user whom its directory does not have any more.
func refused(err error) bool {
	var answer *oauth2.RetrieveError
	if !errors.As(err, &answer) {
		return errors.Is(err, errRefused)
	}
	switch answer.Response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return false
	}
	return answer.ErrorCode != "" && answer.ErrorCode != "temporarily_unavailable"
}

// CallerOf is the person whom a sum was given to; false for none, or none any more.
func (s *Service) CallerOf(sum string) (c resource.Caller, known bool) {
	if s == nil {
		return c, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held[sum]
	if h == nil || !s.now().Before(h.ends) {
		return c, false
	}
	return h.caller, true
}
