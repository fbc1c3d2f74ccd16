package simtest

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// asksPolicy is the modifier of Get(SMInfo) by which partners ask for the policy.
const asksPolicy = 0x49425751

// partner is a manager whose packets somebody on the way, or its own vendor, changes.
type partner struct {
	*engine.Engine
	*rival
	arrives, leaves func(*mad.SMP)
	tells           [16]byte // of its policy, as its Vouches was asked last
}

// overheard notes what a manager tells of its policy.
type overheard struct {
	mastership.Vouches
	of *partner
}

func (o overheard) PolicySum(digest [sha256.Size]byte) [16]byte {
	o.of.tells = o.Vouches.PolicySum(digest)
	return o.of.tells
}

func (m *partner) Receive(now time.Duration, p *mad.SMP, slid ib.LID) {
	if m.arrives != nil {
		m.arrives(p)
	}
	m.Engine.Receive(now, p, slid)
}

func (m *partner) Next(now time.Duration, p *mad.SMP) (ib.LID, bool) {
	to, ok := m.Engine.Next(now, p)
	if ok && m.leaves != nil {
		m.leaves(p)
	}
	return to, ok
}

// partner seats a manager that shares a secret with the others, and tells of its policy.
func (r *rivals) partner(id string, c engine.Config, p *policy.Policy) *partner {
	r.t.Helper()
	m := &partner{}
	m.rival = r.seat(id, func(at *rival) link.Engine {
		c.Limits = transact.DefaultLimits()
		c.Limits.FirstTimeout, c.Limits.MinTimeout = 50*time.Microsecond, 20*time.Microsecond
		c.Routing = routing.UpDown
		c.Election.SMKeys = ring(1)
		if c.Election.Vouches != nil {
			c.Election.Vouches = overheard{c.Election.Vouches, m}
		}
		if c.Profile == protect.None {
			c.Profile = protect.Tenant
		}
		m.Engine = engine.New(c, p, func(e event.Event) { at.events = append(at.events, happened{r.fabric.Now(), e}) })
		return m
	})
	return m
}

// telling is a configuration that tells of its policy, with a rank.
func telling(rank uint8) engine.Config {
	return engine.Config{Election: engine.Election{Priority: rank, Vouches: keyRing(1)}}
}

// of is what this manager knows of the policy of another.
func (m *partner) of(r *rivals, other *partner) observed.PolicyOf {
	for _, x := range m.Managers() {
		if x.Port == r.node(other.id(r)).Ports[1].GUID {
			return x.Policy
		}
	}
	return "not there"
}

func (r *rivals) setPolicy(m *partner, p *policy.Policy) {
	m.SetPolicy(p)
	m.Engine.Expire(r.fabric.Now())
}

