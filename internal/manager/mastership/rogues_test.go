package mastership

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// A manager that does not count is told of once for each reason, by another GUID again, and one
// that went and comes again only after a while.
func TestRogues(t *testing.T) {
	x, at := Rogues{}, observed.Place{Node: 1, Port: 2}
	const began = time.Hour
	for i, step := range []struct {
		went   bool
		now    time.Duration
		guid   ib.PortGUID
		reason string
		tell   bool
	}{
		{false, began, 7, "a", true},
		{false, began + time.Hour, 7, "a", false},
		{false, began + 1, 7, "b", true},
		{false, began + 2, 7, "a", false},
		{true, began + reportGap, 7, "a", false}, // b was told last, a nanosecond later
		{true, began + 1 + reportGap, 7, "a", true},
		{false, began + 2 + reportGap, 7, "b", true},
		{false, began + 3 + reportGap, 8, "a", true},
		{false, began + 4 + reportGap, 7, "a", true},
	} {
		if step.went {
			x.Went(at)
			if x.Has(at, step.guid) {
				t.Errorf("step %d: there although it went", i)
			}
		}
		if got := x.Saw(step.now, at, step.guid, step.reason); got != step.tell {
			t.Errorf("step %d: told %v, want %v", i, got, step.tell)
		}
		if !x.Has(at, step.guid) || x.Has(at, step.guid+1) || x.Has(observed.Place{}, step.guid) {
			t.Errorf("step %d: who is there is not known", i)
		}
	}
	x.Went(observed.Place{Node: 9})
	if len(x) != 1 {
		t.Errorf("%d places, want 1", len(x))
	}
}

// Of each place the last question is kept, of so many places at the most.
func TestQuestions(t *testing.T) {
	var x Questions
	base := mad.SMP{Class: mad.ClassSubnDirected, HopCount: 2, ReturnPath: [64]byte{1: 1, 2: 2}}
	for name, change := range map[string]func(p *mad.SMP, slid *ib.LID){
		"the same place": func(*mad.SMP, *ib.LID) {},
		"class":          func(p *mad.SMP, _ *ib.LID) { p.Class = mad.ClassSubnLID },
		"hops":           func(p *mad.SMP, _ *ib.LID) { p.HopCount++ },
		"path":           func(p *mad.SMP, _ *ib.LID) { p.ReturnPath[1]++ },
		"LID":            func(_ *mad.SMP, slid *ib.LID) { *slid++ },
	} {
		x = nil
		x.Keep(&base, 5)
		p, slid := base, ib.LID(5)
		p.TransactionID = 9
		change(&p, &slid)
		x.Keep(&p, slid)
		want := 2
		if name == "the same place" {
			want = 1
		}
		if len(x) != want || x[len(x)-1].SMP.TransactionID != 9 || x[len(x)-1].SLID != slid {
			t.Errorf("%s: %d questions are kept, want %d", name, len(x), want)
		}
	}
	x = nil
	for i := range ib.LID(2 * questionsMax) {
		x.Keep(&base, i)
	}
	if base.TransactionID = 3; len(x) != questionsMax || x[questionsMax-1].SLID != questionsMax-1 {
		t.Errorf("%d questions are kept, want %d", len(x), questionsMax)
	}
	if x.Keep(&base, 0); x[0].SMP.TransactionID != 3 {
		t.Error("the last question of a place that is kept is not that which came last")
	}
}

func TestSentControl(t *testing.T) {
	for control, want := range map[smp.SMControl]string{
		smp.SMControlHandover: "it sent HANDOVER", smp.SMControlAcknowledge: "it sent ACKNOWLEDGE", smp.SMControlDisable: "it sent DISABLE",
		smp.SMControlStandby: "it sent STANDBY", smp.SMControlDiscover: "it sent DISCOVER", 0: "it sent a control packet that does not exist", 6: "it sent a control packet that does not exist",
	} {
		if got := SentControl(uint32(control)); got != want {
			t.Errorf("%d: %q, want %q", control, got, want)
		}
	}
}
