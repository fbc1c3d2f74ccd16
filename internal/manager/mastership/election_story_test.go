package mastership

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// network carries messages between engines. A manager's LID is its GUID. Every
// message arrives at once; sweeps that engines ask for are done in turn.
type network struct {
	t       testing.TB
	now     time.Duration
	engines map[ib.PortGUID]*Election
	dead    map[ib.PortGUID]bool
	frozen  map[ib.PortGUID]smp.SMInfo // answers always with this
	verdict map[ib.PortGUID]Verdict
	deaf    map[ib.PortGUID]bool // receives no control packets
	story   []string
	key     func(from, to ib.PortGUID) ib.SMKey // makes managers named when set
}

func newNetwork(t testing.TB) *network {
	return &network{
		t: t, engines: map[ib.PortGUID]*Election{}, dead: map[ib.PortGUID]bool{}, frozen: map[ib.PortGUID]smp.SMInfo{},
		verdict: map[ib.PortGUID]Verdict{}, deaf: map[ib.PortGUID]bool{},
	}
}

func (n *network) start(c ElectionConfig) *Election {
	n.t.Helper()
	c.Named, c.Key = n.key != nil, n.key
	e, err := NewElection(c)
	if err != nil {
		n.t.Fatal(err)
	}
	n.engines[c.GUID] = e
	delete(n.dead, c.GUID)
	n.sweep(c.GUID)
	return e
}

func (n *network) guids() []ib.PortGUID {
	var out []ib.PortGUID
	for g := range n.engines {
		if !n.dead[g] {
			out = append(out, g)
		}
	}
	slices.Sort(out)
	return out
}

// get asks a manager for its SMInfo, as a stranger.
func (n *network) get(g ib.PortGUID) smp.SMInfo { return n.ask(g, Address{}, smp.SMInfo{}) }

// ask is a Get by somebody who says who he is.
func (n *network) ask(g ib.PortGUID, from Address, asker smp.SMInfo) smp.SMInfo {
	if info, ok := n.frozen[g]; ok {
		return info
	}
	info, _, _ := n.engines[g].Receive(n.now, from, mad.MethodGet, 0, asker)
	return info
}

func at(g ib.PortGUID) Address { return Address{LID: ib.LID(g), Port: g} }

// sweep is a discovery by one manager that sees all others.
func (n *network) sweep(g ib.PortGUID) {
	var others []Remote
	for _, other := range n.guids() {
		if other != g {
			asker := smp.SMInfo{}
			if n.key != nil {
				asker = n.engines[g].InfoFor(other)
			}
			others = append(others, Remote{Info: n.ask(other, at(g), asker), Address: at(other)})
		}
	}
	verdict, effects := n.engines[g].Decide(n.now, others)
	if n.verdict[g] != verdict {
		n.tell("%d: %s", g, verdict)
	}
	n.verdict[g] = verdict
	n.follow(g, effects)
}

func (n *network) tell(format string, args ...any) {
	n.story = append(n.story, fmt.Sprintf(format, args...))
}

// follow does what one manager's effects ask for.
func (n *network) follow(g ib.PortGUID, effects Effects) {
	if effects.From != effects.To {
		n.tell("%d: %s > %s", g, effects.From, effects.To)
	}
	if effects.To != n.engines[g].State() {
		n.t.Errorf("%d: effects say %s, the state is %s", g, effects.To, n.engines[g].State())
	}
	for _, m := range effects.Send {
		n.carry(g, m)
	}
	if effects.Sweep {
		n.sweep(g)
	}
}

// carry delivers a message and its answer.
func (n *network) carry(from ib.PortGUID, m Message) {
	to := ib.PortGUID(m.To.LID)
	if to != m.GUID {
		n.t.Errorf("%d: message for %d goes to %d", from, m.GUID, to)
	}
	if m.Method == mad.MethodSet {
		n.tell("%d: control %d to %d", from, m.Control, to)
	}
	if n.dead[to] || n.engines[to] == nil || n.deaf[to] && m.Method == mad.MethodSet {
		return
	}
	if info, ok := n.frozen[to]; ok {
		n.follow(from, n.engines[from].Answered(m, mad.StatusOK, info))
		return
	}
	info, status, effects := n.engines[to].Receive(n.now, at(from), m.Method, uint32(m.Control), m.Info)
	if status != mad.StatusOK {
		n.tell("%d: refused", to)
	}
	n.follow(from, n.engines[from].Answered(m, status, info))
	n.follow(to, effects)
}

// pass lets time go by, a tenth of the poll interval at a time, with sweeps of
// all that are master or wait for mastership every five intervals.
func (n *network) pass(d time.Duration) {
	const step = DefaultPollInterval / 10
	for end := n.now + d; n.now < end; {
		n.now += step
		for _, g := range n.guids() {
			if _, hung := n.frozen[g]; hung {
				continue
			}
			n.follow(g, n.engines[g].Tick(n.now))
			if n.now%(5*DefaultPollInterval) == 0 && n.engines[g].State() == smp.SMMaster {
				n.sweep(g)
			}
		}
	}
}