// Partners compare their policies, whoever is master: what means the same is the same, and
// what gives, or takes, anything else is another. A change of either is seen in seconds.
func TestPartnersComparePolicies(t *testing.T) {
	need.Long(t, "seconds of processor time")
	list := topology.Demo()
	y := halves(hosts(list))
	moved := y.move(guidOf(list, "red-1"), 0x10, 0x20)
	changed := func(change func(*policy.Policy)) *policy.Policy {
		p := y.policy()
		change(p)
		return p
	}
	unnumbered := func() *policy.Policy {
		return changed(func(p *policy.Policy) { p.Partitions[0].PKey, p.Partitions[1].PKey = 0, 0 })
	}
	numbers := telling(0)
	numbers.Known.PKeys = map[string]ib.PKeyBase{unnumbered().Partitions[0].Name: 0x30}
	basic := telling(0)
	basic.Profile = protect.Basic
	older := telling(0)
	older.Election.Vouches = nil
	for _, x := range []struct {
		name    string
		first   *policy.Policy
		standby engine.Config
		second  *policy.Policy
		want    observed.PolicyOf
	}{
		{"the same", y.policy(), telling(0), y.policy(), observed.PolicySame},
		{"another file", y.policy(), telling(0), changed(func(p *policy.Policy) { p.Source = "b.yaml" }), observed.PolicySame},
		{"a member moved", y.policy(), telling(0), moved.policy(), observed.PolicyOther},
		{"a setting", y.policy(), telling(0), changed(func(p *policy.Policy) { withMasterLID(p, 40) }), observed.PolicyOther},
		{"raw packets", y.policy(), telling(0), changed(func(p *policy.Policy) { p.AllowRaw = true }), observed.PolicyOther},
		{"numbers allocated alike", unnumbered(), telling(0), unnumbered(), observed.PolicySame},
		{"numbers allocated otherwise", unnumbered(), numbers, unnumbered(), observed.PolicyOther},
		{"another profile", y.policy(), basic, y.policy(), observed.PolicyOther},
		{"an older version", y.policy(), older, y.policy(), observed.PolicyUnknown},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := newRivals(t)
			first := r.partner("mgmt-1", telling(5), x.first)
			r.run(time.Second)
			second := r.partner("blue-6", x.standby, x.second)
			r.run(20 * time.Second)
			if first.Status().State != smp.SMMaster || second.Status().State != smp.SMStandby {
				t.Fatalf("one is %s, the other %s", first.Status().State, second.Status().State)
			}
			if a, b := second.of(r, first), first.of(r, second); a != x.want && x.standby.Election.Vouches != nil || b != x.want {
				t.Errorf("to the standby the policy is %q, to the master %q; want %q", a, b, x.want)
			}
			if x.standby.Election.Vouches == nil {
				if a := second.of(r, first); a != observed.PolicyUnknown {
					t.Errorf("one that does not ask knows %q", a)
				}
				return
			}
			r.setPolicy(first, moved.policy())
			r.run(6 * time.Second)
			r.setPolicy(second, moved.policy())
			want := observed.PolicySame
			if x.standby.Profile != protect.None { // nothing but a restart makes these the same
				want = observed.PolicyOther
			}
			r.run(6 * time.Second)
			if a, b := second.of(r, first), first.of(r, second); a != want || b != want {
				t.Errorf("after a change of both: %q, %q; want %q", a, b, want)
			}
			r.setPolicy(first, y.policy())
			r.run(6 * time.Second)
			if a, b := second.of(r, first), first.of(r, second); a != observed.PolicyOther || b != observed.PolicyOther {
				t.Errorf("after a change of one: %q, %q", a, b)
			}
		})
	}
}

// forger changes what a standby is told of its master's policy, on the way.
type forger struct {
	t      *testing.T
	seen   []mad.SMP
	change func(f *forger, p *mad.SMP)
	forged int
	nonce  [16]byte // of the last question
}

func (f *forger) leaves(p *mad.SMP) {
	if p.AttributeID == smp.AttrSMInfo && p.AttributeModifier == asksPolicy && p.Method == mad.MethodGet {
		f.nonce = [16]byte(p.Data[24:])
	}
}

func (f *forger) arrives(p *mad.SMP) {
	if p.AttributeID != smp.AttrSMInfo || p.AttributeModifier != asksPolicy || p.Method != mad.MethodGetResp {
		return
	}
	f.seen = append(f.seen, *p)
	before := p.Data
	f.change(f, p)
	if p.Data != before {
		f.forged++
	}
}

