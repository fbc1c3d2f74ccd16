package resource_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/test/need"
)

// run is one run of calls against the state and the model.
type run struct {
	*testing.T
	seed    uint64
	calls   *caller
	state   *resource.State
	model   *model
	ports   []policy.EndPort
	history map[uint64]*model
	// done and refused count the calls by action, reasons the refusals by reason.
	done, refused map[string]int
	reasons       map[resource.Reason]int
}

// TestACallerGetsAndSeesWhatTheModelSays makes random calls. With IBWARDEN_SOAK=1 it
// makes 100,000. It goes on with further seeds, up to mostRuns times as many, until everything
// was done and refused often enough: what is rare is not left to the seed.
func TestACallerGetsAndSeesWhatTheModelSays(t *testing.T) {
	runs, length, least := need.Share(4, fullRuns), 1200, 1
	if need.Soak() {
		runs, length, least = 100, 1000, 20
	}
	first := need.Seed(t, uint64(time.Now().UnixNano())%1e6)
	total := &run{done: map[string]int{}, refused: map[string]int{}, reasons: map[resource.Reason]int{}}
	for i := 0; i < runs || i < mostRuns*max(runs, fullRuns) && len(total.rare(least)) > 0; i++ {
		(&run{T: t, seed: first + uint64(i), done: total.done, refused: total.refused, reasons: total.reasons}).all(length)
		if t.Failed() {
			return
		}
	}
	for _, text := range total.rare(least) {
		t.Errorf("%s: want at least %d times in seeds from %d on", text, least, first)
	}
	t.Logf("done %v\nrefused %v\nreasons %v", total.done, total.refused, total.reasons)
}

// fullRuns are the runs of a whole test; mostRuns times as many are made until nothing is rare.
const fullRuns, mostRuns = 10, 5

// rare lists what was done or refused less than so many times.
func (r *run) rare(least int) (out []string) {
	note := func(what string, n int) {
		if n < least {
			out = append(out, fmt.Sprintf("%s: %d times", what, n))
		}
	}
	for _, action := range resource.Actions() {
		note(action+" done", r.done[action])
		note(action+" refused", r.refused[action])
	}
	for _, reason := range []resource.Reason{resource.Invalid, resource.Forbidden, resource.NotFound, resource.Exists, resource.OverQuota, resource.TooFast, resource.Stale, resource.Conflict} {
		note("refused as "+string(reason), r.reasons[reason])
	}
	for _, what := range []string{"held", "approved", "accepted", "accepted into a partition", "waiting", "shared", "lent"} {
		note(what, r.done[what])
	}
	return out
}

func (r *run) all(length int) {
	rng := rand.New(rand.NewPCG(r.seed, 7))
	r.model, r.state = newModel(), resource.New(&policy.Policy{Default: policy.Limited})
	r.history = map[uint64]*model{0: r.model.copy()}
	for g := range ib.PortGUID(0x3C) {
		if g > 0 && (g <= 15 || g >= 0x30) {
			r.ports = append(r.ports, policy.EndPort{PortGUID: g, NodeGUID: ib.NodeGUID(0x1000 + g), PortNum: 1, NodeType: ib.NodeCA, Switch: 0x99, SwitchPort: ib.PortNum(g)})
		}
	}
	r.ports = append(r.ports, policy.EndPort{PortGUID: 0x5000, NodeGUID: 0x6000, PortNum: 1, NodeType: ib.NodeSwitch, SM: true})
	r.calls = &caller{Rand: rng, model: r.model, tenantNames: []string{"provider"}}
	at := time.Unix(1e9, 0)
	for i := range 4 + rng.IntN(5) {
		r.calls.tenantNames = append(r.calls.tenantNames, fmt.Sprintf("ten%c", 'A'+i))
	}
	for _, name := range r.calls.tenantNames[1:] {
		r.call(-1, resource.Request{By: resource.Caller{Name: "uid 0", Tenant: "provider"}, Change: r.calls.tenant(name), At: at, Seen: resource.Unseen})
	}
	for step := range length {
		at = at.Add(time.Millisecond + time.Duration(rng.IntN(8000))*time.Millisecond)
		switch rng.IntN(1200) {
		case 0, 1, 2:
			at = at.Add(8 * 24 * time.Hour)
		case 3:
			at = at.Add(401 * 24 * time.Hour)
		}
		r.call(step, r.calls.request(r.state, at))
		if r.Failed() {
			return
		}
		if step%4 == 0 {
			r.compareSights(step)
		}
	}
}

