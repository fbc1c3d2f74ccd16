package resource_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

func (b *bench) refusal(by resource.Caller, c resource.Change) *resource.Refusal {
	b.Helper()
	_, err := b.plan(by, c)
	var r *resource.Refusal
	if !errors.As(err, &r) {
		b.Fatalf("%s by %s: %v: want a refusal", c.Action(), by.Name, err)
	}
	return r
}

func limited(guids ...ib.PortGUID) []resource.Member {
	list := members(guids...)
	for i := range list {
		list[i].Membership = policy.Limited
	}
	return list
}

func (b *bench) has(g ib.PortGUID, want ...ib.PKeyBase) {
	b.Helper()
	if got := b.keys(g); fmt.Sprint(got) != fmt.Sprint(want) {
		b.Errorf("port %v gets %v: want %v", g, got, want)
	}
}

func set(k ib.PKeyBase, list []resource.Member) resource.SetMembers {
	return resource.SetMembers{PKey: k, Members: list}
}

// A consent holds for the owners who gave it: not for the next owner of the port,
// and not for a port that he gets with requests on it.
func TestConsentsEndWithTheOwnerOfThePort(t *testing.T) {
	b := twoTenants(t)
	b.do(of("red"), set(0x100, members(2)))
	b.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{2}})
	// Red may ask for a port between two owners like for any; nobody is told whose it is.
	b.do(of("red"), set(0x100, members(2)))
	b.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: "green", Keys: resource.KeyRange{First: 0x300, Last: 0x3FF}}})
	b.do(provider, resource.AssignPorts{Tenant: "green", Ports: []resource.Port{{GUID: 2}}})
	if m := b.Member(0x100, 2); m != nil {
		t.Fatalf("the request survived the owner of the port: %+v", m)
	}
	b.refused(resource.NotFound, of("green"), set(0x100, members(2)))
	b.has(2)
}

// Requests for a port of the provider do not keep it from giving the port away.
func TestRequestsBlockNoAssignment(t *testing.T) {
	b := twoTenants(t)
	b.do(of("red"), set(0x100, members(9)))
	b.do(provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: 9}}})
	b.refused(resource.NotFound, of("blue"), set(0x100, members(9)))
	b.do(of("blue"), set(0x200, members(9)))
	b.has(9, 0x200)
}

// A member that was stored for owners who are not the owners any more gets no key,
// even if some path forgot to remove it.
func TestStoredConsentsOfOthersAreVoid(t *testing.T) {
	b := twoTenants(t)
	for _, m := range []resource.Member{{Owner: "red", PortOwner: "red"}, {Owner: "blue", PortOwner: "blue"}, {Owner: "red", PortOwner: "blue"}} {
		m.PKey, m.Port, m.Membership, m.ByPartition, m.ByPort = 0x100, 2, policy.Full, true, true
		if err := b.Restore(&m, b.Last()); err != nil {
			t.Fatal(err)
		}
		if m.PortOwner == "blue" && m.Owner == "red" {
			b.has(2, 0x100)
		} else {
			b.has(2)
		}
	}
}

func TestMoreThanWasAgreedTakesBothAgain(t *testing.T) {
	b := twoTenants(t)
	b.do(of("red"), set(0x100, limited(2)))
	b.do(of("blue"), set(0x100, limited(2)))
	b.do(of("red"), set(0x100, members(2)))
	if m := b.Member(0x100, 2); m.Membership != policy.Limited || !m.Agreed() || m.Asked.Membership != policy.Full {
		t.Fatalf("red widened the membership of blue's port alone, or took it away: %+v", m)
	}
	// A repeated write of what is agreed does not agree to more.
	b.do(of("blue"), resource.Refuse{PKey: 0x100, Port: 2})
	b.refused(resource.NotFound, of("blue"), resource.Consent{PKey: 0x100, Port: 2, Membership: policy.Full})
	b.do(of("red"), set(0x100, members(2)))
	b.refused(resource.NotFound, of("red"), resource.Consent{PKey: 0x100, Port: 2, Membership: policy.Full})
	b.refused(resource.NotFound, provider, resource.Consent{PKey: 0x100, Port: 2, Membership: policy.Full})
	b.refused(resource.Stale, of("blue"), resource.Consent{PKey: 0x100, Port: 2, Membership: policy.Limited})
	b.do(of("blue"), resource.Consent{PKey: 0x100, Port: 2, Membership: policy.Full})
	if m := b.Member(0x100, 2); m.Membership != policy.Full || m.Asked != (resource.Ask{}) {
		t.Fatalf("after both agreed: %+v", m)
	}
	// Index 0 of blue's table is blue's.
	index0 := members(2)
	index0[0].Index0 = true
	b.do(of("red"), set(0x100, index0))
	if b.Member(0x100, 2).Index0 {
		t.Fatal("red put its key at index 0 of blue's table")
	}
	// Less is had at once.
	b.do(of("blue"), set(0x100, limited(2)))
	if m := b.Member(0x100, 2); m.Membership != policy.Limited || !m.Agreed() {
		t.Fatalf("blue cannot have less: %+v", m)
	}
}

