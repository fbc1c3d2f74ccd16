package event

import (
	"errors"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// TestHalted: what is said of a master without the right to write, in full.
func TestHalted(t *testing.T) {
	const alarm = "ALARM: this manager is master and may not write to the fabric: "
	const end = " does not say that it stands by: bring the store back, or that manager; if it is gone for good, restart this one"
	five := []ib.PortGUID{1, 2, 3, 4, 5}
	const named = ", and the manager at port 0x0000000000000001"
	for _, x := range []struct {
		e    Event
		want string
	}{
		{Halted{}, alarm + "the store that managers share has not given it the right to"},
		{Halted{Why: "another has it"}, alarm + "another has it"},
		{Halted{Why: "another has it", Silent: five}, alarm + "another has it"},
		{Halted{Why: "it ended", Had: true}, alarm + "it ended"},
		{Halted{Why: "it ended", Had: true, Silent: five[:1]}, alarm + "it ended" + named + end},
		{Halted{Had: true, Silent: five[:4]}, alarm + "the store that managers share has not given it the right to" + named + ", 0x0000000000000002, 0x0000000000000003, 0x0000000000000004" + end},
		{Halted{Why: "it ended", Had: true, Silent: five}, alarm + "it ended" + named + ", 0x0000000000000002, 0x0000000000000003, 0x0000000000000004 and 1 more" + end},
		{Resumed{}, "this manager may write to the fabric again"},
		{Asked{Alone: true}, "no other manager is master"},
		{Asked{}, "another manager is master too"},
		{Slept{1500 * time.Microsecond}, "this manager did not run for 2ms: it writes nothing until the other managers have been asked"},
		{LockedOut{Err: errors.New("guarded")}, "guarded: the M_Keys that other managers stored are read again"},
		{Announced{7}, "a subnet manager is at port 0x0000000000000007"},
	} {
		if got := x.e.String(); got != x.want {
			t.Errorf("%T: %q, want %q", x.e, got, x.want)
		}
	}
}
