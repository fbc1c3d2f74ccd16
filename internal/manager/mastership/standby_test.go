package mastership

import (
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// A manager that stands by for a master of lower rank reminds it by trap 144 again and again,
// until there is no such master; a manager of lower rank reminds nobody.
func TestReminder(t *testing.T) {
	for _, outranks := range []bool{true, false} {
		c := strict()
		c.Election.Priority = 9
		if !outranks {
			c.Election.Priority = 0
		}
		r, hosts := newRig(t, c, 1)
		r.states[hosts[0]], r.does[hosts[0]] = smp.SMMaster, partner
		hosts[0].Info.CapabilityMask |= smp.CapIsSM
		if !outranks { // of the same priority the lower GUID ranks higher
			hosts[0].GUID = 1
		}
		r.Placed(r.b.Fabric.Self.GUID)
		r.Begin(r.now)
		r.run(time.Millisecond)
		r.Decide(r.now)
		r.Tick(r.now)
		if _, due := r.priorityTrapDue(); due != outranks {
			t.Errorf("outranks the master: %v; a reminder is due: %v", outranks, due)
		}
		traps := 0
		for range 3 {
			r.now += priorityTrapInterval
			r.tickPriorityTrap(r.now)
		}
		for _, a := range r.answers {
			if a.Method == mad.MethodTrap {
				traps++
			}
		}
		if want := map[bool]int{true: 3}[outranks]; traps != want {
			t.Errorf("outranks the master: %v; %d traps, want %d", outranks, traps, want)
		}
	}
}

// Who is still discovering when a manager that counts hands over to it becomes master of a
// subnet that had another one until then; the same packet of anybody else, and any other
// packet, means nothing.
func TestEarlyHandover(t *testing.T) {
	for _, x := range []struct {
		name    string
		control smp.SMControl
		wrong   bool // key
		want    bool
	}{{"a handover", smp.SMControlHandover, false, true}, {"with another key", smp.SMControlHandover, true, false}, {"another order", smp.SMControlDisable, false, false}} {
		r, hosts := newRig(t, strict(), 1)
		self := r.b.Fabric.Self.GUID
		r.Placed(self)
		r.Begin(r.now)
		info := smp.SMInfo{GUID: hosts[0].GUID, SMState: smp.SMMaster, SMKey: secret(hosts[0].GUID, self)}
		if x.wrong {
			info.SMKey++
		}
		r.asks(hosts[0], info, mad.MethodSet, uint32(x.control))
		if (r.StoodBy != "") != x.want || r.IsMaster() {
			t.Errorf("%s: stood by %q, master %v", x.name, r.StoodBy, r.IsMaster())
		}
	}
}

// Requests that come before the subnet was read are kept and answered then; a manager without a
// part in the election answers none.
func TestHeldQuestions(t *testing.T) {
	for _, mute := range []bool{false, true} {
		r, hosts := newRig(t, strict(), 1)
		self := r.b.Fabric.Self.GUID
		ask := smp.SMInfo{GUID: hosts[0].GUID, SMState: smp.SMStandby, SMKey: secret(hosts[0].GUID, self)}
		r.asks(hosts[0], ask, mad.MethodGet, 0)
		r.Placed(self)
		r.asks(hosts[0], ask, mad.MethodGet, 0)
		if len(r.answers) != 0 {
			t.Errorf("%d answers before the subnet was read", len(r.answers))
		}
		if mute {
			r.Mute()
		} else {
			r.Begin(r.now)
		}
		if want := map[bool]int{false: 1}[mute]; len(r.answers) != want {
			t.Errorf("mute %v: %d answers, want %d", mute, len(r.answers), want)
		}
	}
}

// A manager that takes over does not wait for the answer of the master that it gave up, whose port
// says for as long as its process hangs that it has a manager; for others it waits as long as
// a master has to answer, and for listed ones as long as ever. Who is heard again is waited for again.
func TestWhoIsWaitedFor(t *testing.T) {
	const timeout = electionWait / 4
	for _, x := range []struct {
		name                            string
		gaveUp, other, listed, answered bool
		want                            time.Duration
	}{
		{name: "nobody was given up", want: electionWait},
		{name: "the master was given up", gaveUp: true, want: 0},
		{name: "and another does not answer", gaveUp: true, other: true, want: timeout},
		{name: "and a listed one does not answer", gaveUp: true, other: true, listed: true, want: electionWait},
		{name: "another does not answer", other: true, want: electionWait},
		{name: "the master was given up, and answered after that", gaveUp: true, answered: true, want: timeout},
	} {
		r, hosts := newRig(t, strict(), 2)
		r.config.Election.MasterTimeout = timeout
		master, other := hosts[0], hosts[1]
		if x.listed {
			r.config.Election.Trusted = append(r.config.Election.Trusted, other.GUID)
		}
		master.Info.CapabilityMask |= smp.CapIsSM
		if x.other {
			other.Info.CapabilityMask |= smp.CapIsSM
		}
		r.Placed(r.b.Fabric.Self.GUID)
		if x.gaveUp {
			r.follow(Effects{From: smp.SMStandby, To: smp.SMDiscovering, Why: "it does not answer", Lost: true, Former: master.GUID})
		}
		if x.answered {
			r.hear(master.Place(), master.GUID, smp.SMInfo{GUID: master.GUID, SMState: smp.SMMaster, SMKey: secret(master.GUID, r.b.Fabric.Self.GUID)}, nil)
		}
		r.Begin(r.now)
		if got := r.awaitedUntil() - r.clock; got != x.want || r.Awaits() != (x.want > 0) {
			t.Errorf("%s: it waits %v, %v; want %v", x.name, r.Awaits(), got, x.want)
		}
	}
}