// What a body says of consents and owners is not looked at.
func TestABodyConsentsToNothing(t *testing.T) {
	b := twoTenants(t)
	m := resource.Member{PKey: 0x200, Port: 2, Membership: policy.Full, ByPartition: true, ByPort: true, Owner: "red", PortOwner: "red", Asked: resource.Ask{Membership: policy.Full}}
	b.do(of("red"), set(0x100, []resource.Member{m}))
	if got := b.Member(0x100, 2); got.ByPort || got.PortOwner != "blue" || got.Asked != (resource.Ask{}) {
		t.Errorf("%+v", got)
	}
	b.has(2)
}

// What others ask uses up nobody's quota.
func TestRequestsOfOthersCountForNobody(t *testing.T) {
	b := twoTenants(t)
	for _, name := range []string{"red", "blue"} {
		x := *b.Tenant(name)
		x.Quota = resource.Quota{Members: 1, KeysPerPort: 1}
		b.do(provider, resource.PutTenant{Tenant: x})
	}
	b.do(provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: 3}, {GUID: 4}}})
	b.do(of("red"), set(0x100, members(2)))
	b.refused(resource.OverQuota, of("red"), set(0x100, members(1)))
	// Red's request is not one of blue's keys for its port.
	b.do(of("blue"), set(0x200, members(2)))
	// Blue sees the partition by it, and asks for more: red's quota is not used up.
	b.do(of("blue"), set(0x100, members(3, 4)))
	b.refused(resource.OverQuota, of("blue"), set(0x100, members(2)))
	b.do(of("red"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{2}})
	b.do(of("red"), set(0x100, members(1)))
	b.refused(resource.OverQuota, of("red"), resource.Consent{PKey: 0x100, Port: 3, Membership: policy.Full})
	// Whole or nothing.
	b.refused(resource.OverQuota, of("blue"), set(0x200, members(2, 3)))
	b.has(3)
	// Who is beyond a quota may still take away.
	x := *b.Tenant("red")
	x.Quota.Members = 1
	b.do(provider, resource.PutTenant{Tenant: x})
	b.do(of("red"), set(0x100, limited(1)))
}

func TestRequestsAreBounded(t *testing.T) {
	b := twoTenants(t)
	var many []ib.PortGUID
	for i := range ib.PortGUID(resource.RequestsMax) {
		many = append(many, 0x1000+i)
	}
	b.do(of("red"), set(0x100, members(many...)))
	b.refused(resource.OverQuota, of("red"), set(0x100, members(0x9999)))
	b.do(of("red"), set(0x100, members(1)))
	b.refused(resource.Invalid, of("red"), set(0x100, make([]resource.Member, resource.BulkMax+1)))
}

