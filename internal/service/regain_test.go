package service_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

// two are services on one store, the first of which leads.
func two(t *testing.T) (a, b *rig) {
	t.Helper()
	a = open(t, filepath.Join(t.TempDir(), "store"), true)
	t.Cleanup(a.end)
	b = a.beside()
	t.Cleanup(b.Service.Close)
	a.leads(true)
	return a, b
}

func (r *rig) leads(master bool) {
	r.Helper()
	if err := r.Lead(r.Context(), master); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) regain() {
	r.Helper()
	if err := r.Regain(r.Context()); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) epoch() store.Epoch {
	r.Helper()
	c, err := r.store.Store.Load(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return c.Epoch
}

// whole looks at the history and the audit log: no epoch is older than the one before,
// and the chain is whole.
func (r *rig) whole() (last uint64) {
	r.Helper()
	var epoch store.Epoch
	for rev, err := range r.store.Store.Revisions(r.Context(), store.Range{}) {
		if err != nil || rev.Number != last+1 || rev.Epoch < epoch {
			r.Fatalf("revision %d of epoch %d after %d of epoch %d: %v", rev.Number, rev.Epoch, last, epoch, err)
		}
		last, epoch = rev.Number, rev.Epoch
	}
	verified(r, r.store.Store)
	return last
}

// TestAMasterThatWasFencedFollowsAndRegains: another manager took the store over while
// this one was paused. This one refuses changes, has its manager carry out what the other
// one writes, and takes changes again when it regains the store, with all that is there.
func TestAMasterThatWasFencedFollowsAndRegains(t *testing.T) {
	a, b := two(t)
	a.must(partition(5))
	b.leads(true)
	b.must(partition(6))
	b.must(resource.DeletePartition{PKey: 5})
	// Nobody tells a, and nobody asks it for a change.
	a.eventually("it follows who took the store over", func() bool { return a.last() == 3 && a.manager.has(6) && !a.manager.has(5) })
	a.eventually("it says so", func() bool {
		old := a.Read(func(*resource.State) {})
		return errors.Is(old, store.ErrFenced) && strings.Contains(old.Error(), "beside") && strings.Contains(old.Error(), "revision 3, as the store has it")
	})
	if _, err := a.do(partition(7)); !errors.Is(err, store.ErrFenced) || a.Standing(t.Context()).Leads {
		t.Errorf("a change: %v: want ErrFenced", err)
	}
	b.must(partition(8))
	a.eventually("and goes on following", func() bool { return a.last() == 4 && a.manager.has(8) })
	if err := a.Recover(t.Context()); !errors.Is(err, store.ErrFenced) || a.epoch() != 2 {
		t.Errorf("%v, epoch %d: a look takes nothing over", err, a.epoch())
	}
	a.regain()
	if result := a.must(partition(7)); result.Revision != 5 || a.epoch() != 3 {
		t.Errorf("revision %d, epoch %d: want 5 and 3", result.Revision, a.epoch())
	}
	if old := a.Read(func(*resource.State) {}); old != nil || !a.Standing(t.Context()).Leads {
		t.Errorf("reads are marked: %v", old)
	}
	b.eventually("the other follows in turn", func() bool { return b.last() == 5 && b.manager.has(7) })
	if _, err := b.do(partition(9)); !errors.Is(err, store.ErrFenced) {
		t.Errorf("the other: %v: want ErrFenced", err)
	}
	b.leads(false)
	same(t, a, b)
	if last := a.whole(); last != 5 {
		t.Errorf("the history ends with revision %d", last)
	}
}

// TestOnlyAFencedMasterRegains: one that stands by, or has stood back, and one that has the
// store do not take it.
func TestOnlyAFencedMasterRegains(t *testing.T) {
	a, b := two(t)
	a.must(partition(5))
	b.regain()
	a.regain()
	if a.epoch() != 1 {
		t.Fatalf("epoch %d: want the first still", a.epoch())
	}
	b.leads(true)
	a.leads(false)
	a.regain()
	if b.must(partition(6)); a.epoch() != 2 {
		t.Errorf("epoch %d: who is not master took the store", a.epoch())
	}
	a.eventually("it follows", func() bool { return a.last() == 2 })
	if old := a.Read(func(*resource.State) {}); !errors.Is(old, service.ErrNotMaster) || errors.Is(old, store.ErrFenced) {
		t.Errorf("%v: want ErrNotMaster", old)
	}
}

// TestAStoreThatIsLostIsNotRegained: a store that cannot be read is not in force, and the
// next try finds what is there.
func TestAStoreThatIsLostIsNotRegained(t *testing.T) {
	a, b := two(t)
	a.must(partition(5))
	b.leads(true)
	b.must(partition(6))
	a.eventually("it follows", func() bool { return a.last() == 2 })
	a.store.mu.Lock()
	a.store.unread = store.ErrUnavailable
	a.store.mu.Unlock()
	if err := a.Regain(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("%v: want ErrUnavailable", err)
	}
	if _, err := a.do(partition(7)); !errors.Is(err, store.ErrFenced) {
		t.Errorf("%v: want ErrFenced still", err)
	}
	a.store.mu.Lock()
	a.store.unread = nil
	a.store.mu.Unlock()
	a.regain()
	if result := a.must(partition(7)); result.Revision != 3 {
		t.Errorf("revision %d", result.Revision)
	}
	a.whole()
}

// TestAnUnheardChangeOfAFencedMaster: the answer to a change was lost, then another manager
// took the store over and added to it. The change is in force, and is not made twice.
func TestAnUnheardChangeOfAFencedMaster(t *testing.T) {
	a, b := two(t)
	make5 := service.Request{Change: partition(5), By: provider, Seen: resource.Unseen, Repeat: "key"}
	a.store.fail(nil, store.ErrUnavailable)
	if _, err := a.Do(t.Context(), make5); !errors.Is(err, service.ErrUnknown) {
		t.Fatal(err)
	}
	b.leads(true)
	b.must(partition(6))
	a.store.fail(nil, nil)
	if _, err := a.Do(t.Context(), make5); !errors.Is(err, store.ErrFenced) {
		t.Fatalf("%v: want ErrFenced", err)
	}
	a.regain()
	result, err := a.Do(t.Context(), make5)
	if err != nil || !result.Repeated || result.Revision != 1 || a.last() != 2 || !a.manager.has(5) || !a.manager.has(6) {
		t.Errorf("%+v, %v, revision %d", result, err, a.last())
	}
}

// TestTwoMastersTakeTheStoreInTurn: as long as each of two masters sees no other, they
// take the store from each other. What was acknowledged stays, and is there once; when the
// election has decided, the store is at rest.
func TestTwoMastersTakeTheStoreInTurn(t *testing.T) {
	const seed, rounds = 17, 200
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, seed))
	a, b := two(t)
	b.leads(true)
	pair := []*rig{a, b}
	acked, refused := map[ib.PKeyBase]bool{}, 0
	for n := range rounds {
		r := pair[random.IntN(2)]
		if random.IntN(3) == 0 {
			r.regain()
		}
		k := ib.PKeyBase(2 + n)
		switch _, err := r.do(partition(k)); {
		case err == nil:
			acked[k] = true
		case errors.Is(err, store.ErrFenced):
			refused++
		default:
			t.Fatal(err)
		}
	}
	b.leads(false)
	a.regain()
	before := a.epoch()
	for range 10 {
		a.regain()
		b.regain()
	}
	if a.epoch() != before {
		t.Errorf("epoch %d after %d: the store is not at rest", a.epoch(), before)
	}
	for n := range rounds {
		if k := ib.PKeyBase(2 + n); a.manager.has(k) != acked[k] {
			t.Errorf("partition %d: in force %v, acknowledged %v", k, a.manager.has(k), acked[k])
		}
	}
	if last := a.whole(); last != uint64(len(acked)) || refused == 0 || before < rounds/10 {
		t.Errorf("%d revisions, %d changes acknowledged, %d refused, epoch %d", last, len(acked), refused, before)
	}
	b.eventually("the standby has it all", func() bool { return b.last() == uint64(len(acked)) })
	same(t, a, b)
	t.Logf("%d changes acknowledged, %d refused, %d epochs", len(acked), refused, before)
}