// expect compares the story since the last time.
func (n *network) expect(lines ...string) {
	n.t.Helper()
	if got, want := strings.Join(n.story, "\n"), strings.Join(lines, "\n"); got != want {
		n.t.Errorf("story:\n%s\nwant:\n%s", got, want)
	}
	n.story = nil
	if masters := n.masters(); len(masters) > 1 {
		n.t.Errorf("%v may all write", masters)
	}
}

// masters are those that may write.
func (n *network) masters() []ib.PortGUID {
	var out []ib.PortGUID
	for _, g := range n.guids() {
		if _, hung := n.frozen[g]; !hung && n.engines[g].State() == smp.SMMaster && n.verdict[g] == Master {
			out = append(out, g)
		}
	}
	return out
}

func TestStoryOfTwoManagers(t *testing.T) {
	n := newNetwork(t)
	n.start(ElectionConfig{GUID: 2})
	n.expect("2: master", "2: discovering > master")

	// A lower one comes.
	n.start(ElectionConfig{GUID: 3})
	n.expect("3: standby", "3: discovering > standby")
	n.pass(20 * time.Second)
	n.expect()

	// The master dies.
	n.dead[2] = true
	n.pass(5 * time.Second)
	n.expect("3: standby > discovering", "3: master", "3: discovering > master")

	// It comes back, finds a master that it outranks, and is handed over to.
	n.start(ElectionConfig{GUID: 2})
	n.expect("2: waiting for the handover", "2: discovering > standby")
	n.pass(5 * time.Second)
	n.expect("3: control 1 to 2", "3: master > standby", "2: standby > master", "2: control 2 to 3", "2: master")
	n.pass(20 * time.Second)
	n.expect()
}

func TestStoryOfThreeManagers(t *testing.T) {
	n := newNetwork(t)
	n.start(ElectionConfig{GUID: 1, Priority: 3})
	n.start(ElectionConfig{GUID: 2, Priority: 5})
	n.start(ElectionConfig{GUID: 3, Priority: 4})
	n.expect(
		"1: master", "1: discovering > master",
		"2: waiting for the handover", "2: discovering > standby",
		"3: waiting for the handover", "3: discovering > standby")

	// The highest of those waiting is handed over to. The other one, too, sees
	// that its master is no longer master, and finds the new one.
	n.pass(5 * time.Second)
	n.expect("1: control 1 to 2", "1: master > standby", "2: standby > master", "2: control 2 to 1", "2: master",
		"3: standby > discovering", "3: standby", "3: discovering > standby")

	// The two that are left agree on the next.
	n.dead[2] = true
	n.pass(20 * time.Second)
	if m := n.masters(); !slices.Equal(m, []ib.PortGUID{3}) {
		t.Errorf("masters %v, want 3\n%s", m, strings.Join(n.story, "\n"))
	}
	if s := n.engines[1].State(); s != smp.SMStandby {
		t.Errorf("1 is %s", s)
	}
}

// Two subnets, each with a master, are joined.
func TestStoryOfAMerger(t *testing.T) {
	n := newNetwork(t)
	n.start(ElectionConfig{GUID: 2, Priority: 1})
	n.dead[2] = true // out of sight
	n.start(ElectionConfig{GUID: 3, Priority: 9})
	delete(n.dead, 2)
	n.story = nil

	// Whoever sweeps first stops writing, and the lower one hands over.
	n.sweep(3)
	n.expect("3: waiting for the handover")
	n.sweep(2)
	n.expect("2: waiting for the handover", "2: control 1 to 3", "2: master > standby", "3: control 2 to 2", "3: master")
	n.pass(20 * time.Second)
	n.expect()
}

// A master that offers mastership in vain stays master.
func TestStoryOfAFailedHandover(t *testing.T) {
	n := newNetwork(t)
	n.start(ElectionConfig{GUID: 5})
	n.start(ElectionConfig{GUID: 4})
	n.deaf[4] = true
	n.story = nil
	n.pass(5 * time.Second)
	n.expect("5: control 1 to 4")
	n.pass(4 * time.Second)
	n.expect("5: control 1 to 4", "5: control 1 to 4")
	n.deaf[4] = false
	n.pass(time.Second)
	n.expect("5: control 1 to 4", "5: master > standby", "4: standby > master", "4: control 2 to 5", "4: master")
}

