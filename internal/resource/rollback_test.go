package resource_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// history is a bench that keeps its diffs, the oldest first, their objects through JSON.
type history struct {
	*bench
	from  uint64
	diffs []resource.Diff
}

func (h *history) do(by resource.Caller, c resource.Change) {
	h.Helper()
	d, err := h.plan(by, c)
	if err != nil {
		h.Fatalf("%s: %v", c.Action(), err)
	}
	again := d
	again.Edits = nil
	for _, e := range d.Edits {
		again.Edits = append(again.Edits, resource.Edit{Key: e.Key, Before: h.reread(e.Before), After: h.reread(e.After)})
	}
	h.diffs = append(h.diffs, again)
	h.Commit(d, h.Last()+1, by, h.at)
}

// reread is an object as it is read from the store.
func (h *history) reread(o resource.Object) resource.Object {
	h.Helper()
	if o == nil {
		return nil
	}
	data, err := json.Marshal(o)
	if err != nil {
		h.Fatal(err)
	}
	again, err := resource.Decode(o.Key(), data)
	if err != nil {
		h.Fatal(err)
	}
	if twice, _ := json.Marshal(again); string(twice) != string(data) {
		h.Fatalf("%s: read as %s", data, twice)
	}
	return again
}

func (h *history) back(to uint64, tenant string) resource.Rollback {
	var later []resource.Diff
	for i := len(h.diffs); i > int(to-h.from); i-- {
		later = append(later, h.diffs[i-1])
	}
	return resource.NewRollback(to, tenant, later)
}

func newHistory(t *testing.T) *history {
	b := twoTenants(t)
	return &history{bench: b, from: b.Last()}
}

func TestRollbackOfOneTenant(t *testing.T) {
	h := newHistory(t)
	h.do(of("red"), set(0x100, members(1)))
	h.do(of("blue"), set(0x200, members(2)))
	to := h.Last()
	h.do(of("red"), set(0x100, limited(1)))
	h.do(of("red"), resource.PutPartition{Partition: resource.Partition{Name: "new", PKey: 0x101}, Members: members(1)})
	h.do(of("red"), resource.DeletePartition{PKey: 0x100})
	h.do(of("blue"), resource.RemoveMembers{PKey: 0x200, Ports: []ib.PortGUID{2}})
	h.refused(resource.Forbidden, of("red"), h.back(to, "blue"))
	h.do(of("red"), h.back(to, ""))
	h.has(1, 0x100)
	h.has(2)
	if h.Partition(0x101) != nil || h.Member(0x100, 1).Membership != policy.Full || len(h.Removed(0x101)) != 1 {
		t.Errorf("red's part is not as it was: %v", h.Partitions("red"))
	}
	h.do(provider, h.back(to, ""))
	h.has(2, 0x200)
	// And forth again: the revision before the rollback.
	h.do(of("red"), h.back(to+2, "red"))
	h.has(1, 0x100, 0x101)
}

// A rollback gives nobody what its owner does not agree to today.
func TestRollbackBringsBackNoConsentOfOthers(t *testing.T) {
	h := newHistory(t)
	h.do(of("red"), set(0x100, members(2)))
	h.do(of("blue"), set(0x100, members(2)))
	to := h.Last()
	h.do(of("blue"), resource.RemoveMembers{PKey: 0x100, Ports: []ib.PortGUID{2}})
	h.do(provider, h.back(to, ""))
	h.has(2)
	if !strings.Contains(strings.Join(h.diffs[len(h.diffs)-1].Words, "\n"), "takes the consent of others") {
		t.Errorf("it is not said: %v", h.diffs[len(h.diffs)-1].Words)
	}
	h.do(of("red"), h.back(to, ""))
	if h.has(2); h.Member(0x100, 2) == nil {
		t.Error("red did not ask again")
	}
	// Blue asked in its own name once; red rolls back: that is no consent of red's.
	h = newHistory(t)
	h.do(of("red"), set(0x100, members(1)))
	h.do(provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: 4}}})
	h.do(of("red"), set(0x100, members(2)))
	h.do(of("blue"), set(0x100, members(4)))
	to = h.Last()
	h.do(of("red"), resource.Refuse{PKey: 0x100, Port: 4})
	h.do(of("red"), h.back(to, ""))
	if m := h.Member(0x100, 4); m != nil {
		t.Errorf("red consented by a rollback: %+v", m)
	}
	// A port that changed hands is asked for, not taken.
	h = newHistory(t)
	h.do(of("red"), set(0x100, members(1)))
	to = h.Last()
	h.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{1}})
	h.do(of("red"), h.back(to, ""))
	h.has(1)
	h.do(provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: 1}}})
	for _, by := range []resource.Caller{of("red"), of("blue"), provider} {
		d, err := h.plan(by, h.back(to, ""))
		if err == nil {
			h.Commit(d, h.Last()+1, by, h.at)
		}
		h.has(1)
	}
}

