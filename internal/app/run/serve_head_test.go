package run

import (
	"bytes"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

var aHead = regexp.MustCompile(`[0-9]+:[0-9a-f]{64}`)

func openIn(t *testing.T, dir string) *Service {
	t.Helper()
	s, err := Open(t.Context(), Options{Data: daemon.DataDir(dir), Fabric: "sim", Base: &policy.Policy{Default: policy.Limited}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tenant(t *testing.T, s *Service, name string) {
	t.Helper()
	_, err := s.Do(t.Context(), service.Request{
		Change: resource.PutTenant{Tenant: resource.Tenant{Name: name}}, Seen: resource.Unseen,
		By: resource.Caller{Name: "uid 0", Tenant: resource.Provider},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestHeads: the log has the head at the start, when it has changed by the hour, and at
// the end; and each is one that the audit log can be held against.
func TestHeads(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	synctest.Test(t, func(t *testing.T) {
		tick, done := make(chan time.Time), make(chan struct{})
		go s.store.tellHeads(log, tick, done)
		hour := func() {
			tick <- time.Time{}
			synctest.Wait() // until what it says is in the log
		}
		hour() // the log is empty so far
		hour()
		tenant(t, s, "red")
		tenant(t, s, "blue")
		hour()
		hour() // nothing is new
		tenant(t, s, "green")
		close(done)
		synctest.Wait()
	})
	var heads []store.Head
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		h, err := store.ParseHead(aHead.FindString(line))
		if err != nil || !strings.Contains(line, "event=audit-head") {
			t.Fatalf("%q: %v", line, err)
		}
		heads = append(heads, h)
	}
	if len(heads) != 2 || heads[0].Sequence != 2 || heads[1].Sequence != 3 {
		t.Fatalf("heads %v in the log: want those of entries 2 and 3", heads)
	}
	if _, _, err := store.VerifyStore(t.Context(), s.store, heads); err != nil {
		t.Error(err)
	}
	heads[0].Hash[0] ^= 1
	var broken *store.BrokenError
	if _, _, err := store.VerifyStore(t.Context(), s.store, heads); !errors.As(err, &broken) || broken.Sequence != 2 {
		t.Errorf("a log that is not the one whose head was written down: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	// The next run begins with the head that the last one ended with; Close writes the last.
	s = openIn(t, dir)
	out.Reset()
	s.writeHeads(log)
	tenant(t, s, "grey")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := aHead.FindAllString(out.String(), -1); len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "4:") {
		t.Errorf("%s: want the head of entry 4 at the end", out.String())
	}
}

// TestNoHeadOfWhatIsRemoved: a store that ends with the run is no anchor.
func TestNoHeadOfWhatIsRemoved(t *testing.T) {
	s := openIn(t, "")
	tenant(t, s, "red")
	var out bytes.Buffer
	s.writeHeads(slog.New(slog.NewTextHandler(&out, nil)))
	if err := s.Close(); err != nil || out.Len() > 0 {
		t.Errorf("%s, %v", out.String(), err)
	}
}

// TestAHeadIsNotTakenBack: a commit of an earlier moment, told late, does not put the head back.
func TestAHeadIsNotTakenBack(t *testing.T) {
	var h headed
	h.note(store.Head{Sequence: 5})
	h.note(store.Head{Sequence: 4})
	if h.head.Sequence != 5 {
		t.Error(h.head)
	}
}
