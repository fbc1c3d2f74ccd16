package simtest

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/master"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

const (
	// nonsenseFull is how often each queue pair of a host that sends nonsense at full
	// rate does: a link of 10 Gb/s carries two management datagrams in this time. Two
	// hosts then send more than the manager's link carries, and packets wait before it.
	nonsenseFull = 500 * time.Nanosecond
	// nonsenseRoom is how often they do so that the manager's link has room left.
	nonsenseRoom = 2 * time.Microsecond
	// nonsenseQueue is how long an answer may take where the manager's link is full:
	// what waits at switches, and at the manager's queue pair 1, is bounded.
	nonsenseQueue = time.Millisecond
	// nonsenseHeap is how many bytes the whole process may keep more after a flood
	// than before it, whatever its length: it is far less than what was sent.
	nonsenseHeap = 512 << 10
	// nonsenseEvents is how many events, which become lines of a log, a flood of
	// nonsense may cause.
	nonsenseEvents = 200
)

// babbler is a host that sends nonsense to the manager's queue pairs 0 and 1.
type babbler struct {
	*guest
	smi    *fabric.Attachment
	random *rand.Rand
	every  time.Duration
	way    mad.Path // to the manager
	sent   [2]int
	over   bool
}

func (w *groups) babbler(guid ib.PortGUID, seed uint64, every time.Duration) *babbler {
	w.t.Helper()
	b := &babbler{guest: w.host(guid), every: every, random: rand.New(rand.NewPCG(seed, uint64(guid)))}
	var err error
	if b.smi, err = w.fabric.Attach(b.at.node, b.at.num); err != nil {
		w.t.Fatal(err)
	}
	leaf, _, _ := w.fabric.Peer(b.at.node, b.at.num)
	if own, port, _ := w.fabric.Peer(w.self.node, w.self.num); own == leaf {
		b.way = mad.Path{b.at.num, port}
	}
	return b
}

// babble sends to both queue pairs, and does so later again.
func (b *babbler) babble() {
	if b.over {
		return
	}
	manager := b.fabric.Agent(b.self.node).Port(b.self.num).LID
	m, to := b.subnetManagement(manager)
	b.smi.Send(&m, to)
	b.sent[0]++
	m = b.administration()
	if b.gsi.PostSend(endpoint.SendRequest{
		Op: endpoint.OpSend, Data: m[:], RemoteQP: ib.QP1, RemoteQKey: ib.QKeyGSI, To: endpoint.Address{DLID: manager},
	}) == nil { // else its own queue is full
		b.sent[1]++
	}
	var done [8]endpoint.Completion
	for n := b.gsi.Poll(done[:]); n > 0; n = b.gsi.Poll(done[:]) {
		for _, c := range done[:n] {
			if c.Op == endpoint.OpReceive && b.gsi.PostReceive(endpoint.ReceiveRequest{ID: c.ID, Buffer: b.rooms[c.ID][:]}) != nil {
				b.t.Error("no room for what was received before")
			}
		}
	}
	var d fabric.Delivery
	for b.smi.Receive(&d) {
	}
	b.fabric.At(b.fabric.Now()+b.every, b.babble)
}

// spoiled changes a few bytes, behind the first keep in three of four cases.
func (b *babbler) spoiled(m [mad.Size]byte, keep int) [mad.Size]byte {
	if b.random.IntN(4) == 0 {
		keep = 0
	}
	for range b.random.IntN(8) {
		m[keep+b.random.IntN(len(m)-keep)] = byte(b.random.Uint32())
	}
	return m
}

// noise is what has no meaning at all.
func (b *babbler) noise() (m [mad.Size]byte) {
	for i := 0; i < len(m); i += 8 {
		binary.BigEndian.PutUint64(m[i:], b.random.Uint64())
	}
	return m
}

