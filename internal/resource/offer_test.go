package resource_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

func offer(tenant string, ports ...ib.PortGUID) resource.OfferPorts {
	return resource.OfferPorts{Tenant: tenant, Ports: ports}
}

// three is town with a third tenant, in whose partition 0x300 the first port of red is too, as it is in blue's.
func three(t *testing.T) *bench {
	b := town(t)
	b.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: "green", Keys: resource.KeyRange{First: 0x300, Last: 0x3FF}}})
	b.do(of("green"), resource.PutPartition{Partition: resource.Partition{Name: "secret", PKey: 0x300}, Members: members(1)})
	b.do(of("red"), resource.Consent{PKey: 0x300, Port: 1, Membership: policy.Full})
	b.do(of("red"), resource.Consent{PKey: 0x200, Port: 1, Membership: policy.Full})
	b.has(1, 0x100, 0x200, 0x300)
	return b
}

// offered is the ID of an offer that is made.
func (b *bench) offered(by resource.Caller, c resource.OfferPorts) string {
	b.Helper()
	id := b.ask(by, c)
	if a, is := b.object("approval/" + id).(*resource.Approval); !is || a.Tenant != c.Tenant || a.From != by.Tenant {
		b.Fatalf("%+v", a)
	}
	return id
}

func (b *bench) object(key string) resource.Object {
	o, _ := b.Object(key)
	return o
}

// TestOffer: AU-09 a tenant offers a port, another takes it into a partition of its own: in one change it leaves
// all partitions, those of third tenants too, and what each is told is its own part.
func TestOffer(t *testing.T) {
	b := three(t)
	id := b.offered(of("red"), offer("blue", 1, 4, 0x1005, 1))
	b.has(1, 0x100, 0x200, 0x300) // nothing has moved yet
	for _, x := range []struct {
		by   resource.Caller
		sees bool
	}{{provider, true}, {of("red"), true}, {of("blue"), true}, {of("green"), false}, {resource.Caller{Name: "b", Tenant: "blue", Keys: resource.KeyRange{First: 0x200, Last: 0x200}}, false}} {
		if got := resource.SeesObject(x.by, b.object("approval/"+id)); got != x.sees {
			t.Errorf("%+v sees the offer: %v", x.by, got)
		}
	}
	accept := resource.Approve{ID: id, Into: []resource.Joined{{PKey: 0x200, Membership: policy.Limited, Index0: true}}}
	d, err := b.plan(of("blue"), accept)
	if err != nil {
		t.Fatal(err)
	}
	all, told := strings.Join(d.Words, "\n"), strings.Join(d.WordsFor(of("blue")), "\n")
	for _, want := range []string{`no longer a member of 0x0100 "training"`, `no longer a member of 0x0300 "secret"`, "0000000000000001 is taken from tenant red", "0000000000000001 is tenant blue's", "is a limited member of 0x0200"} {
		if !strings.Contains(all, want) {
			t.Errorf("want %q in\n%s", want, all)
		}
		if own := !strings.Contains(want, "0x0100") && !strings.Contains(want, "0x0300"); strings.Contains(told, want) != own {
			t.Errorf("%q is told to blue: %v", want, !own)
		}
	}
	if slices.Contains(b.Touches(d), "blue") == false || strings.Contains(told, "green") {
		t.Errorf("%v: %s", b.Touches(d), told)
	}
	b.do(of("blue"), accept)
	for _, g := range []ib.PortGUID{1, 4, 0x1005} {
		if b.has(g, 0x200); b.Owner(g) != "blue" {
			t.Errorf("port %v is %s's", g, b.Owner(g))
		}
	}
	if m := b.Member(0x200, 1); m.Membership != policy.Limited || !m.Index0 || m.PortOwner != "blue" {
		t.Errorf("%+v", m)
	}
	if p := b.Port(4); p.Switch != 0x51 || p.SwitchPort != 7 {
		t.Errorf("the place is gone: %+v", p)
	}
	b.refused(resource.NotFound, of("blue"), accept) // twice
	// The provider's port, into nothing, and it is put into a partition later.
	b.do(of("blue"), resource.Approve{ID: b.offered(provider, offer("blue", 10))})
	b.has(10)
	b.do(of("blue"), set(0x200, members(10)))
	// To the provider: the policy file counts for it.
	b.do(provider, resource.Approve{ID: b.offered(of("blue"), offer(resource.Provider, 10)), Into: into(0x50)})
	b.has(10, 0x50)
}