// Nobody on the way makes a standby take another policy for its own, whatever he has heard:
// what is forged, replayed, reflected or meant for somebody else tells nothing.
func TestPolicyAnswersAreProved(t *testing.T) {
	need.Long(t, "seconds of processor time")
	list := topology.Demo()
	y := halves(hosts(list))
	moved := y.move(guidOf(list, "red-1"), 0x10, 0x20)
	guid := func(id string) ib.PortGUID { return guidOf(list, id) }
	for name, x := range map[string]struct {
		want   observed.PolicyOf
		change func(f *forger, p *mad.SMP)
	}{
		"the sum of its own policy":     {observed.PolicyUnknown, func(f *forger, p *mad.SMP) { copy(p.Data[24:40], f.seen[0].Data[24:40]) }},
		"an answer of before, replayed": {observed.PolicyUnknown, func(f *forger, p *mad.SMP) { copy(p.Data[24:], f.seen[0].Data[24:]) }},
		"the proof of another secret": {observed.PolicyUnknown, func(f *forger, p *mad.SMP) {
			sum := [16]byte(f.seen[0].Data[24:])
			proof := keyRing(9).Vouch(guid("mgmt-1"), guid("blue-6"), f.nonce, sum)
			copy(p.Data[24:], append(sum[:], proof[:]...))
		}},
		"the proof of the other direction": {observed.PolicyUnknown, func(f *forger, p *mad.SMP) {
			sum := [16]byte(f.seen[0].Data[24:])
			proof := keyRing(1).Vouch(guid("blue-6"), guid("mgmt-1"), f.nonce, sum)
			copy(p.Data[24:], append(sum[:], proof[:]...))
		}},
		"another bit of the proof": {observed.PolicyUnknown, func(_ *forger, p *mad.SMP) { p.Data[63] ^= 1 }},
		"no proof":                 {observed.PolicyUnknown, func(_ *forger, p *mad.SMP) { clear(p.Data[40:]) }},
		"nothing":                  {observed.PolicyUnknown, func(_ *forger, p *mad.SMP) { clear(p.Data[21:]) }},
		// Of a host in whose place nobody answers, or somebody without the key, what was
		// told last stays.
		"a refusal, as of a host without a manager": {observed.PolicyOther, func(_ *forger, p *mad.SMP) {
			p.Status = mad.StatusUnsupportedAttrib
			clear(p.Data[:])
		}},
		"the answer of another, without the key": {observed.PolicyOther, func(f *forger, p *mad.SMP) {
			clear(p.Data[8:16])
			copy(p.Data[24:], f.seen[0].Data[24:])
		}},
		"the right proof": {observed.PolicySame, func(f *forger, p *mad.SMP) { // that the others are attacks
			sum := [16]byte(f.seen[0].Data[24:])
			proof := keyRing(1).Vouch(guid("mgmt-1"), guid("blue-6"), f.nonce, sum)
			copy(p.Data[24:], append(sum[:], proof[:]...))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRivals(t)
			first := r.partner("mgmt-1", telling(5), y.policy())
			r.run(time.Second)
			second := r.partner("blue-6", telling(0), y.policy())
			f := &forger{t: t, change: func(*forger, *mad.SMP) {}}
			second.arrives, second.leaves = f.arrives, f.leaves
			r.run(20 * time.Second)
			if got := second.of(r, first); got != observed.PolicySame || len(f.seen) == 0 {
				t.Fatalf("before: %q, %d answers", got, len(f.seen))
			}
			r.setPolicy(first, moved.policy())
			if x.want == observed.PolicyOther {
				r.run(10 * time.Second)
			}
			f.change = x.change
			if r.run(20 * time.Second); x.want == observed.PolicyOther {
				r.setPolicy(first, y.policy())
				r.run(20 * time.Second)
			}
			if got := second.of(r, first); got != x.want || f.forged == 0 {
				t.Errorf("%d forged answers told it %q, want %q", f.forged, got, x.want)
			}
		})
	}
}