// subnetManagement is a packet for queue pair 0: noise under a header of its class,
// or a request, answer or trap with some bytes changed.
func (b *babbler) subnetManagement(manager ib.LID) ([mad.Size]byte, ib.LID) {
	pick := func(all ...uint16) uint16 { return all[b.random.IntN(len(all))] }
	m := b.noise()
	class, to := mad.ClassSubnLID, manager
	if b.random.IntN(2) == 0 {
		class, to = mad.ClassSubnDirected, ib.LIDPermissive
	}
	if b.random.IntN(4) > 0 {
		p := mad.SMP{
			BaseVersion: mad.BaseVersion, Class: class, ClassVersion: mad.ClassVersion,
			Method:            mad.Method(pick(uint16(mad.MethodGet), uint16(mad.MethodSet), uint16(mad.MethodGetResp), uint16(mad.MethodTrap), uint16(mad.MethodTrapRepress))),
			TransactionID:     b.random.Uint64() >> b.random.IntN(64),
			AttributeID:       mad.AttributeID(pick(0x02, 0x10, 0x11, 0x12, 0x14, 0x15, 0x16, 0x20, 0x31)), // notice, node, port, tables, vendor
			AttributeModifier: uint32(b.random.IntN(8)), DrSLID: ib.LIDPermissive, DrDLID: ib.LIDPermissive,
			HopCount: uint8(len(b.way)),
		}
		for i, port := range b.way {
			p.InitialPath[i+1] = byte(port)
		}
		if p.Method == mad.MethodTrap {
			n := smp.Notice{
				IsGeneric: true, Type: smp.NoticeType(b.random.IntN(5)), Producer: uint32(1 + b.random.IntN(4)),
				TrapNumber: smp.TrapNumber(pick(64, 67, 128, 129, 144, 145, 256, 257)), IssuerLID: ib.LID(b.random.IntN(64)),
			}
			copy(n.Details[:], m[64:])
			if n.Encode(&p.Data) != nil {
				b.t.Fatal("a notice without meaning cannot be encoded")
			}
			p.AttributeID = smp.AttrNotice
		}
		if p.AttributeID == 0x20 { // of managers: what one tells another to do
			p.AttributeID = smp.AttrSMInfo
		}
		if p.Encode(&m) != nil {
			m = b.noise()
		}
		m = b.spoiled(m, 8)
	}
	m[0], m[1], m[2] = mad.BaseVersion, byte(class), mad.ClassVersion
	return m, to
}

// administration is a datagram for queue pair 1, most of them of the class of subnet
// administration.
func (b *babbler) administration() [mad.Size]byte {
	m := b.noise()
	if b.random.IntN(4) == 0 {
		m[0] = mad.BaseVersion
		return m
	}
	methods := []mad.Method{mad.MethodGet, mad.MethodSet, mad.MethodGetTable, mad.MethodDelete, mad.MethodGetMulti, mad.MethodGetResp, mad.MethodReport}
	attributes := []mad.AttributeID{
		mad.AttrClassPortInfo, sa.AttrInformInfo, sa.AttrNodeRecord, sa.AttrPathRecord, sa.AttrMCMemberRecord, sa.AttrServiceRecord,
		sa.AttrMultiPathRecord, sa.AttrPKeyTableRecord, sa.AttrInformInfoRecord,
	}
	q := sa.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion,
		Method: methods[b.random.IntN(len(methods))], TransactionID: b.random.Uint64(), AttributeID: attributes[b.random.IntN(len(attributes))],
	}, ComponentMask: sa.ComponentMask(b.random.Uint64())}
	copy(q.Data[:], m[:])
	bytes, err := q.AppendBinary(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	copy(m[:], bytes)
	if q.Method == mad.MethodGetMulti { // segments of long requests
		m[24], m[25], m[26] = mad.RMPPVersion, byte(1+b.random.IntN(4)), byte(mad.RMPPActive)|byte(b.random.IntN(8))
	}
	return b.spoiled(m, 24)
}

// peace is what a revocation and the questions of an honest host take.
type peace struct{ revocation, answer time.Duration }

// Two hosts send nonsense to the manager's queue pairs 0 and 1, as attack 16, while
// somebody else takes a host out of its partition: the guard before it loses the key
// within twice the usual time, an honest host's questions are answered, within twice
// the usual time where the manager's link has room, nothing is left of the nonsense,
// and nothing else changes. The seeds are printed.
func TestNonsenseKeepsNobodyWaiting(t *testing.T) {
	seeds, length := 2, 4*time.Millisecond
	if os.Getenv("IBWARDEN_SOAK") != "" {
		seeds, length = 20, 50*time.Millisecond
	}
	usual := underNonsense(t, 0, nonsenseFull, length)
	for _, every := range []time.Duration{nonsenseRoom, nonsenseFull} {
		slowest := 2 * usual.answer
		if every == nonsenseFull {
			slowest = nonsenseQueue
		}
		for seed := range uint64(seeds) {
			got := underNonsense(t, seed+1, every, length)
			if got.revocation > 2*usual.revocation || got.answer > slowest {
				t.Errorf("seed %d, every %v: a revocation takes %v, usually %v; an answer %v, usually %v, want at most %v",
					seed+1, every, got.revocation, usual.revocation, got.answer, usual.answer, slowest)
			}
		}
	}
}

