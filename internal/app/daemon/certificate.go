package daemon

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"sync"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/judge/certificate"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy/policyyaml"
)

// Certificates make certificates of what a manager holds, signed with the key in a data
// directory.
type Certificates struct {
	manager *Served
	dir     DataDir

	mu   sync.Mutex // while one is made
	last *views.Certificate
	// of is what the last one was made of.
	of certified
}

type certified struct {
	snap   *snapshot.Snapshot
	result *event.Result
	key    string
}

// NewCertificates makes certificates of a manager. The key is made at first use.
func NewCertificates(s *Served, dir DataDir) *Certificates {
	return &Certificates{manager: s, dir: dir}
}

// Certificate implements views.CertificateSource.
func (c *Certificates) Certificate(ctx context.Context) (*views.Certificate, error) {
	if c.dir == "" {
		return nil, errors.New("the manager has no data directory, where the key would be that signs certificates")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key, err := c.dir.SigningKey()
	if err != nil {
		return nil, err
	}
	j, snap, err := c.pass(ctx)
	if err != nil {
		return nil, err
	}
	of := certified{snap, j.result, string(key)}
	if c.last != nil && c.of == of {
		return c.last, nil
	}
	revision, _ := c.manager.Revision(j.result.Policy)
	made, err := certify(snap, j, revision, key)
	if err != nil {
		return nil, err
	}
	c.last, c.of = made, of
	return made, nil
}

// passTries is how often a pass is asked for, of which the snapshot is that of the next one.
const passTries = 5

// pass is what the last pass came to, and what was read by then.
func (c *Certificates) pass(ctx context.Context) (j judged, snap *snapshot.Snapshot, err error) {
	for range passTries {
		if j, err = c.manager.judged(); err != nil {
			return j, nil, err
		}
		if snap, err = c.manager.Snapshot(ctx); err != nil {
			return j, nil, err
		}
		if again, err := c.manager.judged(); err != nil || again.result == j.result {
			return j, snap, err
		}
	}
	return j, nil, errors.New("the manager completes one pass after the other")
}

// certify makes a certificate of a snapshot and of what the last pass came to.
func certify(snap *snapshot.Snapshot, j judged, revision uint64, key ed25519.PrivateKey) (*views.Certificate, error) {
	sum := sha256.New()
	if err := snapshot.Write(sum, snap); err != nil { // as GET /snapshot has it
		return nil, err
	}
	policy := sha256.Sum256(policyyaml.Write(j.result.Policy))
	text := certificate.Write(certificate.Input{
		Fabric: snap.Fabric, Allowed: j.result.Partitions, RawAllowed: j.result.Policy.AllowRaw, Cables: j.cables.Declares(),
		ReadAt: snap.ReadAt, Revision: revision, Snapshot: sum.Sum(nil), Policy: policy[:],
	})
	return &views.Certificate{Text: text, Signature: certificate.Sign(key, text), Revision: revision}, nil
}
