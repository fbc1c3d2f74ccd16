package master_test

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// TestClaimedLIDIsNotBelieved: once a port was seen to hold the LID of another, what comes from that LID
// joins nothing, until it has its own again.
func TestClaimedLIDIsNotBelieved(t *testing.T) {
	r := newRig(t, engine.Config{Profile: protect.Tenant, Periods: engine.Periods{Sweep: 10 * time.Second}}, server.Config{Profile: protect.Tenant})
	r.drive(r.Settled)
	p, thief := r.port("red-1"), r.port("red-2")
	own := thief.Info.LID
	joins := func() mad.Status {
		t.Helper()
		r.ReceiveGeneral(r.fabric.Now(), join(t, p, red), mad.Address{LID: p.Info.LID, QP: 1, PKey: red.Full()})
		status, some := r.answer()
		if !some {
			t.Fatal("no answer")
		}
		return status
	}
	if status := joins(); status != mad.StatusOK {
		t.Fatalf("before: %v", status)
	}
	takes := func(lid ib.LID) {
		t.Helper()
		info := thief.Info
		info.LID, info.PortState, info.PortPhysicalState, info.LinkDownDefaultState = lid, smp.PortStateNoChange, smp.PhysNoChange, 0
		m := mad.SMP{BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnDirected, Method: mad.MethodSet, AttributeID: smp.AttrPortInfo, DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive}
		if err := info.Encode(&m.Data); err != nil {
			t.Fatal(err)
		}
		r.fabric.Agent(thief.Node.GUID()).Handle(r.fabric.Now(), sma.Ingress{Port: 1}, &m)
	}
	_, version := r.Manager().Claims()
	takes(p.Info.LID)
	end := r.fabric.Now() + 5*time.Minute
	r.drive(func() bool { _, now := r.Manager().Claims(); return now != version || r.fabric.Now() > end })
	if claims, _ := r.Manager().Claims(); len(claims) == 0 {
		t.Fatal("nobody noticed")
	}
	if status := joins(); status == mad.StatusOK {
		t.Error("who sends from a LID that two ports hold has joined")
	}
	r.drive(func() bool { c, _ := r.Manager().Claims(); return len(c) == 0 && r.Settled() || r.fabric.Now() > end })
	if got := r.port("red-2").Info.LID; got != own {
		t.Errorf("it has LID %d, want %d again", got, own)
	}
	if status := joins(); status != mad.StatusOK {
		t.Errorf("after it was put right: %v", status)
	}
}
