package resource_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// bench is a state with the callers of a test.
type bench struct {
	*testing.T
	*resource.State
	at time.Time
}

var provider = resource.Caller{Name: "uid 0", Tenant: resource.Provider}

func of(tenant string) resource.Caller { return resource.Caller{Name: tenant + "-1", Tenant: tenant} }

func newBench(t *testing.T) *bench {
	return &bench{t, resource.New(&policy.Policy{Default: policy.Limited}), time.Unix(1e9, 0)}
}

func (b *bench) plan(by resource.Caller, c resource.Change) (resource.Diff, error) {
	return b.Plan(resource.Request{Change: c, By: by, At: b.at, Seen: resource.Unseen, Proved: b.Last()})
}

func (b *bench) do(by resource.Caller, c resource.Change) {
	b.Helper()
	d, err := b.plan(by, c)
	if err != nil {
		b.Fatalf("%s: %v", c.Action(), err)
	}
	b.Commit(d, b.Last()+1, by, b.at)
}

func (b *bench) refused(want resource.Reason, by resource.Caller, c resource.Change) {
	b.Helper()
	_, err := b.plan(by, c)
	var r *resource.Refusal
	if !errors.As(err, &r) || r.Reason != want {
		b.Errorf("%s by %s: %v: want a refusal: %s", c.Action(), by.Name, err, want)
	}
}

// keys are the numbers of the partitions whose keys a port gets.
func (b *bench) keys(g ib.PortGUID) (keys []ib.PKeyBase) {
	for _, p := range b.Policy().Partitions {
		for _, m := range p.Members {
			if m.GUID == uint64(g) {
				keys = append(keys, p.PKey)
			}
		}
	}
	return keys
}

// Two tenants with a port and a partition each.
func twoTenants(t *testing.T) *bench {
	b := newBench(t)
	for i, name := range []string{"red", "blue"} {
		first := ib.PKeyBase(0x100 * (i + 1))
		b.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: name, Keys: resource.KeyRange{First: first, Last: first + 0xFF}}})
		b.do(provider, resource.AssignPorts{Tenant: name, Ports: []resource.Port{{GUID: ib.PortGUID(i + 1)}}})
		b.do(of(name), resource.PutPartition{Partition: resource.Partition{Name: "training", PKey: first}})
	}
	return b
}

func members(guids ...ib.PortGUID) (list []resource.Member) {
	for _, g := range guids {
		list = append(list, resource.Member{Port: g, Membership: policy.Full})
	}
	return list
}

func TestMembersNeedTheConsentOfBothOwners(t *testing.T) {
	b := twoTenants(t)
	b.do(of("red"), resource.SetMembers{PKey: 0x100, Members: members(1)})
	if got := b.keys(1); len(got) != 1 || got[0] != 0x100 {
		t.Fatalf("port 1 gets %v: want 0x0100", got)
	}
	// Red asks for blue's port, the provider too: neither is blue's consent.
	b.do(of("red"), resource.SetMembers{PKey: 0x100, Members: members(2)})
	b.refused(resource.Forbidden, provider, resource.SetMembers{PKey: 0x100, Members: members(2)})
	if got := b.keys(2); len(got) != 0 {
		t.Fatalf("port 2 gets %v before its owner agreed", got)
	}
	// Limited is not what red asked for: that is another request, which waits for red.
	b.do(of("blue"), resource.SetMembers{PKey: 0x100, Members: []resource.Member{{Port: 2, Membership: policy.Limited}}})
	if got := b.keys(2); len(got) != 0 {
		t.Fatalf("port 2 gets %v though the owners agreed to different memberships", got)
	}
	b.do(of("red"), resource.SetMembers{PKey: 0x100, Members: []resource.Member{{Port: 2, Membership: policy.Limited}}})
	if got := b.keys(2); len(got) != 1 {
		t.Fatalf("port 2 gets %v after both owners agreed", got)
	}
	// Either owner can end it.
	b.do(of("blue"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{2}})
	if got := b.keys(2); len(got) != 0 {
		t.Fatalf("port 2 gets %v after its owner ended it", got)
	}
}