// Who has a port today has not agreed to what its former owner agreed to, be it to a member of
// his own partition: he and the provider bring back a request alone.
func TestRollbackBringsBackNoConsentOfAFormerOwner(t *testing.T) {
	for name, by := range map[string]resource.Caller{"the owner": of("blue"), "the provider": provider} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			h.do(of("blue"), set(0x200, members(1)))
			h.do(of("red"), set(0x200, members(1)))
			h.has(1, 0x200)
			to := h.Last()
			h.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{1}})
			h.do(provider, resource.AssignPorts{Tenant: "blue", Ports: []resource.Port{{GUID: 1}}})
			h.has(1)
			h.do(by, h.back(to, "blue"))
			h.has(1)
			if m := h.Member(0x200, 1); m == nil || !m.ByPartition || m.ByPort || m.PortOwner != "blue" {
				t.Fatalf("brought back: %+v; want a request that waits for blue", m)
			}
			// Blue's own word makes it a member.
			h.do(of("blue"), resource.Consent{PKey: 0x200, Port: 1, Membership: policy.Full})
			h.has(1, 0x200)
		})
	}
}

// With Owners a move is taken back in one change; without, it is said whose the port stays. What
// others agreed to once takes their consent again.
func TestRollbackOfOwners(t *testing.T) {
	h := newHistory(t)
	h.do(of("red"), set(0x100, members(1)))
	h.do(of("blue"), set(0x200, members(1)))
	h.do(of("red"), resource.Consent{PKey: 0x200, Port: 1, Membership: policy.Full})
	h.do(provider, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 4, Switch: 0x51, SwitchPort: 7}}})
	to := h.Last()
	whole := func(tenant string) resource.Rollback {
		c := h.back(to, tenant)
		c.Owners = true
		return c
	}
	h.do(provider, resource.PutTenant{Tenant: resource.Tenant{Name: "green", Keys: resource.KeyRange{First: 0x300, Last: 0x3FF}}})
	h.do(of("green"), resource.PutPartition{Partition: resource.Partition{Name: "n", PKey: 0x300}})
	h.do(provider, resource.MovePorts{Tenant: "green", Ports: []ib.PortGUID{1, 4}, Into: into(0x300)})
	h.has(1, 0x300)

	h.refused(resource.Invalid, provider, whole("red"))
	h.refused(resource.Invalid, of("red"), whole(""))
	h.refused(resource.Forbidden, of("red"), whole("green"))
	d, err := h.plan(provider, h.back(to, ""))
	if err != nil || !strings.Contains(strings.Join(d.Words, "\n"), "port 0x0000000000000001 stays tenant green's: owners are brought back only if that is asked for") {
		t.Errorf("%v, %v", d.Words, err)
	}
	h.do(provider, whole(""))
	h.has(1, 0x100)
	if p := h.Port(4); h.Owner(1) != "red" || p.Owner != "red" || p.Switch != 0x51 || p.SwitchPort != 7 {
		t.Errorf("port 1 is %q's, and port 4 is %+v", h.Owner(1), p)
	}
	if h.has(4); h.Member(0x200, 1) != nil {
		t.Error("what blue agreed to came back without blue")
	}
	if words := strings.Join(h.diffs[len(h.diffs)-1].Words, "\n"); !strings.Contains(words, `is not brought back into 0x0200`) {
		t.Errorf("it is not said: %s", words)
	}
	// Of a port that is nobody's the release has to be proved first, and one of a tenant that is gone stays.
	h.do(provider, resource.MovePorts{Tenant: "green", Ports: []ib.PortGUID{1, 4}})
	to = h.Last()
	h.do(provider, resource.ReleasePorts{Ports: []ib.PortGUID{1}})
	h.do(provider, resource.MovePorts{Tenant: "blue", Ports: []ib.PortGUID{4}})
	h.do(provider, whole(""))
	if h.Owner(1) != "" || h.Owner(4) != "green" {
		t.Errorf("port 1 is %q's, port 4 %q's", h.Owner(1), h.Owner(4))
	}
	h.do(provider, resource.MovePorts{Tenant: "blue", Ports: []ib.PortGUID{4}})
	h.do(provider, resource.DeleteTenant{Name: "green"})
	d, err = h.plan(provider, whole(""))
	if err != nil || !strings.Contains(strings.Join(d.Words, "\n"), "0000000000000004 stays tenant blue's: there is no tenant green any more") {
		t.Errorf("%v, %v", d.Words, err)
	}
}

