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
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
)

// Certificates make certificates of what a manager holds, signed with the key in a data
// directory.
type Certificates struct {
	manager *Served
	dir     DataDir

	mu sync.Mutex // while one is made
	// made are those of the last pass: a tenant's by what it was made of, that of all by nothing.
	made map[views.CertificateKey]*views.Certificate
	// of is what they were made of.
	of certified
}

// madeMost bounds the certificates that are kept: a tenant can make tokens as it likes, each of
// which sees another part.
const madeMost = 256

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
func (c *Certificates) Certificate(ctx context.Context, look views.CertificateLook) (*views.Certificate, error) {
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
	revision, _ := c.manager.Revision(j.result.Policy)
	part := &views.CertificatePart{}
	if look != nil {
		if part, err = look(snap.Fabric, revision); err != nil {
			return nil, err
		}
	}
	if of := (certified{snap, j.result, string(key)}); c.made == nil || c.of != of || len(c.made) >= madeMost {
		c.made, c.of = map[views.CertificateKey]*views.Certificate{}, of
	}
	made := c.made[part.CertificateKey]
	switch {
	case made != nil:
		return made, nil
	case look != nil:
		made = certifyPart(snap, j, part, key)
	default:
		if made, err = certify(snap, j, revision, key); err != nil {
			return nil, err
		}
	}
	c.made[part.CertificateKey] = made
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
	policy := sha256.Sum256(policyfile.WriteYAML(j.result.Policy))
	in := inputOf(snap, j)
	in.Revision, in.Snapshot, in.Policy = revision, sum.Sum(nil), policy[:]
	text := certificate.Write(in)
	return &views.Certificate{Text: text, Signature: certificate.Sign(key, certificate.Namespace, text), Revision: revision}, nil
}

// certifyPart makes that of a tenant. It has no digests: with one of what he may not see he
// could try out what that is.
func certifyPart(snap *snapshot.Snapshot, j judged, part *views.CertificatePart, key ed25519.PrivateKey) *views.Certificate {
	in := inputOf(snap, j)
	in.Revision, in.View = part.Revision, &part.View
	text := certificate.Write(in)
	return &views.Certificate{Text: text, Signature: certificate.Sign(key, certificate.TenantNamespace, text), Revision: part.Revision}
}

func inputOf(snap *snapshot.Snapshot, j judged) certificate.Input {
	return certificate.Input{Fabric: snap.Fabric, Allowed: j.result.Partitions, RawAllowed: j.result.Policy.AllowRaw, Cables: j.cables.Declares(), ReadAt: snap.ReadAt}
}
