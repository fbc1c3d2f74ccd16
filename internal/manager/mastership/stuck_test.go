package mastership

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// A master beside one that outranks it goes on to offer mastership, whatever became of
// earlier offers: the other waits for it, and neither would decide again. It does not when
// the other is gone, has stepped back, or is outranked. The traces are those that the
// search in internal/manager/mastership found: the other one answers late, because it was paused or
// had just begun.
func TestTwoMastersAreNotStuck(t *testing.T) {
	higher := Remote{Info: smp.SMInfo{GUID: 10, SMState: smp.SMMaster, ActCount: 1}, Address: Address{LID: 1}}
	lower := Remote{Info: smp.SMInfo{GUID: 60, SMState: smp.SMMaster, ActCount: 1}, Address: Address{LID: 6}}
	for _, c := range []struct {
		name   string
		other  Remote
		ended  func(e *Election, offer Message) // how the first offer ended
		offers bool
	}{
		{"the offer is refused", higher, func(e *Election, m Message) { e.Answered(m, mad.StatusInvalidField, higher.Info) }, true},
		{"nobody answers the offers, but he does the polls", higher, func(*Election, Message) {}, true},
		{"the other stepped back", higher, func(e *Election, m Message) {
			e.Answered(m, mad.StatusInvalidField, higher.Info)
			info := higher.Info
			info.SMState, info.ActCount = smp.SMStandby, 2
			e.Answered(Message{To: m.To, GUID: m.GUID, Method: mad.MethodGet}, mad.StatusOK, info)
		}, false},
		{"the other ranks lower", lower, func(*Election, Message) {}, false},
	} {
		e := engine(t, smp.SMMaster, ElectionConfig{})
		verdict, effects := e.Decide(0, []Remote{c.other})
		if verdict != WaitHandover {
			t.Fatalf("%s: %s beside another master", c.name, verdict)
		}
		if len(effects.Send) > 0 {
			c.ended(e, effects.Send[0])
		} else {
			c.ended(e, Message{})
		}
		acts, offers := c.other.Info.ActCount, 0
		for now := DefaultPollInterval; now <= 20*DefaultPollInterval; now += DefaultPollInterval {
			for _, m := range e.Tick(now).Send {
				switch {
				case m.Method == mad.MethodGet:
					acts++
					info := c.other.Info
					info.ActCount = acts
					e.Answered(m, mad.StatusOK, info)
				case m.Control == smp.SMControlHandover && m.GUID == c.other.Info.GUID && now > 10*DefaultPollInterval:
					offers++
				}
			}
		}
		if (offers > 5) != c.offers || !c.offers && offers > 0 {
			t.Errorf("%s: %d offers in the second ten intervals", c.name, offers)
		}
	}
}

// The offer that a late answer refuses is not the one that the other has taken meanwhile:
// both end as they ought to.
func TestLateRefusalOfAnOffer(t *testing.T) {
	n := newNetwork(t)
	n.now = 55 * DefaultPollInterval / 10 // the next sweep of a master comes at 10 intervals
	n.start(ElectionConfig{GUID: 2})
	n.dead[2] = true // out of sight
	n.start(ElectionConfig{GUID: 1})
	delete(n.dead, 2)
	n.deaf[1] = true
	n.sweep(2)
	n.sweep(1)
	n.pass(3 * DefaultPollInterval)
	n.engines[2].Answered(Message{To: at(1), GUID: 1, Method: mad.MethodSet, Control: smp.SMControlHandover}, mad.StatusInvalidField, smp.SMInfo{GUID: 1})
	if n.engines[2].Offers() {
		t.Fatal("a refused offer stands")
	}
	n.deaf[1] = false
	n.story = nil
	n.pass(11 * DefaultPollInterval / 10)
	if m := n.masters(); len(m) != 1 || m[0] != 1 || n.engines[2].State() != smp.SMStandby {
		t.Errorf("masters %v, 2 is %s: %v", m, n.engines[2].State(), n.story)
	}
}

