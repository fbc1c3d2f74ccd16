package umad_test

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	transport "github.com/ibwarden/ibwarden/internal/link/umad"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/kernel"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// asking is a manager with its administration behind the kernel's umad, and the
// packets of one host.
type asking struct {
	*testing.T
	m               *machine
	runner          *daemon.Runner
	from            kernel.Address
	self, neighbour *observed.Port
}

func newAsking(t *testing.T) *asking { return newAskingOf(t, server.Config{SAKey: 5}) }

func newAskingOf(t *testing.T, c server.Config) *asking {
	t.Helper()
	a := &asking{T: t, m: newMachine(t, topology.Demo(), fabric.DefaultConfig())}
	link, err := transport.Open(a.m, umad.Place{}, transport.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	policy, err := daemon.DemoPolicy()
	if err != nil {
		t.Fatal(err)
	}
	a.runner = daemon.NewRunner(link, engine.Config{Routing: routing.UpDown, Profile: c.Profile, Periods: engine.Periods{Sweep: time.Minute, Drift: time.Hour}}, c, policy, &witness{})
	a.run(a.runner.Engine().Settled)
	for _, p := range a.runner.Engine().Fabric().EndPorts() {
		if p.Node.Switch == nil && p.GUID != a.m.guidOf() {
			a.neighbour, a.self = a.self, p // the last two are of one tenant
		}
	}
	a.from = kernel.Address{QPN: 1, LID: a.self.Info.LID, SL: 3}
	for i, k := range a.m.PKeys(&a.m.devices[0].Ports[0]) {
		if k.IsValid() && slices.ContainsFunc(a.self.PKeys, k.Matches) {
			a.from.PKeyIndex = uint16(i) // the manager's place for the host's key
		}
	}
	return a
}

func (a *asking) run(done func() bool) {
	a.Helper()
	limit := a.m.Now() + time.Hour
	if err := a.runner.Run(a.Context(), func() bool { return done() || a.m.Now() > limit }); err != nil {
		a.Fatal(err)
	}
}

// during has the host send a request while the manager runs, until done of the
// packets that left since it was last asked; without one, until any left.
func (a *asking) during(method mad.Method, attribute mad.AttributeID, tid uint64, change func(*kernel.Packet), done func([]kernel.Packet) bool) (out []kernel.Packet) {
	a.Helper()
	m := sa.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
		Method: method, TransactionID: tid, AttributeID: attribute,
	}}
	b, err := m.AppendBinary(nil)
	if err != nil {
		a.Fatal(err)
	}
	in := kernel.Packet{QP: 1, Address: a.from}
	copy(in.MAD[:], b)
	if change != nil {
		change(&in)
	}
	sent := false
	a.m.general = nil
	a.run(func() bool {
		if !sent {
			a.m.layer.Receive(a.m.Now(), &in)
			sent = true
		}
		some := a.m.general
		a.m.general = nil
		out = append(out, some...)
		if done != nil {
			return done(some)
		}
		return len(out) > 0
	})
	return out
}

func status(p *kernel.Packet) mad.Status { return mad.Status(binary.BigEndian.Uint16(p.MAD[4:])) }

