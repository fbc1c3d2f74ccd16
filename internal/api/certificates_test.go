package api

import (
	"context"
	"errors"
	"testing"

	"github.com/ibwarden/ibwarden/internal/api/views"
)

// certified is a source of one certificate, or of an error.
type certified struct{ err error }

func (c certified) Certificate(context.Context) (*views.Certificate, error) {
	if c.err != nil {
		return nil, c.err
	}
	return &views.Certificate{Text: []byte("ibwarden certificate 1\nsha256 0\n"), Signature: []byte("-----BEGIN SSH SIGNATURE-----\n"), Revision: 3}, nil
}

func TestCertificate(t *testing.T) {
	s := newStand(t)
	tags := map[string]bool{}
	for path, want := range map[string]string{
		"/proof/certificate": "ibwarden certificate 1\nsha256 0\n", "/proof/certificate?revision=3": "ibwarden certificate 1\nsha256 0\n",
		"/proof/certificate.sig": "-----BEGIN SSH SIGNATURE-----\n", "/proof/certificate.sig?revision=3": "-----BEGIN SSH SIGNATURE-----\n",
	} {
		got := s.do(call{method: "GET", path: path})
		tags[got.Header().Get("ETag")] = true
		if got.Code != 200 || got.Body.String() != want {
			t.Errorf("%s: %d %q", path, got.Code, got.Body)
		}
	}
	if len(tags) != 1 || tags[""] {
		t.Errorf("the certificate and its signature have the ETags %v, want one", tags)
	}
	s.tenants()
	for _, part := range []string{"", ".sig"} {
		for query, want := range map[string]int{"?revision=2": 404, "?revision=18446744073709551615": 404, "?revision=-1": 422, "?revision=x": 422, "?revision=0": 200} {
			if got := s.do(call{method: "GET", path: "/proof/certificate" + part + query}); got.Code != want {
				t.Errorf("certificate%s%s: %d, want %d: %s", part, query, got.Code, want, got.Body)
			}
		}
		// A tenant is not told which revisions there are either.
		for _, query := range []string{"", "?revision=2", "?revision=3"} {
			s.want(403, call{as: "red", method: "GET", path: "/proof/certificate" + part + query})
		}
	}
	s.api.options.Certificates = certified{errors.New("the manager has no data directory")}
	if got := s.do(call{method: "GET", path: "/proof/certificate"}); got.Code != 503 {
		t.Errorf("without a key: %d: %s", got.Code, got.Body)
	}
	s.api.options.Certificates = nil
	if got := s.do(call{method: "GET", path: "/proof/certificate.sig"}); got.Code != 503 {
		t.Errorf("without a manager: %d: %s", got.Code, got.Body)
	}
}
