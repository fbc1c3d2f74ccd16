package resource_test

import (
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// ports are the members of a partition.
func (b *bench) ports(k ib.PKeyBase) (list []ib.PortGUID) {
	for _, m := range b.Members(k) {
		list = append(list, m.Port)
	}
	return list
}

func (b *bench) holds(k ib.PKeyBase, want ...ib.PortGUID) {
	b.Helper()
	if got := b.ports(k); !slices.Equal(got, want) {
		b.Errorf("%v has %v: want %v", k, got, want)
	}
}

func TestAmendMakesAndLeavesTheRest(t *testing.T) {
	b := twoTenants(t)
	b.do(provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 11}, {GUID: 12}}})
	b.refused(resource.NotFound, of("red"), resource.AmendPartition{PKey: 0x101, Set: members(1)})
	made := resource.Partition{PKey: 7, Owner: "blue", Name: "made", SL: 3, Rate: 2, IPoIB: true}
	b.do(of("red"), resource.AmendPartition{PKey: 0x101, Make: &made, Set: members(1, 11)})
	want := resource.Partition{PKey: 0x101, Owner: "red", Name: "made", SL: 3, Rate: 2, IPoIB: true}
	if p := b.Partition(0x101); p == nil || *p != want {
		t.Fatalf("made %+v: want %+v", p, want)
	}
	// Make says nothing of one that is there; each value is changed by itself.
	other := resource.Partition{Name: "other"}
	sl, off := ib.SL(5), false
	b.do(of("red"), resource.AmendPartition{PKey: 0x101, Make: &other, SL: &sl})
	b.do(of("red"), resource.AmendPartition{PKey: 0x101, IPoIB: &off})
	mtu, rate := ib.MTU4096, ib.Rate(3)
	b.do(provider, resource.AmendPartition{PKey: 0x101, MTU: &mtu, Rate: &rate, Name: "named"})
	want = resource.Partition{PKey: 0x101, Owner: "red", Name: "named", SL: 5, MTU: mtu, Rate: rate}
	if p := b.Partition(0x101); *p != want {
		t.Errorf("amended %+v: want %+v", p, want)
	}
	b.do(of("red"), resource.AmendPartition{PKey: 0x101, Set: members(12)})
	b.holds(0x101, 1, 11, 12)
	b.do(of("red"), resource.AmendPartition{PKey: 0x101, Set: members(12, 1), All: true})
	b.holds(0x101, 1, 12)
	last := b.Last()
	if d, err := b.plan(of("red"), resource.AmendPartition{PKey: 0x101, Set: members(12, 1), All: true, SL: &sl}); err != nil || len(d.Edits) > 0 {
		t.Errorf("what is there already: %v, %v, last %d", d, err, last)
	}
}

func TestAmendRemovesAndDeletesWhatIsEmpty(t *testing.T) {
	b := twoTenants(t)
	b.do(provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 11}, {GUID: 12}}})
	b.do(of("red"), resource.AmendPartition{PKey: 0x100, Remove: []ib.PortGUID{1}, Empty: true})
	if b.Partition(0x100) == nil {
		t.Error("a partition that had no members was deleted, though nothing was removed")
	}
	set := members(1, 11, 12)
	set[1].Host, set[2].Host = "node01", "node01"
	b.do(of("red"), resource.AmendPartition{PKey: 0x100, Set: set})
	b.do(of("red"), resource.AmendPartition{PKey: 0x100, Set: members(11)}) // by its GUID: it keeps the name
	if m := b.Member(0x100, 11); m.Host != "node01" {
		t.Errorf("member 11 was added by the name %q", m.Host)
	}
	b.do(of("red"), resource.AmendPartition{PKey: 0x100, RemoveHosts: []string{"node02", ""}, Empty: true})
	b.holds(0x100, 1, 11, 12)
	b.do(of("red"), resource.AmendPartition{PKey: 0x100, RemoveHosts: []string{"node01"}, Empty: true})
	b.holds(0x100, 1)
	b.do(of("red"), resource.AmendPartition{PKey: 0x100, Remove: []ib.PortGUID{1, 99}})
	if b.Partition(0x100) == nil {
		t.Error("an empty partition was deleted, though nobody asked for that")
	}
	b.do(of("red"), resource.AmendPartition{PKey: 0x100, Set: members(1)})
	b.do(of("red"), resource.AmendPartition{PKey: 0x100, Remove: []ib.PortGUID{1}, Empty: true})
	if b.Partition(0x100) != nil {
		t.Error("the emptied partition is still there")
	}
	b.refused(resource.NotFound, of("red"), resource.AmendPartition{PKey: 0x100, Remove: []ib.PortGUID{1}, Empty: true})
}