// TestOfferIsRefused: AU-09 nobody offers what he does not have, or answers what is not for him, and nobody learns from
// an offer who there is.
func TestOfferIsRefused(t *testing.T) {
	b := three(t)
	none := b.refusal(of("red"), offer("blue", 0x77))
	for _, g := range []ib.PortGUID{2, 9, 0x2005} { // of blue, of the policy file, of a pool of blue
		r := b.refusal(of("red"), offer("blue", 1, g))
		if r.Reason != resource.NotFound || strings.ReplaceAll(r.Detail, g.String(), "") != strings.ReplaceAll(none.Detail, "0x0000000000000077", "") {
			t.Errorf("port %v: %v, and of one that is not there %v", g, r, none)
		}
	}
	b.refused(resource.NotFound, provider, offer("blue", 1))
	b.refused(resource.Conflict, provider, offer("blue", 9)) // the policy file names it
	b.refused(resource.Invalid, of("red"), offer("blue", 0))
	b.refused(resource.Invalid, of("red"), offer("blue"))
	b.refused(resource.Invalid, of("red"), offer("blue", make([]ib.PortGUID, resource.BulkMax+1)...))
	b.refused(resource.Invalid, of("red"), offer("red", 1))
	b.refused(resource.Invalid, of("red"), offer("no name", 1))
	b.refused(resource.Forbidden, resource.Caller{Name: "b", Tenant: "red", Keys: resource.KeyRange{First: 0x100, Last: 0x100}}, offer("blue", 1))
	b.refused(resource.Forbidden, resource.Caller{Name: "r", Tenant: "red", ReadOnly: true}, offer("blue", 1))

	id := b.offered(of("red"), offer("blue", 1))
	approve := resource.Approve{ID: id}
	b.refused(resource.Forbidden, of("red"), approve)
	b.refused(resource.Forbidden, resource.Caller{Name: "red-2", Tenant: "red"}, approve)
	b.refused(resource.NotFound, of("green"), approve)
	b.refused(resource.NotFound, of("green"), resource.Reject{ID: id})
	with := func(list ...resource.Joined) resource.Approve { return resource.Approve{ID: id, Into: list} }
	b.refused(resource.NotFound, of("blue"), with(into(0x300)...))
	b.refused(resource.NotFound, of("blue"), with(into(0x10)...))                                                     // of the policy file
	b.refused(resource.NotFound, of("blue"), with(into(0x50)...))                                                     // of the provider
	if r := b.refusal(of("blue"), with(into(0x100)...)); r.Error() != "into: partition 0x0100 is not tenant blue's" { // of which blue knows
		t.Error(r)
	}
	b.refused(resource.Invalid, of("blue"), with(into(0x200, 0x200)...))
	b.refused(resource.Invalid, of("blue"), with(resource.Joined{PKey: 0x200}))
	b.refused(resource.Invalid, of("blue"), with(make([]resource.Joined, resource.IntoMax+1)...))
	b.refused(resource.Conflict, provider, with(into(0x300)...))
}

