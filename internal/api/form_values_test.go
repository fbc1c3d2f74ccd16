package api

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// TestValues: what a request says is what is meant, or a fault of its field.
func TestValues(t *testing.T) {
	for _, x := range []struct {
		got   func() (any, error)
		want  any
		field string // at fault
	}{
		{func() (any, error) { return PKey("0x0012").Base() }, ib.PKeyBase(0x12), ""},
		{func() (any, error) { return PKey("0xffff").Base() }, ib.PKeyBase(0), "pkey"},
		{func() (any, error) { return PKey("x").Base() }, ib.PKeyBase(0), "pkey"},
		{func() (any, error) { return GUID("0x0002c90300000001").Port() }, ib.PortGUID(0x0002c90300000001), ""},
		{func() (any, error) { return GUID("0002c90300000001").Port() }, ib.PortGUID(0x0002c90300000001), ""},
		{func() (any, error) { return GUID("000000000000001x").Port() }, ib.PortGUID(0), "port"},
		{func() (any, error) { return GUID("").Port() }, ib.PortGUID(0), "port"},
		{func() (any, error) { return Ports([]GUID{"0000000000000001", "0x0000000000000002"}) }, []ib.PortGUID{1, 2}, ""},
		{func() (any, error) { return Ports(nil) }, []ib.PortGUID{}, ""},
		{func() (any, error) { return Ports([]GUID{"0000000000000001", "x"}) }, []ib.PortGUID(nil), "port"},
		{func() (any, error) { return Membership("limited").Value(), nil }, policy.Limited, ""},
		{func() (any, error) { return Membership("full").Value(), nil }, policy.Full, ""},
		{func() (any, error) { return Membership("both").Value(), nil }, policy.Both, ""},
		{func() (any, error) { return Membership("other").Value(), nil }, policy.Membership(0), ""},
		{func() (any, error) { return MTU(0) }, ib.MTU(0), ""},
		{func() (any, error) { return MTU(4096) }, ib.MTU4096, ""},
		{func() (any, error) { return MTU(4095) }, ib.MTU(0), "mtu"},
		{func() (any, error) { return Rate(0) }, ib.Rate(0), ""},
		{func() (any, error) { return Rate(2.54) }, ib.Rate(0), "rate"}, // nearly 2.5
		{func() (any, error) { return Rate(3) }, ib.Rate(0), "rate"},
		{func() (any, error) {
			return Members([]Joined{{"0000000000000001", MembershipBody{"full", true}}, {"0x0000000000000002", MembershipBody{"limited", false}}})
		}, []resource.Member{{Port: 1, Membership: policy.Full, Index0: true}, {Port: 2, Membership: policy.Limited}}, ""},
		{func() (any, error) { return Members([]Joined{{Port: "0000000000000001"}, {Port: "x"}}) }, []resource.Member(nil), "body.members[1].port"},
	} {
		got, err := x.got()
		var p *listen.Problem
		if is := errors.As(err, &p); fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", x.want) || is != (x.field != "") || is && (p.Errors[0].Field != x.field || p.Status != 422 || p.Reason != "invalid" || p.Detail == "") {
			t.Errorf("%#v, %+v; want %#v, fault of %q", got, p, x.want, x.field)
		}
	}
	for _, gbps := range []float64{2.5, 5, 10, 14, 25, 100, 200, 400, 600, 1200} {
		if r, err := Rate(gbps); err != nil || float64(r.Tenths())/10 != gbps {
			t.Errorf("%v Gb/s: %v, %v", gbps, r, err)
		}
	}
	if _, err := Rate(3.25); err == nil || err.Error() != "3.25 Gb/s: no such InfiniBand rate" {
		t.Error(err)
	}
}

// TestObjects: partitions, tenants and approvals as callers see them.
func TestObjects(t *testing.T) {
	s := storetest.NewState(t, 1, 2, 3)
	s.Do("red", resource.PutPartition{Partition: resource.Partition{PKey: 0x101, Name: "fast", SL: 3, MTU: ib.MTU2048, Rate: 3, IPoIB: true}})
	if got, want := PartitionOf(s.State, storetest.By(resource.Provider), s.Partition(0x101)), (Partition{PKey: "0x0101", Name: "fast", Owner: "red", SL: 3, MTU: 2048, Rate: 10, IPoverIB: true, Changed: s.Last()}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	s.Do(resource.Provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 5}, {GUID: 6}}})
	quota := resource.Quota{Partitions: 11, Members: 12, KeysPerPort: 13, ChangesPerMinute: 14}
	s.Do(resource.Provider, resource.PutTenant{Tenant: resource.Tenant{Name: "red", Keys: resource.KeyRange{First: 0x100, Last: 0x1FF}, Quota: quota, ApproveRemovals: true, KnownPortsOnly: true}})
	got := TenantOf(s.State, storetest.By(resource.Provider), s.Tenant("red"))
	if got.Keys == nil || *got.Keys != (KeyRange{"0x0100", "0x01ff"}) {
		t.Errorf("keys %+v", got.Keys)
	}
	got.Keys = nil
	if want := (Tenant{Name: "red", Quota: Quota{11, 12, 13, 14}, ApproveRemovals: true, KnownPortsOnly: true, Partitions: 2, Ports: 3, Changed: s.Last()}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := TenantOf(s.State, storetest.By(resource.Provider), s.Tenant(resource.Provider)); got.Keys != nil {
		t.Errorf("the provider has the keys %+v", got.Keys)
	}
	a := ApprovalOf(&resource.Approval{ID: "a", Tenant: "red", By: "me", Why: "so", Action: "delete", Words: nil}, resource.Caller{Tenant: "red"})
	if a.ID != "a" || a.Tenant != "red" || a.By != "me" || a.Why != "so" || a.Action != "delete" || a.Words == nil {
		t.Errorf("%+v", a)
	}
}