// A stranger, on any host and with any claim, is told nothing of the policy, and who is only
// listed is not even asked: it may be an OpenSM.
func TestPolicyIsForPartners(t *testing.T) {
	r := newRivals(t)
	y := halves(hosts(r.list))
	listed := guidOf(r.list, "blue-3")
	c := telling(5)
	c.Election.Trusted = []ib.PortGUID{listed}
	first := r.partner("mgmt-1", c, y.policy())
	r.run(time.Second)
	standby := telling(0)
	standby.Election.Trusted = c.Election.Trusted
	second := r.partner("blue-6", standby, y.policy())
	other := &rogue{impostor: impostor{info: smp.SMInfo{GUID: listed, SMState: smp.SMStandby}}}
	r.seat("blue-3", func(*rival) link.Engine { return other })
	r.run(20 * time.Second)
	if len(other.seen) == 0 {
		t.Error("the listed manager is not asked for anything")
	}
	for _, p := range other.seen {
		if p.AttributeModifier == asksPolicy {
			t.Error("a listed manager is asked for its policy")
		}
	}
	for _, claims := range []ib.PortGUID{guidOf(r.list, "red-1"), guidOf(r.list, "blue-6"), listed} {
		for _, key := range []ib.SMKey{0, 1, ring(2)(claims, guidOf(r.list, "mgmt-1")), ring(1)(guidOf(r.list, "mgmt-1"), claims)} {
			s := r.stranger("red-1")
			p := s.packet(mad.ClassSubnLID, mad.MethodGet, smp.AttrSMInfo, asksPolicy)
			info := smp.SMInfo{GUID: claims, SMKey: key, SMState: smp.SMStandby}
			r.must(info.Encode(&p.Data))
			s.send(&p, r.info(r.host("mgmt-1")).LID)
			r.run(10 * time.Millisecond)
			var d fabric.Delivery
			var answer mad.SMP
			if !s.Receive(&d) || answer.UnmarshalBinary(d.MAD[:]) != nil || answer.TransactionID != p.TransactionID {
				t.Error("no answer at all")
			}
			if slices.ContainsFunc(answer.Data[24:], func(b byte) bool { return b != 0 }) {
				t.Errorf("who says that it is %v is told %x", claims, answer.Data[24:])
			}
			s.Detach()
		}
	}
	if got := second.of(r, first); got != observed.PolicySame {
		t.Errorf("the partner knows %q", got)
	}
}

// lie has a manager tell this sum of its policy.
func (m *partner) lie(r *rivals, sum func() [16]byte) {
	guid := func(id string) ib.PortGUID { return guidOf(r.list, id) }
	var nonce [16]byte
	m.arrives = func(p *mad.SMP) {
		if p.AttributeID == smp.AttrSMInfo && p.AttributeModifier == asksPolicy && p.Method == mad.MethodGet {
			nonce = [16]byte(p.Data[24:])
		}
	}
	m.leaves = func(p *mad.SMP) {
		if p.AttributeID == smp.AttrSMInfo && p.AttributeModifier == asksPolicy && p.Method == mad.MethodGetResp {
			sum := sum()
			proof := keyRing(1).Vouch(guid("mgmt-1"), guid("blue-6"), nonce, sum)
			copy(p.Data[24:], append(sum[:], proof[:]...))
		}
	}
}

