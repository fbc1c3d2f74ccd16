package engine_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// How an engine is driven, and what holds of any run of it. What it makes of troubled
// fabrics, hosts that lie and other managers is in test/simtest.

// site is a simulated tree with an engine at its first host.
type site struct {
	*testing.T
	list   *topology.Netlist
	fabric *fabric.Fabric
	link   *inproc.Link
	engine *engine.Engine
	events []event.Event
	// sets are the writes that agents took in, packets a sum of all that they did.
	sets    int
	packets [sha256.Size]byte
}

func newSite(t *testing.T, c engine.Config, p *policy.Policy, troubles fabric.Config) *site {
	t.Helper()
	list, err := topology.Generate("fattree,radix=4,levels=2")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, list: list}
	troubles.Trace = func(x fabric.Sighting) {
		if x.What != fabric.SeenByAgent {
			return
		}
		if x.MAD[3] == byte(mad.MethodSet) {
			s.sets++
		}
		s.packets = sha256.Sum256(fmt.Append(s.packets[:], x.At, x.Node, x.Port, x.MAD))
	}
	if s.fabric, err = fabric.New(list, troubles); err != nil {
		t.Fatal(err)
	}
	node, num, err := list.Attach("")
	if err == nil {
		s.link, err = inproc.New(s.fabric, node.GUID, num, false)
	}
	if err == nil {
		err = s.link.SetIsSM(true)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Limits, c.Routing, c.OnStep = s.link.Limits(), routing.UpDown, engine.Record
	s.engine = engine.New(c, p, func(e event.Event) { s.events = append(s.events, e) })
	return s
}

// run lets time pass until something holds, ten simulated minutes at the most.
func (s *site) run(what string, done func() bool) {
	s.Helper()
	end := s.fabric.Now() + 10*time.Minute
	if err := s.link.Drive(context.Background(), s.engine, func() bool { return done() || s.fabric.Now() > end }); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
	if !done() {
		s.Fatalf("%s: not within ten minutes; %v", what, s.events)
	}
}

// pass lets a stretch of time pass.
func (s *site) pass(d time.Duration) {
	s.Helper()
	over := false
	s.fabric.At(s.fabric.Now()+d, func() { over = true })
	s.run("time passes", func() bool { return over })
}

// hosts are the descriptions of the hosts, but for the manager's.
func (s *site) hosts() (out []string) {
	for _, n := range s.list.Nodes[1:] {
		if n.Type == ib.NodeCA {
			out = append(out, n.Description)
		}
	}
	return out
}

