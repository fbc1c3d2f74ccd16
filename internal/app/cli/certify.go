package cli

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/app/run"
	"github.com/ibwarden/ibwarden/internal/judge/certificate"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
)

const certificateHelp = "write a certificate of isolation to this file, and its signature to the same name with .sig (docs/certificate.md)"

// signer is the key for a certificate, which is made in the data directory if there is none.
func (f *proveFlags) signer() (ed25519.PrivateKey, error) {
	if f.policy.loaded == nil {
		return nil, misuse(errors.New("--certificate: want --policy FILE too, or a service (--server), which has one: what a certificate claims is a policy"))
	}
	dir, err := run.OpenData(f.source.where.reads.data, f.source.where.spec)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, misuse(fmt.Errorf("--certificate: want --data DIR or %s, where the key is that signs it", daemon.DataVariable))
	}
	key, err := dir.SigningKey()
	return key, terminal.OrMisuse(err)
}

// certify writes a certificate of what was read, and its signature.
func (f *proveFlags) certify(c *cobra.Command, key ed25519.PrivateKey, r *look.Reading, allowed []observed.Partition, declares isolation.Cables) error {
	in := certificate.Input{Fabric: r.Fabric, Allowed: allowed, RawAllowed: f.policy.loaded.AllowRaw, Cables: declares, ReadAt: r.ReadAt}
	policy := sha256.Sum256(policyfile.WriteYAML(f.policy.loaded))
	in.Policy = policy[:]
	if f.source.file != "" {
		file, err := files.Open(f.source.file, daemon.SnapshotFileMax)
		if err != nil {
			return bad(err)
		}
		sum := sha256.New()
		_, err = io.Copy(sum, file)
		file.Close()
		if err != nil {
			return bad(fmt.Errorf("%s: %w", f.source.file, err))
		}
		in.Snapshot = sum.Sum(nil)
	}
	text := certificate.Write(in)
	return f.writeCertificate(c, text, certificate.Sign(key, certificate.Namespace, text))
}

// certifiedByService writes the certificate of a service, which knows its policy: where no other
// one is named. It reports whether it did.
func (f *proveFlags) certifiedByService(c *cobra.Command) (done bool, err error) {
	if f.certificate == "" || f.policy.loaded != nil || f.source.file != "" {
		return false, nil
	}
	if asks, err := byService(c, &f.source.server); err != nil || !asks {
		return false, err
	}
	text, signature, err := f.source.server.Certificate(c)
	if err != nil {
		return false, err
	}
	return true, f.writeCertificate(c, text, signature)
}

// writeCertificate writes the two files.
func (f *proveFlags) writeCertificate(c *cobra.Command, text, signature []byte) error {
	// The signature first: a certificate without one, or with that of another, is not believed.
	for _, x := range []struct {
		path string
		data []byte
	}{{f.certificate + ".sig", signature}, {f.certificate, text}} {
		if err := files.Replace(x.path, files.Bytes(x.data)); err != nil {
			return bad(fmt.Errorf("--certificate: %w", err))
		}
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s: a certificate of %d bytes, signed in %s.sig\n", f.certificate, len(text), f.certificate)
	return nil
}

func (f *keysCommand) signer() *cobra.Command {
	var rotate bool
	c := &cobra.Command{
		Use: "signer", Short: "Show the key that signs certificates of isolation, or make another", Args: cobra.NoArgs,
		Long: `Show the public half of the key that signs certificates of isolation (ibwarden prove
--certificate), as a line of an allowed_signers file. An auditor keeps that file:

	ssh-keygen -Y verify -f allowed_signers -I ibwarden -n ` + certificate.Namespace + ` -s FILE.sig < FILE

The key is in the data directory, and made at first use. With --rotate another takes its place.
`,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := run.OpenData(f.where.reads.data, f.where.spec)
			if err != nil {
				return err
			}
			if dir == "" {
				return misuse(fmt.Errorf("no data directory: give --data DIR or set %s", daemon.DataVariable))
			}
			get := dir.SigningKey
			if rotate {
				get = dir.NewSigningKey
			}
			key, err := get()
			if err != nil {
				return misuse(err)
			}
			line := certificate.AllowedSigner(key)
			if f.json {
				return terminal.JSON(c.OutOrStdout(), map[string]any{"allowed_signer": line})
			}
			fmt.Fprintln(c.OutOrStdout(), line)
			return nil
		},
	}
	c.Flags().BoolVar(&rotate, "rotate", false, "make a new key; what the old one signed stays valid for who has its line")
	return c
}
