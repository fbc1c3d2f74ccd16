package ufm

import (
	"strconv"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
)

// version answers GET app/ufm_version.
func (c *call) version() (any, error) {
	return map[string]string{"ufm_release_version": Version, "ibwarden_version": c.options.Build}, nil
}

// What smconf says of keys. No key itself is ever shown: a client asks only whether it
// is one that everybody knows.
const (
	concealedKey = 0xffff_ffff_ffff_ffff // there is a key, and it is not told
	defaultKey   = 1                     // OpenSM's SM_Key and SA_Key without configuration
)

// smconf answers GET app/smconf.
func (c *call) smconf() (any, error) {
	v, err := c.view()
	if err != nil {
		return nil, err
	}
	key := func(known bool, value uint64) string {
		if known {
			return "0x" + guidText(value)
		}
		return "0x" + guidText(concealedKey)
	}
	return map[string]any{
		"subnet_prefix":  "0x" + guidText(v.prefix),
		"m_key":          key(!v.guarded, 0),
		"m_key_per_port": v.perPort,
		"sm_key":         key(c.options.Keys.DefaultSMKey, defaultKey),
		"sa_key":         key(c.options.Keys.DefaultSAKey, defaultKey),
	}, nil
}

// TokenLife is how long a token lasts that was made by POST app/tokens.
const TokenLife = 10 * 365 * 24 * time.Hour

// token is a token as UFM shows it. Its secret is there once, when it is made.
type token struct {
	ID        string `json:"id"`
	Secret    string `json:"access_token,omitempty"`
	Token     string `json:"token,omitempty"` // again, as some clients call it
	Revoked   bool   `json:"revoked"`
	IssuedAt  string `json:"issued_at"`
	ExpiresIn int64  `json:"expires_in"` // seconds
	Username  string `json:"username"`
}

// shown is a token without its secret. One that never ends lasts as long as a new one.
func (c *call) shown(t *resource.Token) token {
	left := TokenLife
	if !t.Expires.IsZero() {
		left = max(0, t.Expires.Sub(c.service.Now()))
	}
	return token{ID: t.ID, IssuedAt: t.Created.UTC().Format(time.RFC3339), ExpiresIn: int64(left / time.Second), Username: t.Tenant}
}

// listTokens answers GET app/tokens.
func (c *call) listTokens() (any, error) {
	list := []token{}
	c.read(func(s *resource.State) {
		for _, t := range s.Tokens(c.by.Tenant) {
			if resource.SeesObject(c.by, t) {
				list = append(list, c.shown(t))
			}
		}
	})
	return list, nil
}

// makeToken answers POST app/tokens: a token of the caller's tenant. It lasts no longer
// than the token that the caller used.
func (c *call) makeToken() (any, error) {
	now := c.service.Now()
	t := resource.Token{
		ID: "ufm-" + randomName(), Tenant: c.by.Tenant, ReadOnly: c.by.ReadOnly, Created: now,
		Expires: now.Add(TokenLife), Keys: c.by.Keys, Note: "made " + why,
	}
	if end := c.by.Expires; !end.IsZero() && end.Before(t.Expires) {
		t.Expires = end
	}
	secret, sum := c.auth.NewSecret()
	t.Sum = sum
	if _, err := c.do(resource.PutToken{Token: t}); err != nil {
		return nil, err
	}
	out := c.shown(&t)
	out.Secret, out.Token, out.ExpiresIn = secret, secret, int64(t.Expires.Sub(now)/time.Second)
	return out, nil
}

// deleteToken answers DELETE app/tokens/{}, by ID.
func (c *call) deleteToken() (any, error) {
	_, err := c.do(resource.DeleteToken{ID: c.args[0]})
	return nothing, err
}

// lastUpdated answers GET resources/pkeys/last_updated: when a partition of the caller
// changed last, or null.
func (c *call) lastUpdated() (any, error) {
	var last uint64
	c.read(func(s *resource.State) {
		first, end := numbers(s, c.by)
		for k := first; k <= end && first != 0; k++ {
			last = max(last, s.Touched(k))
		}
	})
	var at any
	if last > 0 {
		// A revision that is not kept any more is so old that nobody polls for it.
		if r, err := c.service.Revision(c.ctx, resource.Caller{Tenant: resource.Provider}, last); err == nil {
			at = r.At.UTC().Format(time.RFC3339Nano)
			c.head.Set("Ibwarden-Revision", strconv.FormatUint(c.number(last), 10))
		}
	}
	return map[string]any{"last_updated": at}, nil
}
