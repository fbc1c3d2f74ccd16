package views

import (
	"context"
	"errors"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/certificate"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// CertificateSource makes certificates of isolation.
type CertificateSource interface {
	// Certificate is that of the last pass of the manager: the same until the next one, or until
	// the key that signs is another. A tenant's is made of what look finds; nil for all.
	Certificate(ctx context.Context, look CertificateLook) (*Certificate, error)
}

// Certificate is a certificate of isolation.
type Certificate struct {
	// Text is the certificate, and Signature what ssh-keygen -Y verify takes for it.
	Text, Signature []byte
	// Revision is that of the policy that is claimed, by the caller's numbers.
	Revision uint64
}

// CertificateLook finds the part of a fabric that a tenant's certificate is about, after a
// pass for a revision.
type CertificateLook func(f *observed.Fabric, revision uint64) (*CertificatePart, error)

// CertificatePart is what a tenant's certificate is made of, beside the fabric.
type CertificatePart struct {
	certificate.View
	CertificateKey
}

// CertificateKey is what a part depends on, beside the fabric.
type CertificateKey struct {
	Tenant   string
	Keys     resource.KeyRange // that the caller is bound to
	Revision uint64            // by the tenant's numbers
}

// ErrNoPorts says that there is nothing to certify.
var ErrNoPorts = errors.New("no end port of the fabric is yours: there is nothing to certify")

// CertificatePartOf is a caller's part. While something that he sees has changed since the revision, there is
// none: what he may know now need not be what he might know then.
func CertificatePartOf(s *resource.State, c resource.Caller, f *observed.Fabric, revision uint64) (*CertificatePart, error) {
	part := &CertificatePart{
		certificate.View{Owns: map[ib.PortGUID]bool{}, Sees: map[ib.PKeyBase]bool{}},
		CertificateKey{c.Tenant, c.Keys, s.NumberFor(c, revision)},
	}
	if last := s.LastFor(c); revision == 0 || part.Revision != last {
		return nil, fmt.Errorf("the manager has not completed a pass for revision %d yet", last)
	}
	for _, p := range f.EndPorts() {
		if s.SightOf(c, p.GUID) == resource.SightWhole {
			part.Owns[p.GUID] = true
		}
	}
	for _, p := range s.Visible(c) {
		part.Sees[p.PKey] = s.TakesPart(c, p.PKey)
	}
	if len(part.Owns) == 0 {
		return nil, ErrNoPorts
	}
	return part, nil
}
