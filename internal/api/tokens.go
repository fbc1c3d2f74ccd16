package api

import (
	"context"
	"encoding/hex"
	"net/http"
	"net/url"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// TokenMade is the answer to a new credential.
type TokenMade struct {
	Changed
	Token  Token  `json:"token"`
	Secret string `json:"secret,omitempty" doc:"the secret: it is said once, in no repeated answer either, and the service keeps its SHA-256 alone"`
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
				func(s *resource.State, t *resource.Token) Token { return TokenFor(s, caller, t) })
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
		KeepMade bool   `query:"keep_made" doc:"leave the tokens that were made with it and the offers of ports, which end otherwise"`
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
	id := hex.EncodeToString(listen.SecretBytes(6))
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
		t.ID, t.Sum = "uri-"+id, listen.SecretSum([]byte(listen.URIPrefix+b.URI))
	case b.Certificate != "":
		t.ID = "crt-" + id
		if t.Sum, err = listen.CertificateSum(b.Certificate); err != nil {
			return t, "", err
		}
	default:
		secret = listen.NewSecret(listen.TokenPrefix)
		t.ID, t.Sum = "tok-"+id, listen.SecretSum([]byte(secret))
	}
	return t, secret, nil
}
