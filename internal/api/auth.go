package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Peer is who is at the other end of a Unix socket, as the kernel says.
type Peer = listen.Peer

type peerKey struct{}

// WithPeer is the context of a connection from a Unix socket.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// peerOf is who is at the other end of a Unix socket; false for a connection that came
// over the network.
func peerOf(ctx context.Context) (p Peer, local bool) {
	p, local = ctx.Value(peerKey{}).(Peer)
	return p, local
}

// request is what is known of a request: in its context.
type request struct {
	id  string
	who listen.Account
	// session is what is known of the session that the client showed; nil for none.
	session *listen.Session
	from    string // as logs have it
	// operation is its operation id; "" while it is not known.
	operation string
	// digest is of what it asks for; "" for one without an Idempotency-Key.
	digest string
}

type requestKey struct{}

func requestOf(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	if r == nil {
		return &request{}
	}
	return r
}

// callerOf is who makes a request.
func callerOf(ctx context.Context) resource.Caller { return requestOf(ctx).who.Caller }

// authenticate finds out who makes a request. A bearer token decides where there is one,
// then a client certificate, then the peer of the socket. With a session comes what is
// known of it.
func (a *api) authenticate(r *http.Request) (who listen.Account, of *listen.Session, err error) {
	if list := r.Header.Values("Authorization"); len(list) > 0 {
		scheme, secret, _ := strings.Cut(list[0], " ")
		if len(list) > 1 || !strings.EqualFold(scheme, "Bearer") {
			return who, nil, unauthorized("want one header Authorization: Bearer and a token of ibwarden")
		}
		return a.bearer(r, secret)
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		sums := listen.OfCertificate(r.TLS.PeerCertificates[0])
		if caller, known := a.holder(sums); known {
			return listen.Account{Caller: caller, Sums: sums, Until: listen.CertificateEnds(r.TLS.VerifiedChains, caller.Expires), Shown: "certificate"}, nil, nil
		}
		return who, nil, unauthorized("the client certificate is not registered for a tenant: the provider registers its SHA-256 or one of its URIs")
	}
	peer, local := peerOf(r.Context())
	if local && (peer.UID == 0 || int(peer.UID) == a.options.UID) {
		return listen.Account{Caller: resource.Caller{Name: fmt.Sprintf("uid %d", peer.UID), Tenant: resource.Provider}, Shown: "peer"}, nil, nil
	}
	if local {
		return who, nil, unauthorized(fmt.Sprintf("uid %d is neither root nor the owner of the service: want a token", peer.UID))
	}
	return who, nil, unauthorized("want a token or a client certificate")
}

// bearer is who showed a secret: that of a token, of a session, or a code, which is for
// nothing but a new session.
func (a *api) bearer(r *http.Request, secret string) (who listen.Account, of *listen.Session, err error) {
	switch {
	case listen.IsSecret(listen.SessionPrefix, secret):
		person := r.Header.Get(listen.BackgroundHeader) == "" && r.URL.Path != Prefix+"/events"
		if found, lasts := a.sessions.Find(secret, person); lasts {
			return found.Account, &found, nil
		}
		return who, nil, unauthorized("the session has ended: log in again")
	case listen.IsSecret(listen.Code, secret) && beginsSession(r):
		if who, good := a.sessions.Redeem(secret); good {
			return who, nil, nil
		}
		return who, nil, unauthorized("the code was used before, or it is too old: ibwarden show console prints another")
	case listen.IsSecret(listen.Code, secret):
		return who, nil, unauthorized("a code begins a session (POST " + Prefix + "/session), and is for nothing else")
	case listen.IsSecret(listen.TokenPrefix, secret):
		sums := []string{listen.SecretSum([]byte(secret))}
		if caller, known := a.holder(sums); known {
			return listen.Account{Caller: caller, Sums: sums, Until: caller.Expires, Shown: "token"}, nil, nil
		}
		return who, nil, unauthorized("there is no such token, or its time is over")
	}
	return who, nil, unauthorized("want one header Authorization: Bearer and a token of ibwarden")
}

// holder is the caller whom one of the sums was given to. It is looked up by the sum, so the
// time that takes says nothing of a secret.
func (a *api) holder(sums []string) (caller resource.Caller, known bool) {
	a.service.Read(func(s *resource.State) {
		if c, is := a.options.SSO.CallerOf(sums[0]); is && s.Tenant(c.Tenant) != nil {
			caller, known = c, true
			return
		}
		for _, sum := range sums {
			if caller, known = s.CallerOf(sum, a.service.Now()); known {
				return
			}
		}
	})
	return caller, known
}

// still reports whether who opened a stream may go on: his token may have ended since, or
// his session.
func (a *api) still(r *request) bool {
	if r.session != nil {
		return a.sessions.Lasts(r.session)
	}
	if len(r.who.Sums) == 0 {
		return true
	}
	caller, known := a.holder(r.who.Sums)
	return known && caller == r.who.Caller
}

func unauthorized(detail string) *Problem {
	p := problem(http.StatusUnauthorized, reasonUnauthorized, detail)
	p.Header = http.Header{"Www-Authenticate": {`Bearer realm="ibwarden"`}}
	return p
}
