package mastership

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// TestKnownMaster: what the last round saw of the manager behind a port is that manager's, not another's.
func TestKnownMaster(t *testing.T) {
	r, hosts := newRig(t, strict(), 4)
	for i, state := range []smp.SMState{smp.SMStandby, smp.SMMaster, smp.SMStandby} {
		r.round.here = append(r.round.here, Remote{Info: smp.SMInfo{GUID: hosts[i].GUID, SMState: state}, Address: Address{Port: hosts[i].GUID}})
	}
	for i, want := range []struct{ counted, master bool }{{true, false}, {true, true}, {true, false}, {false, false}} {
		if got := r.counted(hosts[i]); got != want.counted {
			t.Errorf("host %d: took part %v", i, got)
		}
		if got := r.knownMaster(hosts[i]); got != want.master {
			t.Errorf("host %d: master %v", i, got)
		}
	}
	r.round.here = r.round.here[1:2]
	if r.knownMaster(hosts[0]) || r.counted(hosts[0]) {
		t.Error("one that took no part is the master that did")
	}
}

// TestPriorityTrapGoesToLIDs: the trap that tells of this manager's priority goes to the master's LID,
// where both ports have one; it is repeated with the next number.
func TestPriorityTrapGoesToLIDs(t *testing.T) {
	for _, x := range []struct {
		name         string
		self, master ib.LID
		sent         bool
	}{
		{"both have a LID", 5, 9, true}, {"this manager has none", 0, 9, false}, {"the master has none", 5, 0, false},
		{"a multicast LID of this one", 0xC001, 9, false}, {"a multicast LID of the master", 5, 0xC001, false}, {"the highest LIDs", 0xBFFF, 0xBFFE, true},
	} {
		r, hosts := newRig(t, strict(), 1)
		r.b.Fabric.Self.Info.LID, hosts[0].Info.LID = x.self, x.master
		r.sendPriorityTrap(hosts[0])
		r.sendPriorityTrap(hosts[0])
		if want := map[bool]int{true: 2}[x.sent]; len(r.answers) != want {
			t.Errorf("%s: %d traps, want %d", x.name, len(r.answers), want)
		}
		for i, p := range r.answers {
			if p.Method != mad.MethodTrap || p.TransactionID&0xFF != uint64(i+1) {
				t.Errorf("%s: %+v", x.name, p)
			}
		}
	}
}

// TestNothingIsDueBeforeAnElection: policies are asked of nobody, and nobody waits for a handover.
func TestNothingIsDueBeforeAnElection(t *testing.T) {
	c := strict()
	c.Vouches = mkey.NewRing([mkey.SecretSize]byte{1})
	r, _ := newRig(t, c, 1)
	if _, due := r.policiesDue(); due {
		t.Error("policies are to be asked of others")
	}
	if r.waitsForHandover() != nil {
		t.Error("it waits for a handover")
	}
	if at, due := r.priorityTrapDue(); due || at != 0 {
		t.Errorf("a trap is due at %v", at)
	}
}

// TestNoteIsOfOthers: what a port says of a manager behind it counts where that is an end port of another;
// before an election, of the manager's own port, and of a port of a switch it means nothing and changes
// nothing.
func TestNoteIsOfOthers(t *testing.T) {
	for _, x := range []struct {
		name  string
		lead  bool
		port  func(r *rig, host *observed.Port) *observed.Port
		heard bool
	}{
		{"another's", true, func(_ *rig, host *observed.Port) *observed.Port { return host }, true},
		{"before an election", false, func(_ *rig, host *observed.Port) *observed.Port { return host }, false},
		{"its own", true, func(r *rig, _ *observed.Port) *observed.Port { return r.b.Fabric.Self }, false},
		{"a switch port's", true, func(_ *rig, host *observed.Port) *observed.Port { return host.Peer }, false},
	} {
		r, hosts := newRig(t, strict(), 1)
		if x.lead {
			r.lead()
		}
		p := x.port(r, hosts[0])
		r.does[p] = nameless
		r.Note(p, true)
		if got := p.Info.CapabilityMask.Has(smp.CapIsSM); got != x.heard {
			t.Errorf("%s: noted %v", x.name, got)
		}
		if x.lead {
			r.run(10 * time.Second)
		}
		if got := len(r.alarms()) > 0; got != x.heard {
			t.Errorf("%s: alarms %q", x.name, r.alarms())
		}
		if got := len(r.fences) > 0; got != x.heard {
			t.Errorf("%s: fences %v", x.name, r.fences)
		}
		r.Note(p, false)
		if p.Info.CapabilityMask.Has(smp.CapIsSM) {
			t.Errorf("%s: still noted when it says so no more", x.name)
		}
	}
}
