package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
)

// TestResolutionCarriesLevelsAndGroups: a resolved partition has the service level and
// the multicast groups of the policy at hand, also where its members are known from
// the policy before. No policy's groups change with those of the next.
func TestResolutionCarriesLevelsAndGroups(t *testing.T) {
	far := WithScope(Broadcast(ScopeLink), 5)
	p := &Policy{Default: Limited, Partitions: []Partition{{
		Name: "red", PKey: 0x10, SL: 3, Members: members("full port:201"),
		Multicast: []MulticastGroup{
			{MGID: Broadcast(ScopeLink), MTU: ib.MTU4096, Rate: 16, SL: 2, QKey: QKeyIPoIB, TClass: 7, FlowLabel: 9, Pos: Pos{Line: 3}},
			{MGID: far, MTU: ib.MTU2048, Rate: 3},
		},
	}}}
	r := NewResolver(fabric())
	red := func() observed.Partition {
		t.Helper()
		x, err := r.Resolve(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		return x.Partitions[0]
	}
	keyed := func(mgid ib.GID) ib.GID { mgid[4], mgid[5] = 0x80, 0x10; return mgid }
	lifetime := DefaultSettings().SubnetTimeOut
	want := observed.Partition{Name: "red", Base: 0x10, Full: []ib.PortGUID{0x201}, SL: 3, Multicast: []group.Group{
		{MGID: keyed(Broadcast(ScopeLink)), Partition: 0x10, Settings: group.Settings{
			MTU: ib.MTU4096, Rate: 16, SL: 2, QKey: QKeyIPoIB, TClass: 7, FlowLabel: 9, Lifetime: lifetime}},
		{MGID: keyed(far), Partition: 0x10, Settings: group.Settings{MTU: ib.MTU2048, Rate: 3, Lifetime: lifetime, HopLimit: 255}},
	}}
	first := red()
	if d := cmp.Diff(want, first); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}

	// The same members, another service level, one group less, another lifetime.
	other := DefaultSettings()
	other.SubnetTimeOut = lifetime + 1
	p.Settings, p.Partitions[0].SL, p.Partitions[0].Multicast = &other, 6, p.Partitions[0].Multicast[1:]
	next := want
	next.SL, next.Multicast = 6, []group.Group{want.Multicast[1]}
	next.Multicast[0].Lifetime = lifetime + 1
	if d := cmp.Diff(next, red()); d != "" {
		t.Errorf("the second policy (-want +got)\n%s", d)
	}
	if d := cmp.Diff(want, first); d != "" {
		t.Errorf("the first policy's partition changed\n%s", d)
	}
	p.Partitions[0].Multicast = nil
	if got := red(); got.Multicast != nil {
		t.Errorf("without groups: %+v", got.Multicast)
	}

	// Who has no groups has none of another partition, and all are told by MGID.
	parts := []observed.Partition{{Base: 2}, first}
	if got := observed.MulticastOf(parts); len(got) != 2 || got[0].MGID != keyed(Broadcast(ScopeLink)) {
		t.Errorf("groups of all: %+v", got)
	}
}
