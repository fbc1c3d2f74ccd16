package simtest

import (
	"encoding"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

const (
	askTick     = time.Millisecond      // how often a host looks for its answer
	askInterval = 10 * time.Millisecond // between two requests
	askAgain    = 100 * time.Millisecond
	askWait     = 20 * time.Millisecond // a request that took longer has waited
	askTimeout  = 5 * time.Second       // a request that took longer has failed
	joinsIn     = 50                    // one in so many requests leaves a group, four join one
)

// requests counts requests of hosts that were open, or began, in some stretch of time.
type requests struct {
	still                          bool // nobody joins or leaves
	counting                       bool
	since                          time.Duration
	answered, waited, failed, held int
	longest                        time.Duration
	refused                        map[mad.Status]int
}

func (a *requests) begin(now time.Duration) { a.counting, a.since = true, now }

// end ends the stretch. Requests that are still open have waited, or failed.
func (a *requests) end(requesters []*requester) {
	for _, x := range requesters {
		if took := x.fabric.Now() - x.began; x.open && took > askWait {
			a.count(took, took <= askTimeout)
		}
	}
	a.counting = false
}

func (a *requests) count(took time.Duration, ok bool) {
	if a == nil || !a.counting {
		return
	}
	switch a.longest = max(a.longest, took); {
	case !ok:
		a.failed++
	case took > askWait:
		a.waited++
	default:
		a.answered++
	}
}

func (a *requests) String() string {
	return fmt.Sprintf("requests of hosts between the kill and the proof: %d answered at once, %d waited, %v at most, %d failed %v; %d registrations held",
		a.answered, a.waited, a.longest.Round(time.Millisecond), a.failed, a.refused, a.held)
}

// requester is a host that asks for paths, joins and leaves the group of its partition, and
// has a service and a subscription registered. It sends a request again until it is
// answered, as hosts do.
type requester struct {
	*pair
	place   place
	guid    ib.PortGUID
	gsi     *endpoint.GSIPair
	r       *rand.Rand
	tenancy *tenancy
	base    ib.PKeyBase
	moving  ib.PortGUID // is not asked about
	tally   *requests   // nil: only paths are requests for, one right after the other

	open        bool
	what        request
	bytes       [mad.Size]byte
	tid         uint64
	again       bool // it was sent more than once
	began, sent time.Duration
	next        time.Duration
	right       int
	answered    time.Duration // the last right answer

	joined, serves, listens bool
}

// request is what an requester asks for.
type request uint8

const (
	askPath request = iota
	askJoin
	askLeave
	askServe
	askListen
)

// requester makes the i-th host ask from now on.
func (x *pair) requester(i int, y *tenancy, moving ib.PortGUID, tally *requests, r *rand.Rand) *requester {
	x.t.Helper()
	n := x.hostNodes()[i]
	d, err := x.fabric.Device(n.GUID)
	if err != nil {
		x.t.Fatal(err)
	}
	a := &requester{pair: x, place: place{n.GUID, 1}, guid: n.Ports[1].GUID, r: r, tenancy: y, moving: moving, tally: tally, tid: uint64(i) << 32}
	if a.gsi, err = endpoint.OpenGSI(d, 1); err != nil {
		x.t.Fatal(err)
	}
	for _, t := range y.tenants {
		if slices.Contains(t.full, a.guid) {
			a.base = t.base
		}
	}
	a.tick()
	return a
}

func (a *requester) tick() {
	a.receive()
	now := a.fabric.Now()
	switch {
	case a.open && now-a.began > askTimeout:
		a.open = false
		a.tally.count(now-a.began, false)
	case a.open && now-a.sent >= a.patience():
		a.again = true
		a.send()
	case !a.open && now >= a.next:
		a.ask()
	}
	at := now + askTick
	if !a.open {
		at = max(at, a.next)
	}
	a.fabric.At(at, a.tick)
}

// changes reports whether a request is open that changes a group.
func (a *requester) changes() bool { return a.open && (a.what == askJoin || a.what == askLeave) }

// patience is when a request is sent again.
func (a *requester) patience() time.Duration {
	if a.tally == nil {
		return clientInterval
	}
	return askAgain
}

func (a *requester) gid() ib.GID { return ib.MakeGID(ib.DefaultGIDPrefix, a.guid) }

// ask begins a request.
func (a *requester) ask() {
	switch n := a.r.IntN(joinsIn); {
	case a.tally == nil:
		a.what = askPath
	case !a.serves:
		a.what = askServe
	case !a.listens:
		a.what = askListen
	case n == 0 && a.joined && !a.tally.still:
		a.what = askLeave
	case n < 4 && !a.joined && !a.tally.still:
		a.what = askJoin
	default:
		a.what = askPath
	}
	m := sa.MAD{Header: mad.Header{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnAdm, ClassVersion: sa.ClassVersion, Method: mad.MethodSet,
	}}
	var of encoding.BinaryAppender
	switch a.what {
	case askPath:
		m.Method, m.AttributeID, m.ComponentMask = mad.MethodGet, sa.AttrPathRecord, sa.PathRecordSGID|sa.PathRecordDGID|sa.PathRecordNumbPath
		p := &sa.PathRecord{SGID: a.gid(), DGID: ib.MakeGID(ib.DefaultGIDPrefix, a.peer())}
		p.NumbPath = 1
		of = p
	case askJoin, askLeave:
		m.AttributeID, m.ComponentMask = sa.AttrMCMemberRecord, joinsBroadcast
		if a.what == askLeave {
			m.Method, m.ComponentMask = mad.MethodDelete, leaves
		}
		of = &sa.MCMemberRecord{MGID: broadcastOf(a.base), PortGID: a.gid(), PKey: a.base.Full(), JoinState: sa.JoinFull}
	case askServe:
		m.AttributeID, m.ComponentMask = sa.AttrServiceRecord, sa.ServiceRecordServiceID|sa.ServiceRecordServiceGID|sa.ServiceRecordServicePKey|sa.ServiceRecordServiceLease
		of = &sa.ServiceRecord{ServiceID: 5, ServiceGID: a.gid(), ServicePKey: a.base.Full(), ServiceLease: sa.ServiceLeaseForever}
	case askListen:
		m.AttributeID = sa.AttrInformInfo
		of = &sa.InformInfo{LIDRangeBegin: 0xFFFF, LIDRangeEnd: 0xFFFF, IsGeneric: 1, Subscribe: 1, Type: 0xFFFF, TrapNumber: 0xFFFF, Producer: 0xFFFFFF, QPN: 1}
	}
	b, err := of.AppendBinary(nil)
	if err != nil {
		a.t.Fatal(err)
	}
	a.tid++
	m.TransactionID = a.tid
	copy(m.Data[:], b)
	bytes, err := m.AppendBinary(nil)
	if err != nil {
		a.t.Fatal(err)
	}
	copy(a.bytes[:], bytes)
	a.open, a.again, a.began = true, false, a.fabric.Now()
	a.next = a.began + askInterval
	a.send()
}

// peer is a port of the same partition.
func (a *requester) peer() ib.PortGUID {
	for _, t := range a.tenancy.tenants {
		if t.base == a.base {
			for {
				if g := t.full[a.r.IntN(len(t.full))]; g != a.guid && g != a.moving {
					return g
				}
			}
		}
	}
	return 0
}

func (a *requester) send() {
	a.sent = a.fabric.Now()
	to := a.fabric.Agent(a.place.node).Port(a.place.num).MasterSMLID
	_ = a.gsi.Send(&a.bytes, endpoint.SendRequest{RemoteQP: ib.QP1, To: endpoint.Address{DLID: to}}) // refused is lost
}

func (a *requester) receive() {
	a.gsi.Receive(func(c *endpoint.Completion, bytes *[mad.Size]byte) {
		var m sa.MAD
		if m.UnmarshalBinary(bytes[:]) != nil {
			return
		}
		if m.Method == mad.MethodReport {
			answer := *bytes
			answer[mad.OffsetMethod] = byte(mad.MethodReportResp)
			_ = a.gsi.Send(&answer, endpoint.SendRequest{RemoteQP: c.SrcQP, To: endpoint.Address{DLID: c.SLID}}) // refused is lost
			return
		}
		if !a.open || m.TransactionID != a.tid || m.Status == mad.StatusBusy {
			return
		}
		a.open = false
		a.took(&m)
	})
}

// took takes an answer.
func (a *requester) took(m *sa.MAD) {
	var path sa.PathRecord
	ok := m.Status == mad.StatusOK
	if a.what == askPath {
		ok = ok && path.UnmarshalBinary(m.Data[:]) == nil && path.DLID == a.lid(path.DGID) && path.DLID.IsUnicast()
	}
	if a.what == askLeave && a.again && m.Status == sa.StatusRequestInvalid {
		ok = true // it had left, and the answer was lost
	}
	if ok {
		a.right, a.answered = a.right+1, a.fabric.Now()
	} else if a.tally != nil {
		if a.tally.refused == nil {
			a.tally.refused = map[mad.Status]int{}
		}
		a.tally.refused[m.Status]++
	}
	a.tally.count(a.fabric.Now()-a.began, ok)
	switch {
	case !ok:
	case a.what == askJoin:
		a.joined = true
	case a.what == askLeave:
		a.joined = false
	case a.what == askServe:
		a.serves = true
	case a.what == askListen:
		a.listens = true
	}
}

// lid is the address of the port with a GID, as its device has it.
func (a *requester) lid(g ib.GID) ib.LID {
	node, num, ok := a.fabric.EndPort(ib.PortGUID(binary.BigEndian.Uint64(g[8:])))
	if !ok {
		return 0
	}
	return a.fabric.Agent(node).Port(num).LID
}

// lost is how much of what was acknowledged to the host subnet administration has not.
func (a *requester) lost(s server.State) (n int) {
	busy := a.changes() // nobody knows
	in := slices.ContainsFunc(s.Groups.Groups, func(g group.Group) bool {
		return g.MGID == broadcastOf(a.base) && slices.ContainsFunc(g.Members, func(m group.Member) bool { return m.Port == a.guid })
	})
	serves := slices.ContainsFunc(s.Services, func(x server.Service) bool { return x.Port == a.guid })
	listens := slices.ContainsFunc(s.Subscriptions, func(x server.Subscription) bool { return x.Port == a.guid })
	for _, x := range [][2]bool{{a.joined && !busy, in}, {a.serves, serves}, {a.listens, listens}} {
		if x[0] {
			a.tally.held++
			if !x[1] {
				n++
			}
		}
	}
	return n
}
