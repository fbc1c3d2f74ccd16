package resource_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/lab/golden"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// drawn draws requests of every kind, by a seed, over few ports and numbers, so that they meet.
type drawn struct {
	*bench
	*rand.Rand
	by     resource.Caller
	tokens int
	diffs  []resource.Diff // by revision, from first
	first  uint64
}

// pick draws one of a list.
func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

const (
	aliasOf7  = ib.PortGUID(0x0200_0000_0000_0107)
	aliasPool = ib.PortGUID(0x0200_0000_0000_1105)
	aliasOf9  = ib.PortGUID(0x0200_0000_0000_0109)
)

// texts are policy files, most of which a state may meet in one way or another.
var texts = []string{
	"default: limited\naliases:\n- {port: 0x7, guids: [0x0200000000000107]}\n- {port: 0x1005, guids: [0x0200000000001105]}\n- {port: 0x9, guids: [0x0200000000000109]}\npartitions:\n- {name: storage, pkey: 0x10, members: {full: [0x9]}}\n",
	"default: full\naliases:\n- {port: 0x9, guids: [0x0200000000000107]}\npartitions:\n- {name: storage, members: {full: [0x9], limited: [ALL_CAS]}}\n- {name: more, pkey: 0x11}\n",
	"default: none\npartitions:\n- {name: storage, members: {limited: [0x9]}}\n- {name: own, pkey: 0x50, may_be_absent: true, members: {full: [0x8]}}\n",
	"default: none\ngroups: {g: [0xA, \"n*\"]}\npartitions:\n- {name: own}\n",
	"default: limited\ngroups: {g: [0xA]}\ntrusted: [0x8]\npartitions:\n- {name: more, pkey: 0x11, members: {full: [g, 0x8]}, ipoib: true}\nservices: [{name: disks, offered_by: [0x9], to: [more]}]\n",
	"default: limited\npartitions:\n- {name: x, pkey: 0x100}\n- {name: own, pkey: 0x51}\n- {name: y, pkey: 0x1fe}\n",
	"default: limited\ngroups: {g: [0x1]}\npartitions:\n- {name: x, members: {full: [0x1006, 0x4]}}\n",
	"settings: {qos_levels: [{sl: 0, share: 10}, {sl: 3, share: 20}]}\npartitions: [{name: storage, pkey: 0x12, rate_limit: 5}]\n",
	"aliases:\n- {port: 0x2, guids: [0x0200000000000107]}\napart: [0x30]\npartitions: []\n", "nonsense: 1\n",
}

func (w *drawn) guid() ib.PortGUID {
	return pick(w.Rand, 1, 2, 3, 4, 7, 8, 9, 10, 0x1005, 0x1006, 0x2005, aliasOf7, aliasPool, aliasOf9)
}

func (w *drawn) guids() []ib.PortGUID {
	list := make([]ib.PortGUID, 1+w.IntN(3)*w.IntN(2))
	for i := range list {
		list[i] = w.guid()
	}
	return list
}

// pkey is mostly that of a partition that the caller sees.
func (w *drawn) pkey() ib.PKeyBase {
	if list := w.Visible(w.by); len(list) > 0 && w.IntN(8) > 0 {
		return pick(w.Rand, list...).PKey
	}
	return pick[ib.PKeyBase](w.Rand, 0x10, 0x11, 0x50, 0x51, 0x100, 0x100, 0x101, 0x102, 0x200, 0x200, 0x201, 0x300)
}

func (w *drawn) members() []resource.Member {
	var list []resource.Member
	for _, g := range w.guids() {
		list = append(list, resource.Member{Port: g, Membership: pick(w.Rand, policy.Full, policy.Full, policy.Full, policy.Limited, policy.Limited, policy.Both), Index0: w.IntN(6) == 0, Host: pick(w.Rand, "", "", "h1", "h2")})
	}
	return list
}

func (w *drawn) partition() resource.Partition {
	return resource.Partition{PKey: pick(w.Rand, w.pkey(), 0), Name: pick(w.Rand, "training", "storage", "own", "x", "y", "z"), Owner: pick(w.Rand, "", "", w.by.Tenant, w.name()), SL: pick[ib.SL](w.Rand, 0, 0, 3, 5),
		MTU: pick[ib.MTU](w.Rand, 0, ib.MTU2048), Rate: pick[ib.Rate](w.Rand, 0, 3), IPoIB: w.IntN(3) == 0}
}

func (w *drawn) name() string { return pick(w.Rand, "red", "blue", "green", resource.Provider) }

