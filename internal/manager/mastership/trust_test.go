package mastership

import (
	"crypto/sha256"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// A manager that ever counted has to say that it is not master, in answer to a question, and
// goes on to count when it says nothing any more. What others say is nothing.
func TestOthersSayThatTheyAreNotMaster(t *testing.T) {
	r, hosts := newRig(t, strict(), 2)
	r.lead()
	if at, all := r.Said(); !all || at != never {
		t.Errorf("there are no others: said %v, all %v", at, all)
	}
	r.says(hosts[0], true, partner)
	r.says(hosts[1], true, nameless)
	r.run(time.Second)
	if _, all := r.Said(); all || !slices.Equal(r.Unsaid(0), []ib.PortGUID{hosts[0].GUID}) {
		t.Errorf("before a question: all %v, unsaid %v", all, r.Unsaid(0))
	}
	began := r.now
	r.AskOthers(r.now)
	r.run(time.Second)
	if at, all := r.Said(); !all || at != began {
		t.Errorf("asked at %v, all %v; want %v", at, all, began)
	}
	if got := r.Unsaid(began + 1); len(got) != 1 {
		t.Errorf("a later question is not answered yet: unsaid %v", got)
	}
	for name, change := range map[string]func(){
		"silent":    func() { r.does[hosts[0]] = silent },
		"master":    func() { r.does[hosts[0]], r.states[hosts[0]] = partner, smp.SMMaster },
		"no key":    func() { r.does[hosts[0]] = nameless },
		"has twins": func() { r.does[hosts[0]], hosts[1].GUID = partner, hosts[0].GUID },
	} {
		r.states[hosts[0]] = 0
		guid := hosts[1].GUID
		change()
		r.run(time.Second)
		r.AskOthers(r.now)
		r.run(5 * time.Second)
		if at, all := r.Said(); !all || at != began {
			t.Errorf("%s: said at %v, all %v; want %v still", name, at, all, began)
		}
		hosts[1].GUID = guid
	}
}

// Only to a master that counts, and by one that is not master, it is a promise that it is not.
func TestPromise(t *testing.T) {
	for _, x := range []struct {
		name   string
		state  smp.SMState
		key    ib.SMKey // of the asker is wrong by so much
		lead   bool
		counts bool
	}{
		{"a master asks a standby", smp.SMMaster, 0, false, true},
		{"a standby asks", smp.SMStandby, 0, false, false},
		{"who proves nothing asks", smp.SMMaster, 1, false, false},
		{"a master is asked", smp.SMMaster, 0, true, false},
	} {
		r, hosts := newRig(t, strict(), 1)
		self := r.b.Fabric.Self.GUID
		if x.lead {
			r.lead()
		} else {
			r.states[hosts[0]] = smp.SMMaster
			hosts[0].Info.CapabilityMask |= smp.CapIsSM
			r.does[hosts[0]] = partner
			r.Placed(self)
			r.Begin(r.now)
			r.run(time.Millisecond)
			if _, master := r.Decide(r.now); master {
				t.Fatalf("%s: master beside a master", x.name)
			}
		}
		r.asks(hosts[0], smp.SMInfo{GUID: hosts[0].GUID, SMState: x.state, SMKey: secret(hosts[0].GUID, self) + x.key}, mad.MethodGet, 0)
		if _, promised := r.Promised(); promised != x.counts || len(r.answers) != 1 {
			t.Errorf("%s: promised %v, want %v; %d answers", x.name, promised, x.counts, len(r.answers))
		}
		var info smp.SMInfo
		if len(r.answers) == 1 && (info.UnmarshalBinary(r.answers[0].Data[:]) != nil || (info.SMKey != 0) != (x.key == 0)) {
			t.Errorf("%s: shown %v", x.name, info.SMKey)
		}
	}
}

// vouches is a proof that anybody could make, for tests.
type vouches struct{}

func (vouches) PolicySum(d [sha256.Size]byte) [16]byte { return [16]byte(d[:]) }
func (vouches) Vouch(from, to ib.PortGUID, nonce, sum [16]byte) [24]byte {
	return [24]byte(append(slices.Concat(nonce[:8], sum[:8]), byte(from), byte(to), 1, 2, 3, 4, 5, 6))
}

// The policy in force is told to who asks for it with the key of the pair, by a directed route
// from the port of that key, and to nobody else.
func TestPolicyIsToldToPartners(t *testing.T) {
	for _, x := range []struct {
		name     string
		modifier uint32
		key      ib.SMKey
		method   mad.Method
		known    bool
		told     bool
	}{
		{"a partner", policyModifier, 0, mad.MethodGet, true, true},
		{"another key", policyModifier, 1, mad.MethodGet, true, false},
		{"who does not ask for it", 0, 0, mad.MethodGet, true, false},
		{"an order", policyModifier, 0, mad.MethodSet, true, false},
		{"there is none", policyModifier, 0, mad.MethodGet, false, false},
	} {
		c := strict()
		c.Vouches = vouches{}
		r, hosts := newRig(t, c, 1)
		if x.known {
			r.rules.Policy = &policy.Policy{}
		}
		self := r.b.Fabric.Self.GUID
		r.lead()
		r.asks(hosts[0], smp.SMInfo{GUID: hosts[0].GUID, SMKey: secret(hosts[0].GUID, self) + x.key}, x.method, x.modifier)
		if len(r.answers) != 1 {
			t.Fatalf("%s: %d answers", x.name, len(r.answers))
		}
		a := &r.answers[0]
		proof := [24]byte(a.Data[offProof:])
		digest, _ := r.policyDigest()
		want := vouches{}.Vouch(self, hosts[0].GUID, [16]byte{}, vouches{}.PolicySum(digest))
		if told := proof == want && [16]byte(a.Data[offSum:]) == (vouches{}).PolicySum(digest) && x.known; told != x.told || !told && proof != [24]byte{} {
			t.Errorf("%s: told %v, want %v: % x", x.name, told, x.told, a.Data[offSum:])
		}
	}
}

// A policy is another manager's when it has proved it, with the nonce of this question, from its
// own port; what it says without is unknown, and what it proved last stands.
func TestPolicyOfAPartner(t *testing.T) {
	c := strict()
	c.Vouches = vouches{}
	r, hosts := newRig(t, c, 1)
	r.rules.Policy = &policy.Policy{}
	r.lead()
	r.says(hosts[0], true, partner)
	r.run(time.Second)
	guid, self := hosts[0].GUID, r.b.Fabric.Self.GUID
	digest, _ := r.policyDigest()
	same, nonce := vouches{}.PolicySum(digest), [16]byte{7}
	other := same
	other[0]++
	answer := func(sum [16]byte, proof [24]byte, key ib.SMKey, status mad.Status) observed.PolicyOf {
		m := mad.SMP{Status: status}
		info := smp.SMInfo{GUID: guid, SMKey: secret(guid, self) + key}
		if err := info.Encode(&m.Data); err != nil {
			t.Fatal(err)
		}
		copy(m.Data[offSum:], sum[:])
		copy(m.Data[offProof:], proof[:])
		r.heardPolicy(guid, self, nonce, &m)
		return r.PolicyOf(guid)
	}
	good := func(sum [16]byte) [24]byte { return vouches{}.Vouch(guid, self, nonce, sum) }
	if got := r.PolicyOf(guid); got != observed.PolicyUnknown {
		t.Errorf("it has said nothing: %v", got)
	}
	for _, x := range []struct {
		name string
		got  observed.PolicyOf
		want observed.PolicyOf
	}{
		{"the same", answer(same, good(same), 0, mad.StatusOK), observed.PolicySame},
		{"another", answer(other, good(other), 0, mad.StatusOK), observed.PolicyOther},
		{"the same, without the key", answer(same, good(same), 1, mad.StatusOK), observed.PolicyOther},
		{"the same, refused", answer(same, good(same), 0, mad.StatusUnsupportedAttrib), observed.PolicyOther},
		{"the proof of another policy", answer(same, good(other), 0, mad.StatusOK), observed.PolicyUnknown},
		{"the proof of another question", answer(same, vouches{}.Vouch(guid, self, [16]byte{8}, same), 0, mad.StatusOK), observed.PolicyUnknown},
		{"the proof of another manager", answer(same, vouches{}.Vouch(self, guid, nonce, same), 0, mad.StatusOK), observed.PolicyUnknown},
	} {
		if x.got != x.want {
			t.Errorf("%s: %v, want %v", x.name, x.got, x.want)
		}
	}
	if r.PolicyOf(0) != observed.PolicyUnknown || r.PolicyOf(1) != observed.PolicyUnknown {
		t.Error("the policy of a manager that is not there is known")
	}
}

// Managers says of each what it has shown, and whether it counts and why not.
func TestManagersAreDescribed(t *testing.T) {
	r, hosts := newRig(t, strict(), 4)
	listed, shared, nobody, plain := hosts[0], hosts[1], hosts[2], hosts[3]
	r.config.Election.Trusted = []ib.PortGUID{listed.GUID}
	if r.Managers() != nil {
		t.Error("managers are known before the manager's own port")
	}
	r.lead()
	for p, does := range map[*observed.Port]behaviour{listed: silent, shared: partner, nobody: nameless} {
		r.says(p, true, does)
	}
	r.run(time.Second)
	r.AskAll()
	r.run(2 * time.Second)
	if r.Asking() != 0 {
		t.Errorf("%d answers are awaited", r.Asking())
	}
	want := map[ib.PortGUID]struct {
		trust    observed.Trust
		why      string
		answered bool
	}{
		r.b.Fabric.Self.GUID: {observed.TrustSelf, "", true},
		listed.GUID:          {observed.TrustListed, "", false},
		shared.GUID:          {observed.TrustShared, "", true},
		nobody.GUID:          {observed.TrustNone, rogueUnproven, true},
	}
	got := r.Managers()
	if len(got) != len(want) {
		t.Errorf("%d managers: %+v", len(got), got)
	}
	for _, m := range got {
		if w, known := want[m.Port]; !known || m.Trust != w.trust || m.Why != w.why || m.Answered != w.answered || !m.IsSM && m.Trust != observed.TrustSelf {
			t.Errorf("%v: trust %v, %q, answered %v; want %+v", m.Port, m.Trust, m.Why, m.Answered, w)
		}
	}
	if !r.HasPartners() && r.round.partners == 0 {
		r.Ask()
		r.run(time.Second)
		r.Decide(r.now)
	}
	if !r.HasPartners() || !r.Sharing(shared.GUID) || r.Sharing(listed.GUID) || r.Sharing(nobody.GUID) || r.Sharing(plain.GUID) {
		t.Error("the one that shares the secret is a partner, and nobody else")
	}
	for guid, want := range map[ib.PortGUID]bool{shared.GUID: true, nobody.GUID: false, listed.GUID: false, plain.GUID: false} {
		if _, err := r.HandOver(r.now, guid); (err == nil) != want || err != nil && !errors.Is(err, ErrNoHandover) {
			t.Errorf("mastership is offered to %v: %v", guid, err)
		}
	}
}

// A manager that is new to the subnet leaves it to a master that does not count, known by what it
// says or, where it says nothing, by the LID of the master in its own port; one that is not new
// does not.
func TestIncumbent(t *testing.T) {
	for _, x := range []struct {
		name     string
		newcomer bool
		does     behaviour
		state    smp.SMState
		told     bool // the own port has its LID
		want     bool
	}{
		{"it says that it is master", true, nameless, smp.SMMaster, false, true},
		{"it says that it is standby", true, nameless, smp.SMStandby, true, false},
		{"silent, and the own port has its LID", true, silent, smp.SMMaster, true, true},
		{"silent, and the own port has another", true, silent, smp.SMMaster, false, false},
		{"this manager is not new", false, nameless, smp.SMMaster, true, false},
		{"it shares the secret", true, partner, smp.SMMaster, true, false},
	} {
		c := strict()
		c.Newcomer = x.newcomer
		r, hosts := newRig(t, c, 1)
		r.does[hosts[0]], r.states[hosts[0]] = x.does, x.state
		hosts[0].Info.CapabilityMask |= smp.CapIsSM
		r.b.Fabric.Self.Info.MasterSMLID = hosts[0].Info.LID + 100
		if x.told {
			r.b.Fabric.Self.Info.MasterSMLID = hosts[0].Info.LID
		}
		r.Placed(r.b.Fabric.Self.GUID)
		r.Begin(r.now)
		r.run(5 * time.Second)
		if got := r.Incumbent() == hosts[0]; got != x.want {
			t.Errorf("%s: it is left the subnet: %v, want %v", x.name, got, x.want)
		}
	}
}

// TestAMasterThatProvesLate: a manager that is new to the subnet leaves it to a master only when
// that has had ProofGrace to prove that it shares the secret; meanwhile it asks again, and it
// takes part in the election as soon as it is shown.
func TestAMasterThatProvesLate(t *testing.T) {
	for _, x := range []struct {
		late time.Duration // 0 for never
		key  bool          // the managers share a secret
		want bool          // the subnet is left to it
	}{
		{0, true, true}, {proofAgain / 2, true, false}, {ProofGrace - proofAgain, true, false}, {ProofGrace + proofAgain, true, true}, {proofAgain / 2, false, true},
	} {
		c := strict()
		c.Newcomer = true
		if !x.key {
			c.Election.Key, c.Election.Trusted = nil, []ib.PortGUID{1} // of nobody
		}
		r, hosts := newRig(t, c, 1)
		r.does[hosts[0]], r.states[hosts[0]] = nameless, smp.SMMaster
		hosts[0].Info.CapabilityMask |= smp.CapIsSM
		r.Placed(r.b.Fabric.Self.GUID)
		r.Begin(r.now)
		waited := time.Duration(0)
		for ; waited == 0 || r.Awaits(); waited += proofAgain / 5 {
			if x.late != 0 && waited >= x.late {
				r.does[hosts[0]] = partner
			}
			r.run(proofAgain / 5)
			if waited > 2*ProofGrace {
				t.Fatalf("%+v: it waits still", x)
			}
		}
		if got := r.Incumbent() == hosts[0]; got != x.want {
			t.Errorf("%+v: the subnet is left to it: %v, want %v", x, got, x.want)
		}
		if most := int(ProofGrace/proofAgain) + 1; r.asked[hosts[0]] > most || !x.key && r.asked[hosts[0]] > 1 {
			t.Errorf("%+v: it was asked %d times, want at most %d", x, r.asked[hosts[0]], most)
		}
		if x.want && x.key && waited < ProofGrace-proofAgain {
			t.Errorf("%+v: it was given %v", x, waited)
		}
	}
}