func TestAmendIsWholeOrNothing(t *testing.T) {
	b := twoTenants(t)
	made := &resource.Partition{Name: "made"}
	for _, c := range []resource.AmendPartition{
		{PKey: 0x101, Make: made, Set: members(1, 2)},                                  // 2 is blue's
		{PKey: 0x101, Make: made, Set: members(1, 3)},                                  // 3 is the provider's
		{PKey: 0x201, Make: made, Set: members(1)},                                     // blue's range
		{PKey: 0x200, Make: made, Set: members(1)},                                     // blue's partition
		{PKey: 0x200, Remove: []ib.PortGUID{2}},                                        //
		{PKey: 0x0999, Make: made},                                                     // nobody's
		{PKey: 0x100, Set: members(1), Remove: []ib.PortGUID{1}, All: true, Name: "?"}, //
	} {
		want := resource.Forbidden
		if c.Name == "?" {
			want = resource.Invalid
		}
		b.refused(want, of("red"), c)
	}
	for _, k := range []ib.PKeyBase{0, 0x7fff, 0x8001} {
		b.refused(resource.Invalid, of("red"), resource.AmendPartition{PKey: k, Make: made})
		b.refused(resource.Invalid, provider, resource.AmendPartition{PKey: k, Make: made})
	}
	b.refused(resource.Forbidden, provider, resource.AmendPartition{PKey: 0x101, Make: made})
	b.refused(resource.Forbidden, provider, resource.AmendPartition{PKey: 0x100, Set: members(3)})
	if b.Partition(0x101) != nil || b.Partition(0x201) != nil || len(b.Members(0x100)) != 0 {
		t.Error("half of a refused change was done")
	}
	// Where both agreed before, nothing waits.
	b.do(of("red"), resource.SetMembers{PKey: 0x100, Members: members(2)})
	b.refused(resource.Forbidden, of("red"), resource.AmendPartition{PKey: 0x100, Set: members(2)})
	b.do(of("blue"), resource.SetMembers{PKey: 0x100, Members: members(2)})
	b.do(of("red"), resource.AmendPartition{PKey: 0x100, Set: members(2)})
	// Less needs nobody's consent; more does, and what waits is refused.
	b.do(of("red"), resource.AmendPartition{PKey: 0x100, Set: []resource.Member{{Port: 2, Membership: policy.Limited}}})
	if m := b.Member(0x100, 2); !m.Agreed() || m.Membership != policy.Limited {
		t.Errorf("the port is %+v: want a limited member", m)
	}
	b.refused(resource.Forbidden, of("red"), resource.AmendPartition{PKey: 0x100, Set: members(2)})
}

func TestDeclared(t *testing.T) {
	b := newBench(t)
	b.do(provider, resource.PutFile{File: resource.File{Name: "p", Text: "lustre=0x44 : 0x51=full ;\nfree : 0x52=full ;\n"}})
	got := b.Declared()
	if len(got) < 2 || got[0x44] == nil || got[0x44].Name != "lustre" || got[1] == nil || got[1].Name != "free" {
		t.Errorf("declared %v", got)
	}
	b.State = resource.New(&policy.Policy{Partitions: []policy.Partition{{Name: "lustre", PKey: 0x44}, {Name: "free"}}})
	b.Allocated = map[string]ib.PKeyBase{"free": 0x45}
	got = b.Declared()
	if len(got) < 2 || got[0x44] == nil || got[0x44].Name != "lustre" || got[0x45] == nil || got[0x45].Name != "free" {
		t.Errorf("declared %v", got)
	}
	if b.Default() != policy.Limited {
		t.Errorf("the default membership is %v", b.Default())
	}
}
