package service_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
)

// numbersOf are the revisions that tenants number.
func numbersOf(s *service.Service) (out map[string][]uint64) {
	out = map[string][]uint64{}
	s.Read(func(s *resource.State) {
		for _, t := range s.Numbers.Tenants() {
			out[t] = slices.Clone(s.Numbers[t])
		}
	})
	return out
}

func alike(a, b map[string][]uint64) bool {
	return fmt.Sprint(a) == fmt.Sprint(b) // maps are printed by their keys
}

// twoTenants have keys, and three ports each, of which the others' first is a member of a partition
// of theirs.
func (r *rig) twoTenants() {
	r.Helper()
	for i, name := range []string{"red", "blue"} {
		base := ib.PKeyBase(0x100 * (i + 1))
		r.must(resource.PutTenant{Tenant: resource.Tenant{Name: name, Keys: resource.KeyRange{First: base, Last: base + 0xff}}})
		var ports []resource.Port
		for n := range 3 {
			ports = append(ports, resource.Port{GUID: ib.PortGUID(10*(i+1) + n)})
		}
		r.must(resource.AssignPorts{Tenant: name, Ports: ports})
		r.must(resource.PutPartition{Partition: resource.Partition{PKey: base, Name: name, Owner: name}})
		r.must(resource.PutPartition{Partition: resource.Partition{PKey: base + 1, Name: name + "2", Owner: name}})
	}
	r.red(resource.SetMembers{PKey: 0x100, Members: []resource.Member{{Port: 10, Membership: policy.Full}, {Port: 20, Membership: policy.Full}}})
}

func (r *rig) red(c resource.Change) {
	r.Helper()
	if _, err := r.Do(r.Context(), service.Request{Change: c, By: resource.Caller{Name: "red-1", Tenant: "red"}, Seen: resource.Unseen}); err != nil {
		r.Fatalf("%s: %v", c.Action(), err)
	}
}

// step is a random change, and which tenants see anything of it.
func step(r *rand.Rand, n int) (c resource.Change, seen []string) {
	name := fmt.Sprintf("n%d", n)
	switch r.IntN(5) {
	case 0: // blue's port is in it
		return resource.PutPartition{Partition: resource.Partition{PKey: 0x100, Name: name, Owner: "red"}}, []string{"blue", "red"}
	case 1:
		return resource.PutPartition{Partition: resource.Partition{PKey: 0x101, Name: name, Owner: "red"}}, []string{"red"}
	case 2:
		return resource.PutPartition{Partition: resource.Partition{PKey: 0x200, Name: name, Owner: "blue"}}, []string{"blue"}
	case 3:
		return resource.PutPartition{Partition: resource.Partition{PKey: 0x10, Name: name, Owner: resource.Provider}}, nil
	}
	return resource.PutTenant{Tenant: resource.Tenant{Name: "t" + name}}, []string{"t" + name}
}

// TestNumbersOutlastRestarts: each tenant numbers the revisions that changed what it sees, without
// gaps, and they are the same after a restart, for who follows, and once more where the store had
// none, being of an older version.
func TestNumbersOutlastRestarts(t *testing.T) {
	const seed = 27
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	r.twoTenants()
	want := numbersOf(r.Service)
	if fmt.Sprint(want["red"]) != "[1 2 3 4 9]" || fmt.Sprint(want["blue"]) != "[5 6 7 8 9]" || want[resource.Provider] != nil {
		t.Fatalf("%v", want)
	}
	for n := range 450 { // more than one chunk of each
		c, seen := step(random, n)
		revision := r.must(c).Revision
		for _, tenant := range seen {
			want[tenant] = append(want[tenant], revision)
		}
		if n%60 == 0 {
			r.end()
			r = open(t, r.dir, false)
		}
		if n%30 == 0 && !alike(numbersOf(r.Service), want) {
			t.Fatalf("after %d: %v, want %v", n, numbersOf(r.Service), want)
		}
	}
	if len(want["red"]) <= 100 || len(want["blue"]) <= 100 {
		t.Errorf("%d and %d revisions: want more than a chunk", len(want["red"]), len(want["blue"]))
	}
	r.Read(func(s *resource.State) {
		for _, tenant := range []string{"red", "blue"} {
			by := resource.Caller{Name: tenant, Tenant: tenant}
			for i, revision := range want[tenant] {
				if n := s.NumberFor(by, revision); n != uint64(i+1) {
					t.Errorf("%s: %d is %d, want %d", tenant, revision, n, i+1)
				}
				if got, is := s.RevisionFor(by, uint64(i+1)); !is || got != revision {
					t.Errorf("%s: number %d is %d, want %d", tenant, i+1, got, revision)
				}
			}
			if _, is := s.RevisionFor(by, uint64(len(want[tenant])+1)); is || s.LastFor(by) != uint64(len(want[tenant])) {
				t.Errorf("%s: the last is %d of %d", tenant, s.LastFor(by), len(want[tenant]))
			}
		}
		if n := s.NumberFor(provider, 7); n != 7 || s.LastFor(provider) != s.Last() {
			t.Errorf("the provider knows 7 as %d", n)
		}
	})
	r.end()
	r.forget(func(string) bool { return true })
	// An older version wrote no numbers: they come from the history, and are kept with the next change.
	for range 2 {
		r = open(t, r.dir, false)
		// Who has a port in a partition that was renamed is not in the history of that version.
		got := numbersOf(r.Service)
		if !slices.Equal(got["red"], want["red"]) || len(got["blue"]) == 0 || len(got["blue"]) > len(want["blue"]) {
			t.Fatalf("red has %v, want %v", got["red"], want["red"])
		}
		want = got
		revision := r.must(resource.PutPartition{Partition: resource.Partition{PKey: 0x101, Name: "last", Owner: "red", IPoIB: len(got["red"])%2 == 0}}).Revision
		want["red"] = append(want["red"], revision)
		if !alike(numbersOf(r.Service), want) {
			t.Errorf("%v, want %v", numbersOf(r.Service), want)
		}
		r.end()
	}
	again := open(t, r.dir, true)
	if !alike(numbersOf(again.Service), want) {
		t.Errorf("who follows has %v, want %v", numbersOf(again.Service), want)
	}
	again.end()
	r.forget(func(key string) bool { return strings.HasSuffix(key, "red/00000000") })
	db, err := bolt.Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := service.Open(t.Context(), service.Config{Store: db, Manager: &recorder{}, Owner: "test", Now: time.Now}); err == nil || !strings.Contains(err.Error(), "numbers/red") {
		t.Errorf("without a chunk: %v", err)
	}
}

