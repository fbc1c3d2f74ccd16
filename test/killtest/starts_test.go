package killtest

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/ibwarden/ibwarden/test/need"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// Starts in CI, and all of them; within startsWithin three managers are started.
const (
	starts, startsLong = 8, 500
	startsWithin       = time.Second
	startsManagers     = 3
)

// startsPolicy is the policy that some of them bring.
const startsPolicy = "version: 1\npartitions:\n  - {name: red, pkey: 0x0010, members: {full: [%v, %v]}}\n"

// TestStartsTogether starts three managers with one secret on one store, in a random order,
// within a random time of at most a second; some bring the policy. In the end all of them are
// there, one of them is master, and the others stand by.
func TestStartsTogether(t *testing.T) {
	need.Long(t, "three managers on a cluster of etcd")
	t.Parallel()
	seed, rounds := need.Seed(t, 9), need.Rounds(starts, startsLong)
	cluster := storetest.StartEtcd(t)
	etcd := cluster.Client(0)
	defer etcd.Close()
	for i := range rounds {
		t.Run(fmt.Sprint("start ", i), func(t *testing.T) {
			if _, err := etcd.Delete(t.Context(), "", clientv3.WithPrefix()); err != nil {
				t.Fatal(err)
			}
			startTogether(t, rand.New(rand.NewPCG(seed, i)), "etcd:"+strings.Join(cluster.Endpoints(), ","))
		})
	}
}

func startTogether(t *testing.T, random *rand.Rand, store string) {
	w := newWorld(t)
	secret := make([]byte, 32)
	for i := range secret {
		secret[i] = byte(random.Uint32())
	}
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, fmt.Appendf(nil, startsPolicy, w.hosts[0].Ports[1].GUID, w.hosts[1].Ports[1].GUID), 0o600); err != nil {
		t.Fatal(err)
	}
	var all []*runner
	for i, host := range random.Perm(len(w.hosts))[:startsManagers] {
		flags := []string{"--store", store, "--priority", fmt.Sprint(random.IntN(2))}
		if random.IntN(2) == 0 {
			flags = append(flags, "--policy", policy)
		}
		r := w.place(host, flags...)
		if err := os.WriteFile(filepath.Join(r.dir, "secret"), []byte(hex.EncodeToString(secret)), 0o600); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			time.Sleep(time.Duration(random.Int64N(int64(startsWithin / (startsManagers - 1)))))
		}
		r.startOnce()
		all = append(all, r)
	}
	w.eventually("all managers are there, and one is master", func() error {
		masters := 0
		for _, r := range all {
			select {
			case <-r.ended:
				t.Fatalf("the manager at %s ended: %v", r.node.ID, r.err)
			default:
			}
			state, err := r.ownState()
			if err != nil {
				return err
			}
			if state == "master" {
				masters++
			} else if state != "standby" {
				return fmt.Errorf("the one at %s is %s", r.node.ID, state)
			}
		}
		if masters != 1 {
			return fmt.Errorf("%d are master", masters)
		}
		return nil
	})
}

// ownState is the state of the manager, as it says itself.
func (r *runner) ownState() (string, error) {
	a, err := r.try("GET", "/managers", nil, nil)
	if err != nil {
		return "", err
	}
	items, _ := a.body["items"].([]any) // none before it has read the fabric
	for _, item := range items {
		if m := item.(js); m["self"] == true {
			return fmt.Sprint(m["state"]), nil
		}
	}
	return "", fmt.Errorf("GET /managers: %v: want one that is self", a.body)
}