func TestForeignKeysAreRefused(t *testing.T) {
	b := twoTenants(t)
	for _, k := range []ib.PKeyBase{0x7FFF, 0x200, 0x300} {
		b.refused(map[bool]resource.Reason{true: resource.Invalid, false: resource.Forbidden}[k == 0x7FFF], of("red"),
			resource.PutPartition{Partition: resource.Partition{Name: "other", PKey: k}})
	}
	b.refused(resource.Invalid, provider, resource.PutPartition{Partition: resource.Partition{Name: "other", PKey: 0x7FFF}})
	b.refused(resource.Forbidden, provider, resource.PutPartition{Partition: resource.Partition{Name: "other", PKey: 0x150}})
	b.refused(resource.NotFound, of("red"), resource.SetMembers{PKey: 0x200, Members: members(1)})
	b.refused(resource.NotFound, of("red"), resource.DeletePartition{PKey: 0x200})
}

func TestAReleasedPortWaitsForTheProof(t *testing.T) {
	b := twoTenants(t)
	b.do(of("red"), resource.SetMembers{PKey: 0x100, Members: members(1)})
	b.refused(resource.Conflict, provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: 1}}})
	before := b.Last()
	b.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{1}})
	if got := b.keys(1); len(got) != 0 {
		t.Fatalf("a port between two owners gets %v", got)
	}
	give := resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: 1}}}
	if _, err := b.Plan(resource.Request{Change: give, By: provider, At: b.at, Seen: resource.Unseen, Proved: before}); err == nil {
		t.Fatal("the port was given away before its release was proved")
	}
	b.do(provider, give)
	b.refused(resource.NotFound, of("red"), resource.SetMembers{PKey: 0x200, Members: members(1)})
	b.do(of("blue"), resource.SetMembers{PKey: 0x200, Members: members(1)})
	if got := b.keys(1); len(got) != 1 || got[0] != 0x200 {
		t.Fatalf("port 1 gets %v: want 0x0200", got)
	}
}

func TestALateWriteDoesNotBringAMemberBack(t *testing.T) {
	b := twoTenants(t)
	b.do(of("red"), resource.SetMembers{PKey: 0x100, Members: members(1)})
	seen := b.Last()
	b.do(of("red"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{1}})
	late := resource.Request{Change: resource.SetMembers{PKey: 0x100, Members: members(1)}, By: of("red"), At: b.at, Seen: seen}
	var r *resource.Refusal
	if _, err := b.Plan(late); !errors.As(err, &r) || r.Reason != resource.Stale {
		t.Fatalf("a late write: %v: want a refusal: stale", err)
	}
	late.Seen = b.Last()
	if _, err := b.Plan(late); err != nil {
		t.Fatalf("a write by who has seen the removal: %v", err)
	}
}

// What a newer version wrote is refused whole: a field that is passed over could be a limit.
func TestFieldsOfANewerVersion(t *testing.T) {
	for _, o := range []resource.Object{
		&resource.Tenant{Name: "red"}, &resource.Partition{PKey: 5, Name: "a", Owner: "red"}, &resource.Member{PKey: 5, Port: 1},
	} {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := resource.Decode(o.Key(), data); err != nil {
			t.Errorf("%s: %v", data, err)
		}
		newer := append([]byte(`{"until":"2030-01-01T00:00:00Z",`), data[1:]...)
		if _, err := resource.Decode(o.Key(), newer); err == nil || !strings.Contains(err.Error(), `"until": a newer ibwarden has written it`) {
			t.Errorf("%s: %v, want that it is refused", newer, err)
		}
	}
	twice := []byte(`{"name":"red"}{"name":"red"}`)
	if _, err := resource.Decode((&resource.Tenant{Name: "red"}).Key(), twice); err == nil || !strings.Contains(err.Error(), "after top-level value") {
		t.Errorf("%s: %v, want that it is refused", twice, err)
	}
	data, err := resource.EncodeChange(resource.PutPartition{Partition: resource.Partition{PKey: 5, Name: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	newer := []byte(strings.Replace(string(data), `"fields":{`, `"fields":{"Until":1,`, 1))
	if _, err := resource.DecodeChange(newer); err == nil || !strings.Contains(err.Error(), "a newer ibwarden has written it") {
		t.Errorf("%s: %v, want that it is refused", newer, err)
	}
}
