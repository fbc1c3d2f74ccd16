package mastership

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
)

const (
	ownGUID = ib.PortGUID(50)
	key     = ib.SMKey(0x1234_5678_9ABC_DEF0)
)

// engine is one in the given state. A standby and a not active one know the
// master with GUID 90, priority 0.
func engine(t *testing.T, state smp.SMState, c ElectionConfig) *Election {
	t.Helper()
	if c.GUID == 0 {
		c.GUID = ownGUID
	}
	e, err := NewElection(c)
	if err != nil {
		t.Fatal(err)
	}
	master := Remote{Info: smp.SMInfo{GUID: 90, SMKey: c.SMKey, SMState: smp.SMMaster}, Address: Address{LID: 90}}
	switch state {
	case smp.SMMaster:
		e.Decide(0, nil)
	case smp.SMStandby:
		e.Decide(0, []Remote{master})
	case smp.SMNotActive:
		e.Decide(0, []Remote{master})
		e.Receive(0, master.Address, mad.MethodSet, uint32(smp.SMControlDisable), master.Info)
	}
	if e.State() != state {
		t.Fatalf("engine is %s, want %s", e.State(), state)
	}
	return e
}

func states() []smp.SMState {
	return []smp.SMState{smp.SMNotActive, smp.SMDiscovering, smp.SMStandby, smp.SMMaster}
}

func request(method mad.Method, modifier uint32, info smp.SMInfo) *mad.SMP {
	p := &mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnLID, ClassVersion: mad.ClassVersion, Method: method,
		TransactionID: 77, AttributeID: smp.AttrSMInfo, AttributeModifier: modifier,
	}
	if err := info.Encode(&p.Data); err != nil {
		panic(err)
	}
	return p
}

// SM-01: attribute 0x0020 is answered where a manager lives, in every state, and no
// other is. The request is bytes, as they come over a wire.
func TestSM01AttributeIsAnswered(t *testing.T) {
	for _, state := range states() {
		for _, class := range []byte{0x01, 0x81} {
			for id := range 0x40 {
				var bytes [mad.Size]byte
				// Base version, class, class version, Get; transaction 77; the attribute.
				bytes[0], bytes[1], bytes[2], bytes[3], bytes[15] = 1, class, 1, 0x01, 77
				bytes[16], bytes[17] = byte(id>>8), byte(id)
				var p mad.SMP
				if err := p.UnmarshalBinary(bytes[:]); err != nil {
					t.Fatal(err)
				}
				_, ok := engine(t, state, ElectionConfig{Priority: 5}).Serve(0, Address{}, &p)
				if ok != (id == 0x20) {
					t.Fatalf("%s: attribute %#x: answered %v", state, id, ok)
				}
				if err := p.Encode(&bytes); err != nil {
					t.Fatal(err)
				}
				if ok && (bytes[3] != 0x81 || bytes[15] != 77 || bytes[17] != 0x20 || bytes[4]&0x7F != 0 || bytes[5] != 0 ||
					bytes[4]&0x80 != 0 != (class == 0x81) || bytes[64+7] != byte(ownGUID) || bytes[64+20] != 5<<4|byte(state)) {
					t.Errorf("%s, class %#x: answered by %x", state, class, bytes[:96])
				}
			}
		}
	}
}

// AT-05 for SMInfo: of the data of a Get only what proves its sender counts, which
// is the SM_Key of a master; any other data bring the answer that zeros bring.
func TestAT05GetDataDoNotCount(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 5))
	for _, state := range states() {
		for range 200 {
			noise := smp.SMInfo{
				GUID: ib.PortGUID(r.Uint64()), SMKey: ib.SMKey(r.Uint64()), ActCount: r.Uint32(),
				Priority: uint8(r.IntN(16)), SMState: smp.SMState(r.IntN(16)),
			}
			if noise.SMKey == key {
				continue
			}
			quiet, loud := engine(t, state, ElectionConfig{SMKey: key}), engine(t, state, ElectionConfig{SMKey: key})
			p, q := request(mad.MethodGet, 0, smp.SMInfo{}), request(mad.MethodGet, 0, noise)
			quiet.Serve(0, Address{}, p)
			effects, ok := loud.Serve(0, Address{}, q)
			if !ok || *p != *q || effects.From != effects.To || effects.Send != nil || loud.State() != state || loud.Info() != quiet.Info() {
				t.Fatalf("%s: a Get with %+v is answered by %x, with zeros by %x (seed 13, 5)", state, noise, q.Data, p.Data)
			}
		}
	}
}

