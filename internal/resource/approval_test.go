package resource_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

func careful(t *testing.T) *bench {
	b := twoTenants(t)
	x := *b.Tenant("red")
	x.ApproveRemovals = true
	b.do(provider, resource.PutTenant{Tenant: x})
	b.do(of("red"), set(0x100, members(1)))
	return b
}

// ask plans a change that waits, and is entered.
func (b *bench) ask(by resource.Caller, c resource.Change) string {
	b.Helper()
	d, err := b.plan(by, c)
	if err != nil || d.Approval() == nil || len(d.Edits) != 1 {
		b.Fatalf("%s: %v, %+v: want a change that waits", c.Action(), err, d)
	}
	b.Commit(d, b.Last()+1, by, b.at)
	return d.Approval().ID
}

func TestTakingAwayWaitsForASecondPerson(t *testing.T) {
	b := careful(t)
	second := resource.Caller{Name: "red-2", Tenant: "red"}
	for _, c := range []resource.Change{
		resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{1}}, resource.DeletePartition{PKey: 0x100},
		resource.SetMembers{PKey: 0x100, All: true}, set(0x100, limited(1)), resource.SetMembers{PKey: 0x100, Members: members(8), All: true},
		resource.PutPartition{Partition: resource.Partition{Name: "training", PKey: 0x100}, Members: []resource.Member{}},
	} {
		id := b.ask(of("red"), c)
		if b.has(1, 0x100); b.Member(0x100, 8) != nil {
			t.Errorf("%s: done in part before it was approved", c.Action())
		}
		b.refused(resource.Forbidden, of("red"), resource.Approve{ID: id})
		b.refused(resource.NotFound, of("blue"), resource.Approve{ID: id})
		b.refused(resource.NotFound, of("blue"), resource.Reject{ID: id})
		for _, by := range []resource.Caller{second, provider} {
			if _, err := b.plan(by, resource.Approve{ID: id}); err != nil {
				t.Errorf("%s: %v", c.Action(), err)
			}
		}
		b.do(of("red"), resource.Reject{ID: id})
		b.refused(resource.NotFound, second, resource.Approve{ID: id})
	}
	// A change that removes nothing needs no approval.
	b.do(of("red"), set(0x100, members(2)))
	b.do(of("red"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{2}})
	id := b.ask(of("red"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{1}})
	b.do(second, resource.Approve{ID: id})
	b.has(1)
	b.refused(resource.NotFound, second, resource.Approve{ID: id})
}

// A token that somebody made for himself is no second person.
func TestOnesOwnTokenIsNoSecondPerson(t *testing.T) {
	b := careful(t)
	token := func(by resource.Caller, id, digit string) resource.Caller {
		b.do(by, resource.PutToken{Token: resource.Token{ID: id, Tenant: "red", Sum: strings.Repeat(digit, 64), Maker: "nobody"}})
		return resource.Caller{Name: id, Tenant: "red"}
	}
	first, other := token(provider, "first", "1"), token(provider, "other", "2")
	mine := token(first, "mine", "3")
	mineToo := token(mine, "mine2", "4")
	gone := resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{1}}
	for _, x := range []struct{ asks, approves resource.Caller }{{first, mine}, {first, mineToo}, {mine, first}, {mine, mineToo}, {mineToo, mine}} {
		id := b.ask(x.asks, gone)
		b.refused(resource.Forbidden, x.approves, resource.Approve{ID: id})
		if _, err := b.plan(other, resource.Approve{ID: id}); err != nil {
			t.Errorf("another person: %v", err)
		}
		b.do(other, resource.Reject{ID: id})
	}
	// Nor when the token is deleted that made the other.
	id := b.ask(mineToo, gone)
	b.do(provider, resource.DeleteToken{ID: "mine2"})
	b.refused(resource.Forbidden, mine, resource.Approve{ID: id})
}

