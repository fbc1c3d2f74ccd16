package ufm

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
)

// Authenticator says who has a credential.
type Authenticator interface {
	// Secret is the caller who has the token with a secret: not one that has expired,
	// and nobody for bytes that are no secret.
	Secret(secret string) (by resource.Caller, known bool)
	// Connection is who is at the other end of the connection of a request, by a client
	// certificate or as the peer of a Unix socket.
	Connection(r *http.Request) (by resource.Caller, known bool)
	// NewSecret makes the secret of a new token, and what resource.Token.Sum is for it.
	NewSecret() (secret, sum string)
	// Refused counts and logs a request that nobody is known for, or a login that failed;
	// tooMany logins failed from there, and this one is told to wait.
	Refused(r *http.Request, login bool, why string) (tooMany bool)
	// LoggedIn logs a login, until there are too many.
	LoggedIn(r *http.Request, by resource.Caller, until time.Time)
}

// Limits of sessions.
const (
	// SessionLife is how long a session lasts.
	SessionLife = 8 * time.Hour
	// SessionsMax is how many sessions one tenant has at once; a further one ends the
	// oldest.
	SessionsMax = 64
	// loginAfter is when to try again after too many logins failed.
	loginAfter = time.Minute
)

// sessionCookie is the name of the cookie of a session.
const sessionCookie = "session"

// authenticate finds out who calls, and counts who is nobody.
func (c *call) authenticate(prefix string) error {
	err := c.identify(prefix)
	if err != nil {
		c.auth.Refused(c.r, false, err.Error())
	}
	return err
}

// identify finds out who calls. A header Authorization decides where there is one
// that is not empty, then the cookie of a session, then the connection.
func (c *call) identify(prefix string) error {
	list := c.r.Header.Values("Authorization")
	if len(list) > 1 {
		return wrong(http.StatusUnauthorized, "want one header Authorization")
	}
	if len(list) == 1 && strings.TrimSpace(list[0]) != "" {
		scheme, value, _ := strings.Cut(strings.TrimSpace(list[0]), " ")
		value = strings.TrimSpace(value)
		if strings.EqualFold(scheme, "Negotiate") {
			return unsupportedKerberos()
		}
		if by, known := c.credential(scheme, value); known {
			c.by = by
			return nil
		}
		return wrong(http.StatusUnauthorized, "the credential is not of a token of this service, or its time is over")
	}
	for _, cookie := range c.r.CookiesNamed(sessionCookie) {
		if by, known := c.sessions.caller(c.auth, cookie.Value, c.service.Now()); known {
			c.by = by
			return nil
		}
	}
	if by, known := c.auth.Connection(c.r); known {
		c.by = by
		return nil
	}
	if prefix == kerberos {
		return unsupportedKerberos()
	}
	return wrong(http.StatusUnauthorized, "want a token: as the password of Basic, as it is after Basic or Bearer, or a session of /dologin; or a client certificate")
}

func unsupportedKerberos() error {
	return wrong(http.StatusUnauthorized, "Kerberos is not supported: use a token or a client certificate")
}

// credential is the caller that a header Authorization names. Basic is followed by
// user:password in base64, where the user is the ID of a token or its tenant and the
// password its secret; by secret: in base64; or by the secret as it is.
func (c *call) credential(scheme, value string) (by resource.Caller, known bool) {
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		return c.auth.Secret(value)
	case !strings.EqualFold(scheme, "Basic"):
		return by, false
	}
	if by, known = c.auth.Secret(value); known {
		return by, true
	}
	text, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return by, false
	}
	user, password, _ := strings.Cut(string(text), ":")
	if password == "" {
		return c.auth.Secret(user)
	}
	return c.password(user, password)
}

// password is the caller of a user and a password.
func (c *call) password(user, password string) (by resource.Caller, known bool) {
	by, known = c.auth.Secret(password)
	if !known || user != by.Name && user != by.Tenant {
		return resource.Caller{}, false
	}
	return by, true
}

// crossSite refuses a change that the page of another site made a browser send: a
// browser adds cookies, certificates and passwords that it remembers by itself.
func crossSite(r *http.Request) error {
	if http.NewCrossOriginProtection().Check(r) != nil {
		return wrong(http.StatusForbidden, "a browser sent this for the page of another site")
	}
	return nil
}

// login answers POST /dologin: a form with httpd_username and httpd_password. UFM
// redirects to its pages then; here nothing does.
func (c *call) login() (any, error) {
	if c.r.Method != http.MethodPost {
		return nil, wrong(http.StatusMethodNotAllowed, "%s is not for this path: want POST", c.r.Method)
	}
	if err := crossSite(c.r); err != nil {
		return nil, err
	}
	if err := c.r.ParseForm(); err != nil {
		return nil, wrong(http.StatusBadRequest, "body: want a form with httpd_username and httpd_password")
	}
	user, password := c.r.PostForm.Get("httpd_username"), c.r.PostForm.Get("httpd_password")
	by, known := c.password(user, password)
	if !known {
		f := wrong(http.StatusUnauthorized, "the user and the password are not those of a token of this service, or its time is over")
		if c.auth.Refused(c.r, true, f.text) {
			c.head.Set("Retry-After", fmt.Sprint(int(loginAfter/time.Second)))
			f = wrong(http.StatusTooManyRequests, "too many logins from this address failed: %s", f.text)
		}
		return nil, f
	}
	now := c.service.Now()
	id := c.sessions.open(by.Tenant, password, now)
	c.auth.LoggedIn(c.r, by, now.Add(SessionLife))
	http.SetCookie(c.w, &http.Cookie{
		Name: sessionCookie, Value: id, Path: "/", MaxAge: int(SessionLife / time.Second),
		HttpOnly: true, Secure: c.r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
	return nothing, nil
}

// session is one login. The secret is looked up at each call, so that a session ends
// with its token.
type session struct {
	tenant, secret string
	from           time.Time
}

// sessions are the logins, by the value of the cookie. They end with the program.
type sessions struct {
	mu   sync.Mutex
	list map[string]session
}

// open makes a session.
func (s *sessions) open(tenant, secret string, now time.Time) (id string) {
	id = randomName() + randomName()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.list == nil {
		s.list = map[string]session{}
	}
	count, oldest := 0, ""
	for k, v := range s.list {
		if now.Sub(v.from) >= SessionLife {
			delete(s.list, k)
		} else if v.tenant == tenant {
			if count++; oldest == "" || v.from.Before(s.list[oldest].from) {
				oldest = k
			}
		}
	}
	if count >= SessionsMax {
		delete(s.list, oldest)
	}
	s.list[id] = session{tenant, secret, now}
	return id
}

// caller is whose a session is.
func (s *sessions) caller(auth Authenticator, id string, now time.Time) (by resource.Caller, known bool) {
	s.mu.Lock()
	v, is := s.list[id]
	if is && now.Sub(v.from) >= SessionLife {
		delete(s.list, id)
		is = false
	}
	s.mu.Unlock()
	if !is {
		return by, false
	}
	by, known = auth.Secret(v.secret)
	return by, known && by.Tenant == v.tenant
}
