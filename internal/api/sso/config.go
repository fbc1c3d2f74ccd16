package sso

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Config says which OpenID provider people log in with, and what their groups are given.
type Config struct {
	// Issuer is the URL of the provider, as it writes it in its tokens.
	Issuer string
	// ClientID and ClientSecret are what the provider knows this service by.
	ClientID, ClientSecret string
	// Name is what the login page calls the provider.
	Name string
	// Claim is the one that has the groups of a person, a list of texts.
	Claim string
	// Scopes are asked for beside openid.
	Scopes []string
	// Grants are what members of groups may do: all that is not here is denied.
	Grants []Grant
	// CA are the CAs of the provider's certificate, PEM; nil for those of the system.
	CA []byte
	// Console is the URL under which browsers reach the console, without a path.
	Console string
}

// Grant is what the members of one group may do.
type Grant struct {
	Group string
	// Tenant is whom they act for: a tenant, or resource.Provider.
	Tenant   string
	ReadOnly bool
}

// readOnly stands behind the tenant of a grant that changes nothing.
const readOnly = ":read-only"

// Limits of a configuration, in bytes and in entries.
const (
	issuerMax = 100 // so that the name of a caller fits resource.CallerMax
	groupMax  = 1024
	grantsMax = 1000
	nameMax   = 40
)

// ParseGrant reads GROUP=TENANT or GROUP=TENANT:read-only. A group may have '=' in it.
func ParseGrant(text string) (g Grant, err error) {
	at := strings.LastIndex(text, "=")
	if at <= 0 {
		return g, fmt.Errorf("%q: want GROUP=TENANT or GROUP=TENANT%s, the tenant %s for the provider", text, readOnly, resource.Provider)
	}
	g.Group = text[:at]
	g.Tenant, g.ReadOnly = strings.CutSuffix(text[at+1:], readOnly)
	if err := resource.CheckName(g.Tenant); err != nil {
		return g, fmt.Errorf("%q: the tenant %w", text, err)
	}
	if len(g.Group) > groupMax || !utf8.ValidString(g.Group) || strings.ContainsRune(g.Group, utf8.RuneError) || strings.ContainsFunc(g.Group, unicode.IsControl) {
		return g, fmt.Errorf("%q: the group: want at most %d bytes of UTF-8 without control characters", text, groupMax)
	}
	return g, nil
}

// Check says what is wrong with a configuration. The error begins with the name of the setting,
// without what is in front of all of them.
func (c *Config) Check() error {
	u, err := url.Parse(c.Issuer)
	switch {
	case err != nil || !safe(u, true) || u.RawQuery != "" || u.Fragment != "" || u.User != nil || len(c.Issuer) > issuerMax || strings.ContainsFunc(c.Issuer, notPlain):
		return fmt.Errorf("issuer %q: want a URL of at most %d bytes, https, or http on a loopback address, without a query", c.Issuer, issuerMax)
	case c.ClientID == "" || strings.ContainsFunc(c.ClientID, notPlain):
		return fmt.Errorf("client-id %q: want the ID that the provider gave this service", c.ClientID)
	case c.ClientSecret == "":
		return errors.New("client-secret-file: want the secret that the provider gave this service, in a file that only its owner can read")
	case c.Name == "" || len(c.Name) > nameMax || strings.ContainsFunc(c.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("name %q: want 1 to %d bytes that can be printed", c.Name, nameMax)
	case c.Claim == "":
		return errors.New("groups-claim: want the name of the claim that has the groups, such as groups")
	case len(c.Grants) == 0 || len(c.Grants) > grantsMax:
		return fmt.Errorf("groups: %d entries: want 1 to %d of GROUP=TENANT, since who is in none of them may not log in", len(c.Grants), grantsMax)
	case len(c.CA) > 0 && !x509.NewCertPool().AppendCertsFromPEM(c.CA):
		return errors.New("ca-file: want certificates in PEM")
	}
	for _, s := range c.Scopes {
		if s == "" || strings.ContainsFunc(s, notPlain) {
			return fmt.Errorf("scopes: %q: want a word", s)
		}
	}
	if u, err := url.Parse(c.Console); c.Console != "" && (err != nil || !safe(u, true) || u.RequestURI() != "/" || strings.HasSuffix(c.Console, "/") || u.Fragment != "" || u.User != nil) {
		return fmt.Errorf("console %q: want the URL under which browsers reach the console, without a path: https, or http on a loopback address", c.Console)
	}
	return nil
}

// notPlain reports whether a character is none of printable ASCII, or a blank.
func notPlain(r rune) bool { return r <= ' ' || r > '~' }

// safe reports whether a URL can be asked: by https, or where loopback is allowed also by http on a
// loopback address.
func safe(u *url.URL, loopback bool) bool {
	return u.Host != "" && (u.Scheme == "https" || loopback && u.Scheme == "http" && (u.Hostname() == "localhost" || listen.IsLoopback(u.Hostname())))
}

// choices are what members of some groups may do, one for each tenant, by its name. Groups are
// compared byte by byte. Who may write as a member of one group is not bound by another one that
// may only read.
func (c *Config) choices(groups []string) (list []Grant) {
	for _, g := range c.Grants {
		if !slices.Contains(groups, g.Group) {
			continue
		}
		g.Group = ""
		if at := slices.IndexFunc(list, func(x Grant) bool { return x.Tenant == g.Tenant }); at >= 0 {
			list[at].ReadOnly = list[at].ReadOnly && g.ReadOnly
			continue
		}
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b Grant) int { return strings.Compare(a.Tenant, b.Tenant) })
	return list
}
