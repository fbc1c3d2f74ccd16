package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// A credential is a token of package resource: its Sum is the SHA-256 of
//
//   - a secret, `ibw_` and 32 random octets, which its holder sends as a bearer token;
//   - the octets of a client certificate (DER);
//   - `uri:` and a URI that stands in the subject alternative names of a certificate
//     which the client CA signed.
//
// No octets are of two of these kinds: a secret begins with `ibw_` and a certificate with
// 0x30. What else a certificate says of its holder, its common name too, gives nothing.
const (
	secretPrefix = "ibw_"
	secretOctets = 32
	uriPrefix    = "uri:"
)

var goodSecret = regexp.MustCompile(`^ibw_[A-Za-z0-9_-]{43}$`)

// newSecret makes the secret of a token.
func newSecret() string {
	return secretPrefix + base64.RawURLEncoding.EncodeToString(randomOctets(secretOctets))
}

func randomOctets(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails: it would end the program
	return b
}

func sumOf(octets []byte) string {
	sum := sha256.Sum256(octets)
	return hex.EncodeToString(sum[:])
}

// Peer is who is at the other end of a Unix socket, as the kernel says.
type Peer = listen.Peer

type peerKey struct{}

// WithPeer is the context of a connection from a Unix socket.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// request is what is known of a request: in its context.
type request struct {
	id     string
	caller resource.Caller
	sums   []string // of what the client showed; none for a peer
	// operation is its operation id; "" while it is not known.
	operation string
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
func callerOf(ctx context.Context) resource.Caller { return requestOf(ctx).caller }

// authenticate finds out who makes a request. A bearer token decides where there is one,
// then a client certificate, then the peer of the socket.
func (a *api) authenticate(r *http.Request) (caller resource.Caller, sums []string, err error) {
	if list := r.Header.Values("Authorization"); len(list) > 0 {
		scheme, secret, _ := strings.Cut(list[0], " ")
		if len(list) > 1 || !strings.EqualFold(scheme, "Bearer") || !goodSecret.MatchString(secret) {
			return caller, nil, unauthorized("want one header Authorization: Bearer and a token of ibwarden")
		}
		sums = []string{sumOf([]byte(secret))}
		if caller, known := a.holder(sums); known {
			return caller, sums, nil
		}
		return caller, nil, unauthorized("there is no such token, or its time is over")
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		sums = certificateSums(r.TLS.PeerCertificates[0])
		if caller, known := a.holder(sums); known {
			return caller, sums, nil
		}
		return caller, nil, unauthorized("the client certificate is not registered for a tenant: the provider registers its SHA-256 or one of its URIs")
	}
	peer, local := r.Context().Value(peerKey{}).(Peer)
	if local && (peer.UID == 0 || int(peer.UID) == a.options.UID) {
		return resource.Caller{Name: fmt.Sprintf("uid %d", peer.UID), Tenant: resource.Provider}, nil, nil
	}
	if local {
		return caller, nil, unauthorized(fmt.Sprintf("uid %d is neither root nor the owner of the service: want a token", peer.UID))
	}
	return caller, nil, unauthorized("want a token or a client certificate")
}

// certificateSums are the sums that a certificate stands for, the closest first.
func certificateSums(c *x509.Certificate) []string {
	sums := []string{sumOf(c.Raw)}
	for _, u := range c.URIs {
		sums = append(sums, sumOf([]byte(uriPrefix+u.String())))
	}
	return sums
}

// holder is the caller whom one of the sums was given to. It is looked up by the sum, so the
// time that takes says nothing of a secret.
func (a *api) holder(sums []string) (caller resource.Caller, known bool) {
	a.service.Read(func(s *resource.State) {
		for _, sum := range sums {
			if caller, known = s.CallerOf(sum, a.service.Now()); known {
				return
			}
		}
	})
	return caller, known
}

// still reports whether who opened a stream may go on: his token may have ended since.
func (a *api) still(r *request) bool {
	if len(r.sums) == 0 {
		return true
	}
	caller, known := a.holder(r.sums)
	return known && caller == r.caller
}

func unauthorized(detail string) *Problem {
	p := problem(http.StatusUnauthorized, reasonUnauthorized, detail)
	p.header = http.Header{"Www-Authenticate": {`Bearer realm="ibwarden"`}}
	return p
}
