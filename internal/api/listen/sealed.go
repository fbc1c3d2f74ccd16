// This file makes cursors that nobody can read: those of tenants in lists whose places count what
// others do.

package listen

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"net/http"
)

// Cursors seals cursors. They hold as long as it is kept: as long as the service runs.
type Cursors struct{ aead cipher.AEAD }

// NewCursors has a key of its own.
func NewCursors() Cursors {
	block, err := aes.NewCipher(SecretBytes(32))
	if err != nil {
		panic(err) // never: 32 bytes are a key
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // never: the blocks are of AES
	}
	return Cursors{aead}
}

// Seal seals a cursor of a tenant.
func (s Cursors) Seal(text, tenant string) string {
	nonce := SecretBytes(s.aead.NonceSize())
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, []byte(text), []byte(tenant)))
}

// Open is what Seal sealed for the same tenant; nothing for nothing.
func (s Cursors) Open(sealed, tenant string) (string, error) {
	if sealed == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(sealed)
	n := s.aead.NonceSize()
	if err == nil && len(b) >= n {
		if text, err := s.aead.Open(nil, b[:n], b[n:], []byte(tenant)); err == nil {
			return string(text), nil
		}
	}
	return "", FieldProblem(http.StatusUnprocessableEntity, "invalid", "query.cursor", "want next of an earlier page, since the service was started")
}