// A tenant learns nothing of another's ports, keys and tokens by which refusal it
// gets, nor from the words of a plan.
func TestForeignIsLikeNone(t *testing.T) {
	b := twoTenants(t)
	b.do(provider, resource.PutPartition{Partition: resource.Partition{Name: "own", PKey: 0x20}})
	b.do(of("blue"), resource.PutToken{Token: resource.Token{ID: "t1", Tenant: "blue", Sum: strings.Repeat("a", 64)}})
	b.do(provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: 5}}})
	b.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{5}})
	for _, pair := range [][2]resource.Change{
		{set(0x200, members(1)), set(0x201, members(1))},
		{set(0x20, members(1)), set(0x21, members(1))},
		{resource.DeletePartition{PKey: 0x200}, resource.DeletePartition{PKey: 0x201}},
		{resource.RemoveMembers{PKey: 0x200}, resource.RemoveMembers{PKey: 0x201}},
		{resource.Consent{PKey: 0x200, Port: 2}, resource.Consent{PKey: 0x201, Port: 2}},
		{resource.Refuse{PKey: 0x20, Port: 2}, resource.Refuse{PKey: 0x21, Port: 2}},
		{resource.PutPartition{Partition: resource.Partition{Name: "x", PKey: 0x200}}, resource.PutPartition{Partition: resource.Partition{Name: "x", PKey: 0x201}}},
		{resource.PutPartition{Partition: resource.Partition{Name: "x", PKey: 0x20}}, resource.PutPartition{Partition: resource.Partition{Name: "x", PKey: 0x21}}},
		{resource.PutPartition{Partition: resource.Partition{Owner: "blue", Name: "x", PKey: 0x20}}, resource.PutPartition{Partition: resource.Partition{Owner: "nobody", Name: "x", PKey: 0x20}}},
		{resource.DeleteToken{ID: "t1"}, resource.DeleteToken{ID: "t2"}},
		{resource.PutToken{Token: resource.Token{Tenant: "blue"}}, resource.PutToken{Token: resource.Token{Tenant: "nobody"}}},
	} {
		a, c := b.refusal(of("red"), pair[0]), b.refusal(of("red"), pair[1])
		same := strings.NewReplacer("0x0201", "0x0200", "0x0021", "0x0020", "t2", "t1").Replace(c.Detail)
		if a.Reason != c.Reason || a.Field != c.Field || a.Detail != same {
			t.Errorf("%s: what is there is refused as %q %q, what is not as %q %q", pair[0].Action(), a.Reason, a, c.Reason, c)
		}
	}
	// Blue's port, the provider's, one that nobody has seen, and one between two owners.
	var words []string
	for _, g := range []ib.PortGUID{2, 3, 5, 0x999} {
		d, err := b.plan(of("red"), set(0x100, members(g)))
		if err != nil {
			t.Fatalf("%v: %v", g, err)
		}
		words = append(words, strings.ReplaceAll(fmt.Sprint(d.Words), g.String(), "G"))
	}
	for _, w := range words {
		if w != words[0] || strings.Contains(w, "blue") {
			t.Errorf("the plan tells whose port it is: %q", words)
		}
	}
}

// visible are the members of a partition that a tenant's caller sees.
func visible(b *bench, tenant string, k ib.PKeyBase) []*resource.Member {
	return slices.DeleteFunc(b.Members(k), func(m *resource.Member) bool { return !b.SeesMember(of(tenant), m) })
}