func TestRollbackKeepsRightsAndQuotas(t *testing.T) {
	h := newHistory(t)
	h.do(of("red"), resource.PutToken{Token: resource.Token{ID: "t", Tenant: "red", Sum: strings.Repeat("a", 64)}})
	h.do(of("red"), set(0x100, members(1)))
	to := h.Last()
	h.do(of("red"), resource.DeleteToken{ID: "t"})
	h.do(of("red"), resource.DeletePartition{PKey: 0x100})
	x := *h.Tenant("red")
	x.Keys = resource.KeyRange{First: 0x110, Last: 0x11F}
	h.do(provider, resource.PutTenant{Tenant: x})
	h.refused(resource.Forbidden, of("red"), h.back(to, ""))
	x.Keys = resource.KeyRange{First: 0x100, Last: 0x11F}
	x.Quota.Partitions = 1
	h.do(provider, resource.PutTenant{Tenant: x})
	h.do(of("red"), resource.PutPartition{Partition: resource.Partition{Name: "n", PKey: 0x101}})
	second := h.Last()
	h.do(of("red"), resource.DeletePartition{PKey: 0x101})
	h.do(of("red"), h.back(to, ""))
	if h.has(1, 0x100); len(h.Tokens("red")) != 0 {
		t.Error("a rollback brought a token back")
	}
	h.do(of("red"), h.back(second, ""))
	if h.Partition(0x100) != nil || h.Partition(0x101) == nil {
		t.Error("not as it was")
	}
	stale := resource.Request{Change: h.back(to, ""), By: of("red"), At: h.at, Seen: second}
	if _, err := h.Plan(stale); err == nil {
		t.Error("a rollback by who has not seen the last change")
	}
}

func TestRollbackOfTheFile(t *testing.T) {
	h := newHistory(t)
	to := h.Last()
	h.do(provider, file("partitions: [{name: a, members: {full: [0x9]}}]"))
	h.do(provider, file("partitions: [{name: b, members: {full: [0x9]}}]"))
	h.refused(resource.Forbidden, of("red"), h.back(to+1, "provider"))
	h.do(provider, h.back(to+1, ""))
	if p := h.Policy().Partitions[0]; p.Name != "a" {
		t.Errorf("the file's partition is %q: want a", p.Name)
	}
	h.do(provider, h.back(to, ""))
	if h.File() != nil || len(h.Policy().Partitions) != 2 {
		t.Errorf("the file is still there: %+v", h.Policy().Partitions)
	}
}

// Every change is read back as it was written.
func TestChangesAreReadBack(t *testing.T) {
	at := time.Unix(1e9, 5).UTC()
	seen := map[string]bool{}
	for _, c := range someChanges(at) {
		data, err := resource.EncodeChange(c)
		if err != nil {
			t.Errorf("%s: %v", c.Action(), err)
			continue
		}
		again, err := resource.DecodeChange(data)
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%s: %v\n%+v\n%+v\n%s", c.Action(), err, again, c, data)
		}
		seen[c.Action()] = true
	}
	for _, name := range resource.Actions() {
		if !seen[name] {
			t.Errorf("%s: not tried", name)
		}
	}
	if _, err := resource.DecodeChange([]byte(`{"action":"open the fabric","fields":{}}`)); err == nil {
		t.Error("an unknown action was read")
	}
}