// TestGeneral: a request is answered to where it came from, with its
// transaction, service level, key and route header.
func TestGeneral(t *testing.T) {
	a := newAsking(t)
	gid := ib.GID{0: 0xFE, 1: 0x80}
	binary.BigEndian.PutUint64(gid[8:], uint64(a.self.GUID))
	for name, c := range map[string]struct {
		method mad.Method
		change func(*kernel.Packet)
		status mad.Status
	}{
		"plain":              {mad.MethodGet, nil, mad.StatusOK},
		"with its GID":       {mad.MethodGet, func(p *kernel.Packet) { p.HasGRH, p.GRH.GID = true, gid }, mad.StatusOK},
		"with another's GID": {mad.MethodGet, func(p *kernel.Packet) { p.HasGRH, p.GRH.GID = true, ib.GID{0: 0xFE, 1: 0x80, 15: 1} }, sa.StatusInvalidGID},
		"unknown method":     {0x17, nil, mad.StatusUnsupportedMethod},
		"wrong version":      {mad.MethodGet, func(p *kernel.Packet) { p.MAD[28] = 1 }, mad.StatusOK},
	} {
		out := a.during(c.method, mad.AttrClassPortInfo, 0x1234_5678_9ABC_DEF0, c.change, nil)
		if len(out) != 1 {
			t.Errorf("%s: %d answers", name, len(out))
			continue
		}
		p := &out[0]
		if status(p) != c.status || p.LID != a.from.LID || p.QPN != 1 || p.SL != 3 || p.PKeyIndex != a.from.PKeyIndex || a.from.PKeyIndex == 0 || binary.BigEndian.Uint64(p.MAD[8:]) != 0x1234_5678_9ABC_DEF0 ||
			mad.Method(p.MAD[3]) != c.method|mad.MethodResponse {
			t.Errorf("%s: %s to %+v, method %#x; want %s", name, status(p), p.Address, p.MAD[3], c.status)
		}
	}
}

// TestKeyOfPacket: a request counts as one with the key that it came with, by its
// place in the manager's table as that is now; what came with a key that the table
// does not show is not answered: there is no key to answer with.
func TestKeyOfPacket(t *testing.T) {
	a := newAskingOf(t, server.Config{Profile: protect.Tenant})
	keys := a.m.PKeys(&a.m.devices[0].Ports[0])
	held := map[ib.PKeyBase]bool{}
	for _, p := range a.runner.Engine().Fabric().EndPorts() {
		clear(held)
		for _, k := range p.PKeys {
			held[k.Base()] = k.IsValid() || held[k.Base()]
		}
		a.from.LID = p.Info.LID
		if slices.ContainsFunc(keys, func(k ib.PKey) bool { return k.IsValid() && !held[k.Base()] }) {
			break
		}
	}
	mine, foreign := 0, 0
	for i, k := range append(slices.Clone(keys), 0) {
		want := sa.StatusDenied
		if k.IsValid() && held[k.Base()] {
			want = mad.StatusOK
			mine++
		} else if k.IsValid() {
			foreign++
		}
		end := a.m.Now() + 10*time.Second
		out := a.during(mad.MethodGet, mad.AttrClassPortInfo, uint64(i+1), func(p *kernel.Packet) { p.PKeyIndex = uint16(i) },
			func(some []kernel.Packet) bool { return len(some) > 0 || a.m.Now() > end })
		if !k.IsValid() {
			if len(out) != 0 {
				t.Errorf("with no key at %d: %d answers", i, len(out))
			}
			continue
		}
		if len(out) != 1 || status(&out[0]) != want {
			t.Errorf("with the key at %d (%s): %v, want %s", i, k, out, want)
		}
	}
	if mine == 0 || foreign == 0 {
		t.Errorf("%d of the manager's keys are the host's, %d are not: want some of each", mine, foreign)
	}
}

// TestLineOfTheKernel: the kernel keeps what arrived in one line; a host that fills
// it does not have others wait for all of that.
func TestLineOfTheKernel(t *testing.T) {
	a := newAskingOf(t, server.Config{Profile: protect.Tenant})
	const flood = 200
	head := mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion, Method: mad.MethodGet, AttributeID: mad.AttrClassPortInfo,
	}
	var out []kernel.Packet
	sent := false
	a.m.general = nil
	a.run(func() bool {
		for n := 0; n <= flood && !sent; n++ {
			in := kernel.Packet{QP: 1, Address: kernel.Address{LID: a.neighbour.Info.LID, QPN: uint32(n%20 + 1), PKeyIndex: a.from.PKeyIndex}}
			if n == flood {
				in.Address = a.from
			}
			head.TransactionID = uint64(n + 1)
			_, _ = head.AppendBinary(in.MAD[:0])
			a.m.layer.Receive(a.m.Now(), &in)
		}
		sent = true
		out = append(out, a.m.general...)
		a.m.general = nil
		return len(out) > flood
	})
	at := slices.IndexFunc(out, func(p kernel.Packet) bool { return p.LID == a.from.LID })
	if at < 0 || at > 2 {
		t.Errorf("%d answers to who sent %d requests left before, want 2 at most", at, flood)
	}
	for i := range out {
		if status(&out[i]) != mad.StatusOK {
			t.Fatalf("answer %d: %s", i, status(&out[i]))
		}
	}
}

