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

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/judge/certificate"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/service"
)

// TestCertificates: one for each pass and key, of what GET /snapshot has.
func TestCertificates(t *testing.T) {
	ctx, dir := t.Context(), daemon.DataDir(t.TempDir())
	if _, err := daemon.NewCertificates(daemon.NewServed("nothing"), dir).Certificate(ctx, nil); !errors.Is(err, service.ErrNotRead) {
		t.Errorf("before a manager runs: %v", err)
	}
	first, next := mustRead(t, unreadPolicy), mustRead(t, movedPolicy)
	s, c, _ := serving(t, first)
	c.of(t, 1)
	if _, err := daemon.NewCertificates(s, "").Certificate(ctx, nil); err == nil || !strings.Contains(err.Error(), "no data directory") {
		t.Errorf("without a data directory: %v", err)
	}
	made := daemon.NewCertificates(s, dir)
	x, err := made.Certificate(ctx, nil)
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
	if err != nil || !bytes.Equal(certificate.Sign(key, certificate.Namespace, x.Text), x.Signature) {
		t.Errorf("the signature is not that of the key: %v", err)
	}
	if info, err := os.Stat(filepath.Join(string(dir), "signing-key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info, err)
	}
	if again, err := made.Certificate(ctx, nil); err != nil || again != x {
		t.Errorf("another one of the same pass: %v", err)
	}
	tenantCertificates(t, dir, made)
	if _, err := dir.NewSigningKey(); err != nil {
		t.Fatal(err)
	}
	if again, err := made.Certificate(ctx, nil); err != nil || !bytes.Equal(again.Text, x.Text) || bytes.Equal(again.Signature, x.Signature) {
		t.Errorf("with another key: %v", err)
	}
	s.SetPolicy(2, next)
	c.of(t, 2)
	if again, err := made.Certificate(ctx, nil); err != nil || again.Revision != 2 || bytes.Equal(again.Text, x.Text) {
		t.Errorf("of the next pass: %v", err)
	}
}

// tenantCertificates: one for each tenant and pass, signed for a namespace of its own, without digests.
func tenantCertificates(t *testing.T, dir daemon.DataDir, made *daemon.Certificates) {
	whole, err := made.Certificate(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	asked := func(tenant string, number uint64) (*views.Certificate, error) {
		return made.Certificate(t.Context(), func(f *observed.Fabric, revision uint64) (*views.CertificatePart, error) {
			if revision != 1 || len(f.EndPorts()) == 0 {
				t.Errorf("revision %d, %d end ports", revision, len(f.EndPorts()))
			}
			own := map[ib.PortGUID]bool{f.EndPorts()[0].GUID: true}
			return &views.CertificatePart{View: certificate.View{Owns: own}, CertificateKey: views.CertificateKey{Tenant: tenant, Revision: number}}, nil
		})
	}
	x, err := asked("red", 5)
	if err != nil {
		t.Fatal(err)
	}
	if x.Revision != 5 || !bytes.Contains(x.Text, []byte("\nrevision 5\nsnapshot -\npolicy -\n")) {
		t.Errorf("revision %d, %s", x.Revision, x.Text)
	}
	if key, err := dir.SigningKey(); err != nil || !bytes.Equal(certificate.Sign(key, certificate.TenantNamespace, x.Text), x.Signature) {
		t.Errorf("the signature is not that of the key: %v", err)
	}
	for i, of := range []struct {
		tenant string
		number uint64
		same   bool
	}{{"red", 5, true}, {"blue", 5, false}, {"red", 6, false}, {"red", 5, true}} {
		if again, err := asked(of.tenant, of.number); err != nil || (again == x) != of.same {
			t.Errorf("%d: the same %t, want %t, %v", i, again == x, of.same, err)
		}
	}
	gone := errors.New("gone")
	if _, err := made.Certificate(t.Context(), func(*observed.Fabric, uint64) (*views.CertificatePart, error) { return nil, gone }); !errors.Is(err, gone) {
		t.Errorf("without a part: %v", err)
	}
	if again, err := made.Certificate(t.Context(), nil); err != nil || again != whole {
		t.Errorf("that of all is another: %v", err)
	}
}