func TestServeLeavesTheRestAlone(t *testing.T) {
	for name, change := range map[string]func(*mad.SMP){
		"attribute": func(p *mad.SMP) { p.AttributeID = smp.AttrPortInfo },
		"response":  func(p *mad.SMP) { p.Method = mad.MethodGetResp },
		"trap":      func(p *mad.SMP) { p.Method = mad.MethodTrap },
	} {
		e := engine(t, smp.SMStandby, ElectionConfig{})
		p := request(mad.MethodSet, uint32(smp.SMControlHandover), smp.SMInfo{GUID: 90, SMState: smp.SMMaster})
		change(p)
		before := *p
		if effects, ok := e.Serve(0, Address{}, p); ok || *p != before || effects.From != effects.To || e.State() != smp.SMStandby {
			t.Errorf("%s: served, %+v", name, effects)
		}
	}
}

// SM-04: the modifier of a Get does not count.
func TestSM04GetIgnoresTheModifier(t *testing.T) {
	for _, modifier := range []uint32{0, 1, 5, 6, 0xFFFF_FFFF} {
		e := engine(t, smp.SMStandby, ElectionConfig{})
		info, status, effects := e.Receive(0, Address{}, mad.MethodGet, modifier, smp.SMInfo{GUID: 90, SMState: smp.SMMaster})
		if status != mad.StatusOK || info.SMState != smp.SMStandby || effects.From != effects.To || effects.Send != nil {
			t.Errorf("modifier %d: %s, %+v, %+v", modifier, status, info, effects)
		}
	}
}

// SM-05: the modifier of a Set is the kind of control packet, 1 to 5, and each
// has its states and its senders; everything else is refused and changes
// nothing. Master 90 has a lower rank than the engine, master 10 a higher one.
func TestSM05ControlPackets(t *testing.T) {
	master, higher := smp.SMInfo{GUID: 90, SMState: smp.SMMaster}, smp.SMInfo{GUID: 10, SMState: smp.SMMaster}
	legal := map[smp.SMControl]map[smp.SMState]smp.SMState{
		smp.SMControlHandover: {smp.SMStandby: smp.SMMaster, smp.SMMaster: smp.SMMaster},
		smp.SMControlDisable:  {smp.SMStandby: smp.SMNotActive},
		smp.SMControlStandby:  {smp.SMNotActive: smp.SMStandby},
		smp.SMControlDiscover: {smp.SMStandby: smp.SMDiscovering},
		// To a standby from the master it knows: a repetition, without effect.
		smp.SMControlAcknowledge: {smp.SMStandby: smp.SMStandby},
	}
	controls := []smp.SMControl{0, 1, 2, 3, 4, 5, 6, 7, 9, 0x103, 0x1_0004, 0x500_0000, 0xFFFF_FFFF}
	for _, control := range controls {
		for _, state := range states() {
			senders := []smp.SMInfo{master, higher, {GUID: ownGUID, SMState: smp.SMMaster}}
			for s := range smp.SMState(16) {
				senders = append(senders, smp.SMInfo{GUID: 90, SMState: s})
			}
			for _, sender := range senders {
				e := engine(t, state, ElectionConfig{})
				_, status, effects := e.Receive(0, Address{LID: 90}, mad.MethodSet, uint32(control), sender)
				want, ok := legal[control][state]
				switch {
				case sender.GUID == ownGUID, control == smp.SMControlHandover && sender == higher:
					ok = false
				case control == smp.SMControlAcknowledge:
					ok = ok && sender.GUID == 90 && (sender.SMState == smp.SMStandby || sender.SMState == smp.SMMaster)
				default:
					ok = ok && sender.SMState == smp.SMMaster
				}
				if !ok {
					want = state
				}
				if (status == mad.StatusOK) != ok || !ok && status != mad.StatusInvalidField {
					t.Errorf("control %d from %+v to a %s: %s", control, sender, state, status)
				}
				if e.State() != want || effects.From != state || effects.To != want {
					t.Errorf("control %d from %+v to a %s: now %s, effects %+v", control, sender, state, e.State(), effects)
				}
				if !ok && (effects.Send != nil || effects.Sweep) {
					t.Errorf("refused control %d from %+v to a %s: effects %+v", control, sender, state, effects)
				}
			}
		}
	}
}

