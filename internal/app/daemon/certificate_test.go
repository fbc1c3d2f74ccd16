package daemon_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/judge/certificate"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/service"
)

// TestCertificates: one for each pass and key, of what GET /snapshot has.
func TestCertificates(t *testing.T) {
	ctx, dir := t.Context(), daemon.DataDir(t.TempDir())
	if _, err := daemon.NewCertificates(daemon.NewServed("nothing"), dir).Certificate(ctx); !errors.Is(err, service.ErrNotRead) {
		t.Errorf("before a manager runs: %v", err)
	}
	first, next := mustRead(t, unreadPolicy), mustRead(t, movedPolicy)
	s, c, _ := serving(t, first)
	c.of(t, 1)
	if _, err := daemon.NewCertificates(s, "").Certificate(ctx); err == nil || !strings.Contains(err.Error(), "no data directory") {
		t.Errorf("without a data directory: %v", err)
	}
	made := daemon.NewCertificates(s, dir)
	x, err := made.Certificate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := snapshot.Write(&file, snap); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("\nrevision 1\nsnapshot %x\n", sha256.Sum256(file.Bytes())); x.Revision != 1 || !bytes.Contains(x.Text, []byte(want)) {
		t.Errorf("revision %d, want %q in\n%s", x.Revision, want, x.Text)
	}
	key, err := dir.SigningKey()
	if err != nil || !bytes.Equal(certificate.Sign(key, x.Text), x.Signature) {
		t.Errorf("the signature is not that of the key: %v", err)
	}
	if info, err := os.Stat(filepath.Join(string(dir), "signing-key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info, err)
	}
	if again, err := made.Certificate(ctx); err != nil || again != x {
		t.Errorf("another one of the same pass: %v", err)
	}
	if _, err := dir.NewSigningKey(); err != nil {
		t.Fatal(err)
	}
	if again, err := made.Certificate(ctx); err != nil || !bytes.Equal(again.Text, x.Text) || bytes.Equal(again.Signature, x.Signature) {
		t.Errorf("with another key: %v", err)
	}
	s.SetPolicy(2, next)
	c.of(t, 2)
	if again, err := made.Certificate(ctx); err != nil || again.Revision != 2 || bytes.Equal(again.Text, x.Text) {
		t.Errorf("of the next pass: %v", err)
	}
}
