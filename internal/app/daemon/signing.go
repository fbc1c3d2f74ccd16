package daemon

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ibwarden/ibwarden/internal/app/files"
)

// signingFile is the key in a data directory that signs certificates, as PKCS #8 in PEM.
const signingFile = "signing-key"

const signingForm = "PRIVATE KEY"

// SigningKey is the key that signs certificates of isolation. It is made at first use.
func (d DataDir) SigningKey() (ed25519.PrivateKey, error) {
	path := d.File(signingFile)
	data, err := files.Secret(path, secretFileMax)
	if errors.Is(err, fs.ErrNotExist) {
		return d.NewSigningKey()
	}
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != signingForm || len(rest) > 0 {
		return nil, fmt.Errorf("signing key %s: want one block %q in PEM (ibwarden keys signer --rotate makes another key)", path, signingForm)
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w (ibwarden keys signer --rotate makes another key)", path, err)
	}
	key, ok := any.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("signing key %s: want an ed25519 key (ibwarden keys signer --rotate makes one)", path)
	}
	return key, nil
}

// NewSigningKey puts a new key in place of the one that signs certificates. What the old one
// signed stays valid for those who kept its public half.
func (d DataDir) NewSigningKey() (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	if err := files.Replace(d.File(signingFile), files.Bytes(pem.EncodeToMemory(&pem.Block{Type: signingForm, Bytes: der}))); err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	return key, nil
}