// TestOfferToNobody: AU-10 an offer to a tenant that is not there is answered, seen and limited as one to a tenant
// that is, and leaves nothing under that name.
func TestOfferToNobody(t *testing.T) {
	outcome := func(to string) string {
		b := three(t)
		var out strings.Builder
		d, err := b.plan(of("red"), offer(to, 1, 3))
		if err != nil {
			t.Fatal(err)
		}
		var concerns []string
		for _, e := range d.Edits {
			a := e.After.(*resource.Approval)
			fmt.Fprintf(&out, "%s %s %+v\n", e.Key, a.Change, resource.Approval{ID: a.ID, Tenant: a.Tenant, From: a.From, By: a.By, Maker: a.Maker, At: a.At, Expires: a.Expires, Action: a.Action, Words: a.Words, Seen: a.Seen, Revision: a.Revision})
			concerns = append(concerns, b.Concerns(e.After)...)
		}
		fmt.Fprintln(&out, d.WordsFor(of("red")), d.About, len(concerns), slices.Contains(concerns, "red"))
		b.Commit(d, b.Last()+1, of("red"), b.at)
		fmt.Fprintln(&out, b.LastFor(of("red")), len(b.Numbers[to]) == 0 && to != "blue" || to == "blue" && len(b.Numbers[to]) > 0)
		for range resource.OffersMax - 1 {
			b.do(of("red"), offer(to, 1))
		}
		fmt.Fprintln(&out, b.refusal(of("red"), offer(to, 1)))
		b.do(of("red"), resource.Reject{ID: d.Approval().ID})
		fmt.Fprintln(&out, b.LastFor(of("red")))
		return strings.ReplaceAll(out.String(), to, "TENANT")
	}
	if there, none := outcome("blue"), outcome("grey"); there != none {
		t.Errorf("to a tenant that is there:\n%s\nto one that is not:\n%s", there, none)
	}
	b := three(t)
	id := b.offered(of("red"), offer("grey", 1))
	b.refused(resource.NotFound, provider, resource.Approve{ID: id})
	b.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: "grey"}}) // whose name red wrote
	b.do(of("grey"), resource.Approve{ID: id})
	b.has(1)
	// Offers end with either tenant: another may get the name.
	id = b.offered(of("red"), offer("green", 3))
	back := b.offered(of("green"), offer("red", b.given("green")))
	b.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{0x40}})
	b.do(of("green"), resource.DeletePartition{PKey: 0x300})
	b.do(provider, resource.DeleteTenant{Name: "green"})
	for _, gone := range []string{id, back} {
		b.refused(resource.NotFound, of("red"), resource.Reject{ID: gone})
	}
}

// given gives port 0x40 to a tenant.
func (b *bench) given(tenant string) ib.PortGUID {
	b.do(provider, resource.AssignPorts{Tenant: tenant, Ports: []resource.Port{{GUID: 0x40}}})
	return 0x40
}

// TestOfferHoldsForThePortOfThen: AU-09 an offer holds for a port as it was offered, and for 7 days; what became of the
// port since is not said.
func TestOfferHoldsForThePortOfThen(t *testing.T) {
	const said = "id: port 0x0000000000000001 was changed after red-a%d: ask tenant red to offer it again"
	for name, change := range map[string]func(*bench){
		"moved away": func(b *bench) { b.do(provider, resource.MovePorts{Tenant: "green", Ports: []ib.PortGUID{1}}) },
		"released":   func(b *bench) { b.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{1}}) },
		"bound to a place": func(b *bench) {
			b.do(provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 1, Switch: 0x51, SwitchPort: 9}}})
		},
		"moved away and back": func(b *bench) {
			b.do(provider, resource.MovePorts{Tenant: "green", Ports: []ib.PortGUID{1}})
			b.do(provider, resource.MovePorts{Tenant: "red", Ports: []ib.PortGUID{1}})
		},
		"accepted by another": func(b *bench) { b.do(of("green"), resource.Approve{ID: b.offered(of("red"), offer("green", 1))}) },
	} {
		b := three(t)
		id := b.offered(of("red"), offer("blue", 1, 3))
		change(b)
		r := b.refusal(of("blue"), resource.Approve{ID: id, Into: into(0x200)})
		if want := fmt.Sprintf(said, b.numberOf(id)); r.Reason != resource.Stale || r.Error() != want {
			t.Errorf("%s: %v, want %s", name, r, want)
		}
		if b.Owner(3) != "red" {
			t.Errorf("%s: a refused offer moves", name)
		}
	}
	// Its members are no part of it: red moves the port within its own partitions, and is in a pool.
	b := three(t)
	id := b.offered(of("red"), offer("blue", 1, 0x1005))
	b.do(of("red"), set(0x101, members(1)))
	b.do(of("blue"), resource.RemoveMembers{PKey: 0x200, Ports: []ib.PortGUID{1}})
	again := resource.Request{Change: resource.Approve{ID: id, Into: into(0x200)}, By: of("blue"), At: b.at, Seen: b.Last() - 1, Proved: b.Last()}
	if _, err := b.Plan(again); err == nil || !strings.Contains(err.Error(), "partition 0x0200 changed") {
		t.Errorf("into what blue has not seen: %v", err)
	}
	b.do(of("blue"), resource.Approve{ID: id, Into: into(0x200)})
	b.has(1, 0x200)
	b.has(0x1005, 0x200)
	id = b.offered(of("red"), offer("blue", 0x1006))
	b.do(provider, resource.ReleasePool{First: 0x1000})
	b.do(provider, resource.AssignPool{Tenant: "red", First: 0x1000, Last: 0x1FFF})
	b.refused(resource.Stale, of("blue"), resource.Approve{ID: id})
	// It ends after 7 days.
	id = b.offered(of("red"), offer("blue", 3))
	b.at = b.at.Add(resource.ApprovalLife)
	b.refused(resource.Conflict, of("blue"), resource.Approve{ID: id})
	b.do(provider, resource.Trim{})
	b.refused(resource.NotFound, of("blue"), resource.Approve{ID: id})
}

