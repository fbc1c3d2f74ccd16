package master_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/master"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// rig is a manager on the demonstration fabric.
type rig struct {
	*master.Engine
	t      *testing.T
	fabric *fabric.Fabric
	link   *inproc.Link
	events []event.Event
	// sent, when set, sees every SMP that leaves, general each turn of other datagrams.
	sent    func(*mad.SMP)
	general func(m *[mad.Size]byte, some bool)
}

// NextGeneral implements link.General.
func (r *rig) NextGeneral(now time.Duration, m *[mad.Size]byte) (mad.Address, bool) {
	to, ok := r.Engine.NextGeneral(now, m)
	if r.general != nil {
		r.general(m, ok)
	}
	return to, ok
}

// Next implements link.Engine.
func (r *rig) Next(now time.Duration, p *mad.SMP) (ib.LID, bool) {
	to, ok := r.Engine.Next(now, p)
	if ok && r.sent != nil {
		r.sent(p)
	}
	return to, ok
}

func newRig(t *testing.T, c engine.Config, a server.Config) *rig {
	t.Helper()
	list := topology.Demo()
	f, err := fabric.New(list, fabric.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	node, num, err := list.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, fabric: f}
	if r.link, err = inproc.New(f, node.GUID, num, false); err != nil {
		t.Fatal(err)
	}
	if err := r.link.SetIsSM(true); err != nil {
		t.Fatal(err)
	}
	p, err := daemon.DemoPolicy()
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.Partitions {
		if part := &p.Partitions[i]; part.PKey == red {
			part.Multicast = append(part.Multicast, policy.MulticastGroup{MGID: policy.Broadcast(policy.ScopeLink), MTU: policy.DefaultMTU, Rate: policy.DefaultRate, QKey: policy.QKeyIPoIB})
		}
	}
	c.Limits, c.Routing, c.Periods.Drift = r.link.Limits(), routing.UpDown, time.Hour
	r.Engine = master.New(c, a, p, func(e event.Event) { r.events = append(r.events, e) })
	return r
}

// drive lets the manager work until done.
func (r *rig) drive(done func() bool) {
	r.t.Helper()
	if err := r.link.Drive(r.t.Context(), r, done); err != nil {
		r.t.Fatal(err)
	}
}

// warned counts the warnings with a text.
func (r *rig) warned(text string) (n int) {
	for _, e := range r.events {
		if w, is := e.(event.Warned); is && strings.Contains(w.Text, text) {
			n++
		}
	}
	return n
}

// port is the end port of the node with this name.
func (r *rig) port(name string) *observed.Port {
	r.t.Helper()
	s, ok := r.Manager().Subnet()
	if !ok {
		r.t.Fatal("no subnet")
	}
	for _, p := range s.Fabric.EndPorts() {
		if strings.HasPrefix(p.Node.Description, name) {
			return p
		}
	}
	r.t.Fatalf("no port of %s", name)
	return nil
}

// request is a request to subnet administration.
func request(t *testing.T, method mad.Method, id mad.AttributeID, mask sa.ComponentMask, record sa.Record) *[mad.Size]byte {
	t.Helper()
	m := sa.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion, Method: method, TransactionID: 77, AttributeID: id,
	}, ComponentMask: mask}
	if record != nil {
		b, err := record.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		copy(m.Data[:], b)
	}
	b, err := m.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return (*[mad.Size]byte)(b)
}

// answer is the next answer of subnet administration.
func (r *rig) answer() (status mad.Status, some bool) { return r.answerAt(r.fabric.Now()) }

func (r *rig) answerAt(now time.Duration) (status mad.Status, some bool) {
	var m [mad.Size]byte
	if _, ok := r.NextGeneral(now, &m); !ok {
		return 0, false
	}
	return mad.Status(uint16(m[4])<<8 | uint16(m[5])), true
}

// join is what the kernel sends for the broadcast group of a partition.
func join(t *testing.T, p *observed.Port, base ib.PKeyBase) *[mad.Size]byte {
	t.Helper()
	k := base.Full()
	return request(t, mad.MethodSet, sa.AttrMCMemberRecord,
		sa.MCMemberRecordMGID|sa.MCMemberRecordPortGID|sa.MCMemberRecordJoinState|sa.MCMemberRecordPKey,
		&sa.MCMemberRecord{
			MGID:    ib.GID{0: 0xFF, 1: 0x12, 2: 0x40, 3: 0x1B, 4: byte(k >> 8), 5: byte(k), 12: 0xFF, 13: 0xFF, 14: 0xFF, 15: 0xFF},
			PortGID: ib.MakeGID(ib.DefaultGIDPrefix, p.GUID), PKey: k, JoinState: sa.JoinFull,
		})
}

