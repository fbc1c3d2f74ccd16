package mastership

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// handOver asks the master of a network to hand over.
func (n *network) handOver(from, to ib.PortGUID) error {
	n.t.Helper()
	var others []Remote
	for _, g := range n.guids() {
		if g != from {
			own := n.engines[from].InfoFor(g)
			others = append(others, Remote{Info: n.ask(g, at(from), own), Address: at(g)})
		}
	}
	i := slices.IndexFunc(others, func(r Remote) bool { return r.Info.GUID == to })
	effects, err := n.engines[from].HandOver(n.now, others[i], others)
	n.follow(from, effects)
	return err
}

// SM-06: a planned handover goes to the standby that is meant, whatever the ranks are;
// the former master stands by, tells a lower rank, and stays so. It takes over when the
// new master is gone, ranks as before then, and is handed the subnet when it comes again.
func TestPlannedHandover(t *testing.T) {
	for _, c := range []struct {
		name           string
		a, b           uint8 // priorities; a has the lower GUID
		fromB          bool  // the master is b
		lowered        uint8
		kept, returned bool // by proof alone; and back to it when it was started again
	}{
		{"from a much higher priority", 9, 4, false, 3, false, true},
		{"from an equal priority, to the higher GUID", 4, 4, false, 3, false, true},
		{"from a higher priority, to the lower GUID", 4, 9, true, 4, false, true},
		{"both with priority 0, to the higher GUID", 0, 0, false, 0, true, true},
		{"to priority 0", 5, 0, false, 0, true, true},
		{"from priority 1 with the higher GUID to priority 0", 0, 1, true, 0, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork(t)
			n.key = pairKey
			configs := map[ib.PortGUID]ElectionConfig{7: {GUID: 7, Priority: c.a}, 8: {GUID: 8, Priority: c.b}}
			from, to := ib.PortGUID(7), ib.PortGUID(8)
			if c.fromB {
				from, to = to, from
			}
			n.start(configs[from])
			n.start(configs[to])
			n.pass(5 * time.Second)
			only := func(want ib.PortGUID, when string) {
				t.Helper()
				if got := n.masters(); !slices.Equal(got, []ib.PortGUID{want}) {
					t.Fatalf("%s: masters %v, want %d\n%s", when, got, want, strings.Join(n.story, "\n"))
				}
			}
			only(from, "at the beginning")
			if err := n.handOver(from, to); err != nil {
				t.Fatal(err)
			}
			for i := range 20 { // sweeps of the new master do not hand it back
				n.pass(5 * time.Second)
				n.sweep(to)
				only(to, "after the handover")
				if info := n.engines[from].Info(); info.SMState != smp.SMStandby || info.Priority != c.lowered {
					t.Fatalf("after %d sweeps the old one tells %+v, want priority %d", i, info, c.lowered)
				}
				if _, waits := n.engines[from].WaitsFor(); waits {
					t.Fatal("the old one waits to be handed the subnet back")
				}
			}
			if kept := n.engines[to].kept.GUID == from; kept != c.kept {
				t.Errorf("taken by proof alone: %v, want %v", kept, c.kept)
			}
			n.dead[to] = true
			n.pass(10 * time.Second)
			only(from, "after the new one was killed")
			if got := n.engines[from].Info().Priority; got != configs[from].Priority {
				t.Errorf("as master again it tells priority %d, want %d", got, configs[from].Priority)
			}
			// It goes and comes again: it ranks as it is configured.
			n.start(configs[to])
			n.pass(5 * time.Second)
			only(from, "when the other came back")
			if err := n.handOver(from, to); err != nil {
				t.Fatal(err)
			}
			n.pass(5 * time.Second)
			only(to, "after the second handover")
			n.start(configs[from])
			n.engines[to].Reconsider(from) // its port says that a manager is new there
			n.sweep(to)
			n.pass(5 * time.Second)
			only(from, "when it was started again")
		})
	}
}