// Whatever comes, goes, and comes back as it was: never may two managers write
// that have seen each other, and in the end the highest is master and all
// others are standby.
func TestElectionsSettle(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := newNetwork(t)
		if rapid.Bool().Draw(r, "named") {
			n.key = pairKey
		}
		config := func(g ib.PortGUID) ElectionConfig { return ElectionConfig{GUID: g, Priority: uint8(g*7%4) / 2} }
		for range rapid.IntRange(1, 12).Draw(r, "events") {
			g := ib.PortGUID(rapid.IntRange(1, 5).Draw(r, "manager"))
			switch event := rapid.SampledFrom([]string{"start", "vanish", "return"}).Draw(r, "event"); {
			case event == "start":
				n.start(config(g))
			case n.engines[g] != nil:
				n.dead[g] = event == "vanish"
			}
			n.pass(time.Duration(rapid.IntRange(0, 80).Draw(r, "tenths")) * DefaultPollInterval / 10)
		}
		n.pass(time.Minute)
		best := smp.SMInfo{}
		for _, g := range n.guids() {
			if info := n.engines[g].info(); best.GUID == 0 || outranks(&info, &best) {
				best = info
			}
		}
		for _, g := range n.guids() {
			verdict, state := Standby, smp.SMStandby
			if g == best.GUID {
				verdict, state = Master, smp.SMMaster
			}
			if n.engines[g].State() != state || state == smp.SMMaster && n.verdict[g] != verdict {
				r.Errorf("%d of %v is %s (%s), want %s\n%s", g, n.guids(), n.engines[g].State(), n.verdict[g], state, strings.Join(n.story, "\n"))
			}
		}
	})
}

func TestAnOpenOfferIsNotRepeatedByASweep(t *testing.T) {
	e := engine(t, smp.SMMaster, ElectionConfig{})
	others := []Remote{{Info: smp.SMInfo{GUID: 1, SMState: smp.SMStandby}}}
	for sweep, want := range []int{1, 0, 0} {
		if _, effects := e.Decide(0, others); len(effects.Send) != want {
			t.Errorf("sweep %d: sent %+v", sweep, effects.Send)
		}
	}
	// Another one that ranks higher still gets the next offer, and when none
	// does any more the offer lapses.
	others = append(others, Remote{Info: smp.SMInfo{GUID: 2, Priority: 1, SMState: smp.SMStandby}})
	if _, effects := e.Decide(0, others); len(effects.Send) != 1 || effects.Send[0].GUID != 2 {
		t.Errorf("sent %+v", effects.Send)
	}
	e.Decide(0, nil)
	if at, due := e.Due(); due {
		t.Errorf("due at %v", at)
	}
}

// A master that saw a second one polls it, and decides again when that one
// steps back or falls silent.
func TestTheSecondMasterIsPolled(t *testing.T) {
	second := Remote{Info: smp.SMInfo{GUID: 60, SMState: smp.SMMaster}, Address: Address{LID: 6}}
	for _, how := range []string{"steps back", "falls silent"} {
		e := engine(t, smp.SMMaster, ElectionConfig{})
		if verdict, effects := e.Decide(0, []Remote{second}); verdict != WaitHandover || effects.Why == "" {
			t.Fatalf("%s, %+v", verdict, effects)
		}
		now, sweep := time.Duration(0), false
		for range DefaultPolls + 1 {
			now += DefaultPollInterval
			effects := e.Tick(now)
			sweep = sweep || effects.Sweep
			for _, m := range effects.Send {
				if m.GUID != 60 || m.To.LID != 6 || m.Method != mad.MethodGet {
					t.Errorf("%s: sent %+v", how, m)
				}
				if how == "steps back" {
					sweep = e.Answered(m, mad.StatusOK, smp.SMInfo{GUID: 60, ActCount: 1, SMState: smp.SMStandby}).Sweep
				}
			}
			if sweep {
				break
			}
		}
		if how == "steps back" && now != DefaultPollInterval {
			t.Errorf("a second master that steps back at once is noticed after %v", now)
		}
		if _, due := e.Due(); !sweep || due || e.State() != smp.SMMaster {
			t.Errorf("%s: sweep %v, due %v, now %s", how, sweep, due, e.State())
		}
	}
}

func TestDueIsTheEarlier(t *testing.T) {
	e := engine(t, smp.SMMaster, ElectionConfig{})
	second := Remote{Info: smp.SMInfo{GUID: 60, SMState: smp.SMMaster}}
	higher := Remote{Info: smp.SMInfo{GUID: 1, SMState: smp.SMStandby}}
	e.Decide(0, []Remote{second})
	e.Decide(DefaultPollInterval/2, []Remote{second, higher})
	for _, want := range []time.Duration{2, 3, 4} { // halves of an interval
		at, due := e.Due()
		if !due || at != want*DefaultPollInterval/2 {
			t.Fatalf("due %v at %v, want %v", due, at, want*DefaultPollInterval/2)
		}
		e.Tick(at)
	}
}

// A handover that came by an unknown way is acknowledged to where the master
// was polled, and the polls end.
func TestAcknowledgeFindsTheWay(t *testing.T) {
	e := engine(t, smp.SMStandby, ElectionConfig{})
	_, _, effects := e.Receive(0, Address{}, mad.MethodSet, 1, smp.SMInfo{GUID: 90, SMState: smp.SMMaster})
	if len(effects.Send) != 1 || effects.Send[0].To.LID != 90 {
		t.Errorf("sent %+v", effects.Send)
	}
	if _, due := e.Due(); due {
		t.Error("the old master is still polled")
	}
}
