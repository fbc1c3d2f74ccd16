package service_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/test/need"
)

var (
	reader = resource.Caller{Name: "tok-reader", Tenant: "red", ReadOnly: true}
	writer = resource.Caller{Name: "tok-writer", Tenant: "red"}
	other  = resource.Caller{Name: "tok-other", Tenant: "blue"}
)

// withTenants is a rig with the tenants red, with a quota of changes a minute, and blue.
func withTenants(t *testing.T, quota int) *rig {
	r := open(t, filepath.Join(t.TempDir(), "store"), false)
	r.must(resource.PutTenant{Tenant: resource.Tenant{Name: "red", Keys: resource.KeyRange{First: 1, Last: 0xff}, Quota: resource.Quota{ChangesPerMinute: quota}}})
	r.must(resource.PutTenant{Tenant: resource.Tenant{Name: "blue", Keys: resource.KeyRange{First: 0x100, Last: 0x1ff}}})
	return r
}

// asks makes a change as a caller, and returns why it was refused.
func (r *rig) asks(by resource.Caller, c resource.Change) resource.Reason {
	r.Helper()
	_, err := r.Do(r.Context(), service.Request{Change: c, By: by, Seen: resource.Unseen, ID: "id"})
	var refusal *resource.Refusal
	if err != nil && !errors.As(err, &refusal) {
		r.Fatal(err)
	}
	if err == nil {
		return ""
	}
	return refusal.Reason
}

// log is the audit log, after it was verified, and how many refusals of a tenant it has.
func (r *rig) log() (list []store.Entry, refused func(tenant string) (entries, all int)) {
	r.Helper()
	verified(r, r.store.Store)
	for e, err := range r.store.Store.Audit(r.Context(), store.Range{}) {
		if err != nil {
			r.Fatal(err)
		}
		list = append(list, e)
	}
	return list, func(tenant string) (entries, all int) {
		for _, e := range list {
			if e.Tenant == tenant && e.Decision == store.Refused {
				entries++
				all += max(1, int(e.Count))
			}
		}
		return entries, all
	}
}

// TestRefusalsOfOneKindAreOneEntry: the first is stored at once, and the others with their
// number and times when RefusedWithin is over.
func TestRefusalsOfOneKindAreOneEntry(t *testing.T) {
	r := withTenants(t, 0)
	defer r.end()
	began := r.now()
	for range 6000 {
		if got := r.asks(reader, partition(5)); got != resource.Forbidden {
			t.Fatalf("%q: want forbidden", got)
		}
		r.pass(time.Second / 100)
	}
	last := r.now().Add(-time.Second / 100)
	list, refused := r.log()
	if entries, _ := refused("red"); entries != 1 {
		t.Fatalf("%d entries: want the first, at once", entries)
	}
	if e := list[len(list)-1]; e.Count != 0 || e.Request != "id" || !e.Time.Equal(began) || e.Caller != reader.Name {
		t.Errorf("the first: %+v", e)
	}
	r.set(began.Add(service.RefusedWithin))
	r.Done(r.last(), service.Outcome{Verdict: isolation.Isolated}) // wakes what stores
	need.Eventually(t, need.Patience, "what was counted is stored", func() bool {
		list, refused = r.log()
		entries, _ := refused("red")
		return entries >= 2
	})
	if e := list[len(list)-1]; e.Count != 5999 || !e.Since.Equal(began.Add(time.Second/100)) || !e.Time.Equal(last) || e.Caller != reader.Name || e.Action != list[len(list)-2].Action || e.Reason != list[len(list)-2].Reason || e.Request != "" {
		t.Errorf("the others: %+v", e)
	}
	r.asks(reader, partition(5)) // then it begins again
	if _, refused = r.log(); true {
		if entries, all := refused("red"); entries != 3 || all != 6001 {
			t.Errorf("%d entries of %d refusals, want 3 of 6001", entries, all)
		}
	}
}