func (b *bench) numberOf(id string) (n int) {
	_, _ = fmt.Sscanf(id, "red-a%d", &n)
	return n
}

// TestOfferIsRolledBack: AU-09 a rollback takes an accepted offer back as it does a move, and brings no offer back.
func TestOfferIsRolledBack(t *testing.T) {
	h := &history{bench: three(t)}
	h.from = h.Last()
	id := h.offer(of("red"), offer("blue", 1))
	second := h.offer(of("red"), offer("green", 1))
	to := h.Last()
	h.do(of("blue"), resource.Approve{ID: id, Into: into(0x200)})
	h.do(provider, h.back(to, ""))
	if h.Owner(1) != "blue" || !strings.Contains(strings.Join(h.diffs[len(h.diffs)-1].Words, "\n"), "port 0x0000000000000001 stays tenant blue's: owners are brought back only if that is asked for") {
		t.Errorf("%s's: %v", h.Owner(1), h.diffs[len(h.diffs)-1].Words)
	}
	c := h.back(to, "")
	c.Owners = true
	h.do(provider, c)
	if h.has(1, 0x100); h.Owner(1) != "red" {
		t.Errorf("%s's", h.Owner(1))
	}
	h.refused(resource.NotFound, of("blue"), resource.Approve{ID: id, Into: into(0x200)})
	h.refused(resource.Stale, of("green"), resource.Approve{ID: second})
}

// offer makes an offer, as the history keeps it.
func (h *history) offer(by resource.Caller, c resource.OfferPorts) string {
	h.Helper()
	h.do(by, c)
	return h.diffs[len(h.diffs)-1].Approval().ID
}

// TestOfferOfCarefulTenants: AU-09 where removals of the owner take a second person, an offer does; and nobody accepts
// what he offered himself.
func TestOfferOfCarefulTenants(t *testing.T) {
	b := careful(t)
	id := b.ask(of("red"), offer("blue", 1))
	b.refused(resource.NotFound, of("blue"), resource.Approve{ID: id})
	b.refused(resource.Forbidden, of("red"), resource.Approve{ID: id})
	second := resource.Caller{Name: "red-2", Tenant: "red"}
	b.refused(resource.Invalid, second, resource.Approve{ID: id, Into: into(0x100)})
	b.do(second, resource.Approve{ID: id})
	list := b.Approvals()
	if len(list) != 1 || list[0].From != "red" || list[0].Tenant != "blue" || list[0].By != of("red").Name || len(list[0].Words) != 1 {
		t.Fatalf("%+v", list)
	}
	b.has(1, 0x100)
	b.refused(resource.Forbidden, of("red"), resource.Approve{ID: list[0].ID})
	x := *b.Tenant("blue")
	x.ApproveRemovals = true
	b.do(provider, resource.PutTenant{Tenant: x}) // what blue accepts takes nothing from blue
	b.do(of("blue"), resource.Approve{ID: list[0].ID, Into: into(0x200)})
	b.has(1, 0x200)
	// What changed hands between the two is not offered.
	b.do(provider, resource.MovePorts{Tenant: "red", Ports: []ib.PortGUID{1}})
	id = b.ask(of("red"), offer("blue", 1))
	b.do(provider, resource.MovePorts{Tenant: "blue", Ports: []ib.PortGUID{1}})
	b.do(provider, resource.MovePorts{Tenant: "red", Ports: []ib.PortGUID{1}})
	b.refused(resource.Stale, second, resource.Approve{ID: id})

	// A token ends with its offers, and those of the tokens that it made; not one that is replaced.
	b = three(t)
	sum := strings.Repeat
	b.do(of("red"), resource.PutToken{Token: resource.Token{ID: "t1", Tenant: "red", Sum: sum("1", 64)}})
	t1, t2 := resource.Caller{Name: "t1", Tenant: "red"}, resource.Caller{Name: "t2", Tenant: "red"}
	b.do(t1, resource.PutToken{Token: resource.Token{ID: "t2", Tenant: "red", Sum: sum("2", 64)}})
	ids := []string{b.offered(t1, offer("blue", 1)), b.offered(t2, offer("blue", 3)), b.offered(of("red"), offer("blue", 7))}
	if d, err := b.plan(of("red"), resource.DeleteToken{ID: "t1", KeepMade: true}); err != nil || slices.ContainsFunc(d.Edits, func(e resource.Edit) bool { return strings.HasPrefix(e.Key, "approval/") }) {
		t.Errorf("%v, %v", d.Words, err)
	}
	b.do(of("red"), resource.DeleteToken{ID: "t1"})
	for i, id := range ids {
		if there := b.object("approval/"+id) != nil; there != (i == 2) {
			t.Errorf("offer %d is there: %v", i, there)
		}
	}

	// A person who acts for both, and the provider's caller who offered.
	name := resource.PersonName("ann", "7", "https://id")
	b = three(t)
	id = b.offered(resource.Caller{Name: name, Tenant: "red"}, offer("blue", 1))
	b.refused(resource.Forbidden, resource.Caller{Name: resource.PersonName("anna", "7", "https://id"), Tenant: "blue"}, resource.Approve{ID: id})
	b.do(resource.Caller{Name: name, Tenant: "red"}, resource.Reject{ID: id})
	id = b.offered(provider, offer("blue", 10))
	b.refused(resource.Forbidden, provider, resource.Approve{ID: id})
	b.do(resource.Caller{Name: "second", Tenant: resource.Provider}, resource.Approve{ID: id})
}