// Whoever may not be handed the subnet is not, and the refusal says why; nothing
// is sent then, and the rank stays.
func TestHandOverIsRefused(t *testing.T) {
	standby := func(guid ib.PortGUID, priority uint8, change func(*smp.SMInfo)) Remote {
		info := smp.SMInfo{GUID: guid, Priority: priority, SMState: smp.SMStandby, ActCount: 3}
		if guid == ours {
			info.SMKey = pairKey(ours, ownGUID)
		}
		if change != nil {
			change(&info)
		}
		return Remote{Info: info, Address: at(guid)}
	}
	for _, c := range []struct {
		name   string
		state  smp.SMState
		to     Remote
		others []Remote
		want   string
	}{
		{"a standby", smp.SMStandby, standby(ours, 1, nil), nil, "not master"},
		{"a stranger", smp.SMMaster, standby(stranger, 9, nil), nil, "not trusted"},
		{"a stranger with a name", smp.SMMaster, Remote{Info: standby(ours, 9, nil).Info, Address: at(stranger)}, nil, "not trusted"},
		{"somebody who claims to share the secret", smp.SMMaster, standby(ours, 9, func(i *smp.SMInfo) { i.SMKey++ }), nil, "not trusted"},
		{"one that is not active", smp.SMMaster, standby(ours, 9, func(i *smp.SMInfo) { i.SMState = smp.SMNotActive }), nil, "not standby"},
		{"one that discovers", smp.SMMaster, standby(ours, 9, func(i *smp.SMInfo) { i.SMState = smp.SMDiscovering }), nil, "not standby"},
		{"another ranks between", smp.SMMaster, standby(ours, 0, nil), []Remote{standby(listed, 5, nil)}, "outranks"},
		{"listed, and cannot rank higher", smp.SMMaster, standby(listed, 0, nil), nil, "would hand it back"},
	} {
		e := namedEngine(t, c.state, func(x *ElectionConfig) { x.Priority = 8 })
		effects, err := e.HandOver(0, c.to, append(c.others, c.to))
		if !errors.Is(err, ErrNoHandover) || !strings.Contains(err.Error(), c.want) || effects.Send != nil || e.Info().Priority != 8 || e.Offers() || e.State() != c.state {
			t.Errorf("%s: %v, %+v, priority %d; want %q", c.name, err, effects, e.Info().Priority, c.want)
		}
	}
	e := namedEngine(t, smp.SMMaster, func(x *ElectionConfig) { x.Priority = 8 })
	if effects, err := e.HandOver(0, standby(listed, 1, nil), nil); err != nil || len(effects.Send) != 1 || effects.Send[0].Info.Priority != 0 || effects.Send[0].Control != smp.SMControlHandover {
		t.Errorf("a listed standby of priority 1: %+v, %v", effects, err)
	}
	if _, err := e.HandOver(0, standby(listed, 1, nil), nil); err == nil {
		t.Error("a second handover while one is under way")
	}
}

// A standby that does not take mastership, refuses it or goes away leaves the master as it
// was, with its rank.
func TestHandOverThatFails(t *testing.T) {
	to := Remote{Info: smp.SMInfo{GUID: ours, SMKey: pairKey(ours, ownGUID), SMState: smp.SMStandby}, Address: at(ours)}
	for name, fail := range map[string]func(*Election, Message){
		"silence": func(e *Election, _ Message) {
			for i := range 2 * DefaultPolls {
				e.Tick(time.Duration(i+1) * DefaultPollInterval)
			}
		},
		"refusal": func(e *Election, m Message) { e.Answered(m, mad.StatusInvalidField, smp.SMInfo{GUID: ours}) },
		"gone":    func(e *Election, _ Message) { e.Decide(0, nil) },
		"disabled": func(e *Election, _ Message) {
			e.Decide(0, []Remote{{Info: smp.SMInfo{GUID: ours, SMKey: pairKey(ours, ownGUID)}, Address: at(ours)}})
		},
	} {
		e := namedEngine(t, smp.SMMaster, func(c *ElectionConfig) { c.Priority = 8 })
		effects, err := e.HandOver(0, to, []Remote{to})
		if err != nil {
			t.Fatal(err)
		}
		if verdict, _ := e.Decide(0, []Remote{to}); verdict != Master || !e.Offers() {
			t.Errorf("%s: a sweep in between ends it: %s", name, verdict)
		}
		fail(e, effects.Send[0])
		guid, failed := e.SteppedDown()
		if guid != ours || failed == "" || e.Offers() || e.Info().Priority != 8 || e.State() != smp.SMMaster {
			t.Errorf("%s: %v %q, offers %v, priority %d, %s", name, guid, failed, e.Offers(), e.Info().Priority, e.State())
		}
	}
}

// HANDOVER of a manager that ranks higher is taken from the master that is polled and
// shows that it shares the secret, from its port; from nobody else, whatever he sends.
func TestPlannedHandoverIsTakenFromOursOnly(t *testing.T) {
	keys := []ib.SMKey{0, 1, pairKey(ours, ownGUID), pairKey(ownGUID, ours), pairKey(listed, ownGUID)}
	for _, watched := range []ib.PortGUID{ours, listed} {
		for _, guid := range []ib.PortGUID{ours, listed, stranger} {
			for _, port := range []ib.PortGUID{ours, listed, stranger, 0} {
				for _, key := range keys {
					for state := range smp.SMState(5) {
						e := namedEngine(t, smp.SMDiscovering, nil)
						master := smp.SMInfo{GUID: watched, Priority: 9, SMState: smp.SMMaster}
						if watched == ours {
							master.SMKey = pairKey(ours, ownGUID)
						}
						e.Decide(0, []Remote{{Info: master, Address: at(watched)}})
						info := smp.SMInfo{GUID: guid, SMKey: key, Priority: 9, SMState: state}
						_, status, _ := e.Receive(0, Address{LID: 9, Port: port}, mad.MethodSet, uint32(smp.SMControlHandover), info)
						want := guid == watched && port == watched && key == pairKey(watched, ownGUID) && state == smp.SMMaster
						if got := e.State() == smp.SMMaster; got != want || (status == mad.StatusOK) != want {
							t.Errorf("HANDOVER of %+v from port %d, polling %d: %s, now %s", info, port, watched, status, e.State())
						}
					}
				}
			}
		}
	}
}