// An offer that was given up may have been taken before: ACKNOWLEDGE for it, or the answer
// to it, ends mastership all the same, or there would be two masters. It does so once, only
// for the manager that had the last offer, and only in the mastership that it was made in.
func TestOfferThatWasGivenUpIsHonoured(t *testing.T) {
	to := Remote{Info: smp.SMInfo{GUID: ours, SMKey: pairKey(ours, ownGUID), SMState: smp.SMStandby}, Address: at(ours)}
	taken := to.Info
	taken.SMState = smp.SMMaster
	acknowledge := func(e *Election) bool {
		_, status, _ := e.Receive(0, at(ours), mad.MethodSet, uint32(smp.SMControlAcknowledge), to.Info)
		return status == mad.StatusOK
	}
	for name, x := range map[string]struct {
		give, end func(*Election, Message)
		want      smp.SMState
	}{
		"nobody answered, ACKNOWLEDGE": {
			func(e *Election, _ Message) {
				for i := range 2 * DefaultPolls {
					e.Tick(time.Duration(i+1) * DefaultPollInterval)
				}
			}, func(e *Election, _ Message) { acknowledge(e) }, smp.SMStandby},
		"a round did not find it, ACKNOWLEDGE": {
			func(e *Election, _ Message) { e.Decide(0, nil) }, func(e *Election, _ Message) { acknowledge(e) }, smp.SMStandby},
		"a round did not find it, the answer": {
			func(e *Election, _ Message) { e.Decide(0, nil) },
			func(e *Election, m Message) { e.Answered(m, mad.StatusOK, taken) }, smp.SMStandby},
		"refused": {
			func(e *Election, m Message) { e.Answered(m, mad.StatusInvalidField, taken) }, func(e *Election, _ Message) { acknowledge(e) }, smp.SMMaster},
		"somebody else had the last offer": {
			func(e *Election, _ Message) {
				e.Decide(0, nil)
				e.Decide(0, []Remote{{Info: smp.SMInfo{GUID: listed, Priority: 9, SMState: smp.SMStandby}, Address: at(listed)}})
			}, func(e *Election, _ Message) { acknowledge(e) }, smp.SMMaster},
	} {
		e := namedEngine(t, smp.SMMaster, func(c *ElectionConfig) { c.Priority = 8 })
		effects, err := e.HandOver(0, to, []Remote{to})
		if err != nil {
			t.Fatal(err)
		}
		x.give(e, effects.Send[0])
		if x.end(e, effects.Send[0]); e.State() != x.want {
			t.Errorf("%s: now %s, want %s", name, e.State(), x.want)
		}
		guid, failed := e.SteppedDown()
		if done := x.want == smp.SMStandby; (failed == "") != done || guid != ours || (e.Info().Priority == 0) != done {
			t.Errorf("%s: handed over to %d (%s), and tells priority %d", name, guid, failed, e.Info().Priority)
		}
		if x.want == smp.SMStandby { // gone: master again, and the old offer counts no more
			for i := range 3 * DefaultPolls {
				e.Tick(time.Duration(10+i) * DefaultPollInterval)
			}
			if verdict, _ := e.Decide(0, nil); verdict != Master || acknowledge(e) || e.State() != smp.SMMaster {
				t.Errorf("%s: ACKNOWLEDGE in the next mastership: now %s", name, e.State())
			}
		}
	}
}

// A planned handover back to the manager that handed over before, although it ranks
// higher, goes on when the master asks who is there meanwhile.
func TestPlannedHandoverBack(t *testing.T) {
	n := newNetwork(t)
	n.key = pairKey
	n.start(ElectionConfig{GUID: 7, Priority: 1})
	n.start(ElectionConfig{GUID: 8})
	if err := n.handOver(7, 8); err != nil {
		t.Fatal(err)
	}
	if n.engines[8].kept.GUID != 7 {
		t.Fatal("7 did not rank higher when it handed over: not the case that is meant")
	}
	n.deaf[7] = true
	if err := n.handOver(8, 7); err != nil {
		t.Fatal(err)
	}
	n.sweep(8)
	if guid, failed := n.engines[8].SteppedDown(); guid != 7 || failed != "" || !n.engines[8].Offers() {
		t.Errorf("after a sweep: handing over to %d: %v (%s)", guid, n.engines[8].Offers(), failed)
	}
	n.deaf[7] = false
	n.pass(11 * DefaultPollInterval / 10)
	if m := n.masters(); len(m) != 1 || m[0] != 7 {
		t.Errorf("masters %v: %v", m, n.story)
	}
}
