package service

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestIdempotencyKeysAreBounded: whatever tenants send, the keys of one are no more than
// RepeatedMax, none is kept for longer than RepeatedFor after the next write, and no tenant
// has another's keys forgotten before their time.
func TestIdempotencyKeysAreBounded(t *testing.T) {
	const seed = 27
	random := rand.New(rand.NewPCG(seed, 0))
	now := time.Unix(1e9, 0)
	r := newRepeats(nil)
	began := map[string]time.Time{}
	write := func(tenant, key string) {
		forgotten := r.old(now, tenant)
		for _, x := range forgotten {
			if young := now.Sub(x.at) <= RepeatedFor; young && (r.of[x.key].Tenant != tenant || r.count[tenant] < RepeatedMax) {
				t.Fatalf("seed %d: %s writes, and %s, %v old, is forgotten", seed, tenant, x.key, now.Sub(x.at))
			}
		}
		r.forget(forgotten)
		r.add(key, repeated{At: now, Tenant: tenant})
		began[key] = now
	}
	write("blue", "blue/first")
	for i := range 3 * RepeatedMax {
		write("red", fmt.Sprint("red/", i))
		if random.IntN(100) == 0 {
			now = now.Add(time.Duration(random.IntN(10)) * time.Second)
		}
	}
	if r.count["red"] != RepeatedMax || len(r.of) != RepeatedMax+1 || len(r.all) > 3*RepeatedMax {
		t.Errorf("red has %d keys of %d in all, and %d are listed: want %d of red", r.count["red"], len(r.of), len(r.all), RepeatedMax)
	}
	for i := range 3 * RepeatedMax { // the last ones are there
		key := fmt.Sprint("red/", i)
		if _, is := r.of[key]; is != (i >= 2*RepeatedMax) {
			t.Fatalf("%s is remembered: %v", key, is)
		}
	}
	again := newRepeats(r.of)
	if len(again.of) != len(r.of) || again.count["red"] != r.count["red"] || len(again.all) != len(r.of) {
		t.Error("what is read again from the store is not what was kept")
	}
	now = now.Add(RepeatedFor + time.Second)
	for i := range 2 * RepeatedMax / forgottenMax {
		write("blue", fmt.Sprint("blue/", i))
	}
	for key, v := range r.of {
		if now.Sub(v.At) > RepeatedFor {
			t.Fatalf("%s is remembered after %v", key, now.Sub(v.At))
		}
	}
	if r.count["red"] != 0 || r.tenants["red"] != nil || len(r.all) > 2*len(r.of)+forgottenMax {
		t.Errorf("of red %d, %d are listed", r.count["red"], len(r.all))
	}
}
