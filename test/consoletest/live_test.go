package consoletest

import (
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// TestLive: what happens is shown without the page being loaded again.
func TestLive(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := newSite(t, topology.Demo(), "--policy", demonstrationPolicy(t), "--sweep-interval", "1s")
	s.tenant("green", "0x100", "red-5", "red-6")
	s.proved()
	p := s.open(t)
	p.evaluate(`window.notLoadedAgain = true`, nil)
	p.goTo("#/tenants?name=green")
	s.do("PUT", "/partitions/0x0101", js{"name": "night-shift", "owner": "green"}, "If-None-Match", "*")
	p.says("night-shift")
	p.goTo("#/history")
	s.do("PUT", "/partitions/0x0102", js{"name": "day-shift", "owner": "green"}, "If-None-Match", "*", "Why", "the sun is up")
	p.says("the sun is up")
	p.goTo("#/events")
	s.do("PUT", "/partitions/0x0103", js{"name": "late-shift", "owner": "green"}, "If-None-Match", "*")
	p.says("late-shift|0x0103")
	p.goTo("#/fabric")
	leaf := s.node("leaf-1")
	s.on(func(f *fabric.Fabric) error { return f.Unlink(leaf.GUID, 5) })
	p.says("1 cable missing")
	p.goTo("#/managers")
	s.do("POST", "/drains", js{"switch": "spine-2"})
	p.until(`document.querySelector('tr[data-drain]')`)
	p.until(`window.notLoadedAgain`)
}

// TestReason: a switch is taken out of service and back where the map shows it, and the reason
// is kept in the letters in which it was written.
func TestReason(t *testing.T) {
	need.Long(t, "drains a switch in the browser, and ends that")
	s := newSite(t, topology.Demo(), "--policy", demonstrationPolicy(t))
	p := s.open(t)
	p.goTo("#/fabric?node=" + s.node("spine-1").GUID.String())
	for _, x := range []struct{ button, answer, reason string }{
		{"Take out of service …", "Drain", "für Müller, 東京"},
		{"Back into service …", "Undrain", "¿ya está?"},
	} {
		p.find("button", x.button).click()
		p.find("textbox", "Reason, for the history").fill(x.reason)
		p.find("button", x.answer).click()
		p.eventually("the reason "+x.reason, func() error {
			if got := s.do("GET", "/revisions?limit=1", nil)["items"].([]any)[0].(js)["why"]; got != x.reason {
				return fmt.Errorf("%q", got)
			}
			return nil
		})
		p.until(`!document.querySelector('dialog')`)
	}
	p.find("button", "Take out of service …")
	p.goTo("#/history")
	p.says("für Müller, 東京")
}

// TestRollbackOfWhatWasSeen: what somebody else has changed since the plan was drawn is not rolled
// back with what the plan says. Tried again, the plan has it, and is done.
func TestRollbackOfWhatWasSeen(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := twoPartitions(t)
	p := s.open(t)
	p.goTo("#/history?rollback=4")
	p.find("textbox", "Reason").fill("a mistake")
	p.find("button", "Roll back to revision 4")
	s.do("PUT", "/partitions/0x0102", js{"name": "night-shift", "owner": "green"}, "If-None-Match", "*", "Why", "somebody else works")
	before := s.items("/revisions")
	p.expect("status of 412")
	confirm := func() {
		p.find("button", "Roll back to revision 4").click()
		p.find("button", "Roll back").click()
	}
	confirm()
	p.says("Something was changed meanwhile: try it again first")
	if after := s.items("/revisions"); len(after) != len(before) || len(s.partitions()) != 3 {
		t.Fatalf("%d revisions, the partitions are %v: want %d, and what somebody else made still there", len(after), s.partitions(), len(before))
	}
	p.find("button", "Try it").click()
	p.says("night-shift")
	confirm()
	p.says(`revision \d+:\s+✓\s+proved`)
	s.rolledBack()
}

// TestUndoOfWhatWasSeen: nor does the undo of a change take back what somebody else changed after
// its plan was drawn.
func TestUndoOfWhatWasSeen(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := twoPartitions(t)
	p := s.open(t)
	p.follow("Change")
	p.follow("Move ports")
	p.find("searchbox", "Search").fill("red-5")
	p.find("checkbox", "Choose red-5 .*").click()
	p.find("combobox", "To the partition").choose("green-two .*")
	p.apply()
	p.find("button", "Undo…").click()
	p.until(`document.querySelector('[data-flow]')?.dataset.flow === 'planned'`)
	s.do("PUT", "/partitions/0x0102", js{"name": "night-shift", "owner": "green"}, "If-None-Match", "*", "Why", "somebody else works")
	before := s.items("/revisions")
	p.expect("status of 412")
	p.find("button", "Apply").click()
	p.until(`['done', 'failed', 'stale'].includes(document.querySelector('[data-flow]')?.dataset.flow)`)
	p.says("Others have changed something since, which this would take back too")
	s.moved("red-5")
	if after := s.items("/revisions"); len(after) != len(before) || len(s.partitions()) != 3 {
		t.Errorf("%d revisions, the partitions are %v: want %d, and what somebody else made still there", len(after), s.partitions(), len(before))
	}
}

// TestReadOnly: who may only read is offered nothing that writes.
func TestReadOnly(t *testing.T) {
	need.Long(t, "seconds of a browser")
	s := demonstration(t)
	p := s.openAs(t, s.token("provider", "read_only", true))
	p.says("read only")
	for _, view := range append(p.pages(), "#/fabric?node="+s.node("spine-1").GUID.String(), "#/tenants?name=green", "#/history?rollback=2", "#/history?revision=2") {
		p.goTo(view)
		if offered := p.text(`[...document.querySelectorAll('main button, main input[type=submit]')].map(b => b.textContent).filter(t => /^(Apply|Approve|Back into|Create|Delete|Drain|End…|Hand over|Make|Reject|Roll back to|Save|Show the plan|Take it|Take out|Try it|Undo|Undrain)/.test(t)).join(', ')`); offered != "" {
			t.Errorf("%s offers %s", view, offered)
		}
	}
}
