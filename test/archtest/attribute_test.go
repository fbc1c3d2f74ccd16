package archtest

import (
	"testing"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// notKept are the attributes that a snapshot does not keep, notPlanned those that can be
// set and that no change writes, each with the reason.
var (
	notKept = map[mad.AttributeID]string{
		smp.AttrNotice:           "sent by devices; package traps reads it",
		smp.AttrNodeInfo:         "the identity of a node: observed.Node.Info",
		smp.AttrPortInfoExtended: "no device that is supported needs more than PortInfo",
		smp.AttrLEDInfo:          "a light for people: the command led reads and sets it",
	}
	notPlanned = map[mad.AttributeID]string{
		smp.AttrNotice:                   "a Set only empties a device's queue of notices",
		smp.AttrPortInfoExtended:         "no device that is supported needs more than PortInfo",
		smp.AttrSMInfo:                   "a Set talks to another manager: package mastership",
		smp.AttrLEDInfo:                  "a light for people: the command led reads and sets it",
		smp.AttrMulticastForwardingTable: "groups come and go by themselves: a plan writes it, no change keeps it",
	}
)

// TestAttributes holds the tables that describe attributes against each other, as the
// recipe in CONTRIBUTING.md says: the snapshot keeps every attribute of package smp and a
// change can write every one that has a Set, but for those with a reason. What plans
// write, the snapshot keeps, or its effect could not be seen.
func TestAttributes(t *testing.T) {
	for _, d := range smp.Attributes() {
		if kept, reason := observed.Keeps(d.ID), notKept[d.ID]; kept == (reason != "") {
			t.Errorf("%s: the snapshot keeps it: %t; reason not to: %q", d.Name, kept, reason)
		}
		_, err := plan.Describe(d.ID)
		planned := err == nil
		if reason := notPlanned[d.ID]; d.Access.CanSet() && planned == (reason != "") {
			t.Errorf("%s: a change writes it: %t; reason not to: %q", d.Name, planned, reason)
		}
		if planned && (!d.Access.CanSet() || !observed.Keeps(d.ID)) {
			t.Errorf("%s: a change writes it; it can be set: %t, the snapshot keeps it: %t", d.Name, d.Access.CanSet(), observed.Keeps(d.ID))
		}
	}
	for _, list := range []map[mad.AttributeID]string{notKept, notPlanned} {
		for id, reason := range list {
			if _, ok := smp.Describe(id); !ok {
				t.Errorf("attribute 0x%04x has a reason (%s), and package smp does not describe it", uint16(id), reason)
			}
		}
	}
}