func known() map[ib.PortGUID]bool {
	out := map[ib.PortGUID]bool{}
	for g := range ib.PortGUID(knownPorts) {
		out[g+1] = true
	}
	return out
}

// call makes one call of both, and compares what they say.
func (r *run) call(step int, req resource.Request) {
	want, why, held := r.model.try(req, known(), r.history)
	diff, err := r.state.Plan(req)
	action := req.Change.Action()
	fail := func(format string, args ...any) {
		r.Errorf("seed %d, step %d: %s by %s of %s: %+v (seen %d, proved %d, last %d): %s", r.seed, step, action, req.By.Name, req.By.Tenant, req.Change, int64(req.Seen), req.Proved, r.model.rev, fmt.Sprintf(format, args...))
	}
	r.leaks(req, diff, err, fail)
	if err != nil {
		var refusal *resource.Refusal
		if !errors.As(err, &refusal) || !why[refusal.Reason] {
			fail("refused: %v: the model knows the reasons %v", err, slices.Sorted(maps.Keys(why)))
			return
		}
		r.refused[action]++
		r.reasons[refusal.Reason]++
		return
	}
	if want == nil {
		fail("accepted, as %q: the model refuses it as %v", diff.Words, slices.Sorted(maps.Keys(why)))
		return
	}
	if held != (diff.Approval() != nil) {
		fail("waits for a second person: %v: the model says %v", diff.Approval() != nil, held)
		return
	}
	if held {
		r.done["held"]++
	}
	if c, is := req.Change.(resource.Approve); is {
		r.done["approved"]++
		if r.model.waiting[c.ID].from != "" {
			r.done["accepted"]++
			r.done["accepted into a partition"] += min(1, len(c.Into))
		}
	}
	r.done[action]++
	r.state.Commit(diff, r.state.Last()+1, req.By, req.At)
	r.model.commit(want, req.By.Tenant, req.At)
	r.adopt(fail)
	r.history[r.model.rev] = r.model.copy()
	r.calls.diffs = append(r.calls.diffs, diff)
	if len(r.calls.diffs) > 12 {
		r.calls.diffs = r.calls.diffs[1:]
	}
	r.compareKeys(fail)
}

// leaks looks for names of other tenants in what a tenant's caller is told.
func (r *run) leaks(req resource.Request, diff resource.Diff, err error, fail func(string, ...any)) {
	if req.By.Tenant == "provider" {
		return
	}
	told, named := strings.Join(diff.WordsFor(req.By), "\n"), r.named(req.By, req.Change)
	if err != nil {
		told = err.Error()
	}
	for _, name := range r.calls.tenantNames[1:] {
		if name != req.By.Tenant && strings.Contains(told, name) && !slices.Contains(named, name) {
			fail("it tells of %s: %s", name, told)
		}
	}
}

// adopt takes over the numbers that the partitions of the file were given, which the
// model does not foretell, after it has checked that nobody else has them.
func (r *run) adopt(fail func(string, ...any)) {
	given := map[string]ib.PKeyBase{}
	if f := r.state.File(); f != nil {
		given = f.Numbers
	}
	taken := map[ib.PKeyBase]bool{}
	for _, p := range r.model.file.parts {
		taken[p.stated] = true
	}
	for name, had := range r.model.numbers {
		k := given[name]
		if k == 0 || had != 0 && had != k || taken[k] || r.model.part(k) != nil || k == ib.PKeyBaseDefault {
			fail("partition %s of the file has the number %v: it had %v", name, k, had)
		}
		for _, t := range r.model.tenants {
			if t.Keys.Has(k) {
				fail("partition %s of the file has the number %v of %s", name, k, t.Name)
			}
		}
		taken[k] = true
		r.model.numbers[name] = k
	}
}