// forget deletes objects with the numbers of tenants from the store of a service that has ended.
func (r *rig) forget(which func(key string) bool) {
	r.Helper()
	db, err := bolt.Open(r.dir)
	if err != nil {
		r.Fatal(err)
	}
	defer db.Close()
	epoch, err := db.Acquire(r.Context(), "test")
	if err != nil {
		r.Fatal(err)
	}
	contents, err := db.Load(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	c := store.Commit{Epoch: epoch, After: contents.Revision}
	for _, o := range contents.Objects {
		if strings.HasPrefix(o.Key, "numbers/") && which(o.Key) {
			c.Deletes = append(c.Deletes, o.Key)
		}
	}
	if _, err = db.Commit(r.Context(), c); err != nil || len(c.Deletes) == 0 {
		r.Fatalf("%d deleted: %v", len(c.Deletes), err)
	}
}

// TestEventsOfATenantAreItsOwn: the IDs of a tenant's events count its own, what is kept for it does
// not depend on others, and of a change that it shares it is told once.
func TestEventsOfATenantAreItsOwn(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	defer r.end()
	r.twoTenants()
	red := resource.Caller{Name: "red-1", Tenant: "red"}
	first := slices.Collect(r.KeptEvents(red, ""))
	for n := range 50 {
		r.must(resource.PutPartition{Partition: resource.Partition{PKey: 0x200, Name: fmt.Sprintf("b%d", n), Owner: "blue"}})
	}
	if now := slices.Collect(r.KeptEvents(red, "")); fmt.Sprint(now) != fmt.Sprint(first) || len(first) == 0 {
		t.Errorf("red's events were\n%v\nand are\n%v", first, now)
	}
	last := first[len(first)-1].ID
	if rest := slices.Collect(r.KeptEvents(red, last)); len(rest) != 0 {
		t.Errorf("after the last there are %v", rest)
	}
	r.red(resource.SetMembers{PKey: 0x100, Members: []resource.Member{{Port: 11, Membership: policy.Full}, {Port: 12, Membership: policy.Full}, {Port: 21, Membership: policy.Full}}})
	rest := slices.Collect(r.KeptEvents(red, last))
	blue := slices.DeleteFunc(slices.Collect(r.KeptEvents(resource.Caller{Name: "blue-1", Tenant: "blue"}, "")), func(e service.Event) bool { return e.Revision != r.last() })
	if len(rest) != 1 || len(blue) != 1 {
		t.Errorf("red is told %v and blue %v: want one event each", rest, blue)
	}
	if n := strings.Count(fmt.Sprint(slices.Collect(r.KeptEvents(provider, ""))), "0x0000000000000015"); n == 0 {
		t.Error("the provider is not told of every port")
	}
	if lost := slices.Collect(r.KeptEvents(red, "another-7")); len(lost) != 1 || lost[0].Kind != service.EventReset || lost[0].ID != rest[0].ID {
		t.Errorf("%v", lost)
	}
}