// tenant draws what the provider does to tenants and what they have.
func (w *drawn) tenant() resource.Change {
	switch w.IntN(14) {
	case 0, 1:
		x := resource.Tenant{Name: w.name(), ApproveRemovals: w.IntN(4) == 0, KnownPortsOnly: w.IntN(6) == 0}
		x.Keys = map[string]resource.KeyRange{"red": {First: 0x100, Last: pick[ib.PKeyBase](w.Rand, 0x100, 0x1FF, 0x200)}, "blue": {First: 0x200, Last: 0x2FF}, "green": {First: pick[ib.PKeyBase](w.Rand, 0, 0x51, 0x300), Last: 0x3FF}}[x.Name]
		x.Quota = resource.Quota{Partitions: pick(w.Rand, 0, 2, 3), Members: pick(w.Rand, 0, 4, 6), KeysPerPort: pick(w.Rand, 0, 1, 2), ChangesPerMinute: pick(w.Rand, 0, 0, 9)}
		return resource.PutTenant{Tenant: x}
	case 2:
		return resource.DeleteTenant{Name: w.name()}
	case 3, 4, 5:
		var ports []resource.Port
		for _, g := range w.guids() {
			p := resource.Port{GUID: g}
			if w.IntN(4) == 0 {
				p.Switch, p.SwitchPort = 0x51, ib.PortNum(w.IntN(3))
			}
			ports = append(ports, p)
		}
		return resource.AssignPorts{Tenant: w.name(), Ports: ports}
	case 6, 7:
		return resource.ReleasePorts{Ports: w.guids()}
	case 8, 9:
		first := pick[ib.PortGUID](w.Rand, 0x1000, 0x2000, 0x3000, 9, aliasOf9)
		return resource.AssignPool{Tenant: w.name(), First: first, Last: first + pick[ib.PortGUID](w.Rand, 0, 0xFFF, 0x1000)}
	case 10, 11:
		c := resource.MovePorts{Tenant: w.name(), Ports: w.guids()}
		for range w.IntN(3) {
			c.Into = append(c.Into, resource.Joined{PKey: w.pkey(), Membership: pick(w.Rand, policy.Full, policy.Limited), Index0: w.IntN(4) == 0})
		}
		return c
	case 12:
		return resource.ReleasePool{First: pick[ib.PortGUID](w.Rand, 0x1000, 0x2000, 0x3000, 9, aliasOf9)}
	}
	return pick[resource.Change](w.Rand, resource.DrainSwitch{Drain: resource.Drain{Switch: 0x51}}, resource.UndrainSwitch{Switch: 0x51}, resource.Trim{})
}

func (w *drawn) change() resource.Change {
	n := 3 + w.IntN(21)
	if w.by.IsProvider() && w.IntN(2) == 0 || w.IntN(20) == 0 {
		n = w.IntN(4)
	}
	switch n {
	case 0, 1, 2:
		return w.tenant()
	case 3:
		if w.by.Tenant != resource.Provider {
			return resource.SetMembers{PKey: w.pkey(), Members: w.members()}
		}
		c := file(pick(w.Rand, texts...))
		if w.IntN(2) == 0 {
			c.Name, c.Text, c.AllowBoth = "p.conf", "Default=0x7fff : ALL=limited ;\nstorage=0x10 : 0x9=full ;\n", true
		}
		return c
	case 4, 5:
		c := resource.PutPartition{Partition: w.partition(), Create: w.IntN(6) == 0}
		if w.IntN(3) == 0 {
			c.Members = w.members()
		}
		return c
	case 6:
		return resource.DeletePartition{PKey: w.pkey()}
	case 7, 8:
		return resource.RemoveMembers{PKey: w.pkey(), Ports: w.guids(), DeleteEmptied: w.IntN(3) == 0}
	case 9, 10, 11:
		c := resource.AmendPartition{PKey: w.pkey(), Name: pick(w.Rand, "", "", "x"), All: w.IntN(5) == 0, Empty: w.IntN(3) == 0}
		if p := w.partition(); w.IntN(3) == 0 {
			c.Make, c.SL, c.MTU, c.Rate, c.IPoIB = &p, &p.SL, &p.MTU, &p.Rate, &p.IPoIB
		}
		if w.IntN(2) == 0 {
			c.Set = w.members()
		}
		if w.IntN(3) == 0 {
			c.Remove = w.guids()
		}
		if w.IntN(4) == 0 {
			c.RemoveHosts = []string{pick(w.Rand, "h1", "h2", "")}
		}
		return c
	case 12, 13, 14:
		if list := w.waiting(); len(list) > 0 {
			m := list[0]
			as, index0 := m.Membership, m.Index0
			if m.Agreed() {
				as, index0 = m.Asked.Membership, m.Asked.Index0
			}
			if w.IntN(4) == 0 {
				return resource.Refuse{PKey: m.PKey, Port: m.Port}
			}
			return resource.Consent{PKey: m.PKey, Port: m.Port, Membership: as, Index0: index0 != (w.IntN(8) == 0)}
		}
		return resource.Refuse{PKey: w.pkey(), Port: w.guid()}
	case 15:
		if list := w.Approvals(); len(list) > 0 {
			yes := resource.Approve{ID: list[0].ID}
			if list[0].From != "" && w.IntN(2) == 0 {
				yes.Into = []resource.Joined{{PKey: w.pkey(), Membership: pick(w.Rand, policy.Full, policy.Limited)}}
			}
			return pick[resource.Change](w.Rand, yes, yes, resource.Reject{ID: list[0].ID})
		}
		return resource.Approve{ID: "none"}
	case 16:
		w.tokens++
		x := resource.Token{ID: fmt.Sprint("t", w.tokens), Tenant: pick(w.Rand, w.by.Tenant, w.by.Tenant, w.name()), Sum: fmt.Sprintf("%064x", w.tokens), ReadOnly: w.IntN(4) == 0, Expires: w.at.Add(time.Duration(1+w.IntN(9)) * time.Hour)}
		return resource.PutToken{Token: x}
	case 17:
		return resource.DeleteToken{ID: fmt.Sprint("t", 1+w.IntN(w.tokens+1)), KeepMade: w.IntN(2) == 0}
	case 18:
		to := w.Last() - min(w.Last()-w.first, uint64(1+w.IntN(12)))
		var later []resource.Diff
		for n := w.Last(); n > to; n-- {
			later = append(later, w.diffs[n-w.first-1])
		}
		c := resource.NewRollback(to, pick(w.Rand, "", "", w.by.Tenant, w.name()), later)
		c.Owners = w.IntN(3) == 0
		return c
	case 19:
		return resource.OfferPorts{Tenant: w.name(), Ports: w.guids()}
	}
	return resource.SetMembers{PKey: w.pkey(), Members: w.members(), All: w.IntN(6) == 0, NoRequests: w.IntN(8) == 0}
}