// compareKeys compares which port gets which key, and which switches are drained.
func (r *run) compareKeys(fail func(string, ...any)) {
	drained := map[ib.NodeGUID]bool{}
	for _, d := range r.state.Policy().Drained {
		drained[d.At.Switch] = true
	}
	if !maps.Equal(drained, r.model.drains) {
		fail("drained are %v: the model says %v", drained, r.model.drains)
	}
	acks := map[ack]time.Time{}
	for _, o := range r.state.Objects() {
		if x, is := o.(*resource.Acknowledgement); is {
			acks[ack{x.Tenant, x.Alarm}] = x.Until
		}
	}
	if !maps.EqualFunc(acks, r.model.acks, time.Time.Equal) {
		fail("acknowledged are %v: the model says %v", acks, r.model.acks)
	}
	res, err := r.state.Policy().Resolve(r.ports, nil)
	if err != nil {
		fail("resolve: %v", err)
		return
	}
	got := map[ib.PortGUID]map[ib.PKeyBase]policy.Membership{}
	for _, p := range r.ports {
		got[p.PortGUID] = map[ib.PKeyBase]policy.Membership{}
	}
	for _, p := range res.Partitions {
		for _, g := range p.Full {
			got[g][p.Base] = policy.Full
		}
		for _, g := range p.Limited {
			got[g][p.Base] = policy.Limited
		}
	}
	for _, p := range r.ports {
		if p.SM {
			continue
		}
		if want := r.model.keys(p.PortGUID); !maps.Equal(got[p.PortGUID], want) {
			fail("port %v of %q gets %v: the model says %v", p.PortGUID, r.model.owner(p.PortGUID), got[p.PortGUID], want)
		}
	}
}

// compareSights compares what every tenant sees.
func (r *run) compareSights(step int) {
	for _, tenant := range append(r.calls.tenantNames, "nobody") {
		for _, keys := range []resource.KeyRange{{}, {First: 0x101, Last: 0x202}} {
			by := resource.Caller{Name: "x=", Tenant: tenant, Keys: keys}
			var got, want []string
			for _, p := range r.state.Visible(by) {
				got = append(got, fmt.Sprint(p.PKey, p.Owner, p.Name, r.state.TouchedFor(by, p.PKey)))
				for _, m := range r.state.Members(p.PKey) {
					if r.state.SeesMember(by, m) {
						got = append(got, fmt.Sprint(p.PKey, m.Port, m.Agreed()))
					}
				}
			}
			for _, p := range r.model.parts {
				if r.model.sees(tenant, keys, p.k) {
					want = append(want, fmt.Sprint(p.k, p.owner, p.name, r.model.lastSeen(tenant, keys, p.k)))
				}
			}
			for _, x := range r.model.mems {
				if r.model.seesMem(tenant, keys, x) {
					want = append(want, fmt.Sprint(x.k, x.port, x.agreed.as != 0))
					if p := r.model.part(x.k); x.agreed.as != 0 && p.owner != r.model.owner(x.port) {
						r.done["shared"]++
					}
				}
			}
			for _, p := range r.ports {
				g := p.PortGUID
				got, want = append(got, fmt.Sprint(g, r.state.SightOf(by, g))), append(want, fmt.Sprint(g, r.model.sight(tenant, keys, g)))
				if r.model.sight(tenant, keys, g) == resource.SightMember {
					r.done["lent"]++
				}
				for _, p := range r.model.parts {
					got, want = append(got, fmt.Sprint(g, p.k, r.state.SeesKey(by, g, p.k))), append(want, fmt.Sprint(g, p.k, r.model.keySeen(tenant, keys, g, p.k)))
				}
			}
			for _, p := range r.model.parts {
				got, want = append(got, fmt.Sprint("part", p.k, r.state.TakesPart(by, p.k))), append(want, fmt.Sprint("part", p.k, r.model.takesPart(tenant, keys, p.k)))
			}
			r.compareWaits(step, by)
			if slices.Sort(got); !slices.Equal(got, sorted(want)) {
				r.Errorf("seed %d, step %d: %s (%v) sees %q: the model says %q", r.seed, step, tenant, keys, got, want)
			}
		}
		var got, want []slot
		for _, m := range r.state.Waiting(tenant) {
			got = append(got, slot{m.PKey, m.Port})
		}
		want = r.model.waitsFor(tenant)
		slices.SortFunc(want, func(a, b slot) int { return int(a.k)*1e6 + int(a.g) - int(b.k)*1e6 - int(b.g) })
		if r.done["waiting"] += len(want); !slices.Equal(got, want) {
			r.Errorf("seed %d, step %d: %v waits for %s: the model says %v", r.seed, step, got, tenant, want)
		}
	}
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