// TestMastersThatFightAtOnce is the same with changes and takeovers at the same time.
func TestMastersThatFightAtOnce(t *testing.T) {
	const changes = 60
	a, b := two(t)
	b.leads(true)
	type result struct{ acked []string }
	results := make(chan result)
	for i, r := range []*rig{a, b} {
		go func() {
			var out result
			for n := range changes {
				name := fmt.Sprintf("t%d-%d", i, n)
				_, err := r.do(resource.PutTenant{Tenant: resource.Tenant{Name: name}})
				switch {
				case err == nil:
					out.acked = append(out.acked, name)
				case errors.Is(err, store.ErrFenced):
					if err := r.Regain(t.Context()); err != nil {
						t.Errorf("regain: %v", err)
					}
				default:
					t.Errorf("%s: %v", name, err)
				}
			}
			results <- out
		}()
	}
	all := map[string]bool{}
	for range 2 {
		for _, name := range (<-results).acked {
			all[name] = true
		}
	}
	b.leads(false)
	a.regain()
	there := 0
	_ = a.Read(func(s *resource.State) {
		for name := range all {
			if o, _ := s.Object("tenant/" + name); o == nil {
				t.Errorf("%s was acknowledged and is not there", name)
			}
		}
		for _, o := range s.Objects() {
			if strings.HasPrefix(o.Key(), "tenant/t") {
				there++
			}
		}
	})
	if last := a.whole(); there != len(all) || last != uint64(len(all)) || len(all) == 0 {
		t.Errorf("%d tenants, %d acknowledged, %d revisions", there, len(all), last)
	}
}

// TestConfirm: a service says whether what it knew was in force, and if not, its manager has
// what is.
func TestConfirm(t *testing.T) {
	a, b := two(t)
	a.must(partition(5))
	want := func(changed bool, wrong error) {
		t.Helper()
		if got, err := a.Confirm(t.Context()); got != changed || !errors.Is(err, wrong) {
			t.Errorf("%v, %v: want %v, %v", got, err, changed, wrong)
		}
	}
	want(false, nil)
	a.store.fail(store.ErrUnavailable, nil)
	want(false, store.ErrUnavailable)
	a.store.fail(nil, nil)
	want(false, nil)
	b.leads(true)
	b.must(partition(6))
	want(true, nil)
	if !a.manager.has(6) {
		t.Error("the manager has not what is in force")
	}
	a.leads(false)
	want(true, nil)
}
