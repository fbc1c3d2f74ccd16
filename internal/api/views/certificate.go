package views

import "context"

// CertificateSource makes certificates of isolation.
type CertificateSource interface {
	// Certificate is that of the last pass of the manager: the same until the next one, or until
	// the key that signs is another.
	Certificate(ctx context.Context) (*Certificate, error)
}

// Certificate is a certificate of isolation.
type Certificate struct {
	// Text is the certificate, and Signature what ssh-keygen -Y verify takes for it.
	Text, Signature []byte
	// Revision is that of the policy that is claimed.
	Revision uint64
}
