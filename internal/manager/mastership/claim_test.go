package mastership

import (
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// Who sets IsSM is fenced by a strict master: at once where nobody could prove anything, and
// where managers share a secret when its time is over and it has proved nothing, whether it
// answers or not. One that is listed or proves itself is not touched, and nobody is by another
// profile.
func TestIsSMAlone(t *testing.T) {
	for _, x := range []struct {
		name        string
		profile     protect.Profile
		key, listed bool
		does        behaviour
		now, later  bool // fenced
	}{
		{"silent", protect.Strict, true, false, silent, false, true},
		{"answers and proves nothing", protect.Strict, true, false, nameless, false, true},
		{"shares the secret", protect.Strict, true, false, partner, false, false},
		{"listed, silent", protect.Strict, true, true, silent, false, false},
		{"listed, without a secret", protect.Strict, false, true, silent, false, false},
		{"nobody shares a secret", protect.Strict, false, false, silent, true, true},
		{"profile tenant", protect.Tenant, true, false, silent, false, false},
		{"profile tenant, no secret", protect.Tenant, false, false, nameless, false, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			c := strict()
			c.Profile = x.profile
			if !x.key {
				c.Election.Key = nil
			}
			r, hosts := newRig(t, c, 2)
			if x.listed {
				r.config.Election.Trusted = append(r.config.Election.Trusted, hosts[0].GUID)
			}
			r.lead()
			r.says(hosts[0], true, x.does)
			r.run(ProofGrace - time.Millisecond)
			if r.fenced(hosts[0]) != x.now {
				t.Errorf("before its time is over: fenced %v, want %v", r.fenced(hosts[0]), x.now)
			}
			r.run(time.Second)
			if r.fenced(hosts[0]) != x.later || r.fenced(hosts[1]) {
				t.Errorf("after its time: fenced %v, want %v: %v", r.fenced(hosts[0]), x.later, r.fences)
			}
			if r.run(10 * ProofGrace); r.fenced(hosts[0]) != x.later {
				t.Errorf("long after: fenced %v, want %v", r.fenced(hosts[0]), x.later)
			}
			if alarmed := len(r.alarms()) > 0; alarmed != (!x.listed && x.does != partner) {
				t.Errorf("alarms %q", r.alarms())
			}
			if named := r.Names(hosts[0]); named != (x.listed || x.does == partner) {
				t.Errorf("named: %v", named)
			}
		})
	}
}

// A standby fences nobody, and when it becomes master those that are there have their time
// from then on.
func TestTimeBeginsWithTheMaster(t *testing.T) {
	r, hosts := newRig(t, strict(), 1)
	r.Placed(r.b.Fabric.Self.GUID)
	r.Begin(r.now)
	r.says(hosts[0], true, silent)
	if r.run(10 * ProofGrace); r.fenced(hosts[0]) {
		t.Fatal("fenced by a manager that is not master")
	}
	if _, master := r.Decide(r.now); !master {
		t.Fatal("not master")
	}
	if r.run(ProofGrace / 2); r.fenced(hosts[0]) {
		t.Error("fenced before its time is over")
	}
	if r.run(ProofGrace); !r.fenced(hosts[0]) {
		t.Error("not fenced")
	}
}

// Who clears IsSM and sets it again has no more time for that, nor does another GUID.
func TestTimeCountsOn(t *testing.T) {
	r, hosts := newRig(t, strict(), 1)
	r.lead()
	for range 3 {
		r.says(hosts[0], true, silent)
		r.run(ProofGrace / 3)
		r.says(hosts[0], false, silent)
		r.run(5 * ProofGrace)
		hosts[0].GUID += 0x1000
	}
	if r.fenced(hosts[0]) {
		t.Error("fenced while IsSM is not set")
	}
	r.says(hosts[0], true, silent)
	if r.run(time.Second); !r.fenced(hosts[0]) {
		t.Error("not fenced after three thirds of its time")
	}
}

// One that proved itself and comes again, as after a restart, has all of its time, and after
// a long while so has anybody.
func TestTimeAgain(t *testing.T) {
	r, hosts := newRig(t, strict(), 2)
	r.lead()
	r.says(hosts[0], true, partner)
	r.says(hosts[1], true, silent)
	r.run(ProofGrace * 3 / 4)
	r.says(hosts[0], false, silent)
	r.says(hosts[1], false, silent)
	r.run(claimMemory + time.Second)
	r.Ask() // as after a sweep
	for _, p := range hosts {
		r.says(p, true, silent)
	}
	if r.run(ProofGrace * 3 / 4); r.fenced(hosts[0]) || r.fenced(hosts[1]) {
		t.Errorf("fenced before its time is over: %v", r.fences)
	}
	r.does[hosts[0]] = partner
	if r.run(ProofGrace); r.fenced(hosts[0]) || !r.fenced(hosts[1]) {
		t.Errorf("one has proved itself, the other has not: %v", r.fences)
	}
}

