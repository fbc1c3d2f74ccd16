package audit

import (
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// The partitions that storage has for each tenant where they share none.
const (
	storageRed  = ib.PKeyBase(0x0200)
	storageBlue = ib.PKeyBase(0x0201)
)

// private makes a site one without a default partition: the manager is in all
// partitions, and storage in one for each tenant.
func private(s *site) *site {
	h := s.hosts
	s.intent.Partitions = []observed.Partition{
		{Name: "red", Base: red, Full: subnettest.GUIDs(h[0], h[1], h[4], h[7])},
		{Name: "blue", Base: blue, Full: subnettest.GUIDs(h[2], h[3], h[5], h[7])},
		{Name: "storage/red", Base: storageRed, Full: subnettest.GUIDs(h[6], h[7]), Limited: subnettest.GUIDs(h[0], h[1], h[4])},
		{Name: "storage/blue", Base: storageBlue, Full: subnettest.GUIDs(h[6], h[7]), Limited: subnettest.GUIDs(h[2], h[3], h[5])},
	}
	for i, p := range h[:6] {
		keys := []ib.PKey{red.Full(), storageRed.Limited()}
		if i == 2 || i == 3 || i == 5 {
			keys = []ib.PKey{blue.Full(), storageBlue.Limited()}
		}
		subnettest.SetPKeysThrough(p, keys...)
	}
	subnettest.SetPKeysThrough(h[6], storageRed.Full(), storageBlue.Full())
	subnettest.SetPKeysThrough(h[7], red.Full(), blue.Full(), storageRed.Full(), storageBlue.Full())
	for _, n := range s.f.Switches() {
		subnettest.SetPKeys(&n.Ports[0])
	}
	return s
}

// A fabric without a default partition is as it should be, with the policy and
// without; so is a port that is in no partition.
func TestNoDefaultPartition(t *testing.T) {
	for _, withPolicy := range []bool{true, false} {
		s := private(newSite())
		s.options.Earlier = private(bare()).f
		if !withPolicy {
			s.intent.Partitions = nil
		}
		for _, c := range []string{"default-full", "default-members", "index-zero", "bridge-host", "shared-full", "tenants-joined",
			"policy-drift", "switch-wider-than-host", "switch-narrower-than-host", "switch-in-tenant", "key-changed-hands", "failed-open", "keys-do-not-fit"} {
			if found := of(Audit(s.f, s.intent, s.options), c); len(found) > 0 && (withPolicy || c != "switch-in-tenant") {
				t.Errorf("with a policy: %v: %s: %+v", withPolicy, c, found)
			}
		}
	}
}

// What goes wrong is seen without a default partition too.
func TestNoDefaultPartitionAndWrong(t *testing.T) {
	for _, x := range []struct {
		check, where, read string
		mutate             func(*site)
	}{
		{"default-members", "h0", "holds 0xffff", func(s *site) { last(s.hosts[0], 0xFFFF) }},
		{"default-full", "h0", "0xffff", func(s *site) { last(s.hosts[0], 0xFFFF) }},
		{"index-zero", "h0", "0x0000", func(s *site) { subnettest.SetPKeysThrough(s.hosts[0], 0, red.Full(), storageRed.Limited()) }},
		{"bridge-host", "h0", "0x0102", func(s *site) { last(s.hosts[0], blue.Full()) }},
		{"tenants-joined", "to", "0x8102", func(s *site) { last(s.hosts[0], blue.Full()) }},
		{"key-changed-hands", "0x0101", "none of the 3", func(s *site) {
			for i, p := range s.hosts[:6] {
				keys := []ib.PKey{red.Full()}
				if i == 0 || i == 1 || i == 4 {
					keys[0] = 0x8444
				}
				subnettest.SetPKeysThrough(p, keys...)
			}
		}},
	} {
		s := private(newSite())
		s.options.Earlier = private(bare()).f
		x.mutate(s)
		found := of(Audit(s.f, s.intent, s.options), x.check)
		if !slices.ContainsFunc(found, func(f Finding) bool {
			return strings.Contains(f.Where, x.where) && strings.Contains(f.Read, x.read)
		}) {
			t.Errorf("%s: no finding at %q with %q: %+v", x.check, x.where, x.read, found)
		}
	}
}
