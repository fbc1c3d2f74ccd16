package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/judge/certificate"
)

// certified is a source of certificates, of the provider's one that says nothing, or of an error.
type certified struct {
	judge *snapshotJudge
	// behind is how many revisions the last pass is behind.
	behind uint64
	err    error
}

func (c certified) Certificate(ctx context.Context, look views.CertificateLook) (*views.Certificate, error) {
	signed := []byte("-----BEGIN SSH SIGNATURE-----\n")
	switch {
	case c.err != nil:
		return nil, c.err
	case look == nil:
		return &views.Certificate{Text: []byte("ibwarden certificate 1\nsha256 0\n"), Signature: signed, Revision: 3}, nil
	}
	c.judge.mu.Lock()
	defer c.judge.mu.Unlock()
	if err := c.judge.fresh(ctx); err != nil {
		return nil, err
	}
	part, err := look(c.judge.snap.Fabric, c.judge.revision-c.behind)
	if err != nil {
		return nil, err
	}
	in := certificate.Input{Fabric: c.judge.snap.Fabric, Allowed: c.judge.allowed, ReadAt: c.judge.snap.ReadAt, Revision: part.Revision, View: &part.View}
	return &views.Certificate{Text: certificate.Write(in), Signature: signed, Revision: part.Revision}, nil
}

func TestCertificate(t *testing.T) {
	s := newStand(t)
	tags := map[string]bool{}
	for path, want := range map[string]string{
		"/proof/certificate": "ibwarden certificate 1\nsha256 0\n", "/proof/certificate?revision=3": "ibwarden certificate 1\nsha256 0\n",
		"/proof/certificate.sig": "-----BEGIN SSH SIGNATURE-----\n", "/proof/certificate.sig?revision=3": "-----BEGIN SSH SIGNATURE-----\n",
	} {
		got := s.do(call{method: "GET", path: path})
		tags[got.Header().Get("ETag")] = true
		if got.Code != 200 || got.Body.String() != want {
			t.Errorf("%s: %d %q", path, got.Code, got.Body)
		}
	}
	if len(tags) != 1 || tags[""] {
		t.Errorf("the certificate and its signature have the ETags %v, want one", tags)
	}
	for _, part := range []string{"", ".sig"} {
		for query, want := range map[string]int{"?revision=2": 404, "?revision=18446744073709551615": 404, "?revision=-1": 422, "?revision=x": 422, "?revision=0": 200} {
			if got := s.do(call{method: "GET", path: "/proof/certificate" + part + query}); got.Code != want {
				t.Errorf("certificate%s%s: %d, want %d: %s", part, query, got.Code, want, got.Body)
			}
		}
	}
	s.api.options.Certificates = certified{err: errors.New("the manager has no data directory")}
	if got := s.do(call{method: "GET", path: "/proof/certificate"}); got.Code != 503 {
		t.Errorf("without a key: %d: %s", got.Code, got.Body)
	}
	s.api.options.Certificates = nil
	if got := s.do(call{method: "GET", path: "/proof/certificate.sig"}); got.Code != 503 {
		t.Errorf("without a manager: %d: %s", got.Code, got.Body)
	}
}

// get is the certificate that a caller gets.
func (w *lair) certificate(as string) string {
	w.Helper()
	out := w.do(call{as: as, method: "GET", path: "/proof/certificate"})
	if out.Code != 200 {
		w.Fatalf("%s: %d %s", as, out.Code, out.Body)
	}
	return out.Body.String()
}

// ends are the GUIDs of the end ports in a certificate that are not counted.
func endsOf(text string) (list []string) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); f[0] == "end" && f[len(f)-1] != "name=others" {
			list = append(list, f[1])
		}
	}
	return list
}

// TestCertificateOfATenant: it has the tenant's ports and no others, by the tenant's own numbers of
// revisions; what others do changes nothing in it, however often somebody asks.
func TestCertificateOfATenant(t *testing.T) {
	w := newLair(t)
	first := w.certificate(rubin)
	var own []string
	for _, p := range w.ports {
		if p.owner == rubin {
			own = append(own, p.guid)
		}
	}
	if got := endsOf(first); !slices.Equal(got, own) || len(own) != 3 {
		t.Errorf("ends %v, want %v", got, own)
	}
	number := w.want(200, call{as: rubin, method: "GET", path: "/partitions"})["revision"].(float64)
	if !strings.Contains(first, fmt.Sprintf("\nrevision %.0f\nsnapshot -\npolicy -\n", number)) {
		t.Errorf("want revision %.0f, and no digests:\n%s", number, first)
	}
	for query, want := range map[string]int{fmt.Sprintf("?revision=%.0f", number): 200, fmt.Sprintf("?revision=%.0f", number+1): 404, fmt.Sprintf("?revision=%.0f", number-1): 404} {
		w.want(want, call{as: rubin, method: "GET", path: "/proof/certificate.sig" + query})
	}
	// Others make and delete partitions, take in ports, and leave.
	for i := range 5 {
		k := fmt.Sprintf("0x02%02x", 0x40+i)
		w.partition(saphir, k, fmt.Sprint("changeling-", i))
		for _, p := range w.ports {
			if p.owner == saphir && i%2 == 0 {
				w.put(saphir, k, p)
				w.consents(saphir, k, p)
			}
		}
		w.follow()
		if again := w.certificate(rubin); again != first {
			t.Fatalf("after change %d of others:\n%s\nand before\n%s", i, again, first)
		}
	}
	for _, as := range []string{saphir, smaragd} { // the second has a member in a partition of the first
		got := w.certificate(as)
		if got == first {
			t.Errorf("%s and %s have the same", as, rubin)
		}
		for _, guid := range endsOf(got) {
			if owner := w.port(guid).owner; owner != as {
				t.Errorf("%s is shown %s of %s", as, guid, owner)
			}
		}
	}
	// While something of his is on its way, there is none.
	w.want(200, call{as: rubin, method: "PATCH", path: "/partitions/0x0100", body: js{"sl": 1}})
	src := w.api.options.Certificates.(certified)
	src.behind = 1
	w.api.options.Certificates = src
	if out := w.do(call{as: rubin, method: "GET", path: "/proof/certificate"}); out.Code != 503 || out.Header().Get("Retry-After") == "" {
		t.Errorf("of an older pass: %d %s", out.Code, out.Body)
	}
	w.certificate(saphir) // of whose nothing changed
	src.behind = 0
	w.api.options.Certificates = src
	// A port that is taken from him is not in it any more, nor that of one who has none.
	w.want(200, call{method: "POST", path: "/ports/release", body: js{"ports": []string{own[0]}}})
	if got := endsOf(w.certificate(rubin)); !slices.Equal(got, own[1:]) {
		t.Errorf("after a release: %v, want %v", got, own[1:])
	}
	w.want(200, call{method: "POST", path: "/ports/release", body: js{"ports": own[1:]}})
	w.want(404, call{as: rubin, method: "GET", path: "/proof/certificate"})
	// A token that is gone gets nothing.
	w.want(200, call{method: "DELETE", path: "/tokens/" + w.token[saphir]})
	w.want(401, call{as: saphir, method: "GET", path: "/proof/certificate"})
}