// A control packet needs the key, when there is one, and a trusted sender.
func TestControlPacketsAreAuthenticated(t *testing.T) {
	for _, c := range []struct {
		name   string
		config ElectionConfig
		key    ib.SMKey
		legal  bool
	}{
		{"no key", ElectionConfig{}, 0, true},
		{"no key here", ElectionConfig{}, key, true},
		{"right key", ElectionConfig{SMKey: key}, key, true},
		{"no key there", ElectionConfig{SMKey: key}, 0, false},
		{"wrong key", ElectionConfig{SMKey: key}, key + 1, false},
		{"trusted", ElectionConfig{Trusted: []ib.PortGUID{80, 90}}, 0, true},
		{"not trusted", ElectionConfig{Trusted: []ib.PortGUID{80}}, 0, false},
		{"nobody trusted", ElectionConfig{SMKey: key, Trusted: []ib.PortGUID{}}, key, false},
	} {
		setup := c.config
		setup.Trusted = nil
		e := engine(t, smp.SMStandby, setup)
		e.config.Trusted = c.config.Trusted
		sender := smp.SMInfo{GUID: 90, SMKey: c.key, SMState: smp.SMMaster}
		_, status, _ := e.Receive(0, Address{}, mad.MethodSet, uint32(smp.SMControlDisable), sender)
		if got := status == mad.StatusOK; got != c.legal || (e.State() == smp.SMNotActive) != c.legal {
			t.Errorf("%s: %s, now %s", c.name, status, e.State())
		}
	}
}

// SM-06: a master that meets a manager of higher priority, standby or master,
// sends HANDOVER, and the receiver ends as the only master.
func TestSM06Handover(t *testing.T) {
	for _, state := range []smp.SMState{smp.SMStandby, smp.SMMaster} {
		e := engine(t, smp.SMMaster, ElectionConfig{})
		higher := Remote{Info: smp.SMInfo{GUID: 60, Priority: 1, SMState: state}, Address: Address{LID: 6}}
		_, effects := e.Decide(0, []Remote{
			{Info: smp.SMInfo{GUID: 61, SMState: state}}, higher,
			{Info: smp.SMInfo{GUID: 62, Priority: 2, SMState: smp.SMDiscovering}},
			{Info: smp.SMInfo{GUID: 63, Priority: 3, SMState: smp.SMNotActive}},
		})
		if len(effects.Send) != 1 {
			t.Fatalf("%s: sent %+v", state, effects.Send)
		}
		if m := effects.Send[0]; m.Method != mad.MethodSet || m.Control != 1 || m.GUID != 60 || m.To.LID != 6 || m.Info.SMState != smp.SMMaster || m.Info.GUID != ownGUID {
			t.Errorf("%s: sent %+v", state, m)
		}
	}
	e := engine(t, smp.SMMaster, ElectionConfig{Priority: 1})
	verdict, effects := e.Decide(0, []Remote{{Info: smp.SMInfo{GUID: 10, SMState: smp.SMStandby}}})
	if verdict != Master || effects.Send != nil {
		t.Errorf("a lower one is offered mastership: %s, %+v", verdict, effects)
	}

	n := newNetwork(t)
	n.start(ElectionConfig{GUID: 7, Priority: 2})
	n.start(ElectionConfig{GUID: 8, Priority: 6})
	n.pass(5 * time.Second)
	if m := n.masters(); !slices.Equal(m, []ib.PortGUID{8}) || n.engines[7].State() != smp.SMStandby {
		t.Errorf("masters %v, the old one is %s", m, n.engines[7].State())
	}
}

