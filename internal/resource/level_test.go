package resource_test

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// No tenant gives itself a part of a share that the policy file gives a service level; the
// provider may, and what has the level keeps it.
func TestLevelsWithSharesAreGiven(t *testing.T) {
	b := twoTenants(t)
	part := func(sl ib.SL, create bool) resource.PutPartition {
		return resource.PutPartition{Partition: resource.Partition{PKey: 0x110, Owner: "red", Name: "mine", SL: sl}, Create: create}
	}
	b.do(of("red"), part(4, true))
	b.do(provider, file("settings: {qos_levels: [{sl: 0, share: 10}, {sl: 3, share: 20}, {sl: 4, share: 50}]}\n"))
	b.refused(resource.Forbidden, of("red"), part(3, false))
	three := ib.SL(3)
	b.refused(resource.Forbidden, of("red"), resource.AmendPartition{PKey: 0x110, SL: &three})
	other := part(3, true)
	other.PKey, other.Name = 0x111, "other"
	b.refused(resource.Forbidden, of("red"), other)
	named := part(4, false) // it has that level
	named.Name = "named"
	b.do(of("red"), named)
	b.do(of("red"), part(0, false))
	b.refused(resource.Forbidden, of("red"), part(4, false))
	b.do(of("red"), part(9, false)) // shares with level 0
	b.do(provider, part(3, false))
	if p := b.Partition(0x110); p == nil || p.SL != 3 {
		t.Errorf("%+v", p)
	}
}

// A partition of the file that has a rate limit, or levels for services, is not one of the
// API that has neither.
func TestLimitsAreNotLeftToTheAPI(t *testing.T) {
	for _, text := range []string{"rate_limit: 5", "service_ids: [{id: sdp, sl: 1}]"} {
		b := twoTenants(t)
		b.do(provider, resource.PutPartition{Partition: resource.Partition{PKey: 0x610, Owner: resource.Provider, Name: "lustre"}, Create: true})
		b.refused(resource.Exists, provider, file("partitions: [{name: lustre, pkey: 0x610, may_be_absent: true, "+text+"}]\n"))
		b.do(provider, file("partitions: [{name: lustre, pkey: 0x610, may_be_absent: true}]\n"))
	}
}