// waiting are members that wait, mostly for the caller, the one drawn first.
func (w *drawn) waiting() (list []*resource.Member) {
	if list = w.Waiting(w.by.Tenant); w.IntN(8) == 0 {
		list = append(list, w.Waiting(w.name())...)
	}
	if len(list) > 0 {
		list = list[w.IntN(len(list)):]
	}
	return list
}

// request draws who asks for it, what he has seen, and what is known of the fabric.
func (w *drawn) request() resource.Request {
	w.at = w.at.Add(time.Duration(w.IntN(40)) * time.Second)
	by := pick(w.Rand, provider, provider, of("red"), of("red"), of("blue"), of("blue"), resource.Caller{Name: "red-2", Tenant: "red"})
	if w.Tenant("green") != nil && w.IntN(8) == 0 {
		by = of("green")
	}
	if list := w.Tokens(""); len(list) > 0 && w.IntN(6) == 0 {
		by, _ = w.CallerOf(pick(w.Rand, list...).Sum, w.at)
	}
	if w.IntN(12) == 0 {
		by.Keys = resource.KeyRange{First: 0x101, Last: 0x10F}
	}
	w.by = by
	r := resource.Request{Change: w.change(), By: by, At: w.at, Seen: resource.Unseen, Proved: w.Last(), Refused: w.IntN(4)}
	if w.IntN(5) == 0 {
		r.Seen = w.Last() - min(w.Last(), uint64(w.IntN(9)))
	}
	if w.IntN(4) == 0 {
		r.Proved -= min(w.Last(), uint64(w.IntN(9)))
	}
	if w.IntN(3) == 0 {
		known := tables{}
		for range 8 {
			known[w.guid()] = 2 + w.IntN(3)
		}
		r.Fabric = known
	}
	return r
}

// shows is all that each caller may see of the state.
func (w *drawn) shows() string {
	var out strings.Builder
	bound, bounded := of("red"), provider
	bound.Keys = resource.KeyRange{First: 0x101, Last: 0x10F}
	bounded.Keys = bound.Keys
	for _, by := range []resource.Caller{provider, of("red"), of("blue"), of("green"), bound, bounded, of("nobody"), {}} {
		fmt.Fprintf(&out, "%s %v\n", by.Tenant, by.Keys)
		for _, k := range []ib.PKeyBase{0x10, 0x50, 0x100, 0x101, 0x102, 0x200, 0x201, 0x300} {
			members, waiting := w.CountVisible(by, k)
			if touched := w.TouchedFor(by, k); w.Sees(by, k) != (touched > 0) || members > 0 && touched == 0 {
				w.Errorf("%s sees %v: %v, %d members, touched %d", by.Tenant, k, w.Sees(by, k), members, touched)
			}
			fmt.Fprintf(&out, "%v %v %d %d %d %v", k, w.Sees(by, k), members, waiting, w.TouchedFor(by, k), w.TakesPart(by, k))
			for _, m := range w.Members(k) {
				fmt.Fprintf(&out, " %v:%v %v", m.Port, w.SeesMember(by, m), w.SeesKey(by, m.Port, k))
			}
			out.WriteString("\n")
		}
		for _, g := range []ib.PortGUID{1, 2, 3, 8, 9, 0x1005, aliasOf7, aliasPool} {
			fmt.Fprintf(&out, "%v %d %v, ", g, w.SightOf(by, g), w.SeesKey(by, g, ib.PKeyBaseDefault))
		}
		out.WriteString("\n")
	}
	for _, t := range w.Tenants() {
		fmt.Fprintf(&out, "%s %d partitions %d ports %d pools %d tokens %d wait, last %d\n", t.Name, len(w.Partitions(t.Name)), len(w.PortsOf(t.Name)), len(w.Pools(t.Name)), len(w.Tokens(t.Name)), len(w.Waiting(t.Name)), w.LastFor(of(t.Name)))
	}
	for k := ib.PKeyBase(0); k < 0x60; k++ {
		if name, is := w.Claimed(k); is {
			fmt.Fprintf(&out, "%v is %s\n", k, name)
		}
	}
	return out.String()
}

