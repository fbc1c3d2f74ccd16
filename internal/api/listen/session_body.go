package listen

import (
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
)

// Ids of events in the log.
const (
	SessionBegun  = "session-begun"
	LoginRefused  = "login-refused"
	CallerUnknown = "caller-unknown"
	// SessionRevoked, ProviderAway and ProviderBack are of an OpenID provider.
	SessionRevoked = "session-revoked"
	ProviderAway   = "openid-provider-away"
	ProviderBack   = "openid-provider-back"
)

// BackgroundHeader is a header that a page sends with a request that no person made: it does not
// keep a session from being idle.
const BackgroundHeader = "Ibwarden-Background"

// Login is a code.
type Login struct {
	Code    string    `json:"code" doc:"it begins one session, for as long as it is valid"`
	Expires time.Time `json:"expires_at" doc:"when it is worth nothing any more; after its first use in any case"`
	Address string    `json:"address" doc:"where the console is reached over the network: a URL without a path; empty where the service listens on no TCP address"`
}

// Identity is who a caller is.
type Identity struct {
	Name      string     `json:"name" doc:"how the history and the audit log call him: the ID of his token or certificate, or uid N"`
	Tenant    string     `json:"tenant" doc:"whom he acts for"`
	Provider  bool       `json:"provider" doc:"he acts for the provider"`
	ReadOnly  bool       `json:"read_only" doc:"he changes nothing"`
	Expires   *time.Time `json:"expires_at,omitempty" doc:"when his session or his token ends; absent for never; of a session at the latest"`
	IdleEnds  *time.Time `json:"idle_ends_at,omitempty" doc:"when his session ends unless a request without the header Ibwarden-Background comes before"`
	IdleLimit int        `json:"idle_seconds,omitempty" doc:"how long a session lasts without such a request"`
	Logout    string     `json:"logout_url,omitempty" doc:"where a browser goes after it has ended the session, so that it ends at the OpenID provider too; absent where there is no such place"`
}

// NewSession is a session that has begun.
type NewSession struct {
	Secret string `json:"session" doc:"the secret, for Authorization: Bearer; it is said once"`
	Identity
}

// IdentityOf is who a caller is, with when what he showed ends.
func IdentityOf(c resource.Caller, until time.Time) Identity {
	m := Identity{Name: c.Name, Tenant: c.Tenant, Provider: c.IsProvider(), ReadOnly: c.ReadOnly}
	if !until.IsZero() {
		until = until.UTC()
		m.Expires = &until
	}
	return m
}

// Identity is who has the session.
func (s *Session) Identity() Identity {
	m := IdentityOf(s.Caller, s.Expires)
	idle := s.Idle.UTC()
	m.IdleEnds, m.IdleLimit, m.Logout = &idle, int(Idle/time.Second), s.Logout
	return m
}