const red = ib.PKeyBase(0x0010)

// TestHostsAreServedTheSubnetOfThePass: subnet administration knows nobody before the
// first pass has been completed, and who is there after it.
func TestHostsAreServedTheSubnetOfThePass(t *testing.T) {
	r := newRig(t, engine.Config{}, server.Config{})
	ask := request(t, mad.MethodGet, mad.AttrClassPortInfo, 0, nil)
	from := mad.Address{LID: 5, QP: 1}
	r.ReceiveGeneral(0, ask, from)
	if status, some := r.answer(); some && status == mad.StatusOK {
		t.Error("a host was served before anything is known")
	}
	r.drive(r.Settled)
	from.LID = r.port("red-1").Info.LID
	r.ReceiveGeneral(r.fabric.Now(), ask, from)
	if status, some := r.answer(); !some || status != mad.StatusOK {
		t.Errorf("after the pass: %v, %v", status, some)
	}
}

// TestGroupsBecomeTables: a host that joins a group makes work for the manager, which
// writes multicast tables for it.
func TestGroupsBecomeTables(t *testing.T) {
	r := newRig(t, engine.Config{}, server.Config{})
	r.drive(r.Settled)
	before := len(r.events)
	p, other := r.port("red-1"), r.port("red-2")
	for _, host := range []*observed.Port{p, other} {
		r.ReceiveGeneral(r.fabric.Now(), join(t, host, red), mad.Address{LID: host.Info.LID, QP: 1})
		if status, some := r.answer(); !some || status != mad.StatusOK {
			t.Fatalf("%v joins: %v, %v", host, status, some)
		}
	}
	wrote := false
	r.sent = func(s *mad.SMP) {
		wrote = wrote || s.Method == mad.MethodSet && s.AttributeID == mad.AttributeID(smp.AttrMulticastForwardingTable)
	}
	end := r.fabric.Now() + time.Minute
	r.drive(func() bool { return wrote && r.Settled() || r.fabric.Now() > end })
	if !wrote {
		t.Error("no multicast table was written")
	}
	for _, e := range r.events[before:] {
		if g, is := e.(event.Regrouped); is && len(g.String()) > 0 {
			return
		}
	}
	t.Error("the manager was not told of the groups")
}

// TestKeptBeforeAnswered: what a host registers is kept before the host is told that it
// is registered; what cannot be kept is answered all the same, and warned of.
func TestKeptBeforeAnswered(t *testing.T) {
	for _, broken := range []error{nil, errors.New("no room")} {
		r := newRig(t, engine.Config{}, server.Config{Keep: true})
		saves, members := 0, 0
		if err := r.Keep(server.State{}, func(s server.State) error {
			saves, members = saves+1, 0
			for _, g := range s.Groups.Groups {
				members += len(g.Members)
			}
			return broken
		}); err != nil {
			t.Fatal(err)
		}
		r.drive(r.Settled)
		p := r.port("red-1")
		saves = 0
		r.Administration().Receive(r.fabric.Now(), join(t, p, red), mad.Address{LID: p.Info.LID, QP: 1})
		var m [mad.Size]byte
		if _, early := r.Administration().Next(r.fabric.Now(), &m); early {
			t.Error("the host was told before its registration is kept")
		}
		if at, ok := r.Deadline(); !ok || at > r.fabric.Now()+time.Second {
			t.Errorf("the next step is due at %v, %v: want it soon, since something is to be kept", at, ok)
		}
		now := r.fabric.Now() + time.Second
		r.Expire(now)
		status, some := r.answerAt(now)
		if !some || status != mad.StatusOK || saves != 1 || members != 1 {
			t.Errorf("kept %v: %d saves with %d members; answered %v, %v", broken, saves, members, some, status)
		}
		r.Flush()
		if saves != 1 {
			t.Error("what was kept is kept again")
		}
		p = r.port("red-2")
		r.ReceiveGeneral(now, join(t, p, red), mad.Address{LID: p.Info.LID, QP: 1})
		if r.Flush(); saves != 2 || members != 2 {
			t.Errorf("at the end: %d saves with %d members", saves, members)
		}
		if n := r.warned("is not kept"); n > 1 || (n == 1) != (broken != nil) {
			t.Errorf("kept %v: %d warnings", broken, n)
		}
	}
}