// A tenant's caller sees of a diff, and of the time of the last change, only what is
// his.
func TestWhatACallerSeesOfOthers(t *testing.T) {
	b := twoTenants(t)
	b.do(of("red"), set(0x100, members(1, 2)))
	seen := b.TouchedFor(of("blue"), 0x100)
	d, err := b.plan(of("red"), resource.SetMembers{PKey: 0x100, Members: members(1, 7), All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range d.Edits {
		for _, o := range []resource.Object{e.Before, e.After} {
			mine := e.Key == resource.MemberKey(0x100, 2)
			if o != nil && (resource.SeesObject(of("blue"), o) != mine || !resource.SeesObject(provider, o)) {
				t.Errorf("%s: blue sees it: %v, want %v; or the provider does not", e.Key, !mine, mine)
			}
		}
	}
	b.do(of("red"), set(0x100, members(7)))
	if now := b.TouchedFor(of("blue"), 0x100); now != seen || b.Touched(0x100) == seen {
		t.Errorf("blue sees that red's partition changed: revision %d, before %d", now, seen)
	}
	if list := visible(b, "blue", 0x100); len(list) != 1 || len(b.Visible(of("blue"))) != 2 {
		t.Errorf("blue sees %v and %v", list, b.Visible(of("blue")))
	}
	for _, tenant := range []string{"red", "blue", "green", resource.Provider} {
		for _, p := range b.Partitions("") {
			want, waits := visible(b, tenant, p.PKey), 0
			for _, m := range want {
				if !m.Agreed() {
					waits++
				}
			}
			if n, waiting := b.CountVisible(of(tenant), p.PKey); n != len(want) || waiting != waits {
				t.Errorf("%s counts %d members of %v, %d of them waiting; it sees %d and %d", tenant, n, p.PKey, waiting, len(want), waits)
			}
		}
	}
}

// A token ends with the one that made it, and with the one that made that; or stays, if who
// deletes it says so, and then ends with the next one above. Those that others made stay.
func TestTokensEndWithTheirMaker(t *testing.T) {
	b := twoTenants(t)
	n := 0
	make := func(by resource.Caller, id, tenant string) resource.Caller {
		t.Helper()
		n++
		sum := fmt.Sprintf("%064x", n)
		b.do(by, resource.PutToken{Token: resource.Token{ID: id, Tenant: tenant, Sum: sum, By: "a forged maker"}})
		c, known := b.CallerOf(sum, b.at)
		if !known {
			t.Fatalf("there is no token %s", id)
		}
		return c
	}
	ids := func() string {
		list := []string{}
		for _, x := range b.Tokens("") {
			list = append(list, x.ID+"<"+x.By)
		}
		return strings.Join(list, " ")
	}
	boss := make(provider, "boss", resource.Provider)
	a := make(boss, "a", "red")
	aa := make(a, "aa", "red")
	aaa := make(aa, "aaa", "red")
	make(aaa, "aaaa", "red")
	make(provider, "other", "red")
	make(provider, "blue", "blue")
	if got, want := ids(), "a<boss aa<a aaa<aa aaaa<aaa blue<uid 0 boss<uid 0 other<uid 0"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	b.refused(resource.NotFound, of("blue"), resource.DeleteToken{ID: "aa"})
	b.do(of("red"), resource.DeleteToken{ID: "aa", KeepMade: true})
	if got, want := ids(), "a<boss aaa<a aaaa<aaa blue<uid 0 boss<uid 0 other<uid 0"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	b.do(provider, resource.DeleteToken{ID: "boss"})
	if got, want := ids(), "blue<uid 0 other<uid 0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for i := 1; i <= 5; i++ {
		if _, known := b.CallerOf(fmt.Sprintf("%064x", i), b.at); known {
			t.Errorf("secret %d is still good", i)
		}
	}
}

// A token gives nobody more than he had: it ends no later, and is bound no less.
func TestTokensWidenNothing(t *testing.T) {
	b := twoTenants(t)
	sum := strings.Repeat("b", 64)
	end := b.at.Add(time.Hour)
	b.do(of("red"), resource.PutToken{Token: resource.Token{ID: "bound", Tenant: "red", Sum: sum, Keys: resource.KeyRange{First: 0x101, Last: 0x102}, Expires: end}})
	c, ok := b.CallerOf(sum, b.at)
	if _, late := b.CallerOf(sum, end); late || !ok || c.Tenant != "red" || c.Name != "bound" {
		t.Fatalf("%+v, %v", c, ok)
	}
	other := resource.Token{ID: "more", Tenant: "red", Sum: strings.Repeat("c", 64)}
	b.refused(resource.Forbidden, c, resource.PutToken{Token: other})
	b.refused(resource.NotFound, c, set(0x100, members(1)))
	b.refused(resource.NotFound, c, resource.DeletePartition{PKey: 0x100})
	b.refused(resource.Forbidden, c, resource.PutPartition{Partition: resource.Partition{Name: "x", PKey: 0x103}})
	b.refused(resource.Forbidden, c, resource.Rollback{})
	b.do(c, resource.PutPartition{Partition: resource.Partition{Name: "x"}})
	if b.Partition(0x101) == nil || b.Sees(c, 0x100) || !b.Sees(c, 0x101) {
		t.Error("a bound caller got another number, or sees another partition")
	}
	ends := of("red")
	ends.Expires = end
	b.refused(resource.Forbidden, ends, resource.PutToken{Token: other})
	other.Expires = end.Add(1)
	b.refused(resource.Forbidden, ends, resource.PutToken{Token: other})
	other.Expires = end
	b.do(ends, resource.PutToken{Token: other})
	for _, bad := range []resource.Token{{ID: "uid 0"}, {ID: ""}, {ID: "x", Sum: strings.Repeat("X", 64)}, {ID: "x", Sum: sum[1:]}, {ID: "x", Note: "\x1b"}} {
		if bad.Tenant = "red"; bad.Sum == "" {
			bad.Sum = strings.Repeat("d", 64)
		}
		b.refused(resource.Invalid, of("red"), resource.PutToken{Token: bad})
	}
	b.refused(resource.Exists, of("blue"), resource.PutToken{Token: resource.Token{ID: "y", Tenant: "blue", Sum: sum}})
	reader := of("red")
	reader.ReadOnly = true
	b.refused(resource.Forbidden, reader, set(0x100, members(1)))
}

// Two keys at index 0 of one port, or more keys than its table has room for, stop the
// whole policy: a tenant cannot bring that about.
func TestNoTenantOverfillsAPort(t *testing.T) {
	b := twoTenants(t)
	index0 := members(1)
	index0[0].Index0 = true
	b.do(of("red"), resource.PutPartition{Partition: resource.Partition{Name: "second", PKey: 0x101}})
	b.do(of("red"), set(0x100, index0))
	b.refused(resource.Conflict, of("red"), set(0x101, index0))
	b.do(of("red"), set(0x101, members(1)))
	r := resource.Request{Change: resource.PutPartition{Partition: resource.Partition{Name: "third", PKey: 0x102}, Members: members(1)}, By: of("red"), At: b.at, Seen: resource.Unseen, Fabric: tables{1: 3}}
	var x *resource.Refusal
	if _, err := b.Plan(r); !errors.As(err, &x) || x.Reason != resource.OverQuota {
		t.Errorf("three keys and the default one in a table of three: %v", err)
	}
	r.Fabric = tables{1: 4}
	if _, err := b.Plan(r); err != nil {
		t.Error(err)
	}
}

type tables map[ib.PortGUID]int

func (t tables) TableSize(g ib.PortGUID) (int, bool) { n, known := t[g]; return n, known }

func TestUnknownGUIDsWhereTheTenantWantsThemRefused(t *testing.T) {
	b := twoTenants(t)
	b.do(provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 7}}})
	b.do(of("red"), set(0x100, members(7)))
	x := *b.Tenant("red")
	x.KnownPortsOnly = true
	b.do(provider, resource.PutTenant{Tenant: x})
	b.do(of("red"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{7}})
	b.refused(resource.NotFound, of("red"), set(0x100, members(7)))
	r := resource.Request{Change: set(0x100, members(7)), By: of("red"), At: b.at, Seen: resource.Unseen, Fabric: tables{7: 16}}
	if _, err := b.Plan(r); err != nil {
		t.Error(err)
	}
	// Whether the fabric has seen another's GUID is not told.
	r.Change = set(0x100, members(2))
	if _, err := b.Plan(r); err != nil {
		t.Error(err)
	}
}

