package election

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// A master beside one that outranks it goes on to offer mastership, whatever became of
// earlier offers: the other waits for it, and neither would decide anew. It does not when
// the other is gone, has stepped back, or is outranked. The traces are those that the
// search in test/electiontest found: the other one answers late, because it was paused or
// had just begun.
func TestTwoMastersAreNotStuck(t *testing.T) {
	higher := Remote{Info: smp.SMInfo{GUID: 10, SMState: smp.SMMaster, ActCount: 1}, Address: Address{LID: 1}}
	lower := Remote{Info: smp.SMInfo{GUID: 60, SMState: smp.SMMaster, ActCount: 1}, Address: Address{LID: 6}}
	for _, c := range []struct {
		name   string
		other  Remote
		ended  func(e *Engine, offer Message) // how the first offer ended
		offers bool
	}{
		{"the offer is refused", higher, func(e *Engine, m Message) { e.Answered(m, mad.StatusInvalidField, higher.Info) }, true},
		{"nobody answers the offers, but he does the polls", higher, func(*Engine, Message) {}, true},
		{"the other stepped back", higher, func(e *Engine, m Message) {
			e.Answered(m, mad.StatusInvalidField, higher.Info)
			info := higher.Info
			info.SMState, info.ActCount = smp.SMStandby, 2
			e.Answered(Message{To: m.To, GUID: m.GUID, Method: mad.MethodGet}, mad.StatusOK, info)
		}, false},
		{"the other ranks lower", lower, func(*Engine, Message) {}, false},
	} {
		e := engine(t, smp.SMMaster, Config{})
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
	n.start(Config{GUID: 2})
	n.dead[2] = true // out of sight
	n.start(Config{GUID: 1})
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
