package servicecmd

import (
	"bytes"
	"errors"

	"github.com/spf13/cobra"
)

// certificateTries is how often a certificate is asked for of which the signature is that of
// another, made meanwhile.
const certificateTries = 5

// Certificate is the certificate of isolation of the service's last pass, and its signature.
func (n *Named) Certificate(c *cobra.Command) (text, signature []byte, err error) {
	to, err := n.flags.open(c.Context(), c.ErrOrStderr())
	if err != nil {
		return nil, nil, err
	}
	get := func(path string) []byte {
		var b bytes.Buffer
		if err == nil {
			err = to.Fetch(c.Context(), path, nil, &b)
		}
		return b.Bytes()
	}
	for range certificateTries {
		text, signature = get("/proof/certificate"), get("/proof/certificate.sig")
		if again := get("/proof/certificate"); err != nil || bytes.Equal(text, again) {
			return text, signature, failed(err)
		}
	}
	return nil, nil, failed(errors.New("the service makes another certificate each time it is asked"))
}
