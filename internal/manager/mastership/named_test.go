package mastership

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// pairKey stands for a secret that managers share: what one of a pair shows
// tells nobody what the other would.
func pairKey(from, to ib.PortGUID) ib.SMKey {
	return ib.SMKey(rand.New(rand.NewPCG(uint64(from), uint64(to))).Uint64() | 1)
}

const (
	listed   = ib.PortGUID(90)
	ours     = ib.PortGUID(70) // shares the secret
	stranger = ib.PortGUID(66)
)

// namedEngine is an engine in a state for which 90 is listed; standbys, and
// those not active, know 90 as their master.
func namedEngine(t testing.TB, state smp.SMState, change func(*ElectionConfig)) *Election {
	t.Helper()
	c := ElectionConfig{GUID: ownGUID, Named: true, Key: pairKey, Trusted: []ib.PortGUID{listed}}
	if change != nil {
		change(&c)
	}
	e, err := NewElection(c)
	if err != nil {
		t.Fatal(err)
	}
	master := Remote{Info: smp.SMInfo{GUID: listed, SMKey: c.SMKey, SMState: smp.SMMaster}, Address: at(listed)}
	switch state {
	case smp.SMMaster:
		e.Decide(0, nil)
	case smp.SMStandby:
		e.Decide(0, []Remote{master})
	case smp.SMNotActive:
		e.Decide(0, []Remote{master})
		e.Receive(0, at(listed), mad.MethodSet, uint32(smp.SMControlDisable), master.Info)
	}
	if e.State() != state {
		t.Fatalf("engine is %s, want %s", e.State(), state)
	}
	return e
}

// Whoever is not listed at its own port, or does not show the key of the pair,
// has no part in an election, whatever it says of itself. Each attack works on an
// engine that takes managers at their word.
func TestManagersAreNamed(t *testing.T) {
	for _, c := range []struct {
		name   string
		info   smp.SMInfo
		port   ib.PortGUID
		counts bool
	}{
		{"listed", smp.SMInfo{GUID: listed}, listed, true},
		{"ours", smp.SMInfo{GUID: ours, SMKey: pairKey(ours, ownGUID)}, ours, true},
		{"stranger", smp.SMInfo{GUID: stranger}, stranger, false},
		{"stranger with a listed GUID", smp.SMInfo{GUID: listed}, stranger, false},
		{"stranger with a listed GUID, nobody knows where", smp.SMInfo{GUID: listed}, 0, false},
		{"no GUID, nobody knows where", smp.SMInfo{}, 0, false},
		{"stranger with the key of another", smp.SMInfo{GUID: stranger, SMKey: pairKey(ours, ownGUID)}, stranger, false},
		{"stranger with GUID and key of another", smp.SMInfo{GUID: ours, SMKey: pairKey(ours, ownGUID)}, stranger, false},
		{"stranger that sends the key back", smp.SMInfo{GUID: stranger, SMKey: pairKey(ownGUID, stranger)}, stranger, false},
		{"ours without its key", smp.SMInfo{GUID: ours}, ours, false},
	} {
		for _, state := range []smp.SMState{smp.SMDiscovering, smp.SMStandby, smp.SMMaster} {
			t.Run(fmt.Sprintf("%s %s", c.name, state), func(t *testing.T) {
				c.info.Priority, c.info.SMState = 15, state
				r := Remote{Info: c.info, Address: Address{LID: 9, Port: c.port}}
				e := namedEngine(t, smp.SMDiscovering, nil)
				if e.Counts(r) != c.counts {
					t.Errorf("counts: %v, want %v", !c.counts, c.counts)
				}
				verdict, effects := e.Decide(0, []Remote{r})
				if stands := verdict != Master; stands != c.counts || effects.Send != nil {
					t.Errorf("%s, %+v", verdict, effects)
				}
				e = namedEngine(t, smp.SMMaster, nil)
				_, effects = e.Decide(0, []Remote{r})
				if offered := effects.Send != nil; offered != (c.counts && state != smp.SMDiscovering) {
					t.Errorf("a master sends %+v", effects.Send)
				}
				for _, m := range effects.Send {
					if want := pairKey(ownGUID, m.GUID); m.Info.SMKey != want {
						t.Errorf("with key 0x%x, want 0x%x", uint64(m.Info.SMKey), uint64(want))
					}
				}
				believes := engine(t, smp.SMDiscovering, ElectionConfig{})
				if verdict, _ := believes.Decide(0, []Remote{r}); verdict == Master {
					t.Error("an engine that believes managers does not fall for it: not an attack")
				}
			})
		}
	}
}