// TestRefusalsAreBounded: in random ways and as several callers, a tenant does not get more
// than 2*RefusedKinds+2 entries into the log in RefusedWithin; none is lost where the service
// ends, and what is refused to another tenant has its own entry.
func TestRefusalsAreBounded(t *testing.T) {
	const seed, asked = 27, 3000
	random := rand.New(rand.NewPCG(seed, 0))
	r := withTenants(t, 0)
	for i := range asked {
		by := writer
		by.Name = fmt.Sprint("tok-", random.IntN(50))
		by.ReadOnly = random.IntN(2) == 0
		var c resource.Change = resource.DeletePartition{PKey: ib.PKeyBase(random.IntN(0x7000))}
		if random.IntN(2) == 0 {
			c = partition(0x300 + ib.PKeyBase(random.IntN(0x7000)))
		}
		if r.asks(by, c) == "" {
			t.Fatalf("seed %d: %d was to be refused", seed, i)
		}
	}
	r.asks(other, partition(5))
	_, refused := r.log()
	if entries, _ := refused("red"); entries > service.RefusedKinds+1 {
		t.Errorf("%d entries of red", entries)
	}
	if entries, _ := refused("blue"); entries != 1 {
		t.Errorf("%d entries of blue, want 1 at once", entries)
	}
	r.Service.Close()
	_, refused = r.log()
	if entries, all := refused("red"); entries > 2*service.RefusedKinds+2 || all != asked {
		t.Errorf("%d entries of %d refusals, want all %d", entries, all, asked)
	}
	if err := r.store.Close(); err != nil {
		t.Error(err)
	}
}

// TestRefusalsCountAgainstTheQuota: of their caller, and of no other; those that the quota
// refused do not, so that a caller who waits a minute is heard again.
func TestRefusalsCountAgainstTheQuota(t *testing.T) {
	r := withTenants(t, 10)
	defer r.end()
	for i := range 30 {
		want := resource.Forbidden
		if i >= 10 {
			want = resource.TooFast
		}
		if got := r.asks(reader, partition(5)); got != want {
			t.Fatalf("request %d: %q, want %q", i, got, want)
		}
		r.pass(time.Second)
	}
	for k := range ib.PKeyBase(8) { // of the writer none was refused
		if got := r.asks(writer, partition(k+1)); got != "" {
			t.Fatalf("another caller: %q", got)
		}
	}
	if got := r.asks(writer, partition(0x300)); got != resource.Forbidden {
		t.Errorf("%q: want forbidden", got)
	}
	if got := r.asks(writer, partition(9)); got != "" {
		t.Errorf("the ninth change, after one that was refused: %q", got)
	}
	if got := r.asks(writer, partition(10)); got != resource.TooFast {
		t.Errorf("after ten: %q, want too fast", got)
	}
	if got := r.asks(other, partition(0x100)); got != "" {
		t.Errorf("another tenant: %q", got)
	}
	for range 60 { // who goes on trying is heard again too
		r.pass(time.Second)
		r.asks(writer, partition(10))
	}
	if got := r.asks(writer, partition(11)); got != "" {
		t.Errorf("after a minute: %q", got)
	}
}

// TestARefusalThatIsNotStoredIsTheFirstAgain: nothing is counted as in the log that is not.
func TestARefusalThatIsNotStoredIsTheFirstAgain(t *testing.T) {
	r := withTenants(t, 0)
	defer r.end()
	r.store.fail(store.ErrTooLarge, nil)
	if _, err := r.Do(t.Context(), service.Request{Change: partition(5), By: reader, Seen: resource.Unseen}); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("%v: want ErrTooLarge", err)
	}
	r.store.fail(nil, nil)
	r.asks(reader, partition(5))
	if _, refused := r.log(); true {
		if entries, all := refused("red"); entries != 1 || all != 1 {
			t.Errorf("%d entries of %d: want the first", entries, all)
		}
	}
}