// underNonsense is what things take while two hosts send nonsense so often, for so
// long before and after; at peace with seed 0.
func underNonsense(t *testing.T, seed uint64, every, length time.Duration) (took peace) {
	t.Helper()
	list := generate(t, "fattree,radix=8,levels=2")
	all := hosts(list)[1:] // not the manager's
	y := tenancy{none: true, tenants: []tenant{{base: 0x10, full: all[:len(all)/2]}, {base: 0x20, full: all[len(all)/2:]}}}
	w := newGroups(t, list, fabric.DefaultConfig(), y.policy())
	guard := master.Guard{Profile: protect.Tenant, Keys: master.KeysOf(mkey.NewRing([mkey.SecretSize]byte{1}), new(mkey.Book), false), Learn: true}
	guard.Configure(&w.config, &w.admin)
	w.restart(y.policy(), false)
	victim := w.host(all[1])
	node, port, _ := w.fabric.Peer(victim.at.node, victim.at.num)
	before := w.guards()
	heap := heapInUse()
	w.events = nil

	var two []*babbler
	if seed > 0 {
		two = append(two, w.babbler(all[0], seed, every), w.babbler(all[len(all)-1], seed, every))
	}
	for _, b := range two {
		b.babble()
	}
	honest := w.asker(all[len(all)-2], 25*time.Microsecond)
	w.pass(length, honest)
	begin := w.fabric.Now()
	w.runner.Engine().SetPolicy(y.move(all[1], 0x10, 0).policy())
	w.runner.Engine().Expire(begin)
	guarded := func() bool {
		return slices.ContainsFunc(w.fabric.Agent(node).PKeys(port), func(k ib.PKey) bool { return k.Base() == 0x10 })
	}
	if !guarded() {
		t.Fatal("the guard does not hold the key to begin with")
	}
	w.until("the key is taken away", func() bool { honest.hear(); return !guarded() })
	took.revocation = w.fabric.Now() - begin
	w.pass(length, honest)
	honest.over = true
	kept := heapInUse() - heap
	events := len(w.events)
	w.pass(time.Millisecond, honest)
	took.answer = honest.slowest
	if honest.refused > 0 || honest.answered < honest.asked-2 {
		t.Errorf("seed %d: %d asked, %d answered, %d refused", seed, honest.asked, honest.answered, honest.refused)
	}
	sent := [2]int{}
	for _, b := range two {
		sent[0], sent[1] = sent[0]+b.sent[0], sent[1]+b.sent[1]
		b.over = true
	}
	t.Logf("seed %d, every %v: %d packets to queue pair 0, %d to 1; revocation %v, slowest answer %v, %d asked, %d answered, %d bytes kept, %d events",
		seed, every, sent[0], sent[1], took.revocation, took.answer, honest.asked, honest.answered, kept, events)
	if want := int(2 * length / every); seed > 0 && (sent[0] < want || sent[1] < want) {
		t.Errorf("seed %d: %v packets: the flood was none", seed, sent)
	}
	if kept > nonsenseHeap || events > nonsenseEvents {
		t.Errorf("seed %d: %d bytes and %d events are kept", seed, kept, events)
	}
	w.calmly(before, place{node, port}, seed)
	return took
}

// pass lets a stretch of time pass, while a host hears what it is answered.
func (w *groups) pass(d time.Duration, honest *asker) {
	w.t.Helper()
	end := w.fabric.Now() + d
	w.fabric.At(end, func() {})
	w.until("time passes", func() bool { honest.hear(); return w.fabric.Now() >= end })
}

// guards are the P_Key tables of the switch ports before hosts.
func (w *groups) guards() map[place][]ib.PKey {
	out := map[place][]ib.PKey{}
	for at := range w.hosts {
		node, port, _ := w.fabric.Peer(at.node, at.num)
		out[place{node, port}] = slices.Clone(w.fabric.Agent(node).PKeys(port))
	}
	return out
}

// calmly says what has changed, when all is over, but for one guard.
func (w *groups) calmly(before map[place][]ib.PKey, but place, seed uint64) {
	w.t.Helper()
	w.settle()
	for at, keys := range w.guards() {
		if at != but && !slices.Equal(keys, before[at]) {
			w.t.Errorf("seed %d: the guard at %v held %v and holds %v", seed, at, before[at], keys)
		}
	}
	verdict := isolation.Unknown
	for _, e := range w.events {
		if done, is := e.(event.Completed); is && done.Result.Proof != nil {
			verdict = done.Result.Proof.Verdict
		}
	}
	if verdict != isolation.Isolated {
		w.t.Errorf("seed %d: %v", seed, verdict)
	}
}

// heapInUse is how many bytes the process keeps.
func heapInUse() int64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}
