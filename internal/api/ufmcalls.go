package api

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/api/ufm"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// ufmHolders tells UFM's calls about the fabric and who has a credential: the same tokens, certificates and
// peers as everywhere else.
type ufmHolders struct{ *api }

// Secret implements ufm.Authenticator. What does not have the form of a secret is none:
// the sums of certificates are of bytes that are no secret.
func (h ufmHolders) Secret(secret string) (caller resource.Caller, known bool) {
	if !listen.IsSecret(listen.TokenPrefix, secret) {
		return caller, false
	}
	return h.holder([]string{listen.SecretSum([]byte(secret))})
}

// Connection implements ufm.Authenticator.
func (h ufmHolders) Connection(r *http.Request) (caller resource.Caller, known bool) {
	bare := *r
	bare.Header = nil // clients with a certificate send an empty header Authorization
	who, _, err := h.authenticate(&bare)
	return who.Caller, err == nil
}

// NewSecret implements ufm.Authenticator.
func (ufmHolders) NewSecret() (secret, sum string) {
	secret = listen.NewSecret(listen.TokenPrefix)
	return secret, listen.SecretSum([]byte(secret))
}

// Refused implements ufm.Authenticator.
func (h ufmHolders) Refused(r *http.Request, login bool, why string) (tooMany bool) {
	return h.nobody(r, login, why)
}

// LoggedIn implements ufm.Authenticator.
func (h ufmHolders) LoggedIn(r *http.Request, by resource.Caller, until time.Time) {
	if who := (listen.Account{Caller: by, Shown: "password"}); h.sessions.Counted(who) {
		h.begun(r.Context(), who, from(r), until)
	}
}

// Snapshot implements ufm.Inventory.
func (h ufmHolders) Snapshot(ctx context.Context) (*snapshot.Snapshot, error) {
	return h.service.Manager().Snapshot(ctx)
}

// ufmCalls are the handlers of UFM's calls.
func (a *api) ufmCalls() http.Handler {
	o := a.options.UFM
	o.Build = cmp.Or(o.Build, a.options.Version)
	return ufm.New(a.service, ufmHolders{a}, ufmHolders{a}, o)
}
