package ufm_test

import (
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/ufm"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// BenchmarkListPKeys is GET resources/pkeys?guids_data=true&qos_conf=true of the provider
// with 1,000 partitions of 64 members.
func BenchmarkListPKeys(b *testing.B) {
	r := newRig(b, ufm.Options{})
	r.mode("pending")
	for k := range ib.PKeyBase(1000) {
		var list []resource.Member
		for m := range 64 {
			list = append(list, resource.Member{Port: ib.PortGUID(0x0300000000000000 + 64*uint64(k%50) + uint64(m)), Membership: policy.Full})
		}
		r.change(resource.PutPartition{Partition: resource.Partition{PKey: 0x4000 + k, Name: fmt.Sprintf("p%d", k)}, Members: list})
	}
	b.ReportAllocs()
	for b.Loop() {
		if out := r.ask("GET", "/ufmRestV3/resources/pkeys?guids_data=true&qos_conf=true", "Basic "+r.secrets["provider"], ""); len(out.body) < 4_000_000 {
			b.Fatalf("%d bytes", len(out.body))
		}
	}
}