func someChanges(at time.Time) []resource.Change {
	m := resource.Member{Port: 1, Membership: policy.Full, Index0: true}
	part := resource.Partition{PKey: 5, Name: "a", Owner: "red", SL: 1, MTU: ib.MTU4096, Rate: policy.DefaultRate, IPoIB: true}
	return []resource.Change{
		resource.PutTenant{Tenant: resource.Tenant{Name: "red", Keys: resource.KeyRange{First: 1, Last: 2}, Quota: resource.Quota{Members: 3}, ApproveRemovals: true}},
		resource.PutTenant{Tenant: resource.Tenant{Name: "provider"}}, resource.DeleteTenant{Name: "red"},
		resource.PutToken{Token: resource.Token{ID: "x", Tenant: "red", Sum: "ab", Created: at, Expires: at, Keys: resource.KeyRange{First: 1, Last: 2}}}, resource.DeleteToken{ID: "x"},
		resource.PutFile{File: resource.File{Name: "p", Text: "version: 1\n", Numbers: map[string]ib.PKeyBase{"a": 4}, Left: []string{"b"}}},
		resource.PutPartition{Partition: part, Members: []resource.Member{}}, resource.PutPartition{Partition: resource.Partition{Name: "b"}, Create: true, Members: []resource.Member{m}},
		resource.PutPartition{Partition: part}, resource.DeletePartition{PKey: 5}, resource.SetMembers{PKey: 5, Members: []resource.Member{m}, All: true, NoRequests: true},
		resource.RemoveMembers{PKey: 5, Ports: []ib.PortGUID{1, 2}, DeleteEmptied: true}, resource.Consent{PKey: 5, Port: 1, Membership: policy.Limited, Index0: true},
		resource.AmendPartition{PKey: 5, Make: &part, Name: "n", Set: []resource.Member{m}, Remove: []ib.PortGUID{3}, RemoveHosts: []string{"h"}, Empty: true},
		resource.Refuse{PKey: 5, Port: 1}, resource.AssignPorts{Tenant: "red", Ports: []resource.Port{{GUID: 1, Switch: 2, SwitchPort: 3}}}, resource.ReleasePorts{Ports: []ib.PortGUID{1}}, resource.MovePorts{Tenant: "red", Ports: []ib.PortGUID{1}, Into: []resource.Joined{{PKey: 5, Membership: policy.Full, Index0: true}}},
		resource.AssignPool{Tenant: "red", First: 1, Last: 2}, resource.ReleasePool{First: 1}, resource.OfferPorts{Tenant: "red", Ports: []ib.PortGUID{1}}, resource.Approve{ID: "x"}, resource.Approve{ID: "x", Into: []resource.Joined{{PKey: 5, Membership: policy.Limited, Index0: true}}}, resource.Reject{ID: "x"}, resource.Trim{}, resource.ReturnPorts{},
		resource.DrainSwitch{Drain: resource.Drain{Switch: 1, Name: "spine"}}, resource.UndrainSwitch{Switch: 1}, resource.AcknowledgeAlarm{Alarm: "0123456789abcdef", Title: "leaf", Note: "a fan", Until: at},
		resource.Rollback{To: 5, Tenant: "red", Target: []resource.Target{{Key: part.Key(), Object: &part}, {Key: resource.PartitionKey(6)}}},
	}
}

func FuzzDecode(f *testing.F) {
	for _, c := range someChanges(time.Unix(1e9, 0).UTC()) {
		data, err := resource.EncodeChange(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := resource.DecodeChange(data); err == nil {
			written, err := resource.EncodeChange(c)
			if err != nil {
				return // a change that could never be made
			}
			again, err := resource.DecodeChange(written)
			if err != nil {
				t.Fatalf("%s: %v", written, err)
			}
			twice, _ := resource.EncodeChange(again)
			if string(written) != string(twice) {
				t.Errorf("%s\n%s", written, twice)
			}
			// No change, however odd, does harm to a state.
			s := resource.New(nil)
			if d, err := s.Plan(resource.Request{Change: c, By: provider, At: time.Unix(1e9, 0), Seen: resource.Unseen}); err == nil {
				s.Commit(d, 1, provider, time.Unix(1e9, 0))
				if _, err := policyfile.ReadYAML(s.Export(), "export"); err != nil {
					t.Errorf("%v\n%s", err, s.Export())
				}
			}
		}
	})
}