// The key in an answer is for the manager at the port that is asked from.
func TestKeyInAnswers(t *testing.T) {
	const plain = ib.SMKey(1)
	for _, c := range []struct {
		name  string
		asker smp.SMInfo
		port  ib.PortGUID
		show  bool // ElectionConfig.ShowKey, with a plain key
		want  ib.SMKey
	}{
		{"ours that shows its key", smp.SMInfo{GUID: ours, SMKey: pairKey(ours, ownGUID)}, ours, false, pairKey(ownGUID, ours)},
		{"ours that shows none", smp.SMInfo{GUID: ours}, ours, true, 0},
		{"listed, which does not say who it is", smp.SMInfo{}, listed, true, plain},
		{"listed, when keys are not shown", smp.SMInfo{}, listed, false, 0},
		{"a stranger", smp.SMInfo{}, stranger, true, 0},
		{"a stranger with GUID, key and state of a listed master", smp.SMInfo{GUID: listed, SMKey: plain, SMState: smp.SMMaster}, stranger, true, 0},
		{"a stranger with the pair of another", smp.SMInfo{GUID: ours, SMKey: pairKey(ours, ownGUID)}, stranger, true, 0},
		{"nobody knows where from", smp.SMInfo{GUID: listed, SMKey: plain, SMState: smp.SMMaster}, 0, true, 0},
	} {
		e := namedEngine(t, smp.SMMaster, func(x *ElectionConfig) { x.SMKey, x.ShowKey = plain, c.show })
		got, _, _ := e.Receive(0, Address{LID: 9, Port: c.port}, mad.MethodGet, 0, c.asker)
		if got.SMKey != c.want {
			t.Errorf("%s: SM_Key 0x%x, want 0x%x", c.name, uint64(got.SMKey), uint64(c.want))
		}
	}
	e := namedEngine(t, smp.SMStandby, func(x *ElectionConfig) { x.SMKey, x.Key = plain, nil })
	if got := e.InfoFor(stranger).SMKey; got != 0 {
		t.Errorf("a stranger is asked with SM_Key 0x%x", uint64(got))
	}
	if got := e.Tick(time.Minute).Send; len(got) != 1 || got[0].Info.SMKey != plain || got[0].GUID != listed {
		t.Errorf("the listed master is polled by %+v", got)
	}
}

// Control packets are taken from the manager that is watched, or was offered
// mastership, at its port; another manager that counts may only end being not
// active.
func TestControlPacketsOfNamedManagers(t *testing.T) {
	const other = ib.PortGUID(91) // listed as well
	legal := map[smp.SMControl]map[smp.SMState]bool{
		smp.SMControlHandover:    {smp.SMStandby: true},
		smp.SMControlDisable:     {smp.SMStandby: true},
		smp.SMControlDiscover:    {smp.SMStandby: true},
		smp.SMControlStandby:     {smp.SMNotActive: true},
		smp.SMControlAcknowledge: {smp.SMStandby: true}, // once more, without effect
	}
	for control := range smp.SMControl(8) {
		for _, state := range states() {
			for _, from := range []struct{ guid, port ib.PortGUID }{{listed, listed}, {other, other}, {listed, stranger}, {listed, 0}, {stranger, stranger}} {
				e := namedEngine(t, state, func(c *ElectionConfig) { c.Trusted = append(c.Trusted, other) })
				_, status, effects := e.Receive(0, Address{LID: 9, Port: from.port}, mad.MethodSet, uint32(control), smp.SMInfo{GUID: from.guid, SMState: smp.SMMaster})
				want := legal[control][state] && from.guid == from.port &&
					(from.guid == listed || from.guid == other && control == smp.SMControlStandby)
				if (status == mad.StatusOK) != want {
					t.Errorf("control %d from %d at %d to a %s: %s", control, from.guid, from.port, state, status)
				}
				if !want && (e.State() != state || effects.Send != nil || effects.Sweep) {
					t.Errorf("control %d from %d at %d to a %s has an effect: now %s, %+v", control, from.guid, from.port, state, e.State(), effects)
				}
			}
		}
	}
}

