package api

import (
	"context"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/credential"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Token is a credential as a caller sees it: never its secret.
type Token struct {
	ID       string     `json:"id"`
	Kind     string     `json:"kind" enum:"token,certificate,uri" doc:"what its holder shows: a secret, a certificate, or a certificate with a URI"`
	Tenant   string     `json:"tenant"`
	ReadOnly bool       `json:"read_only"`
	Keys     *KeyRange  `json:"keys,omitempty" doc:"the partitions that it is bound to"`
	Note     string     `json:"note,omitempty"`
	By       string     `json:"made_by,omitempty" doc:"who made it; a token that another made ends with that one; the provider, for a tenant, where that was one of his callers"`
	Created  time.Time  `json:"created"`
	Expires  *time.Time `json:"expires,omitempty"`
}

// TokenBody is what a new credential is to be.
type TokenBody struct {
	Tenant      string    `json:"tenant,omitempty" maxLength:"40" doc:"the caller's when there is none"`
	ReadOnly    bool      `json:"read_only,omitempty" doc:"it changes nothing"`
	Keys        *KeyRange `json:"keys,omitempty" doc:"bind it to the partitions with these numbers: it sees and changes no other, and nothing but partitions and members"`
	Note        string    `json:"note,omitempty" maxLength:"200" doc:"what it is for"`
	Expires     time.Time `json:"expires,omitzero" doc:"when it ends; never when there is none"`
	Certificate string    `json:"certificate,omitempty" maxLength:"20000" doc:"instead of a secret: a client certificate in PEM, or its SHA-256 in 64 hexadecimal digits"`
	URI         string    `json:"uri,omitempty" maxLength:"500" doc:"instead of a secret: a URI in the subject alternative names of client certificates that the client CA signs; the provider may register one"`
}

// TokenMade is the answer to a new credential.
type TokenMade struct {
	Changed
	Token  Token  `json:"token"`
	Secret string `json:"secret,omitempty" doc:"the secret: it is said once, in no repeated answer either, and the service keeps its SHA-256 alone"`
}

// Prefixes of the IDs of credentials by kind.
var kinds = []struct{ kind, prefix string }{{"token", "tok-"}, {"certificate", "crt-"}, {"uri", "uri-"}}

// TokenOf is a credential as its tenant and the provider see it.
func TokenOf(t *resource.Token) Token {
	out := Token{ID: t.ID, Kind: "token", Tenant: t.Tenant, ReadOnly: t.ReadOnly, Note: t.Note, By: t.By, Created: t.Created}
	for _, k := range kinds {
		if strings.HasPrefix(t.ID, k.prefix) {
			out.Kind = k.kind
		}
	}
	if t.Keys.First != 0 {
		out.Keys = &KeyRange{First: PKey(t.Keys.First.String()), Last: PKey(t.Keys.Last.String())}
	}
	if !t.Expires.IsZero() {
		out.Expires = &t.Expires
	}
	return out
}

// tokenFor is a credential as a caller sees it: of callers of another tenant he is told the tenant.
func tokenFor(s *resource.State, c resource.Caller, t *resource.Token) Token {
	out := TokenOf(t)
	if o, _ := s.Object((&resource.Token{ID: t.By}).Key()); t.By != "" && !c.IsProvider() {
		if by, is := o.(*resource.Token); !is || by.Tenant != c.Tenant {
			out.By = resource.Provider
		}
	}
	return out
}

func (a *api) tokens() {
	type listInput struct {
		PageParams
		Tenant string `query:"tenant" maxLength:"40" doc:"those of this tenant"`
	}
	register(a, operation(http.MethodGet, "/tokens", "list-tokens", "Tokens and certificates of the caller's tenant; of all for the provider"),
		func(ctx context.Context, in *listInput) (*Output[List[Token]], error) {
			caller := callerOf(ctx)
			return readList(ctx, a, in.PageParams, func(s *resource.State) []*resource.Token { return s.Tokens(in.Tenant) },
				func(t *resource.Token) string { return t.ID },
				func(_ *resource.State, t *resource.Token) bool {
					return caller.IsProvider() || t.Tenant == caller.Tenant
				},
				func(s *resource.State, t *resource.Token) Token { return tokenFor(s, caller, t) })
		})
	type create struct {
		WriteParams
		Body TokenBody
	}
	type made struct {
		Status int
		Body   TokenMade
	}
	op := operation(http.MethodPost, "/tokens", "create-token", "Make a token, or register a client certificate")
	op.DefaultStatus = http.StatusCreated
	register(a, op, func(ctx context.Context, in *create) (*made, error) {
		if in.Body.Tenant == "" {
			in.Body.Tenant = callerOf(ctx).Tenant
		}
		if in.Body.Certificate != "" || in.Body.URI != "" {
			// Whose certificates they are is for who trusts the client CA.
			if err := provider(ctx); err != nil {
				return nil, err
			}
		}
		t, secret, err := NewToken(in.Body, a.service.Now())
		if err != nil {
			return nil, err
		}
		r, err := a.do(ctx, &in.WriteParams, resource.PutToken{Token: t}, a.matches(ctx, &in.WriteParams))
		if err != nil {
			return nil, err
		}
		for _, e := range r.Edits {
			if x, is := e.After.(*resource.Token); is {
				t = *x
			}
		}
		out := &made{Status: http.StatusCreated, Body: TokenMade{Changed: a.changed(ctx, r, &in.WriteParams).Body, Token: TokenOf(&t), Secret: secret}}
		if in.DryRun || r.Repeated { // the secret of the first answer is kept nowhere
			out.Body.Secret = ""
		}
		return out, nil
	})
	type remove struct {
		WriteParams
		ID       string `path:"id" maxLength:"40"`
		KeepMade bool   `query:"keep_made" doc:"leave the tokens that were made with it, which end otherwise"`
	}
	register(a, operation(http.MethodDelete, "/tokens/{id}", "delete-token", "End a token, and those that were made with it"),
		func(ctx context.Context, in *remove) (*ChangedOutput, error) {
			r, err := a.do(ctx, &in.WriteParams, resource.DeleteToken{ID: in.ID, KeepMade: in.KeepMade}, a.matches(ctx, &in.WriteParams, (&resource.Token{ID: in.ID}).Key()))
			if err != nil {
				return nil, err
			}
			return a.changed(ctx, r, &in.WriteParams), nil
		})
}

// NewToken is the credential that a body asks for, and its secret where it has one.
func NewToken(b TokenBody, now time.Time) (t resource.Token, secret string, err error) {
	t = resource.Token{Tenant: b.Tenant, ReadOnly: b.ReadOnly, Note: b.Note, Expires: b.Expires, Created: now}
	if b.Keys != nil {
		if t.Keys.First, err = b.Keys.First.Base(); err == nil {
			t.Keys.Last, err = b.Keys.Last.Base()
		}
		if err != nil {
			return t, "", err
		}
	}
	id := hex.EncodeToString(credential.Octets(6))
	switch {
	case !b.Expires.IsZero() && !now.Before(b.Expires):
		return t, "", fault(http.StatusUnprocessableEntity, "invalid", "body.expires", "want a time to come")
	case b.Certificate != "" && b.URI != "":
		return t, "", fault(http.StatusUnprocessableEntity, "invalid", "body.uri", "want a certificate or a URI")
	case b.URI != "":
		u, err := url.Parse(b.URI)
		if err != nil || u.Scheme == "" || u.String() != b.URI {
			return t, "", fault(http.StatusUnprocessableEntity, "invalid", "body.uri", "want a URI, such as spiffe://example.org/red")
		}
		t.ID, t.Sum = "uri-"+id, credential.Sum([]byte(credential.URIPrefix+b.URI))
	case b.Certificate != "":
		t.ID = "crt-" + id
		if t.Sum, err = credential.CertificateSum(b.Certificate); err != nil {
			return t, "", err
		}
	default:
		secret = credential.New(credential.Token)
		t.ID, t.Sum = "tok-"+id, credential.Sum([]byte(secret))
	}
	return t, secret, nil
}