// SM-07: ACKNOWLEDGE confirms the handover: the new master sends it, and the
// old one goes to standby, but only for one that it was handing over to.
func TestSM07Acknowledge(t *testing.T) {
	receiver := engine(t, smp.SMStandby, ElectionConfig{})
	_, status, effects := receiver.Receive(0, Address{LID: 9}, mad.MethodSet, 1, smp.SMInfo{GUID: 90, SMState: smp.SMMaster})
	if status != mad.StatusOK || len(effects.Send) != 1 || !effects.Sweep || receiver.State() != smp.SMMaster {
		t.Fatalf("after HANDOVER: %s, %+v", status, effects)
	}
	if m := effects.Send[0]; m.Control != 2 || m.GUID != 90 || m.To.LID != 9 || m.Info.SMState != smp.SMStandby {
		t.Errorf("sent %+v", m)
	}

	for _, c := range []struct {
		sender smp.SMInfo
		legal  bool
	}{
		{smp.SMInfo{GUID: 10, SMState: smp.SMStandby}, true},
		{smp.SMInfo{GUID: 10, SMState: smp.SMMaster}, true},
		{smp.SMInfo{GUID: 10, SMState: smp.SMDiscovering}, false},
		{smp.SMInfo{GUID: 11, SMState: smp.SMStandby}, false},
	} {
		old := engine(t, smp.SMMaster, ElectionConfig{})
		old.Decide(0, []Remote{{Info: smp.SMInfo{GUID: 10, SMState: smp.SMStandby}, Address: Address{LID: 1}}})
		_, status, _ := old.Receive(0, Address{}, mad.MethodSet, 2, c.sender)
		want := smp.SMMaster
		if c.legal {
			want = smp.SMStandby
		}
		if (status == mad.StatusOK) != c.legal || old.State() != want {
			t.Errorf("ACKNOWLEDGE from %+v: %s, now %s", c.sender, status, old.State())
		}
		if c.legal {
			// The new master is polled where it was offered mastership.
			if sent := old.Tick(time.Minute).Send; len(sent) != 1 || sent[0].GUID != 10 || sent[0].To.LID != 1 {
				t.Errorf("polls %+v", sent)
			}
		}
	}

	// A master that has offered nothing stays, even when the sender names no GUID.
	for _, guid := range []ib.PortGUID{0, 10} {
		old := engine(t, smp.SMMaster, ElectionConfig{})
		_, status, effects := old.Receive(0, Address{}, mad.MethodSet, 2, smp.SMInfo{GUID: guid, SMState: smp.SMStandby})
		if status != mad.StatusInvalidField || old.State() != smp.SMMaster || effects.From != effects.To {
			t.Errorf("ACKNOWLEDGE of nothing from %s: %s, %+v", guid, status, effects)
		}
	}
}

// order sends one of the controls 3 to 5 from a master to another manager.
func order(t *testing.T, c smp.SMControl, from, to *Election) Effects {
	t.Helper()
	m, err := from.Order(c, Remote{Info: to.info(), Address: Address{LID: 1}})
	if err != nil {
		t.Fatal(err)
	}
	_, status, effects := to.Receive(0, Address{LID: 2}, m.Method, uint32(m.Control), m.Info)
	if status != mad.StatusOK {
		t.Fatalf("control %d: %s", c, status)
	}
	return effects
}

// SM-08: DISABLE turns a standby not active; it polls nobody any more.
func TestSM08Disable(t *testing.T) {
	e := engine(t, smp.SMStandby, ElectionConfig{})
	order(t, smp.SMControlDisable, engine(t, smp.SMMaster, ElectionConfig{GUID: 90}), e)
	if _, due := e.Due(); e.State() != 0 || due {
		t.Errorf("now %s, due %v", e.State(), due)
	}
	if verdict, effects := e.Decide(0, nil); verdict != Inactive || e.State() != smp.SMNotActive || effects.Send != nil {
		t.Errorf("after a discovery: %s, %s", verdict, e.State())
	}
	if effects := e.Tick(time.Hour); effects.Send != nil || effects.Sweep {
		t.Errorf("after an hour: %+v", effects)
	}
}

// SM-09: STANDBY returns a not active one to standby; it polls the sender.
func TestSM09Standby(t *testing.T) {
	e := engine(t, smp.SMNotActive, ElectionConfig{})
	order(t, smp.SMControlStandby, engine(t, smp.SMMaster, ElectionConfig{GUID: 90}), e)
	if sent := e.Tick(time.Minute).Send; e.State() != 2 || len(sent) != 1 || sent[0].GUID != 90 || sent[0].To.LID != 2 {
		t.Errorf("now %s, sent %+v", e.State(), sent)
	}
}

// SM-10: DISCOVER sends a standby to discovering, and a sweep begins.
func TestSM10Discover(t *testing.T) {
	e := engine(t, smp.SMStandby, ElectionConfig{})
	effects := order(t, smp.SMControlDiscover, engine(t, smp.SMMaster, ElectionConfig{GUID: 90}), e)
	if e.State() != 1 || !effects.Sweep {
		t.Errorf("now %s, effects %+v", e.State(), effects)
	}
}

