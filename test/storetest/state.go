package storetest

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// State is a state under construction.
type State struct {
	testing.TB
	*resource.State
}

// By is a caller of a tenant.
func By(tenant string) resource.Caller {
	return resource.Caller{Name: tenant + "=1", Tenant: tenant}
}

// NewState is a state with the tenants red, blue and zinc, which own the ports red, blue and zinc, and the
// partitions 0x0100, 0x0200 and 0x0300 with the names red-net, blue-net and zinc-net; each has its own port.
func NewState(t testing.TB, red, blue, zinc ib.PortGUID) *State {
	s := &State{t, resource.New(&policy.Policy{Default: policy.Limited})}
	for i, g := range []ib.PortGUID{red, blue, zinc} {
		name, first := []string{"red", "blue", "zinc"}[i], ib.PKeyBase(0x100*(i+1))
		s.Do(resource.Provider, resource.PutTenant{Tenant: resource.Tenant{Name: name, Keys: resource.KeyRange{First: first, Last: first + 0xff}}})
		s.Do(resource.Provider, resource.AssignPorts{Tenant: name, Ports: []resource.Port{{GUID: g}}})
		s.Do(name, resource.PutPartition{Partition: resource.Partition{Name: name + "-net", PKey: first}})
		s.Ask(name, first, g)
	}
	return s
}

// Do makes a change by a caller of a tenant.
func (s *State) Do(tenant string, c resource.Change) {
	s.Helper()
	at := time.Unix(1e9, 0)
	d, err := s.Plan(resource.Request{Change: c, By: By(tenant), At: at, Seen: resource.Unseen, Proved: s.Last()})
	if err != nil {
		s.Fatalf("%s by %s: %v", c.Action(), tenant, err)
	}
	s.Commit(d, s.Last()+1, By(tenant), at)
}

// Ask has a tenant ask for a port as a full member, or agree that it is one.
func (s *State) Ask(tenant string, k ib.PKeyBase, g ib.PortGUID) {
	s.Helper()
	s.Do(tenant, resource.SetMembers{PKey: k, Members: []resource.Member{{Port: g, Membership: policy.Full}}})
}

// Remove has a tenant take a port out of a partition.
func (s *State) Remove(tenant string, k ib.PKeyBase, g ib.PortGUID) {
	s.Helper()
	s.Do(tenant, resource.RemoveMembers{PKey: k, Ports: []ib.PortGUID{g}})
}