// A number that was another tenant's is free when the loss of its key was proved.
func TestANumberWaitsForTheProof(t *testing.T) {
	b := twoTenants(t)
	b.do(of("red"), set(0x100, members(1)))
	b.do(of("red"), resource.DeletePartition{PKey: 0x100})
	gone := b.Last()
	x, y := *b.Tenant("red"), *b.Tenant("blue")
	x.Keys = resource.KeyRange{First: 0x180, Last: 0x1FF}
	b.do(provider, resource.PutTenant{Tenant: x})
	y.Keys = resource.KeyRange{First: 0x300, Last: 0x3FF}
	b.do(of("blue"), resource.DeletePartition{PKey: 0x200})
	y.Keys = resource.KeyRange{First: 0x100, Last: 0x17F}
	b.do(provider, resource.PutTenant{Tenant: y})
	take := resource.Request{Change: resource.PutPartition{Partition: resource.Partition{Name: "x", PKey: 0x100}}, By: of("blue"), At: b.at, Seen: resource.Unseen, Proved: gone - 1}
	var r *resource.Refusal
	if _, err := b.Plan(take); !errors.As(err, &r) || r.Reason != resource.Conflict {
		t.Errorf("blue gets red's number before the proof: %v", err)
	}
	take.Proved = gone
	if _, err := b.Plan(take); err != nil {
		t.Error(err)
	}
}

// A plan leaves the state as it was, refused or not, even if it panics.
func TestAPlanChangesNothing(t *testing.T) {
	b := twoTenants(t)
	b.do(of("red"), set(0x100, members(1, 2)))
	before, revision := fmt.Sprintf("%+v", b.Policy()), b.Last()
	for _, c := range []resource.Change{
		resource.DeletePartition{PKey: 0x100}, set(0x100, append(members(3, 4), resource.Member{Port: 5})), resource.SetMembers{PKey: 0x100, All: true},
	} {
		_, _ = b.plan(of("red"), c)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = b.Plan(resource.Request{By: of("red"), At: b.at}) // no change at all
	}()
	if after := fmt.Sprintf("%+v", b.Policy()); after != before || b.Last() != revision || len(b.Members(0x100)) != 2 {
		t.Errorf("the state changed:\n%s\n%s", before, after)
	}
}