// A standby takes over from a master with another policy as far as the two agree, and says
// so: it gives nobody what the tables did not hold, trusts nobody and filters raw packets, also
// where its policy was accepted beforehand; until the policy is read again. What a master
// with the secret says of its policy, true or not, never gives anybody more than its silence
// does.
func TestTakeoverFromAnotherPolicy(t *testing.T) {
	need.Long(t, "seconds of processor time")
	const red, mover = "red-2", "red-1"
	for _, x := range []struct {
		name   string
		same   bool // the policies
		lies   string
		accept bool
		alarm  bool
		gives  bool // what the tables did not hold
		raw    bool // passes raw packets
	}{
		{name: "another, accepted beforehand", accept: true, alarm: true},
		{name: "another", alarm: true},
		{name: "another, and says the same", lies: "same", raw: true},
		{name: "another, and says the same, accepted beforehand", lies: "same", accept: true, gives: true, raw: true},
		{name: "another, and is silent", lies: "silent", raw: true},
		{name: "another, and is silent, accepted beforehand", lies: "silent", accept: true, gives: true, raw: true},
		{name: "the same", same: true, raw: true},
		{name: "the same, accepted beforehand", same: true, accept: true, raw: true, gives: true},
		{name: "the same, and says another", same: true, lies: "other", alarm: true},
		{name: "the same, and says another, accepted beforehand", same: true, lies: "other", accept: true, alarm: true},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := newRivals(t)
			y := halves(hosts(r.list))
			policyOf := func(y tenancy) *policy.Policy {
				p := y.policy()
				p.AllowRaw = true
				p.Trusted = []policy.TrustedPorts{{Selector: policy.Selector{Kind: policy.SelectPort, GUID: uint64(guidOf(r.list, "blue-1"))}}}
				return p
			}
			now := y.move(guidOf(r.list, mover), 0x10, 0x20)
			if x.same {
				now = y
			}
			c := telling(5)
			if x.lies == "silent" {
				c.Election.Vouches = nil
			}
			first := r.partner("mgmt-1", c, policyOf(now))
			r.run(time.Second)
			c = telling(1)
			c.Election.AcceptPolicy = x.accept
			second := r.partner("blue-6", c, policyOf(y))
			switch x.lies {
			case "same":
				first.lie(r, func() [16]byte { return second.tells })
			case "other":
				first.lie(r, func() [16]byte { return [16]byte{1} })
			}
			r.run(30 * time.Second)
			r.leave(first.rival)
			if x.same { // what the tables do not hold is what a host lost at that moment
				r.setKeys(r.switchPort(mover), func(k *smp.PKeyTable) { *k = smp.PKeyTable{} })
			}
			since := r.fabric.Now()
			r.run(20 * time.Second)
			if !has[event.Completed](second.rival, since) {
				t.Fatalf("it did not take over: %v", second.events)
			}
			if got := has[event.Guarding](second.rival, since); got != x.alarm {
				t.Errorf("alarm %v, want %v", got, x.alarm)
			}
			if x.gives || !x.same {
				r.checkHolds("after the takeover", mover, 0x10, x.gives)
			} else if _, guard := r.holds(mover, 0x10); guard {
				t.Error("after the takeover the host is given what the tables did not hold")
			}
			if !x.same {
				r.checkHolds("after the takeover", mover, 0x20, false) // what is taken away is taken
			}
			r.checkHolds("after the takeover", red, 0x10, true)
			check := func(when string, loose bool) {
				s, ok := second.Subnet()
				if !ok || s.Trusted[guidOf(r.list, "blue-1")] != loose {
					t.Errorf("%s: the policy's trusted port is trusted %v, want %v", when, !loose, loose)
				}
				if got := r.info(r.switchPort(red)).FilterRawInbound; got == loose {
					t.Errorf("%s: raw packets are filtered %v, want %v", when, got, !loose)
				}
			}
			check("after the takeover", x.raw)
			named := slices.ContainsFunc(second.events, func(h happened) bool {
				w, ok := h.Event.(event.Warned)
				return ok && strings.Contains(w.Text, "another policy") && strings.Contains(w.Text, "SIGHUP")
			})
			if named != x.alarm {
				t.Errorf("it says that it is bound: %v, want %v", named, x.alarm)
			}
			r.setPolicy(second, policyOf(y)) // as a change through the API does
			r.run(20 * time.Second)
			check("changed", !x.alarm)
			if guard := second.Status().Guards; guard != x.alarm {
				t.Errorf("changed: it is bound %v, want %v", guard, x.alarm)
			}
			if _, guard := r.holds(mover, 0x10); guard == x.alarm {
				t.Errorf("changed: %s holds what the tables did not hold: %v, want %v", mover, guard, !x.alarm)
			}
			second.AcceptPolicy()
			r.setPolicy(second, policyOf(y))
			r.run(20 * time.Second)
			r.checkHolds("read again", mover, 0x10, true)
			check("read again", true)
			if second.Status().Guards {
				t.Error("read again: it is bound still")
			}
		})
	}
}
