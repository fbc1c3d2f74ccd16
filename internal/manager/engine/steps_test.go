package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// master is an engine that has brought up a simulated tree; drive goes on with it.
func master(t *testing.T, c Config) (e *Engine, drive func(until func() bool)) {
	t.Helper()
	f, hosts := tree(t)
	e, drive = at(t, f, hosts[0], c)
	drive(func() bool { return e.settled && e.Settled() || e.Held() })
	if !e.isMaster() {
		t.Fatal("it is not master")
	}
	return e, drive
}

// tree is a simulated fabric and its hosts.
func tree(t *testing.T) (f *fabric.Fabric, hosts []ib.NodeGUID) {
	t.Helper()
	list, err := topology.Generate("fattree,radix=4,levels=2")
	if err != nil {
		t.Fatal(err)
	}
	if f, err = fabric.New(list, fabric.DefaultConfig()); err != nil {
		t.Fatal(err)
	}
	for _, n := range list.Nodes {
		if n.Type == ib.NodeCA {
			hosts = append(hosts, n.GUID)
		}
	}
	return f, hosts
}

// at is an engine at a host of a fabric.
func at(t *testing.T, f *fabric.Fabric, host ib.NodeGUID, c Config) (e *Engine, drive func(until func() bool)) {
	t.Helper()
	link, err := inproc.New(f, host, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := link.SetIsSM(true); err != nil {
		t.Fatal(err)
	}
	p, err := policyfile.ReadYAML([]byte("version: 1\ndefault: limited\n"), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.Limits, c.Routing, c.OnStep = link.Limits(), routing.UpDown, Record
	e = New(c, p, nil)
	drive = func(until func() bool) {
		t.Helper()
		end := f.Now() + time.Minute
		if err := link.Drive(context.Background(), e, func() bool { return f.Now() > end || until() }); err != nil {
			t.Fatal(err)
		}
	}
	return e, drive
}

// fresh is an engine that has read nothing yet and is not master.
func fresh(t *testing.T, c Config) *Engine {
	t.Helper()
	c.OnStep = Record
	return New(c, &policy.Policy{}, nil)
}

// phases are those that are not idle, as they are in the middle of nothing.
var phases = [stateCount]func() phase{
	stateNew:        func() phase { return unstarted{} },
	stateSweeping:   func() phase { return sweeping{} },
	stateElecting:   func() phase { return electing{} },
	stateKeying:     func() phase { return &keying{nothing()} },
	stateReading:    func() phase { return reading{} },
	stateApplying:   func() phase { return &applying{writing: nothing()} },
	stateChecking:   func() phase { return &checking{} },
	stateAnnouncing: func() phase { return &announcing{writing: nothing()} },
	statePausing:    func() phase { return &pausing{} },
	stateRefreshing: func() phase { return refreshing{} },
	stateReleasing:  func() phase { return &releasing{nothing()} },
	stateNarrowing:  func() phase { return &narrowing{} },
}

// phaseIn is a phase in a state.
func phaseIn(s state) phase {
	if idle[s] != nil {
		return idle[s]
	}
	return phases[s]()
}

// nothing is the writing of a plan that is empty.
func nothing() writing {
	return writing{run: apply.Start(transact.NewWindow(transact.DefaultLimits()), &plan.Plan{}, 1)}
}

// TestRareSteps has each function that takes a step take it from the states in which the stories
// do not: where another manager takes the subnet meanwhile, a policy does not fit, or a manager hears
// nobody.
func TestRareSteps(t *testing.T) {
	err := errors.New("it does not fit")
	anyone := func(c Config) func(*testing.T) *Engine {
		return func(t *testing.T) *Engine { return fresh(t, c) }
	}
	up := func(c Config) func(*testing.T) *Engine {
		return func(t *testing.T) *Engine { e, _ := master(t, c); return e }
	}
	refuse := func(e *Engine) { e.refuse(e.now, nil, err) }
	lockOut := func(e *Engine) { e.lockOut(e.now, err) }
	shared := Config{Keys: &mkey.KeyingConfig{Keys: mkey.Keys{Ring: mkey.NewRing([mkey.SecretSize]byte{1}), Book: new(mkey.Book)}, Shared: true}}
	resign := func(e *Engine) { e.phase.resign(e) }
	abandon := func(e *Engine) { e.master.Wait.Abandon = true; e.abandonReading() }
	lead := func(change func(*Engine)) func(*Engine) {
		return func(e *Engine) { change(e); e.lead(e.now) }
	}
	deaf := lead(func(e *Engine) { e.master.Right.Require(e.window); e.fabric = observed.NewFabric() })
	gives := func(e *Engine) { e.SetPolicy(e.policy); e.giveWay(e.now) }
	waitOver := lead(func(e *Engine) { e.master.Wait.Stale, e.master.Wait.Began = true, true })
	swept := func(e *Engine) { e.sweep.discovery = sweep.Discover(e.window, e.Reads()) }
	announce := lead(func(e *Engine) {
		e.master.Wait.Stale, e.standby.ready, e.standby.lid = true, e.desired, e.fabric.Self.Info.LID
		e.standby.held = desired.BoundOf(e.ends, "", false)
	})
	for _, x := range []struct {
		from state
		on   trigger
		is   func(*testing.T) *Engine
		do   func(*Engine)
	}{
		{stateElecting, onSubnetUnread, anyone(Config{}), (*Engine).startSweep},
		{stateSweeping, onSubnetUnread, anyone(Config{}), (*Engine).startSweep},
		{stateReading, onSubnetUnread, anyone(Config{}), (*Engine).startSweep},
		{stateWatching, onHandover, up(Config{Profile: protect.Tenant, Keys: shared.Keys}), (*Engine).release},
		{stateReleasing, onDone, up(Config{}), func(e *Engine) { e.phase.advance(e, 0) }},
		{stateSweeping, onContested, up(Config{}), contested},
		{stateSweeping, onTakeover, anyone(Config{}), abandon},
		{stateWatching, onMasterUnknown, up(Config{}), func(e *Engine) { e.startElection(e.now) }},
		{stateRefreshing, onKeysDue, up(Config{Profile: protect.Tenant, Keys: shared.Keys}), lead(swept)},
		{stateReading, onKeysDue, up(Config{Profile: protect.Tenant, Keys: shared.Keys}), lead(swept)},
		{stateRefreshing, onTablesUnread, up(Config{}), lead(swept)},
		{stateSweeping, onTablesUnread, up(Config{}), lead(swept)},
		{stateSweeping, onMustWait, anyone(Config{}), deaf},
		{stateAnnouncing, onMustWait, anyone(Config{}), deaf},
		{stateRefreshing, onMustWait, anyone(Config{}), deaf},
		{stateSweeping, onWaitOver, up(Config{}), waitOver},
		{stateElecting, onWaitOver, up(Config{}), waitOver},
		{stateAnnouncing, onWaitOver, up(Config{}), waitOver},
		{statePausing, onWaitOver, up(Config{}), func(e *Engine) { swept(e); e.paused() }},
		{stateSweeping, onNewMaster, up(Config{}), announce},
		{stateElecting, onNewMaster, up(Config{}), announce},
		{stateElecting, onGivesWay, up(Config{}), gives},
		{stateReading, onGivesWay, up(Config{}), gives},
		{stateChecking, onGivesWay, up(Config{}), gives},
		{stateApplying, onGivesWay, up(Config{}), gives},
		{stateSweeping, onPolicyRefused, up(Config{}), refuse},
		{stateElecting, onPolicyRefused, up(Config{}), refuse},
		{stateReading, onPolicyRefused, up(Config{}), refuse},
		{stateWatching, onPolicyRefused, up(Config{}), refuse},
		{stateKeying, onRefused, anyone(Config{}), lockOut},
		{stateReading, onRefused, anyone(Config{}), refuse},
		{stateWatching, onRefused, anyone(Config{}), refuse},
		{stateSweeping, onLockedOut, anyone(shared), lockOut},
		{stateKeying, onLockedOut, anyone(shared), lockOut},
		{stateApplying, onInternal, up(Config{}), func(e *Engine) { e.broken = true; e.recover() }},
		{stateReading, onHeld, up(Config{Hold: true}), lead(func(*Engine) {})},
		{stateElecting, onTakeover, anyone(Config{}), abandon},
		{stateReading, onTakeover, anyone(Config{}), abandon},
		{stateRefreshing, onTakeover, anyone(Config{}), abandon},
		{stateChecking, onTakeover, anyone(Config{}), abandon},
		{stateWatching, onDeposed, anyone(Config{}), resign},
		{stateHeld, onDeposed, anyone(Config{}), resign},
		{stateApplying, onDeposed, anyone(Config{}), func(e *Engine) { e.phase.advance(e, 0) }},
		{stateKeying, onDeposed, anyone(Config{}), func(e *Engine) { e.fabric = observed.NewFabric(); e.phase.(*keying).secured(e, 0) }},
		{stateChecking, onDeposed, anyone(Config{}), func(e *Engine) { e.phase.advance(e, 0) }},
		{stateReleasing, onDeposed, anyone(Config{}), func(e *Engine) { e.phase.advance(e, 0) }},
		{stateAnnouncing, onDeposed, anyone(Config{}), func(e *Engine) { e.phase.advance(e, 0) }},
		{stateRefreshing, onDeposed, anyone(Config{}), func(e *Engine) { e.phase.advance(e, 0) }},
	} {
		t.Run(x.from.String()+x.on.String(), func(t *testing.T) {
			e := x.is(t)
			var seen []string
			e.config.OnStep = func(from, on string, ok bool) { Record(from, on, ok); seen = append(seen, from+" "+on) }
			e.phase = phaseIn(x.from)
			x.do(e)
			if len(seen) != 1 || seen[0] != x.from.String()+" "+x.on.String() || e.state() != table[x.from][x.on]-1 {
				t.Errorf("it took %q and is %s", seen, e.state())
			}
		})
	}
}

// contested has a host answer behind a link that is followed again, which stands elsewhere in the
// snapshot.
func contested(e *Engine) {
	moved, host := e.ends[1].Peer, e.ends[2]
	e.sweep.discovery = sweep.Again(e.window, e.Reads(), e.fabric, []*observed.Port{moved}, []*observed.Port{moved})
	for p := (mad.SMP{}); e.window.Next(e.now, &p); {
		who := host.Node.Info
		who.PortGUID, who.LocalPortNum = host.GUID, host.Num
		var answer interface {
			Encode(*[mad.DataSize]byte) error
		} = &who
		if p.AttributeID == smp.AttrPortInfo {
			answer = &moved.Info
		}
		if err := answer.Encode(&p.Data); err != nil {
			panic(err)
		}
		p.MakeResponse(mad.StatusOK)
		e.window.Receive(e.now, &p)
	}
	e.revisited(e.now)
}

// A master whose port has lost the LID of the master since it last read the subnet writes nothing
// then.
func TestRobbedWhileItSweeps(t *testing.T) {
	e, drive := master(t, Config{Profile: protect.Tenant})
	p := *e.policy
	asked := p.Asked()
	asked.MasterSMLID = 77
	p.Settings = &asked
	e.policy, e.fabric.Self.Info.LID = &p, 77
	e.startSweep()
	drive(func() bool { return e.ownLID.robbed })
	if e.state() != stateWatching || e.phase.running() != nil {
		t.Errorf("it is %s, and writes: %v", e.state(), e.phase.running() != nil)
	}
}

// A manager that is new to the subnet leaves it to a master that does not count.
func TestUnexpectedMaster(t *testing.T) {
	f, hosts := tree(t)
	first, drive := at(t, f, hosts[0], Config{})
	drive(func() bool { return first.settled && first.Settled() })
	second, drive := at(t, f, hosts[1], Config{Profile: protect.Tenant, Election: Election{Newcomer: true}})
	drive(func() bool { return second.state() == stateRefused })
	if !first.isMaster() || second.isMaster() || second.settled || second.state() != stateRefused {
		t.Errorf("the first is master: %v; the second is %s, has managed the subnet: %v", first.isMaster(), second.state(), second.settled)
	}
}