// Of two ports with one GUID the one that has proved itself is never fenced; the other is,
// listed or not. Where neither has, a listed one may be either, and both ports of one that is
// not listed are fenced. None of them is shown a key.
func TestTwins(t *testing.T) {
	for _, x := range []struct {
		name           string
		listed, proved bool
		first, second  bool // fenced
	}{
		{"shares the secret", false, true, false, true},
		{"listed and shares the secret", true, true, false, true},
		{"listed", true, false, false, false},
		{"nobody", false, false, true, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			r, hosts := newRig(t, strict(), 2)
			genuine, twin := hosts[0], hosts[1]
			if x.listed {
				r.config.Election.Trusted = []ib.PortGUID{genuine.GUID}
			}
			r.lead()
			if x.proved {
				r.says(genuine, true, partner)
				r.run(time.Second)
				r.Decide(r.now)
			}
			twin.GUID = genuine.GUID
			r.says(twin, true, partner)
			r.says(genuine, true, r.does[genuine])
			before := r.asked[twin]
			r.run(3 * ProofGrace)
			r.Ask()
			r.run(3 * ProofGrace)
			if r.fenced(genuine) != x.first || r.fenced(twin) != x.second {
				t.Errorf("fences %v: want the first %v, its twin %v", r.fences, x.first, x.second)
			}
			if r.asked[twin] != before {
				t.Error("a twin is asked, and shown the key of the pair")
			}
			if may, why := r.MayCount(twin); may || why != rogueTwin {
				t.Errorf("a twin may count: %v, %q", may, why)
			}
			if !slices.Contains(r.alarms(), rogueTwin) {
				t.Errorf("alarms %q", r.alarms())
			}
			// What it is told and asked, the genuine one may answer and ask.
			if x.proved {
				info := smp.SMInfo{GUID: genuine.GUID, SMState: smp.SMStandby, SMKey: secret(genuine.GUID, r.b.Fabric.Self.GUID)}
				r.asks(genuine, info, mad.MethodSet, uint32(smp.SMControlHandover))
				if r.fenced(genuine) {
					t.Error("a control packet of the genuine one fences it, since it has a twin")
				}
			}
		})
	}
}

// Where the list of cables has a manager elsewhere, it does not count and is not asked: a listed
// one is the list's business, any other has its time to prove itself, as everybody has.
func TestMisplaced(t *testing.T) {
	r, hosts := newRig(t, strict(), 3)
	r.list = &cables.List{} // nobody is where it has him
	r.config.Election.Trusted = []ib.PortGUID{hosts[0].GUID}
	r.lead()
	for _, p := range hosts {
		r.says(p, true, partner)
	}
	r.run(ProofGrace / 2)
	if len(r.fences) > 0 {
		t.Errorf("fenced before their time is over: %v", r.fences)
	}
	r.asks(hosts[1], smp.SMInfo{GUID: hosts[1].GUID, SMKey: secret(hosts[1].GUID, r.b.Fabric.Self.GUID)}, mad.MethodGet, 0)
	r.run(ProofGrace)
	if r.fenced(hosts[0]) || r.fenced(hosts[1]) || !r.fenced(hosts[2]) {
		t.Errorf("fences %v: want that of the third alone", r.fences)
	}
	for i, p := range hosts {
		if r.asked[p] > 0 {
			t.Errorf("host %d is asked", i)
		}
	}
}

// A question that shows the key, by a directed route, proves who asks from where; by a LID, or
// with another key, it proves nothing. The proof lifts the fence that stood for want of it, and
// no other.
func TestProofByQuestion(t *testing.T) {
	r, hosts := newRig(t, strict(), 3)
	r.lead()
	good := func(i int) smp.SMInfo {
		return smp.SMInfo{GUID: hosts[i].GUID, SMState: smp.SMStandby, SMKey: secret(hosts[i].GUID, r.b.Fabric.Self.GUID)}
	}
	for _, p := range hosts {
		r.says(p, true, silent)
	}
	r.run(2 * ProofGrace)
	if !r.fenced(hosts[0]) || !r.fenced(hosts[1]) || !r.fenced(hosts[2]) {
		t.Fatalf("fences %v", r.fences)
	}
	(*rigHost)(r).Fence(hosts[2].Peer.Place(), "a person says so")
	wrong := good(1)
	wrong.SMKey++
	r.asks(hosts[0], good(0), mad.MethodGet, 0)
	r.asks(hosts[1], wrong, mad.MethodGet, 0)
	r.asks(hosts[2], good(2), mad.MethodGet, 0)
	if r.fenced(hosts[0]) || !r.fenced(hosts[1]) || !r.fenced(hosts[2]) {
		t.Errorf("fences %v: want those of the second and the third", r.fences)
	}
	by := mad.SMP{
		BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnLID, Method: mad.MethodGet, AttributeID: smp.AttrSMInfo,
	}
	info := good(1)
	if err := info.Encode(&by.Data); err != nil {
		t.Fatal(err)
	}
	r.Receive(r.now, &by, hosts[1].Info.LID)
	if !r.fenced(hosts[1]) {
		t.Error("a LID, which a host can choose, lifts a fence")
	}
}

