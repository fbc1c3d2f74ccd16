package killtest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// TestRestoredStore: etcd is restored from before a host was removed, under two managers that
// run. The host does not get its key back, from either, also when both are started again; both
// name the revisions that are missing and take no change, the one that has lost what it had seen
// too. What the provider accepts at the
// master, the other manager accepts too.
func TestRestoredStore(t *testing.T) {
	need.Long(t, "a cluster of etcd that is restored")
	t.Parallel()
	s := newSite(t, need.Seed(t, 6), nil)
	b := s.standby(t)
	both := []*runner{s.runner, b.runner}
	const key, path = ib.PKey(0x80f0), "/partitions/0x00f0"
	gone := len(s.hosts) - 1 // the host that is removed
	guid := s.hosts[gone].Ports[1].GUID.String()
	has := func(i int) bool { return s.keys()[i][key] }
	s.change("PUT", path, js{"name": "restored"})
	for _, i := range []int{gone - 1, gone} {
		s.change("PUT", path+"/members/"+s.hosts[i].Ports[1].GUID.String(), js{"membership": "full"})
	}
	s.eventually("both hosts have the key", func() error {
		if !has(gone-1) || !has(gone) {
			return fmt.Errorf("%v, %v", has(gone-1), has(gone))
		}
		return nil
	})
	before := s.cluster.Copy()
	s.change("DELETE", path+"/members/"+guid, nil)
	removed := s.lastRevision()
	s.eventually("the standby has the revision, and the host has no key", func() error {
		if n := b.lastRevision(); n < removed || has(gone) {
			return fmt.Errorf("revision %d of %d, the key is there: %v", n, removed, has(gone))
		}
		return nil
	})

	var given atomic.Int32
	look := func(x fabric.Sighting) { givesKey(x, s.hosts[gone], key, &given) }
	s.sight.Store(&look)
	s.cluster.Restore(before)
	held := func() {
		t.Helper()
		for _, r := range both {
			r.eventually("the manager at "+r.node.ID+" names what is missing, and takes no change", func() error {
				a, err := r.try("GET", "/status", nil, nil)
				if err != nil {
					return err
				}
				if text := said(a); !strings.Contains(text, fmt.Sprint("revision ", removed)) {
					return fmt.Errorf("revision %d is missing, and it says: %v", removed, text)
				}
				if a, err = r.try("PUT", "/partitions/0x00f1", js{"name": "refused"}, map[string]string{"If-None-Match": "*"}); err == nil && a.status < 300 {
					t.Fatalf("a change is taken: %d %v", a.status, a.body)
				}
				return nil
			})
		}
	}
	held()
	for _, r := range both {
		r.kill()
	}
	// The one that stood by begins as a new one: it is told what is missing by the other.
	forgets, err := filepath.Glob(filepath.Join(b.dir, "*.seen"))
	if err != nil || len(forgets) == 0 {
		t.Fatalf("what was seen of the store is in %v: %v", forgets, err)
	}
	for _, file := range forgets {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range both {
		r.start()
	}
	held()
	if n := given.Load(); n > 0 || has(gone) {
		t.Fatalf("the host that was removed has its key back: %d writes", n)
	}
	s.eventually("the master accepts it", func() error {
		for _, r := range both {
			if out, err := r.command("history", "accept-restored", "--why", "a test"); err == nil {
				return nil
			} else if r == both[len(both)-1] {
				return fmt.Errorf("%w: %s", err, out)
			}
		}
		return nil
	})
	for _, r := range both {
		r.eventually("the manager at "+r.node.ID+" accepts it, and the host has what the store says", func() error {
			a, err := r.try("GET", "/status", nil, nil)
			if text := said(a); err != nil || strings.Contains(text, "missing") || !has(gone) {
				return fmt.Errorf("%v, %v; the host has the key: %v", err, text, has(gone))
			}
			return nil
		})
	}
}

// change makes a change of what is new or as it was read last, and waits until it is proved.
func (s *site) change(method, path string, body any) {
	s.Helper()
	s.eventually(method+" "+path, func() error {
		header := map[string]string{}
		if method != "PUT" || strings.Contains(path, "/members/") {
			of, _, _ := strings.Cut(path, "/members/")
			header["If-Match"] = s.get(of).header.Get("ETag")
		} else {
			header["If-None-Match"] = "*"
		}
		a, err := s.try(method, path+"?wait=proved", body, header)
		if err == nil && a.status >= http.StatusMultipleChoices {
			err = fmt.Errorf("%d %v", a.status, a.body)
		}
		return err
	})
}

// said is what an answer to GET /status says of the store.
func said(a answer) string {
	item, _ := a.body["item"].(js)
	text, _ := item["store"].(string)
	return text
}

// lastRevision is the number of the last revision that a manager knows.
func (c *client) lastRevision() uint64 {
	c.Helper()
	_, n, err := c.look()
	if err != nil {
		return 0
	}
	return n
}

// givesKey counts a write of a P_Key table of a host that has a key.
func givesKey(s fabric.Sighting, host *topology.Node, key ib.PKey, count *atomic.Int32) {
	var p mad.SMP
	var block smp.PKeyTable
	if s.What == fabric.SeenByAgent && s.Node == host.GUID && mad.Method(s.MAD[3]) == mad.MethodSet && p.UnmarshalBinary(s.MAD[:]) == nil &&
		p.AttributeID == smp.AttrPKeyTable && block.UnmarshalBinary(p.Data[:]) == nil && slices.Contains(block.Keys[:], key) {
		count.Add(1)
	}
}