func TestWhatIsApprovedIsCheckedAgain(t *testing.T) {
	b := careful(t)
	second := resource.Caller{Name: "red-2", Tenant: "red"}
	wipe := b.ask(of("red"), resource.DeletePartition{PKey: 0x100})
	gone := b.ask(of("red"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{1}})
	b.do(provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 6}}})
	b.do(of("red"), set(0x100, members(6)))
	// Port 6 came after the deletion was asked for: nobody approved that it goes.
	b.refused(resource.Stale, second, resource.Approve{ID: wipe})
	if _, err := b.plan(second, resource.Approve{ID: gone}); err != nil {
		t.Errorf("port 1 is as it was: %v", err)
	}
	// A removal of what is not the tenant's any more is not carried out with more
	// rights by the provider.
	b.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{1}})
	b.do(provider, resource.Approve{ID: gone})
	// Time.
	late := b.ask(of("red"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{6}})
	b.at = b.at.Add(resource.ApprovalLife)
	b.refused(resource.Conflict, second, resource.Approve{ID: late})
	b.do(provider, resource.Trim{})
	if len(b.Approvals()) != 0 {
		t.Errorf("%d approvals are left", len(b.Approvals()))
	}
	b.has(6, 0x100)
}

func TestRemovalsAreRememberedForTheirTime(t *testing.T) {
	b := twoTenants(t)
	b.do(of("red"), set(0x100, members(1)))
	b.do(of("red"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{1}})
	b.refused(resource.Forbidden, of("red"), resource.Trim{})
	b.at = b.at.Add(resource.RemovedLife)
	b.do(provider, resource.Trim{})
	if len(b.Removed(0x100)) != 1 {
		t.Error("forgotten too early")
	}
	b.at = b.at.Add(time.Second)
	b.do(provider, resource.Trim{})
	if len(b.Removed(0x100)) != 0 {
		t.Error("never forgotten")
	}
}

// A pool makes the ports in it the tenant's before they are there; a port that the
// provider speaks of goes before it.
func TestPools(t *testing.T) {
	b := twoTenants(t)
	const vf = ib.PortGUID(0x0200_0000_0000_0000)
	b.refused(resource.Forbidden, of("red"), resource.AssignPool{Tenant: "red", First: vf, Last: vf + 9})
	b.do(provider, resource.AssignPool{Tenant: "red", First: vf, Last: vf + 9})
	b.refused(resource.Exists, provider, resource.AssignPool{Tenant: "blue", First: vf + 9, Last: vf + 10})
	b.do(of("red"), set(0x100, members(vf+3)))
	b.has(vf+3, 0x100)
	if !b.Policy().IsApart(vf+5) || b.Policy().IsApart(vf+10) {
		t.Error("the pool is not apart, or more is")
	}
	b.refused(resource.Conflict, provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: vf + 3}}})
	b.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{vf + 3}})
	b.has(vf + 3)
	b.do(provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: vf + 3}}})
	b.do(of("blue"), set(0x200, members(vf+3)))
	b.do(of("red"), set(0x100, members(vf+4)))
	b.do(provider, resource.ReleasePool{First: vf})
	b.has(vf + 4)
	b.has(vf+3, 0x200)
	r := resource.Request{Change: resource.AssignPool{Tenant: "blue", First: vf, Last: vf + 9}, By: provider, At: b.at, Seen: resource.Unseen, Proved: b.Last() - 1}
	if _, err := b.Plan(r); err == nil {
		t.Error("a pool was given away before its release was proved")
	}
	b.do(provider, resource.AssignPool{Tenant: "blue", First: vf, Last: vf + 9})
	b.do(of("blue"), set(0x200, members(vf+4)))
	b.has(vf+4, 0x200)
	// A member of the provider's is not given away with its key.
	b.do(provider, resource.PutPartition{Partition: resource.Partition{Name: "own", PKey: 0x20}, Members: members(vf + 20)})
	b.refused(resource.Conflict, provider, resource.AssignPool{Tenant: "red", First: vf + 20, Last: vf + 29})
}

func TestOnePlaceIsThatOfOnePort(t *testing.T) {
	b := twoTenants(t)
	at := func(g ib.PortGUID) resource.AssignPorts {
		return resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: g, Switch: 0x99, SwitchPort: 4}}}
	}
	b.do(provider, at(7))
	b.refused(resource.Exists, provider, at(8))
	b.refused(resource.Invalid, provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 8, Switch: 0x99}}})
	b.do(of("red"), set(0x100, members(7)))
	m := b.Policy().Partitions[0].Members
	if want := (policy.Place{Switch: 0x99, Port: 4}); len(m) != 1 || m[0].Kind != policy.SelectPlace || m[0].At != want || m[0].GUID != 7 {
		t.Errorf("members are %+v: want port 7 at %v", m, want)
	}
	b.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{7}})
	b.do(provider, at(8))
}