// TestKeysAreKeptBeforeTheyAreSet: no port is given an M_Key that would be forgotten.
func TestKeysAreKeptBeforeTheyAreSet(t *testing.T) {
	for _, broken := range []error{nil, errors.New("no room")} {
		c, a := engine.Config{}, server.Config{}
		book := new(mkey.Book)
		master.Guard{Profile: protect.Tenant, Keys: master.KeysOf(mkey.NewRing([mkey.SecretSize]byte{1}), book, true)}.Configure(&c, &a)
		r := newRig(t, c, a)
		var kept uint64
		saves, given := 0, 0
		r.KeepKeys(func(b *mkey.Book) error {
			saves++
			if broken == nil {
				kept = b.Version()
			}
			return broken
		})
		r.sent = func(s *mad.SMP) {
			if s.Method != mad.MethodSet || s.AttributeID != mad.AttributeID(smp.AttrPortInfo) {
				return
			}
			var info smp.PortInfo
			if err := info.UnmarshalBinary(s.Data[:]); err == nil && info.MKey != 0 {
				given++
				if kept != book.Version() {
					t.Errorf("a port is given a key of version %d of the book; version %d is kept", book.Version(), kept)
				}
			}
		}
		r.drive(func() bool { return r.Settled() || broken != nil && r.fabric.Now() > 10*time.Second })
		if saves == 0 || (given > 0) != (broken == nil) {
			t.Errorf("kept %v: %d saves, %d keys given", broken, saves, given)
		}
		if n := r.warned("M_Key is not kept"); (n > 0) != (broken != nil) {
			t.Errorf("kept %v: %d warnings", broken, n)
		}
	}
}

// TestCountersWait: counters are read when the manager has nothing else to do, and not
// before there is a subnet.
func TestCountersWait(t *testing.T) {
	r := newRig(t, engine.Config{}, server.Config{})
	limits := perfmgr.DefaultLimits()
	limits.Hosts = true // those of switches need a partition in common
	r.ReadCounters(perfmgr.Config{Limits: limits})
	r.drive(r.Settled)
	for _, name := range []string{"red-1", "red-2"} { // which gives the manager work
		p := r.port(name)
		r.Administration().Receive(r.fabric.Now(), join(t, p, red), mad.Address{LID: p.Info.LID, QP: 1})
	}
	works := 0
	r.general = func(m *[mad.Size]byte, some bool) {
		if !r.Manager().Settled() {
			works++
			if some && mad.Class(m[1]) == mad.ClassPerfMgt {
				t.Error("counters are read while the manager works")
			}
		}
	}
	r.drive(func() bool { return r.Counters().Counts().Rounds > 0 })
	if works == 0 {
		t.Error("the manager had nothing to do")
	}
}

// TestGuardConfigures: what a guard has reaches the manager and the administration.
func TestGuardConfigures(t *testing.T) {
	list := new(cables.List)
	ring := mkey.NewRing([mkey.SecretSize]byte{1})
	for name, x := range map[string]struct {
		guard master.Guard
		check func(*engine.Config, *server.Config) bool
	}{
		"profile": {master.Guard{Profile: protect.Strict, SAKey: 7, Cables: list}, func(c *engine.Config, a *server.Config) bool {
			return c.Profile == protect.Strict && a.Profile == protect.Strict && a.SAKey == 7 && c.Cables == list && c.Keys == nil && c.MKey == 0
		}},
		"one key": {master.Guard{MKey: 9, Learn: true}, func(c *engine.Config, _ *server.Config) bool {
			return c.MKey == 9 && c.LearnCables && c.Keys == nil
		}},
		"keys of a secret, with the one that ports hold so far": {master.Guard{MKey: 9, Keys: master.KeysOf(ring, new(mkey.Book), true)}, func(c *engine.Config, _ *server.Config) bool {
			return c.MKey == 0 && c.Keys != nil && c.Keys.Keep && len(c.Keys.Foreign.Everywhere) == 1 && c.Keys.Foreign.Everywhere[0] == 9 && c.Election.SMKeys != nil
		}},
	} {
		var c engine.Config
		var a server.Config
		if x.guard.Configure(&c, &a); !x.check(&c, &a) {
			t.Errorf("%s: %+v and %+v", name, c, a)
		}
	}
}
