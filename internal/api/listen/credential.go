// This file makes the secrets of callers of the API, and the sums by which they are
// known.

package listen

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A credential is a token of package resource: its Sum is the SHA-256 of
//
//   - a secret, `ibw_` and 32 random bytes, which its holder sends as a bearer token;
//   - the bytes of a client certificate (DER);
//   - `uri:` and a URI that stands in the subject alternative names of a certificate
//     which the client CA signed.
//
// No bytes are of two of these kinds: a secret begins with `ibw_` and a certificate with
// 0x30. What else a certificate says of its holder, its common name too, gives nothing.
//
// A session and the code for one are no tokens: they are secrets of the same form, with
// prefixes of their own, which session.go names.
const (
	TokenPrefix   = "ibw_"
	SessionPrefix = "ibws_"
	Code          = "ibwc_"

	secretBytes = 32
)

// URIPrefix stands before a URI in what its sum is made of.
const URIPrefix = "uri:"

// NewSecret makes a secret with one of the prefixes.
func NewSecret(prefix string) string {
	return prefix + base64.RawURLEncoding.EncodeToString(SecretBytes(secretBytes))
}

// IsSecret reports whether a text has the form of a secret with a prefix.
func IsSecret(prefix, text string) bool {
	remain, has := strings.CutPrefix(text, prefix)
	return has && goodRest.MatchString(remain)
}

var goodRest = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// SecretBytes are random ones.
func SecretBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails: it would end the program
	return b
}

// SecretSum is the SHA-256 in hexadecimal digits.
func SecretSum(bytes []byte) string {
	sum := sha256.Sum256(bytes)
	return hex.EncodeToString(sum[:])
}

// OfCertificate are the sums that a certificate stands for, the closest first.
func OfCertificate(c *x509.Certificate) []string {
	sums := []string{SecretSum(c.Raw)}
	for _, u := range c.URIs {
		sums = append(sums, SecretSum([]byte(URIPrefix+u.String())))
	}
	return sums
}

// CertificateEnds is when the first of some certificates ends, or what was registered for them, which
// is zero for never.
func CertificateEnds(chains [][]*x509.Certificate, registered time.Time) time.Time {
	ends := registered
	for _, c := range slices.Concat(chains...) {
		if ends.IsZero() || c.NotAfter.Before(ends) {
			ends = c.NotAfter
		}
	}
	return ends
}

// CertificateSum is the SHA-256 of a certificate that is given as such or in PEM.
func CertificateSum(text string) (string, error) {
	text = strings.TrimSpace(text)
	if b, err := hex.DecodeString(strings.ReplaceAll(text, ":", "")); err == nil && len(b) == 32 {
		return hex.EncodeToString(b), nil
	}
	block, remain := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" || strings.TrimSpace(string(remain)) != "" {
		return "", FieldProblem(http.StatusUnprocessableEntity, "invalid", "body.certificate", "want one certificate in PEM, or its SHA-256 in 64 hexadecimal digits")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", FieldProblem(http.StatusUnprocessableEntity, "invalid", "body.certificate", "it cannot be read")
	}
	return SecretSum(c.Raw), nil
}