// A master takes HANDOVER from the second master that it polls, and ACKNOWLEDGE
// for the offer that is open, and each once.
func TestMasterIsHandedOverToOnce(t *testing.T) {
	e := namedEngine(t, smp.SMMaster, nil)
	set := func(c smp.SMControl, state smp.SMState) mad.Status {
		_, status, _ := e.Receive(0, at(listed), mad.MethodSet, uint32(c), smp.SMInfo{GUID: listed, SMState: state})
		return status
	}
	if set(smp.SMControlHandover, smp.SMMaster) == mad.StatusOK {
		t.Error("HANDOVER of a master that was not seen")
	}
	e.Decide(0, []Remote{{Info: smp.SMInfo{GUID: listed, SMState: smp.SMMaster}, Address: at(listed)}})
	if set(smp.SMControlHandover, smp.SMMaster) != mad.StatusOK {
		t.Error("HANDOVER of the second master is refused")
	}
	if set(smp.SMControlHandover, smp.SMMaster) == mad.StatusOK {
		t.Error("HANDOVER again")
	}
	if set(smp.SMControlAcknowledge, smp.SMStandby) == mad.StatusOK || e.State() != smp.SMMaster {
		t.Error("ACKNOWLEDGE out of turn")
	}
	e.Decide(0, []Remote{{Info: smp.SMInfo{GUID: listed, Priority: 9, SMState: smp.SMStandby}, Address: at(listed)}})
	if _, status, _ := e.Receive(0, Address{LID: 9, Port: stranger}, mad.MethodSet, uint32(smp.SMControlAcknowledge), smp.SMInfo{GUID: listed, Priority: 9, SMState: smp.SMStandby}); status == mad.StatusOK {
		t.Error("ACKNOWLEDGE of somebody else for an open offer")
	}
	if set(smp.SMControlAcknowledge, smp.SMStandby) != mad.StatusOK || e.State() != smp.SMStandby {
		t.Error("ACKNOWLEDGE for the open offer is refused")
	}
}

// A master that shared the secret and has gone is not replaced by somebody at its
// port who does not know it.
func TestPollsAreProven(t *testing.T) {
	e := namedEngine(t, smp.SMDiscovering, func(c *ElectionConfig) { c.MasterTimeout = DefaultMasterTimeout })
	master := smp.SMInfo{GUID: ours, SMKey: pairKey(ours, ownGUID), SMState: smp.SMMaster}
	if verdict, _ := e.Decide(0, []Remote{{Info: master, Address: at(ours)}}); verdict == Master {
		t.Fatal("a master of ours does not count")
	}
	for i := range partnerPolls + 1 {
		due, _ := e.Due()
		effects := e.Tick(due)
		if i < partnerPolls && effects.From != effects.To {
			t.Fatalf("after %d polls: %+v", i, effects)
		}
		for _, m := range effects.Send {
			if m.Info.SMKey != pairKey(ownGUID, ours) {
				t.Errorf("polled with 0x%x", uint64(m.Info.SMKey))
			}
			e.Answered(m, mad.StatusOK, smp.SMInfo{GUID: ours, ActCount: uint32(i) + 1, SMState: smp.SMMaster})
		}
	}
	if e.State() != smp.SMDiscovering {
		t.Errorf("still %s", e.State())
	}
}

