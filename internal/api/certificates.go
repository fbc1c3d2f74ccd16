package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// certificates are the certificate of isolation and its signature. A tenant's names no port
// but his.
func (a *api) certificates() {
	type input struct {
		Revision uint64 `query:"revision" doc:"that of this revision, by the caller's numbers: 404 where the last pass of the manager was for another"`
	}
	const text = "text/plain"
	for _, x := range []struct {
		path, id, about string
		part            func(*views.Certificate) []byte
	}{
		{"/proof/certificate", "get-certificate", "A certificate of isolation, which others can check without ibwarden; for a tenant, of its own ports. Its ETag is that of its signature",
			func(c *views.Certificate) []byte { return c.Text }},
		{"/proof/certificate.sig", "get-certificate-signature", "The signature of the certificate, for ssh-keygen -Y verify",
			func(c *views.Certificate) []byte { return c.Signature }},
	} {
		register(a, streams(operation(http.MethodGet, x.path, x.id, x.about), text, x.about),
			func(ctx context.Context, in *input) (*huma.StreamResponse, error) {
				c, err := a.certificate(ctx, in.Revision)
				if err != nil {
					return nil, err
				}
				return &huma.StreamResponse{Body: func(to huma.Context) {
					to.SetHeader("Content-Type", text)
					to.SetHeader("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(c.Text)))
					if _, err := to.BodyWriter().Write(x.part(c)); err != nil {
						a.cut(ctx, err)
					}
				}}, nil
			})
	}
}

// certificate is that of a revision, or of the last pass for 0.
func (a *api) certificate(ctx context.Context, revision uint64) (*views.Certificate, error) {
	if a.options.Certificates == nil {
		return nil, noManager()
	}
	var look views.CertificateLook
	if provider(ctx) != nil {
		look = func(f *observed.Fabric, revision uint64) (part *views.CertificatePart, err error) {
			a.service.Read(func(s *resource.State) { part, err = views.CertificatePartOf(s, callerOf(ctx), f, revision) })
			return part, err
		}
	}
	c, err := a.options.Certificates.Certificate(ctx, look)
	if errors.Is(err, views.ErrNoPorts) {
		return nil, problem(http.StatusNotFound, string(resource.NotFound), err.Error())
	}
	if err != nil {
		return nil, unjudged(err)
	}
	if revision != 0 && revision != c.Revision {
		return nil, problem(http.StatusNotFound, string(resource.NotFound), fmt.Sprintf("revision %d: there is a certificate of revision %d only, which the last pass of the manager was for", revision, c.Revision))
	}
	return c, nil
}