// TestOffersAreLimited: AU-09 by who offers: nobody fills up what waits for another tenant, and its own removals.
func TestOffersAreLimited(t *testing.T) {
	b := careful(t)
	for range resource.OffersMax {
		b.offered(of("blue"), offer("red", 2))
	}
	r := b.refusal(of("blue"), offer("none", 2))
	if r.Reason != resource.OverQuota || !strings.Contains(r.Detail, "has 100 offers") {
		t.Error(r)
	}
	for i := range resource.ApprovalsMax {
		b.restore(&resource.Approval{ID: fmt.Sprint("more", i), Tenant: "red", From: "green", Change: []byte(`""`)})
	}
	b.ask(of("red"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{1}})
	b = three(t)
	own := len(`{"action":"move ports","fields":{"tenant":"blue","ports":["0x0000000000000001"]}}`)
	b.restore(&resource.Approval{ID: "long", Tenant: "none", From: "red", Change: []byte(`"` + strings.Repeat("x", resource.ApprovalSizeMax-own-2) + `"`)})
	b.offered(of("red"), offer("blue", 1))
	b.refused(resource.OverQuota, of("red"), offer("blue", 3))
	b.offered(of("blue"), offer("red", 2))
}

// TestWhatAnAcceptedOfferMayNotTell: AU-10 what the provider would be told of the policy file, or of others, is kept from who
// accepts.
func TestWhatAnAcceptedOfferMayNotTell(t *testing.T) {
	b := three(t)
	id := b.offered(provider, offer("blue", 10))
	b.do(provider, file("default: limited\npartitions:\n- {name: storage, pkey: 0x10, members: {full: [0xa]}}\n"))
	if r := b.refusal(of("blue"), resource.Approve{ID: id}); r.Reason != resource.Conflict || strings.Contains(r.Error(), "storage") {
		t.Error(r)
	}
	if r := b.refusal(resource.Caller{Name: "second", Tenant: resource.Provider}, resource.Approve{ID: id}); !strings.Contains(r.Error(), "storage") {
		t.Error(r)
	}
	b.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: "blue", Keys: resource.KeyRange{First: 0x200, Last: 0x2FF}, Quota: resource.Quota{Members: 1}}})
	id = b.offered(of("red"), offer("blue", 1, 3))
	if r := b.refusal(of("blue"), resource.Approve{ID: id, Into: into(0x200)}); r.Reason != resource.OverQuota || !strings.Contains(r.Error(), "tenant blue would have") {
		t.Error(r)
	}
}