func TestOrdersThatCannotBeGiven(t *testing.T) {
	to := Remote{Info: smp.SMInfo{GUID: 90}}
	for _, c := range []struct {
		state   smp.SMState
		control smp.SMControl
		want    string
	}{
		{smp.SMMaster, smp.SMControlHandover, "control 1 cannot be ordered"},
		{smp.SMMaster, smp.SMControlAcknowledge, "control 2 cannot be ordered"},
		{smp.SMMaster, 6, "control 6 cannot be ordered"},
		{smp.SMStandby, smp.SMControlDisable, "this manager is standby"},
	} {
		if _, err := engine(t, c.state, ElectionConfig{}).Order(c.control, to); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	if _, err := engine(t, smp.SMMaster, ElectionConfig{Trusted: []ib.PortGUID{1}}).Order(smp.SMControlDisable, to); err == nil {
		t.Error("a manager that is not trusted is sent the key")
	}
}

// SM-11, SM-16, SM-18 and SM-19: one Get returns the port GUID, SM_Key,
// ActCount, Priority and SMState, in 21 bytes.
func TestSM11And19GetReturnsEverything(t *testing.T) {
	for _, state := range states() {
		e := engine(t, state, ElectionConfig{GUID: 0x0002_C903_0000_1111, Priority: 11, SMKey: key})
		e.Act(0x0102_0000)
		p := request(mad.MethodGet, 0, smp.SMInfo{GUID: 90, SMKey: key, ActCount: 0xFFFF_0000, Priority: 15, SMState: smp.SMMaster})
		if _, ok := e.Serve(0, Address{}, p); !ok {
			t.Fatal("no answer")
		}
		if got := binary.BigEndian.Uint64(p.Data[0:]); got != 0x0002_C903_0000_1111 {
			t.Errorf("GUID 0x%016x", got)
		}
		if got := binary.BigEndian.Uint64(p.Data[8:]); got != uint64(key) {
			t.Errorf("SM_Key 0x%016x", got)
		}
		if got := binary.BigEndian.Uint32(p.Data[16:]); got>>16 != 0x0102 {
			t.Errorf("ActCount 0x%08x", got)
		}
		if want := 11<<4 | byte(state); p.Data[20] != want {
			t.Errorf("Priority and SMState 0x%02x, want 0x%02x", p.Data[20], want)
		}
		if slices.Max(p.Data[21:]) != 0 {
			t.Errorf("bytes after SMInfo: %v", p.Data[21:])
		}
	}
}

// SM-12: SM_Key is read only: a Set does not change it, nor the rest.
func TestSM12SetWritesNoElement(t *testing.T) {
	for control := range uint32(8) {
		e := engine(t, smp.SMStandby, ElectionConfig{Priority: 3, SMKey: key})
		e.Receive(0, Address{}, mad.MethodSet, control, smp.SMInfo{GUID: 90, SMKey: key, ActCount: 1 << 30, Priority: 2, SMState: smp.SMMaster})
		info := e.info()
		if info.GUID != ownGUID || info.SMKey != key || info.Priority != 3 || info.ActCount > 1000 {
			t.Errorf("after control %d: %+v", control, info)
		}
		// A manager without a key takes none from a Set either.
		e = engine(t, smp.SMStandby, ElectionConfig{Priority: 3})
		e.Receive(0, Address{}, mad.MethodSet, control, smp.SMInfo{GUID: 90, SMKey: key, Priority: 2, SMState: smp.SMMaster})
		if got := e.info().SMKey; got != 0 {
			t.Errorf("control %d gave a manager without a key the SM_Key %#x", control, uint64(got))
		}
	}
}

// SM-13: SM_Key reads zero unless the asker is shown to be the master.
func TestSM13KeyIsShownToTheProvenMasterOnly(t *testing.T) {
	for _, c := range []struct {
		name  string
		asker smp.SMInfo
		shown bool
	}{
		{"stranger", smp.SMInfo{}, false},
		{"master without the key", smp.SMInfo{GUID: 90, SMState: smp.SMMaster}, false},
		{"master with another key", smp.SMInfo{GUID: 90, SMKey: key + 1, SMState: smp.SMMaster}, false},
		{"standby with the key", smp.SMInfo{GUID: 90, SMKey: key, SMState: smp.SMStandby}, false},
		{"untrusted master with the key", smp.SMInfo{GUID: 91, SMKey: key, SMState: smp.SMMaster}, false},
		{"master with the key", smp.SMInfo{GUID: 90, SMKey: key, SMState: smp.SMMaster}, true},
	} {
		for _, method := range []mad.Method{mad.MethodGet, mad.MethodSet} {
			e := engine(t, smp.SMDiscovering, ElectionConfig{SMKey: key, Trusted: []ib.PortGUID{90}})
			info, _, _ := e.Receive(0, Address{}, method, 0, c.asker)
			if shown := info.SMKey == key; shown != c.shown || !shown && info.SMKey != 0 {
				t.Errorf("%s, %s: SM_Key 0x%016x", c.name, method, uint64(info.SMKey))
			}
		}
	}
}

// SM-14: ActCount grows with each act: with every answer, every message, and
// whatever the caller counts.
func TestSM14ActCountGrows(t *testing.T) {
	e := engine(t, smp.SMMaster, ElectionConfig{})
	last := e.info().ActCount
	grown := func(what string) {
		t.Helper()
		if now := e.info().ActCount; now <= last {
			t.Errorf("%s: ActCount %d after %d", what, now, last)
		} else {
			last = now
		}
	}
	first, _, _ := e.Receive(0, Address{}, mad.MethodGet, 0, smp.SMInfo{})
	second, _, _ := e.Receive(0, Address{}, mad.MethodGet, 0, smp.SMInfo{})
	if second.ActCount == first.ActCount {
		t.Errorf("two Gets read ActCount %d", first.ActCount)
	}
	grown("two Gets")
	e.Act(3)
	grown("Act")
	for range 40 {
		e.Act(0x1_0000)
		grown("many acts")
	}
	e.Decide(0, []Remote{{Info: smp.SMInfo{GUID: 1, SMState: smp.SMStandby}}})
	grown("HANDOVER")
	e.Receive(0, Address{}, mad.MethodSet, 2, smp.SMInfo{GUID: 1, SMState: smp.SMStandby})
	grown("ACKNOWLEDGE")
	e.Tick(time.Minute)
	grown("poll")
}

// SM-15: ActCount is the master's heartbeat: a standby takes over from one
// that is silent, and from one that answers without doing anything.
func TestSM15StandbyTakesOver(t *testing.T) {
	for _, how := range []string{"dead", "frozen"} {
		n := newNetwork(t)
		n.start(ElectionConfig{GUID: 2})
		n.start(ElectionConfig{GUID: 3})
		n.pass(time.Minute)
		n.story = nil
		if how == "dead" {
			n.dead[2] = true
		} else {
			n.frozen[2] = n.get(2)
		}
		n.pass((DefaultPolls - 1) * DefaultPollInterval)
		n.expect()
		n.pass(3 * DefaultPollInterval)
		n.expect("3: standby > discovering", "3: master", "3: discovering > master")
	}
}

// One poll without an answer is forgiven when the next one brings one.
func TestPollsInARow(t *testing.T) {
	e := engine(t, smp.SMStandby, ElectionConfig{Polls: 2})
	now := time.Duration(0)
	for poll := range 20 {
		now += DefaultPollInterval
		effects := e.Tick(now)
		if effects.From != effects.To || len(effects.Send) != 1 {
			t.Fatalf("poll %d: %+v", poll, effects)
		}
		if poll%2 == 0 {
			e.Answered(effects.Send[0], mad.StatusOK, smp.SMInfo{GUID: 90, ActCount: uint32(poll) + 1, SMState: smp.SMMaster})
		}
	}
}

// Answers that do not show a working master: another manager's, one with an
// error, one of a manager that is not master.
func TestAnswersThatDoNotCount(t *testing.T) {
	for name, answer := range map[string]struct {
		status mad.Status
		info   smp.SMInfo
	}{
		"another manager": {mad.StatusOK, smp.SMInfo{GUID: 91, SMState: smp.SMMaster}},
		"error":           {mad.StatusBusy, smp.SMInfo{GUID: 90, SMState: smp.SMMaster}},
		"standby":         {mad.StatusOK, smp.SMInfo{GUID: 90, SMState: smp.SMStandby}},
		"not active":      {mad.StatusOK, smp.SMInfo{GUID: 90, SMState: smp.SMNotActive}},
		"unknown state":   {mad.StatusOK, smp.SMInfo{GUID: 90, SMState: 9}},
	} {
		e := engine(t, smp.SMStandby, ElectionConfig{})
		lost, polls := false, 0
		for i := range DefaultPolls + 1 {
			effects := e.Tick(time.Duration(i+1) * DefaultPollInterval)
			lost = lost || effects.Sweep
			for _, m := range effects.Send {
				answer.info.ActCount++
				polls++
				lost = e.Answered(m, answer.status, answer.info).Sweep || lost
			}
		}
		if !lost || e.State() != smp.SMDiscovering {
			t.Errorf("%s: still %s", name, e.State())
		}
		// Who says himself that he is no longer master is not asked again.
		want := DefaultPolls
		if answer.status == mad.StatusOK && (answer.info.SMState == smp.SMStandby || answer.info.SMState == smp.SMNotActive) {
			want = 1
		}
		if polls != want {
			t.Errorf("%s: %d polls, want %d", name, polls, want)
		}
	}
}

// SM-07: a manager that obeys HANDOVER and sends no ACKNOWLEDGE, as OpenSM, is
// handed over to all the same: it waits as long as it sees a second master. Whoever
// refuses, is somebody else, or does not count is not.
func TestHandoverThatIsObeyed(t *testing.T) {
	for _, c := range []struct {
		name   string
		status mad.Status
		info   smp.SMInfo
		over   bool
	}{
		{"obeyed", mad.StatusOK, smp.SMInfo{GUID: 10, SMState: smp.SMStandby}, true},
		{"obeyed by one that is master by now", mad.StatusOK, smp.SMInfo{GUID: 10, SMState: smp.SMMaster}, true},
		{"refused", mad.StatusInvalidField, smp.SMInfo{GUID: 10, SMState: smp.SMStandby}, false},
		{"answered by another", mad.StatusOK, smp.SMInfo{GUID: 11, SMState: smp.SMStandby}, false},
	} {
		e := engine(t, smp.SMMaster, ElectionConfig{})
		_, effects := e.Decide(0, []Remote{{Info: smp.SMInfo{GUID: 10, SMState: smp.SMStandby}, Address: Address{LID: 1}}})
		effects = e.Answered(effects.Send[0], c.status, c.info)
		if over := effects.From == smp.SMMaster && e.State() == smp.SMStandby; over != c.over {
			t.Errorf("%s: %s, %+v", c.name, e.State(), effects)
			continue
		}
		if !c.over {
			continue
		}
		// ACKNOWLEDGE after that is no fault, and the new master is polled: where
		// nobody has become one, this manager discovers the subnet again.
		if _, status, _ := e.Receive(0, Address{LID: 1}, mad.MethodSet, 2, smp.SMInfo{GUID: 10, SMState: smp.SMStandby}); status != mad.StatusOK || e.State() != smp.SMStandby {
			t.Errorf("%s: ACKNOWLEDGE: %s, now %s", c.name, status, e.State())
		}
		polls := 0
		for i := range 2 * DefaultPolls {
			effects := e.Tick(time.Duration(i+1) * DefaultPollInterval)
			for _, m := range effects.Send {
				if polls++; m.Method != mad.MethodGet || m.GUID != 10 || m.To.LID != 1 {
					t.Errorf("%s: polls by %+v", c.name, m)
				}
			}
		}
		if polls != DefaultPolls || e.State() != smp.SMDiscovering {
			t.Errorf("%s: after %d polls without an answer: %s", c.name, polls, e.State())
		}
	}
}

// SM-16: of two managers the one of higher priority becomes master, and on a
// tie the one with the lower GUID.
func TestSM16HigherPriorityBecomesMaster(t *testing.T) {
	for _, c := range []struct {
		own, other ElectionConfig
		want       Verdict
	}{
		{ElectionConfig{GUID: 5, Priority: 1}, ElectionConfig{GUID: 4, Priority: 0}, Master},
		{ElectionConfig{GUID: 5, Priority: 0}, ElectionConfig{GUID: 6, Priority: 1}, Standby},
		{ElectionConfig{GUID: 5, Priority: 15}, ElectionConfig{GUID: 4, Priority: 14}, Master},
		{ElectionConfig{GUID: 5, Priority: 8}, ElectionConfig{GUID: 4, Priority: 7}, Master},
		{ElectionConfig{GUID: 5, Priority: 3}, ElectionConfig{GUID: 6, Priority: 12}, Standby},
		{ElectionConfig{GUID: 5, Priority: 7}, ElectionConfig{GUID: 6, Priority: 7}, Master},
		{ElectionConfig{GUID: 5, Priority: 7}, ElectionConfig{GUID: 4, Priority: 7}, Standby},
	} {
		for _, state := range []smp.SMState{smp.SMDiscovering, smp.SMStandby} {
			e := engine(t, smp.SMDiscovering, c.own)
			got, _ := e.Decide(0, []Remote{{Info: smp.SMInfo{GUID: c.other.GUID, Priority: c.other.Priority, SMState: state}}})
			if want := map[Verdict]smp.SMState{Master: smp.SMMaster, Standby: smp.SMStandby}[got]; got != c.want || e.State() != want {
				t.Errorf("%+v against %+v (%s): %s, now %s", c.own, c.other, state, got, e.State())
			}
		}
		// A master stays so whatever its rank, until it hands over.
		e := engine(t, smp.SMDiscovering, c.own)
		want := map[Verdict]Verdict{Master: WaitHandover, Standby: Standby}[c.want]
		got, _ := e.Decide(0, []Remote{{Info: smp.SMInfo{GUID: c.other.GUID, Priority: c.other.Priority, SMState: smp.SMMaster}}})
		if got != want || e.State() != smp.SMStandby {
			t.Errorf("%+v against master %+v: %s, now %s", c.own, c.other, got, e.State())
		}
	}
}

// SM-17: without configuration the priority is 0.
func TestSM17DefaultPriority(t *testing.T) {
	p := request(mad.MethodGet, 0, smp.SMInfo{})
	engine(t, smp.SMMaster, ElectionConfig{}).Serve(0, Address{}, p)
	if p.Data[20]>>4 != 0 {
		t.Errorf("priority %d", p.Data[20]>>4)
	}
}

// SM-18: a manager in a reserved state does not count, nor does one that is
// not active, is not trusted, or claims the engine's own GUID.
func TestSM18ManagersThatDoNotCount(t *testing.T) {
	var others []Remote
	for s := range smp.SMState(16) {
		if s == smp.SMNotActive || s > smp.SMMaster {
			others = append(others, Remote{Info: smp.SMInfo{GUID: 7, Priority: 15, SMState: s}})
		}
		others = append(others,
			Remote{Info: smp.SMInfo{GUID: 8, Priority: 15, SMState: s}},
			Remote{Info: smp.SMInfo{GUID: ownGUID, Priority: 15, SMState: s}})
	}
	e := engine(t, smp.SMDiscovering, ElectionConfig{Trusted: []ib.PortGUID{7}})
	for range 2 {
		if verdict, effects := e.Decide(0, others); verdict != Master || effects.Send != nil {
			t.Errorf("%s, now %s: %s", verdict, e.State(), effects.Why)
		}
	}
}

func TestRefusedHandoverIsNotRepeated(t *testing.T) {
	e := engine(t, smp.SMMaster, ElectionConfig{})
	_, effects := e.Decide(0, []Remote{{Info: smp.SMInfo{GUID: 1, SMState: smp.SMStandby}}})
	e.Answered(effects.Send[0], mad.StatusInvalidField, smp.SMInfo{GUID: 1})
	if _, due := e.Due(); due || e.Tick(time.Hour).Send != nil {
		t.Error("offered again")
	}
	if _, status, _ := e.Receive(0, Address{}, mad.MethodSet, 2, smp.SMInfo{GUID: 1, SMState: smp.SMStandby}); status != mad.StatusInvalidField {
		t.Errorf("ACKNOWLEDGE after a refusal: %s", status)
	}
}

func TestBadConfig(t *testing.T) {
	for want, c := range map[string]ElectionConfig{
		"port GUID is 0":            {},
		"priority 16, want 0 to 15": {GUID: 1, Priority: 16},
		"poll interval -1s":         {GUID: 1, PollInterval: -time.Second},
		"-1 polls":                  {GUID: 1, Polls: -1},
	} {
		if _, err := NewElection(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// Whatever arrives, in whatever order: effects tell the true states, the key
// goes to trusted managers only, and a standby always polls somebody.
func FuzzEngine(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5})
	f.Add([]byte{9, 0x11, 0x22, 0x93, 0xA4, 0x35, 9, 9, 9, 9})
	f.Fuzz(func(t *testing.T, script []byte) {
		e := engine(t, smp.SMDiscovering, ElectionConfig{SMKey: key, Trusted: []ib.PortGUID{1, 90}})
		now := time.Duration(0)
		var last Message
		for _, b := range script {
			guid := []ib.PortGUID{1, 90, 91, ownGUID}[b>>6]
			info := smp.SMInfo{GUID: guid, SMKey: key, SMState: smp.SMState(b >> 3 & 3), ActCount: uint32(b)}
			var effects Effects
			before := e.State()
			switch op := b & 7; op {
			case 0:
				_, effects = e.Decide(now, []Remote{{Info: info}})
			case 6:
				now += DefaultPollInterval
				effects = e.Tick(now)
			case 7:
				effects = e.Answered(last, mad.StatusOK, info)
			default:
				_, _, effects = e.Receive(now, Address{LID: 9}, mad.MethodSet, uint32(op), info)
			}
			if effects.From != before || effects.To != e.State() {
				t.Fatalf("effects %+v, state %s before and %s after", effects, before, e.State())
			}
			for _, m := range effects.Send {
				if m.Info.SMKey != 0 && m.GUID != 1 && m.GUID != 90 {
					t.Fatalf("the key is sent to %s", m.GUID)
				}
				last = m
			}
			if _, due := e.Due(); due != (e.State() == smp.SMStandby) && e.State() != smp.SMMaster {
				t.Fatalf("%s, due %v", e.State(), due)
			}
		}
	})
}
