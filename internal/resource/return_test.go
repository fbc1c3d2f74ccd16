package resource_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// TestReleasedPortsReturn: over random assignments, releases, pools, partitions of tenants,
// proofs and rollbacks, the policy file counts for a port exactly while it is the provider's;
// a port goes back only after the release was proved, and then has nothing of its last owner. When
// all is released and proved, the policy is that of the file alone.
func TestReleasedPortsReturn(t *testing.T) {
	const walks, steps, seed = 60, 80, 0x28
	file := resource.PutFile{File: resource.File{Name: "a.yaml", Text: "version: 1\ndescriptions: trusted\ndefault: none\ngroups: {g: [\"n*\"]}\npartitions:\n- {name: red, pkey: 0x10, members: {full: [g]}}\n- {name: all, pkey: 0x11, members: {limited: [ALL]}}\n"}}
	returned := 0
	for walk := range uint64(walks) {
		r := rand.New(rand.NewPCG(seed, walk))
		s := resource.New(&policy.Policy{Default: policy.Limited})
		now, revision, proved := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), uint64(0), uint64(0)
		var diffs []resource.Diff
		do := func(by resource.Caller, c resource.Change) error {
			d, err := s.Plan(resource.Request{Change: c, By: by, At: now, Seen: resource.Unseen, Proved: proved, ID: fmt.Sprint(revision)})
			if err != nil || len(d.Edits) == 0 {
				return err
			}
			revision++
			s.Commit(d, revision, by, now)
			diffs = append(diffs, d)
			return nil
		}
		must := func(c resource.Change) {
			if err := do(provider, c); err != nil {
				t.Fatalf("walk %d: %T: %v", walk, c, err)
			}
		}
		must(file)
		must(resource.PutTenant{Tenant: resource.Tenant{Name: "one", Keys: resource.KeyRange{First: 0x100, Last: 0x1FF}}})
		must(resource.PutTenant{Tenant: resource.Tenant{Name: "two", Keys: resource.KeyRange{First: 0x200, Last: 0x2FF}}})
		base := revision
		alone := string(policyfile.WriteYAML(s.Policy()))
		guid := func() ib.PortGUID { return ib.PortGUID(1 + r.IntN(6)) }
		tenant := func() string { return []string{"one", "two"}[r.IntN(2)] }
		for range steps {
			now = now.Add(time.Minute)
			var err error
			switch r.IntN(9) {
			case 0, 1:
				err = do(provider, resource.AssignPorts{Tenant: tenant(), Ports: []resource.Port{{GUID: guid()}}})
			case 2:
				err = do(provider, resource.MovePorts{Tenant: tenant(), Ports: []ib.PortGUID{guid()}})
			case 3:
				err = do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{guid()}})
			case 4:
				proved += uint64(r.IntN(int(revision - proved + 1)))
			case 5:
				limbo, poolSince := map[ib.PortGUID]uint64{}, uint64(0)
				for _, p := range s.Pools("") {
					if p.Owner == "" {
						poolSince = p.Released
					}
				}
				for _, p := range s.PortsOf("") {
					limbo[p.GUID] = p.Released
				}
				must(resource.ReturnPorts{})
				if back := len(s.Pools("")) == 0; poolSince > 0 && back != (poolSince <= proved) {
					t.Fatalf("walk %d: the pool, released in %d, proved up to %d, is back: %v", walk, poolSince, proved, back)
				}
				for g, since := range limbo {
					if back := s.Owner(g) != ""; back != (since <= proved) {
						t.Fatalf("walk %d: port %v, released in %d, proved up to %d, is %q's", walk, g, since, proved, s.Owner(g))
					} else if back {
						if returned++; len(s.In(g)) > 0 || s.Owner(g) != resource.Provider {
							t.Fatalf("walk %d: port %v is back, %q's, and in %v", walk, g, s.Owner(g), s.In(g))
						}
					}
				}
			case 6:
				name := tenant()
				key := map[string]ib.PKeyBase{"one": 0x100, "two": 0x200}[name]
				by := resource.Caller{Name: name, Tenant: name}
				if err = do(by, resource.PutPartition{Partition: resource.Partition{PKey: key, Name: "p"}}); err == nil {
					// Of any port: its owner may be asked, and may be nobody.
					err = do(by, resource.SetMembers{PKey: key, Members: []resource.Member{{Port: guid(), Membership: policy.Full}}})
				}
			case 7:
				if r.IntN(2) == 0 {
					err = do(provider, resource.AssignPool{Tenant: tenant(), First: 4, Last: 6})
				} else {
					err = do(provider, resource.ReleasePool{First: 4})
				}
			case 8:
				to := base + uint64(r.IntN(int(revision-base+1)))
				later := slices.Clone(diffs[to:])
				slices.Reverse(later)
				c := resource.NewRollback(to, "", later)
				c.Owners = r.IntN(2) == 0
				err = do(provider, c)
			}
			if refused := new(resource.Refusal); err != nil && !errors.As(err, &refused) {
				t.Fatalf("walk %d: %v", walk, err)
			}
			for g := ib.PortGUID(1); g <= 6; g++ {
				if p := s.Policy(); p.IsApart(g) != (s.Owner(g) != resource.Provider) {
					t.Fatalf("walk %d: port %v is %q's, and apart from the file: %v", walk, g, s.Owner(g), p.IsApart(g))
				}
			}
		}
		all := resource.ReleasePorts{}
		for g := ib.PortGUID(1); g <= 6; g++ {
			if o := s.Owner(g); o != resource.Provider && o != "" {
				all.Ports = append(all.Ports, g)
			}
		}
		must(all)
		_ = do(provider, resource.ReleasePool{First: 4}) // there may be none
		for _, k := range []ib.PKeyBase{0x100, 0x200} {
			_ = do(provider, resource.DeletePartition{PKey: k})
		}
		if got := string(policyfile.WriteYAML(s.Policy())); len(s.PortsOf("")) > 0 && got == alone {
			t.Fatalf("walk %d: ports are back before the proof", walk)
		}
		proved = revision
		must(resource.ReturnPorts{})
		if got := string(policyfile.WriteYAML(s.Policy())); got != alone || s.Returnable(proved) || len(s.PortsOf("")) > 0 {
			t.Fatalf("walk %d: after the release of everything there is\n%s, want\n%s", walk, got, alone)
		}
	}
	if returned < walks {
		t.Errorf("only %d ports went back", returned)
	}
}
