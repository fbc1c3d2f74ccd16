package certificate_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/certificate"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/test/need"
)

// good is a certificate that the checker says yes to.
func good(t *testing.T, c *checker, seed uint64) []byte {
	for ; ; seed++ {
		w := newWorld(seed)
		text := w.certificate()
		if status, _ := c.check(text); status == 0 && len(w.allowed) > 2 {
			return text
		}
	}
}

// summed is a certificate with the last line made again.
func summed(text []byte) []byte {
	body := text[:bytes.LastIndex(text[:len(text)-1], []byte("\n"))+1]
	return fmt.Appendf(bytes.Clone(body), "sha256 %x\n", sha256.Sum256(body))
}

// TestChangedByte: a certificate in which one byte is another is not genuine. The checker sees
// that by the last line; where who changed it made that again, ssh-keygen sees it.
func TestChangedByte(t *testing.T) {
	keygen := need.Program(t, "ssh-keygen")
	c, seed := build(t), need.Seed(t, 1)
	text, r := good(t, c, seed), rand.New(rand.NewPCG(seed, 5))
	_, key, err := ed25519.GenerateKey(rand.NewChaCha8([32]byte{byte(seed)}))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	signers, sig := filepath.Join(dir, "allowed_signers"), filepath.Join(dir, "sig")
	for name, data := range map[string][]byte{signers: []byte(certificate.AllowedSigner(key) + "\n"), sig: certificate.Sign(key, certificate.Namespace, text)} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	genuine := func(text []byte) bool {
		cmd := exec.Command(keygen, "-Y", "verify", "-f", signers, "-I", "ibwarden", "-n", certificate.Namespace, "-s", sig)
		cmd.Stdin = bytes.NewReader(text)
		return cmd.Run() == nil
	}
	if !genuine(text) {
		t.Fatal("ssh-keygen does not take the signature")
	}
	for range need.Share(40, 1000) {
		changed := bytes.Clone(text)
		at := r.IntN(len(changed))
		changed[at] ^= byte(1 + r.IntN(255))
		if status, out := c.check(changed); status != 2 || !strings.Contains(out, "SHA-256") {
			t.Fatalf("seed %d, byte %d: status %d: %s", seed, at, status, out)
		}
		if again := summed(changed); bytes.Equal(again, text) {
			continue // the byte was one of the sum
		} else if genuine(again) {
			t.Fatalf("seed %d, byte %d: ssh-keygen takes it", seed, at)
		}
	}
}

// TestClaimOfAnother: facts and a claim that do not belong together are not accepted.
func TestClaimOfAnother(t *testing.T) {
	c, first := build(t), need.Seed(t, 1)
	tried := 0
	for seed := first; tried < need.Share(30, 100); seed++ {
		w := newWorld(seed)
		if status, _ := c.check(w.certificate()); status != 0 {
			continue
		}
		grants := func() (out []any) {
			for _, p := range w.Fabric.EndPorts() {
				out = append(out, subnettest.PKeys(w.allowed, p.GUID))
			}
			return out
		}
		own := grants()
		w.allowed = nil
		w.policy()
		if w.r.IntN(2) == 0 { // the same but for one port
			w.allowed = newWorld(seed).allowed
			i := w.r.IntN(len(w.allowed))
			if full := w.allowed[i].Full; len(full) > 0 {
				w.allowed[i].Full, w.allowed[i].Limited = full[1:], append([]ib.PortGUID{full[0]}, w.allowed[i].Limited...)
			}
		}
		if reflect.DeepEqual(own, grants()) {
			continue
		}
		tried++
		if status, out := c.check(w.certificate()); status != 1 {
			t.Fatalf("seed %d: status %d: %s", seed, status, out)
		}
	}
}