// outcome is all that comes of a request: the refusal, or the diff and what the state then is.
func (w *drawn) outcome(r resource.Request) (short, whole string) {
	before := w.Objects()
	d, err := w.Plan(r)
	if after := w.Objects(); !slices.Equal(before, after) {
		w.Fatalf("a plan of %s left other objects behind", r.Change.Action())
	}
	var refusal *resource.Refusal
	switch {
	case errors.As(err, &refusal):
		return "refused", fmt.Sprintf("%s: %v", refusal.Reason, err)
	case err != nil:
		w.Fatalf("%v is no refusal", err)
	}
	var out strings.Builder
	for _, e := range d.Edits {
		from, err := json.Marshal(e.Before)
		to, err2 := json.Marshal(e.After)
		if err := errors.Join(err, err2); err != nil {
			w.Fatal(err)
		}
		fmt.Fprintf(&out, "%s%s\n%s\n%s\n", e.Key, seenBy(e), from, to)
	}
	for i, words := range d.Words {
		fmt.Fprintf(&out, "%s [%s]\n", words, d.About[i])
	}
	fmt.Fprintln(&out, w.Touches(d), d.Approval() != nil)
	if len(d.Edits) == 0 {
		return "nothing", out.String()
	}
	with := string(policyfile.WriteYAML(w.PolicyWith(d)))
	w.Commit(d, w.Last()+1, r.By, w.at)
	w.diffs = append(w.diffs, d)
	if now := string(policyfile.WriteYAML(w.Policy())); now != with {
		w.Fatalf("%s: the policy was to be\n%s\nand is\n%s", r.Change.Action(), with, now)
	}
	w.consented()
	return "done", out.String() + w.shows() + string(w.Export())
}

// consented holds the policy against the members: each that the API put there is one that both
// owners agreed to, who are the owners still.
func (w *drawn) consented() {
	for _, part := range w.Policy().Partitions {
		p := w.Partition(part.PKey)
		if p == nil || p.PolicyName() != part.Name {
			continue
		}
		for _, x := range part.Members {
			m := w.Member(part.PKey, ib.PortGUID(x.GUID))
			if m == nil || !m.Agreed() || m.Membership != x.Membership || m.Owner != p.Owner || m.PortOwner != w.Owner(m.Port) || m.PortOwner == "" {
				w.Errorf("port %#x is in %v: %+v, the owner of the port is %q", x.GUID, part.PKey, m, w.Owner(ib.PortGUID(x.GUID)))
			}
		}
	}
}

// TestWalk: what comes of thousands of requests of every kind, and what everybody may see then, is
// what it was when testdata/walk.txt was written (go test -update). Whatever is drawn, nobody gets
// a key to which an owner has not agreed, and a plan leaves the state as it was.
func TestWalk(t *testing.T) {
	const seeds, steps, each = 8, 45, 6
	var story golden.Story
	did := map[string]int{}
	for seed := range uint64(seeds) {
		b := town(t)
		w := &drawn{bench: b, Rand: rand.New(rand.NewPCG(seed, 27)), first: b.Last()}
		for step := range steps {
			var what, follows []string
			for range each {
				r := w.request()
				short, whole := w.outcome(r)
				did[short]++
				what = append(what, short)
				follows = append(follows, fmt.Sprintf("%s: %s: %s", r.By.Name, r.Change.Action(), whole))
			}
			story.Add(fmt.Sprintf("seed %d, %d: %s", seed, step, strings.Join(what, " ")), strings.Join(follows, "\n"))
		}
	}
	if did["done"] < 400 || did["refused"] < 400 {
		t.Errorf("too little came of the requests: %v", did)
	}
	story.Check(t, "walk.txt")
}
