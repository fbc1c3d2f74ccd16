package servicetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/test/need"
)

// TestComplete: what the manager does not read for itself is read on demand, whole, while
// changes go on being proved; what was handed out before stays as it is.
func TestComplete(t *testing.T) {
	s, served := start(t, "sim:fattree,radix=8,levels=2", t.TempDir())
	join := func(n int) {
		t.Helper()
		ports := endPorts(t, served)
		r, err := s.Do(t.Context(), service.Request{
			Change: resource.PutPartition{
				Partition: resource.Partition{Name: fmt.Sprint("p", n), PKey: ib.PKeyBase(n + 1), Owner: resource.Provider},
				Members:   []resource.Member{{Port: ports[n], Membership: policy.Full}},
			},
			By: provider, Seen: resource.Unseen, Wait: true,
		})
		if err != nil || r.Outcome == nil || r.Outcome.State != service.Proved {
			t.Fatalf("change %d: %+v, %v", n, r, err)
		}
	}
	need.Eventually(t, need.Patience, "the fabric has been read", func() bool { return len(endPorts(t, served)) > 0 })
	join(0)
	before, err := served.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := mapped(before); n != 0 {
		t.Fatalf("%d ports have SL-to-VL tables that nobody asked for", n)
	}
	var readers sync.WaitGroup
	for i := range 8 {
		readers.Go(func() {
			for range 5 {
				parts := service.Parts{QoS: true, Audit: i%2 == 0}
				snap, err := s.Complete(t.Context(), parts)
				if err != nil {
					t.Error(err)
					return
				}
				if len(snap.Faults) > 0 || !slices.Contains(snap.Asked, snapshot.AskedQoS) || parts.Audit && !slices.Contains(snap.Asked, snapshot.AskedAudit) {
					t.Errorf("asked for %v, faults %v", snap.Asked, snap.Faults)
				}
				for _, n := range snap.Fabric.Nodes {
					for i := range n.Ports {
						p := &n.Ports[i]
						if lanes := p.InfoRead && p.Info.VLCap > 1 && (n.Switch == nil || i > 0 && p.IsUp()); lanes && p.Reached && len(p.SLToVL) == 0 {
							t.Errorf("%s has no SL-to-VL table", p)
						}
						if parts.Audit && p.Reached && p.Peer != nil && !p.PKeysKnown() {
							t.Errorf("%s has no P_Key table", p)
						}
					}
				}
			}
		})
	}
	for n := range 10 {
		join(n + 1)
	}
	readers.Wait()
	if mapped(before) != 0 {
		t.Error("a snapshot that was handed out has changed")
	}
}

// endPorts are the GUIDs of the hosts; none while the fabric has not been read.
func endPorts(t *testing.T, served *daemon.Served) (out []ib.PortGUID) {
	t.Helper()
	snap, err := served.Snapshot(t.Context())
	if err != nil && !errors.Is(err, service.ErrNotRead) {
		t.Fatal(err)
	}
	if err == nil {
		for _, p := range snap.Fabric.EndPorts() {
			if p.Node.Switch == nil {
				out = append(out, p.GUID)
			}
		}
	}
	return out
}

// mapped counts the ports whose SL-to-VL tables are in a snapshot.
func mapped(s *snapshot.Snapshot) (n int) {
	for _, node := range s.Fabric.Nodes {
		for i := range node.Ports {
			if len(node.Ports[i].SLToVL) > 0 {
				n++
			}
		}
	}
	return n
}
