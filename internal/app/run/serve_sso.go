package run

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/api/sso"
	"github.com/ibwarden/ibwarden/internal/app/files"
)

// ssoFlags say which OpenID provider people log in with.
type ssoFlags struct {
	config           sso.Config
	groups           []string
	secretFile, file string
}

// scopes are those that are asked for where the flags name none.
var scopes = []string{"profile", "email", "groups", "offline_access"}

// oidc begins the name of each of the flags.
const oidc = "oidc-"

func (f *ssoFlags) add(flags *pflag.FlagSet) {
	c := &f.config
	flags.StringVar(&c.Issuer, oidc+"issuer", "", "OpenID provider that people log in with (to the console; its URL; default: none)")
	flags.StringVar(&c.ClientID, oidc+"client-id", "", "client ID there (that of this service)")
	flags.StringVar(&f.secretFile, oidc+"client-secret-file", "", "client secret (a file that only its owner can read)")
	flags.StringSliceVar(&f.groups, oidc+"groups", nil, "who may log in, GROUP=TENANT[:read-only]; TENANT is provider for the provider, and who is in no GROUP may not")
	flags.StringVar(&c.Claim, oidc+"groups-claim", "groups", "claim with the groups (a list of texts)")
	flags.StringSliceVar(&c.Scopes, oidc+"scopes", nil, "scopes (beside openid; default: "+strings.Join(scopes, ", ")+")")
	flags.StringVar(&c.Name, oidc+"name", "single sign-on", "name on the login page (of the provider)")
	flags.StringVar(&f.file, oidc+"ca-file", "", "CAs of its certificate (a file, PEM; default: those of the system)")
	flags.StringVar(&c.Console, oidc+"console", "", "URL of the console (for browsers, without a path; default: that of --listen)")
}

// read is what the flags say; nil for no provider.
func (f *ssoFlags) read(listen string) (*sso.Config, error) {
	c := f.config
	if c.Issuer == "" {
		if c.ClientID+f.secretFile+f.file+c.Console != "" || len(f.groups) > 0 {
			return nil, fmt.Errorf("--%sclient-id, -client-secret-file, -groups, -ca-file and -console: want --%sissuer with them", oidc, oidc)
		}
		return nil, nil
	}
	if listen == "" {
		return nil, fmt.Errorf("--%sissuer: want --listen with it, where browsers come", oidc)
	}
	if len(c.Scopes) == 0 {
		c.Scopes = scopes
	}
	for _, text := range f.groups {
		g, err := sso.ParseGrant(text)
		if err != nil {
			return nil, fmt.Errorf("--%sgroups: %w", oidc, err)
		}
		c.Grants = append(c.Grants, g)
	}
	for _, x := range []struct {
		flag, path string
		read       func(string, int64) ([]byte, error)
		to         func([]byte)
	}{
		{"client-secret-file", f.secretFile, files.Secret, func(b []byte) { c.ClientSecret = string(bytes.TrimSpace(b)) }},
		{"ca-file", f.file, files.Read, func(b []byte) { c.CA = b }},
	} {
		if x.path == "" {
			continue
		}
		data, err := x.read(x.path, secretMax)
		if err == nil && len(data) == 0 {
			err = errors.New(x.path + ": it is empty")
		}
		if err != nil {
			return nil, fmt.Errorf("--%s%s: %w", oidc, x.flag, err)
		}
		x.to(data)
	}
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("--%s%w", oidc, err)
	}
	return &c, nil
}