// Who is bound to ask a second person does not free himself alone.
func TestNobodyLiftsTheSecondPersonAlone(t *testing.T) {
	b := newBench(t)
	b.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: resource.Provider, ApproveRemovals: true}})
	id := b.ask(provider, resource.PutTenant{Tenant: resource.Tenant{Name: resource.Provider}})
	b.refused(resource.Forbidden, provider, resource.Approve{ID: id})
	b.do(resource.Caller{Name: "uid 1", Tenant: resource.Provider}, resource.Approve{ID: id})
	if b.Tenant(resource.Provider).ApproveRemovals {
		t.Error("two persons cannot lift it")
	}
}

// A tenant fills the state neither with removals nor with changes that wait.
func TestRemovalsAndApprovalsAreBounded(t *testing.T) {
	b := twoTenants(t)
	for i := range ib.PortGUID(resource.RemovedMax) {
		r := &resource.Removed{PKey: 0x100 + ib.PKeyBase(i%8), Port: 0x1000 + i, Owner: "red", By: "red-1", At: b.at.Add(-time.Hour).Add(time.Duration(i))}
		if err := b.Restore(r, b.Last()); err != nil {
			t.Fatal(err)
		}
	}
	b.do(of("red"), set(0x100, members(1)))
	b.do(of("red"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{1}})
	n := 0
	for k := range ib.PKeyBase(8) {
		n += len(b.Removed(0x100 + k))
	}
	oldest, _ := b.Object(resource.RemovedKey(0x100, 0x1000))
	newest, _ := b.Object(resource.RemovedKey(0x100, 1))
	if n != resource.RemovedMax*3/4+1 || oldest != nil || newest == nil {
		t.Errorf("%d removals are remembered, the oldest %v, the newest %v", n, oldest, newest)
	}
	x := *b.Tenant("red")
	x.ApproveRemovals = true
	b.do(provider, resource.PutTenant{Tenant: x})
	var list []ib.PortGUID
	for i := range ib.PortGUID(2 * resource.ApprovalWordsMax) {
		list = append(list, 0x0200_0000_0000_0000+i)
	}
	b.do(provider, resource.AssignPool{Tenant: "red", First: list[0], Last: list[len(list)-1]})
	b.do(of("red"), set(0x100, members(list...)))
	c := resource.RemoveMembers{PKey: 0x100, Ports: list}
	b.ask(of("red"), c)
	if n := len(b.Approvals()[0].Words); n != resource.ApprovalWordsMax+1 {
		t.Errorf("%d sentences are kept", n)
	}
	big := &resource.Approval{ID: "big", Tenant: "red", Change: make([]byte, resource.ApprovalSizeMax-len(b.Approvals()[0].Change))}
	if err := b.Restore(big, b.Last()); err != nil {
		t.Fatal(err)
	}
	b.refused(resource.OverQuota, of("red"), c)
}

// A person is one, for whomever he acts and whatever the provider calls him by now; and he makes
// no token, which would be another.
func TestAPersonIsNoSecondPerson(t *testing.T) {
	b := careful(t)
	by := func(tenant, shown, subject, issuer string) resource.Caller {
		return resource.Caller{Name: resource.PersonName(shown, subject, issuer), Tenant: tenant}
	}
	const home = "https://id.example"
	anna := by("red", "anna", "u1", home)
	id := b.ask(anna, resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{1}})
	for _, same := range []resource.Caller{anna, by("red", "anne", "u1", home), by(resource.Provider, "anna", "u1", home), by(resource.Provider, "x (u2 at y)", "u1", home)} {
		b.refused(resource.Forbidden, same, resource.Approve{ID: id})
	}
	for _, other := range []resource.Caller{by("red", "anna", "u2", home), by("red", "anna", "u1", home+"/2"), by("red", "anna (u1 at "+home+")", "u2", home), by(resource.Provider, "bert", "u2", home), {Name: "uid 0", Tenant: resource.Provider}} {
		if _, err := b.plan(other, resource.Approve{ID: id}); err != nil {
			t.Errorf("%s: %v", other.Name, err)
		}
	}
	for _, x := range []resource.Caller{anna, by(resource.Provider, "anna", "u1", home)} {
		b.refused(resource.Forbidden, x, resource.PutToken{Token: resource.Token{ID: "mine", Tenant: "red", Sum: strings.Repeat("5", 64)}})
	}
	b.do(provider, resource.PutToken{Token: resource.Token{ID: "given", Tenant: "red", Sum: strings.Repeat("5", 64)}})
}