// TestLong: the kernel cuts an answer with many records, and takes the
// acknowledgements of its segments.
func TestLong(t *testing.T) {
	a := newAsking(t)
	joins := rmpp.New[uint16](rmpp.DefaultLimits())
	var whole *rmpp.Message
	a.during(mad.MethodGetTable, sa.AttrNodeRecord, 9, nil, func(some []kernel.Packet) bool {
		for i := range some {
			if x := joins.Receive(a.m.Now(), 0, &some[i].MAD); x != nil {
				whole = x
			}
		}
		in := kernel.Packet{QP: 1, Address: a.from}
		for _, ok := joins.Next(a.m.Now(), &in.MAD); ok; _, ok = joins.Next(a.m.Now(), &in.MAD) {
			a.m.layer.Receive(a.m.Now(), &in)
		}
		return whole != nil
	})
	if whole == nil {
		t.Fatal("no whole answer")
	}
	pitch := 8 * int(binary.BigEndian.Uint16(whole.Head[44:]))
	if pitch < sa.NodeRecordSize || len(whole.Body)%pitch != 0 || len(whole.Body)/pitch < 5 {
		t.Errorf("%d bytes of NodeRecords of %d each", len(whole.Body), pitch)
	}
	// One who does not acknowledge gets no more than a little at a time.
	end := a.m.Now() + 15*time.Second
	a.during(mad.MethodGetTable, sa.AttrNodeRecord, 10, nil, func([]kernel.Packet) bool { return a.m.Now() > end })
	busy := 0
	for tid := range uint64(100) {
		for _, p := range a.during(mad.MethodGetTable, sa.AttrNodeRecord, 100+tid, nil, nil) {
			if status(&p) == mad.StatusBusy {
				busy++
			}
		}
	}
	if busy == 0 {
		t.Error("100 tables for a port that acknowledges none, and it was never told to wait")
	}
}

// TestReportUnanswered: a subscriber is told, and a report that nobody answers
// comes back from the kernel and is sent again as often as it should.
func TestReportUnanswered(t *testing.T) {
	a := newAsking(t)
	all := sa.InformInfo{LIDRangeBegin: 0xFFFF, LIDRangeEnd: 0xFFFF, IsGeneric: 1, Subscribe: 1, Type: 0xFFFF, TrapNumber: 0xFFFF, Producer: 0xFFFFFF, QPN: 1}
	b, err := all.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	var powered error
	end := a.m.Now() + 3*time.Minute
	out := a.during(mad.MethodSet, sa.AttrInformInfo, 1, func(p *kernel.Packet) { copy(p.MAD[sa.DataOffset:], b) }, func(some []kernel.Packet) bool {
		if len(some) > 0 && mad.Method(some[0].MAD[3]) == mad.MethodGetResp {
			powered = a.m.fabric.PowerOff(a.neighbour.Node.GUID())
		}
		return a.m.Now() > end
	})
	if powered != nil || len(out) == 0 || status(&out[0]) != mad.StatusOK {
		t.Fatalf("the subscription: %d packets, %v", len(out), powered)
	}
	reports := map[uint32]int{}
	for _, p := range out {
		if mad.Method(p.MAD[3]) == mad.MethodReport {
			reports[binary.BigEndian.Uint32(p.MAD[12:])]++
		}
	}
	if len(reports) == 0 {
		t.Fatal("nobody was told of a neighbour that went")
	}
	for id, n := range reports {
		if n != 4 {
			t.Errorf("report %d was sent %d times, want 4", id, n)
		}
	}
}