// A master that shares the secret is given up within MasterTimeout of its end, whenever
// that is, and not before four polls in a row were left unanswered; fewer end nothing,
// however often that happens. What is said of the time since it was not heard of is never
// before its last answer, nor later than a poll interval after its end.
func TestPartnerIsGivenUpInTime(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		timeout := time.Duration(rapid.IntRange(50, 2000).Draw(r, "timeout, ms")) * time.Millisecond
		e := namedEngine(t, smp.SMDiscovering, func(c *ElectionConfig) { c.MasterTimeout = timeout })
		master := smp.SMInfo{GUID: ours, SMKey: pairKey(ours, ownGUID), SMState: smp.SMMaster}
		e.Decide(0, []Remote{{Info: master, Address: at(ours)}})
		end := time.Duration(rapid.Int64Range(0, int64(20*timeout)).Draw(r, "end"))
		answered := time.Duration(0)
		for row := 0; ; {
			now, due := e.Due()
			if !due || now > end+timeout {
				r.Fatalf("at %v it is still polled, it ended at %v, the timeout is %v", now, end, timeout)
			}
			effects := e.Tick(now)
			if effects.Lost {
				if row < partnerPolls || now < end && row < partnerPolls {
					r.Fatalf("given up after %d polls", row)
				}
				if effects.Since < answered || effects.Since > end+timeout/partnerPolls {
					r.Fatalf("not heard of since %v: it answered at %v and ended at %v", effects.Since, answered, end)
				}
				return
			}
			if row++; now < end && (row == partnerPolls || rapid.Bool().Draw(r, "answered")) {
				row, answered = 0, now
				master.ActCount++
				e.Answered(effects.Send[0], mad.StatusOK, master)
			}
		}
	})
}

// Whatever a rogue at any port that is not a named manager's sends, claims,
// repeats or answers, in any order: nothing follows, and it is shown no key. The
// same rogue has its way with an engine that takes managers at their word.
func TestRoguesChangeNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		state := rapid.SampledFrom(states()).Draw(r, "state")
		e := namedEngine(t, state, nil)
		if state == smp.SMMaster { // with an offer open
			higher := smp.SMInfo{GUID: listed, Priority: 9, SMState: smp.SMStandby}
			e.Decide(0, []Remote{{Info: higher, Address: at(listed)}})
		}
		at := e.Info().ActCount
		for range rapid.IntRange(1, 30).Draw(r, "packets") {
			info := smp.SMInfo{
				GUID:     rapid.SampledFrom([]ib.PortGUID{listed, ours, ownGUID, stranger, 0}).Draw(r, "GUID"),
				SMKey:    rapid.SampledFrom([]ib.SMKey{0, 1, pairKey(ours, ownGUID), pairKey(ownGUID, stranger), pairKey(stranger, listed)}).Draw(r, "key"),
				Priority: rapid.Uint8Range(0, 15).Draw(r, "priority"), SMState: smp.SMState(rapid.IntRange(0, 4).Draw(r, "claimed")),
				ActCount: at + rapid.Uint32Range(0, 9).Draw(r, "acts"),
			}
			from := Address{LID: ib.LID(rapid.IntRange(0, 99).Draw(r, "LID")), Port: rapid.SampledFrom([]ib.PortGUID{0, stranger, 67}).Draw(r, "port")}
			method := rapid.SampledFrom([]mad.Method{mad.MethodGet, mad.MethodSet}).Draw(r, "method")
			control := uint32(rapid.IntRange(0, 7).Draw(r, "control"))
			shown, _, effects := e.Receive(0, from, method, control, info)
			if effects.From != state || effects.To != state || effects.Send != nil || effects.Sweep || shown.SMKey != 0 || shown.SMState != state {
				r.Fatalf("%v %d of %+v from %+v: %+v, answered %+v", method, control, info, from, effects, shown)
			}
			m := Message{To: from, GUID: info.GUID, Method: method, Control: smp.SMControl(control)}
			if effects := e.Answered(m, mad.StatusOK, info); effects.From != state || effects.To != state || effects.Send != nil || effects.Sweep {
				r.Fatalf("answer %+v from %+v: %+v", info, from, effects)
			}
		}
	})
	// The same packets do mean something to an engine that believes managers.
	fooled := 0
	for _, state := range states() {
		for control := smp.SMControlHandover; control.IsValid(); control++ {
			believes := engine(t, state, ElectionConfig{})
			believes.Receive(0, Address{LID: 5, Port: stranger}, mad.MethodSet, uint32(control), smp.SMInfo{GUID: stranger, Priority: 15, SMState: smp.SMMaster})
			if believes.State() != state {
				fooled++
			}
		}
	}
	if fooled == 0 {
		t.Error("no rogue fools an engine that believes managers")
	}
}