// While this manager still reads the subnet it answers a master that shows the key of the pair,
// with its own, and nobody else.
func TestAnswersAPartnerAtOnce(t *testing.T) {
	for _, x := range []struct {
		name    string
		method  mad.Method
		state   smp.SMState
		key     ib.SMKey
		answers int
	}{
		{"a master that shows the key", mad.MethodGet, smp.SMMaster, 0, 1},
		{"another key", mad.MethodGet, smp.SMMaster, 1, 0},
		{"a standby", mad.MethodGet, smp.SMStandby, 0, 0},
		{"an order", mad.MethodSet, smp.SMMaster, 0, 0},
	} {
		r, hosts := newRig(t, strict(), 1)
		self := r.b.Fabric.Self.GUID
		r.Placed(self)
		r.asks(hosts[0], smp.SMInfo{GUID: hosts[0].GUID, SMState: x.state, SMKey: secret(hosts[0].GUID, self) + x.key}, x.method, uint32(smp.SMControlDisable))
		if len(r.answers) != x.answers {
			t.Errorf("%s: %d answers", x.name, len(r.answers))
		}
		_, promised := r.Promised()
		if promised != (x.answers > 0) {
			t.Errorf("%s: promised that it is not master: %v", x.name, promised)
		}
		for _, a := range r.answers {
			var info smp.SMInfo
			if info.UnmarshalBinary(a.Data[:]) != nil || info.SMKey != secret(self, hosts[0].GUID) || info.SMState != smp.SMDiscovering {
				t.Errorf("%s: %+v", x.name, info)
			}
		}
		held := len(r.responder.held)
		if held != 1-x.answers {
			t.Errorf("%s: %d questions are kept for later", x.name, held)
		}
	}
}

// A start lifts the fences before managers that are listed by now and before ports that no longer
// say that there is one; who might prove something has not yet.
func TestStartLiftsFences(t *testing.T) {
	r, hosts := newRig(t, strict(), 5)
	r.config.Election.Trusted = []ib.PortGUID{hosts[0].GUID}
	for i, p := range hosts {
		if i != 1 && i != 4 {
			p.Info.CapabilityMask |= smp.CapIsSM
		}
		reason := fencedRogue + rogueSilent
		if i >= 3 {
			reason = "a person says so"
		}
		(*rigHost)(r).Fence(p.Peer.Place(), reason)
	}
	r.lead()
	for i, want := range []bool{false, false, true, true, true} {
		if r.fenced(hosts[i]) != want {
			t.Errorf("host %d: fenced %v, want %v", i, r.fenced(hosts[i]), want)
		}
	}
}

// The verdict is given again when a manager that nobody named comes, proves itself, or goes; not
// for one that is listed, and not without end.
func TestRestates(t *testing.T) {
	c := strict()
	c.Profile = protect.Tenant
	r, hosts := newRig(t, c, 2)
	r.config.Election.Trusted = []ib.PortGUID{hosts[1].GUID}
	r.lead()
	want := func(what string, n int) {
		t.Helper()
		r.run(3 * unnamedGap)
		if r.restated != n {
			t.Errorf("%s: %d times, want %d", what, r.restated, n)
		}
	}
	want("nobody", 0)
	r.says(hosts[1], true, silent)
	want("a listed one comes", 0)
	r.says(hosts[0], true, silent)
	want("one that nobody named comes", 1)
	r.says(hosts[0], false, silent)
	want("it goes", 2)
	r.says(hosts[0], true, silent)
	want("it comes", 3)
	r.says(hosts[0], true, partner)
	r.Ask()
	want("it proves itself", 4)
	for range 50 {
		r.says(hosts[0], false, silent)
		r.says(hosts[0], true, silent)
		r.run(unnamedGap / 50)
	}
	if r.restated > 7 {
		t.Errorf("50 times there and gone within a second: %d verdicts", r.restated-4)
	}
}