// read makes a policy of partitions with these members.
func read(t *testing.T, red, blue []string) *policy.Policy {
	t.Helper()
	list := func(names []string) string {
		return `{description: "` + strings.Join(names, `"}, {description: "`) + `"}`
	}
	p, err := policyfile.ReadYAML([]byte("version: 1\ndescriptions: trusted\npartitions:\n  - {name: red, pkey: 0x10, members: [{as: full, ports: ["+list(red)+
		"]}]}\n  - {name: blue, pkey: 0x20, members: [{as: full, ports: ["+list(blue)+"]}]}\n"), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// last is the latest event of a type.
func last[E event.Event](s *site) (e E, ok bool) {
	for _, x := range slices.Backward(s.events) {
		if e, ok = x.(E); ok {
			return e, true
		}
	}
	return e, false
}

// tenants puts the first hosts in red and the others in blue.
func tenants(t *testing.T) *policy.Policy {
	t.Helper()
	list, err := topology.Generate("fattree,radix=4,levels=2")
	if err != nil {
		t.Fatal(err)
	}
	hosts := (&site{list: list}).hosts()
	return read(t, hosts[:3], hosts[3:])
}

// One pass brings the subnet up and proves it, and with nothing to change the engine
// writes no more; a new policy is one pass more.
func TestPass(t *testing.T) {
	p := tenants(t)
	s := newSite(t, engine.Config{}, p, fabric.DefaultConfig())
	s.run("the first pass", s.engine.Settled)
	done, ok := last[event.Completed](s)
	if !ok || done.Result.Policy != p || !done.Result.Reached() || done.Result.Proof.Verdict != isolation.Isolated || done.Result.Writes == 0 {
		t.Fatalf("%v, %+v", s.events, done.Result)
	}
	proof := isolation.Prove(s.engine.Fabric(), done.Result.Partitions)
	if proof.Verdict != isolation.Isolated {
		t.Errorf("the snapshot that the engine hands out is %s", proof.Verdict)
	}
	s.pass(2 * engine.DefaultSweepInterval) // the first light sweep finds what the bring-up changed
	s.run("it settles", s.engine.Settled)
	before := s.sets
	s.pass(2 * engine.DefaultDriftPeriod)
	if s.sets != before {
		t.Errorf("%d writes where nothing has changed", s.sets-before)
	}
	hosts := s.hosts()
	next := read(t, hosts[:2], hosts[2:])
	s.engine.SetPolicy(next)
	s.engine.Expire(s.fabric.Now())
	s.run("the next policy", s.engine.Settled)
	if done, _ := last[event.Completed](s); done.Result.Policy != next || done.Result.Proof.Verdict != isolation.Isolated || s.sets == before {
		t.Errorf("%+v", done.Result)
	}
}

// The same inputs give the same packets at the same times, with losses too; another
// seed gives others.
func TestRepeats(t *testing.T) {
	sum := func(seed byte, loss float64) (first, all [sha256.Size]byte) {
		c := fabric.DefaultConfig()
		c.Loss = loss
		s := newSite(t, engine.Config{Seed: [32]byte{seed}}, tenants(t), c)
		s.run("the first pass", func() bool { _, done := last[event.Completed](s); return done })
		first = s.packets
		s.pass(time.Minute)
		if done, _ := last[event.Completed](s); s.sets == 0 || done.Result == nil || !done.Result.Reached() {
			t.Errorf("loss %v: %d writes, %v", loss, s.sets, done.Result)
		}
		return first, s.packets
	}
	for _, loss := range []float64{0, 0.05} {
		first, all := sum(1, loss)
		if again, allAgain := sum(1, loss); first != again || all != allAgain {
			t.Errorf("loss %v: two runs differ", loss)
		}
		if other, _ := sum(2, loss); first == other {
			t.Errorf("loss %v: runs with different seeds are the same", loss)
		}
	}
}

// A policy that names nobody who is here writes nothing, and a good one after it is
// carried out.
func TestRefusedPolicy(t *testing.T) {
	s := newSite(t, engine.Config{}, read(t, []string{"nobody-1"}, []string{"nobody-2"}), fabric.DefaultConfig())
	refused := func() bool { _, was := last[event.Refused](s); return was }
	s.run("it is refused", refused)
	s.pass(time.Minute)
	if s.sets > 0 {
		t.Errorf("%d writes for a policy that was refused", s.sets)
	}
	s.engine.SetPolicy(tenants(t))
	s.engine.Expire(s.fabric.Now())
	s.run("the other policy", func() bool { done, ok := last[event.Completed](s); return ok && done.Result.Reached() })
	if s.sets == 0 {
		t.Error("the other policy wrote nothing")
	}
}

// A second policy that is refused like the first is tried again now and then, and not
// in one sweep after the other.
func TestRefusedAgain(t *testing.T) {
	s := newSite(t, engine.Config{}, read(t, []string{"nobody-1"}, []string{"nobody-2"}), fabric.DefaultConfig())
	s.run("it is refused", func() bool { _, was := last[event.Refused](s); return was })
	s.engine.SetPolicy(read(t, []string{"nobody-3"}, []string{"nobody-4"}))
	s.engine.Expire(s.fabric.Now())
	before := len(s.events)
	s.pass(time.Minute)
	refusals := 0
	for _, e := range s.events[before:] {
		if _, is := e.(event.Refused); is {
			refusals++
		}
	}
	if refusals == 0 || refusals > 3 {
		t.Errorf("refused %d times in a minute: want it once for the new policy, and once for each drift period", refusals)
	}
}

// Nothing is written before the whole subnet was read.
func TestReadsBeforeItWrites(t *testing.T) {
	var phases []string
	s := newSite(t, engine.Config{}, tenants(t), fabric.DefaultConfig())
	first := -1
	s.run("the first write", func() bool { first = len(s.events); return s.sets > 0 })
	for _, e := range s.events[:first] {
		if b, ok := e.(event.PhaseBegun); ok {
			phases = append(phases, b.Phase)
		}
	}
	read, plan := slices.Index(phases, event.PhaseDiscover), slices.Index(phases, event.PhasePlan)
	found, ok := last[event.Found](s)
	if read < 0 || plan < read || !ok || found.Counts.CAs+found.Counts.Switches != len(s.list.Nodes) {
		t.Errorf("before the first write: %v, found %+v", phases, found.Counts)
	}
}

// Answers that nobody asked for change nothing, whatever they say.
func TestStrayAnswers(t *testing.T) {
	s := newSite(t, engine.Config{Seed: [32]byte{9}}, tenants(t), fabric.DefaultConfig())
	s.run("the first pass", s.engine.Settled)
	counts, port := s.engine.Counts(), s.engine.Fabric().EndPorts()[1]
	keys := slices.Clone(port.PKeys)
	p := mad.SMP{}
	p.Class, p.Method, p.AttributeID = mad.ClassSubnDirected, mad.MethodGetResp, smp.AttrPKeyTable
	p.DrSLID, p.DrDLID, p.HopCount = ib.LIDPermissive, ib.LIDPermissive, uint8(len(port.Path))
	for i, n := range port.Path {
		p.InitialPath[i+1] = byte(n)
	}
	for i := range p.Data {
		p.Data[i] = 0xFF
	}
	for tid := range uint64(1000) {
		p.TransactionID = tid
		s.engine.Receive(s.fabric.Now(), &p, 0)
	}
	if !slices.Equal(keys, port.PKeys) || s.engine.Counts().Answered != counts.Answered {
		t.Errorf("%s has %v", port, port.PKeys)
	}
}

// What others ask of a manager is SMInfo: a request for any other attribute is no manager that asks, and
// is answered by nobody here.
func TestOnlySMInfoIsAsked(t *testing.T) {
	for _, x := range []struct {
		attribute mad.AttributeID
		method    mad.Method
		answers   bool
	}{
		{smp.AttrSMInfo, mad.MethodGet, true}, {smp.AttrNodeInfo, mad.MethodGet, false}, {smp.AttrPortInfo, mad.MethodSet, false},
		{smp.AttrSMInfo, mad.MethodGetResp, false}, {smp.AttrSMInfo, mad.MethodTrap, false},
	} {
		s := newSite(t, engine.Config{Seed: [32]byte{9}}, tenants(t), fabric.DefaultConfig())
		s.run("the first pass", s.engine.Settled)
		from := s.engine.Fabric().EndPorts()[1]
		p := mad.SMP{BaseVersion: mad.BaseVersion, ClassVersion: mad.ClassVersion, Class: mad.ClassSubnLID, Method: x.method, AttributeID: x.attribute, TransactionID: 77}
		asker := smp.SMInfo{GUID: from.GUID, SMState: smp.SMStandby}
		if err := asker.Encode(&p.Data); err != nil {
			t.Fatal(err)
		}
		s.engine.Receive(s.fabric.Now(), &p, from.Info.LID)
		answered := false
		for out := (mad.SMP{}); ; {
			to, some := s.engine.Next(s.fabric.Now(), &out)
			if !some {
				break
			}
			answered = answered || out.TransactionID == 77 && out.Method == mad.MethodGetResp && to == from.Info.LID
		}
		if answered != x.answers {
			t.Errorf("%v of %s: answered %v", x.method, smp.AttributeName(x.attribute), answered)
		}
	}
}
