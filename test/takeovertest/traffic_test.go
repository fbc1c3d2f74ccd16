package takeovertest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

const (
	// pace is how long nothing is sent at least while no manager writes.
	pace = 5 * time.Millisecond
	// settled is how old a datagram of a group is, by the fabric's time, when each member
	// has it that gets it.
	settled = 2 * time.Millisecond
	// perRound is how many flows send in a round: more would only wait at their hosts.
	perRound = 160
	// maxTold is how many failures are told in full.
	maxTold = 30

	qkey = 0x1234
	// words is what a datagram carries: mark and a number.
	words = 16
	mark  = 0x74616b656f766572
	// trailer is what follows it in a packet: ICRC and VCRC.
	trailer = 6

	forgerQP ib.QPN = 2 // the lowest that is no manager's
)

// kind is what has to become of the packets of a flow.
type kind uint8

const (
	// allowed packets have to arrive, always.
	allowed kind = iota
	// limited packets are those of a limited member: they have to arrive while switches hold
	// the full key, as ibwarden writes it. Where OpenSM has a switch port check P_Keys it gives
	// it the limited key, which does not let the packets of limited members pass.
	limited
	// never must not arrive.
	never
	// forged packets have a P_Key that the sender is no member of. Switch ports that check
	// P_Keys stop them.
	forged
	// changing packets are those that one manager's tables let pass and the other's do not,
	// because a file says SELF: nobody judges them.
	changing
	// group packets go to all members of a multicast group.
	group
	kinds
)

func (k kind) String() string {
	return [kinds]string{"allowed", "from a limited member", "not allowed", "forged", "of SELF", "to a group"}[k]
}

// station is a host that sends and receives.
type station struct {
	node   *topology.Node
	device *endpoint.Device
	lid    ib.LID
	keys   []ib.PKey      // under OpenSM, 0 for an index without one
	then   []ib.PKey      // under ibwarden
	pairs  []*endpoint.QP // one for each key
	rooms  [][]byte       // of receive requests, by their ID
}

// flow is what one host sends to one queue pair of another with one key.
type flow struct {
	kind     kind
	from, to *station
	pair     *endpoint.QP // nil for what is forged
	dest     *endpoint.QP
	key      ib.PKey
	mgid     ib.GID // of a group
	mlid     ib.LID
	members  []*station
}

func (f *flow) String() string {
	to := "a group"
	if f.to != nil {
		to = f.to.node.ID
	}
	return fmt.Sprintf("%s from %s to %s with %v", f.kind, f.from.node.ID, to, f.key)
}

// pending is a packet under way.
type pending struct {
	flow  *flow
	at    time.Duration
	stage string
	got   []*station
}

// connection is a reliable connection that sends nothing twice: one lost packet ends it.
type connection struct {
	from, to       *station
	send, receive  *endpoint.QP
	next, expected uint64
	broken         bool
}

// copies are those of packets to a group that members had to get; from and to are when the
// first and the last that was lost was sent, by the fabric's time.
type copies struct {
	due, lost uint64
	from, to  time.Duration
}

// counted is what became of packets.
type counted struct{ sent, arrived, lost, crossed [kinds]uint64 }

// traffic sends between all hosts of a fabric, and judges what arrives. It is used where the
// fabric may be.
type traffic struct {
	topology *topology.Netlist
	fabric   *fabric.Fabric
	stations []*station
	flows    []*flow
	turn     int // whose turn it is of flows
	members  []*member
	// ofGroup is what became of the copies for members, by stage.
	ofGroup map[string]*copies
	links   []*connection
	open    map[uint64]*pending
	last    uint64
	lastAt  time.Time
	took    time.Duration // by the last round
	due     bool
	running bool

	stage string
	// wardened reports whether ibwarden manages: then packets of limited members have to arrive.
	wardened bool

	setsOpen map[uint64]string // by transaction
	sets     uint64
	lastSet  string
	writes   map[string]uint64 // by stage and attribute
	rounds   uint64
	held     uint64 // flows whose turn it was and whose queue pair was full
	counted  counted
	wrong    []string // the first failures, in full
	failures map[string]uint64
}

func newTraffic(l *topology.Netlist) *traffic {
	return &traffic{
		topology: l, open: map[uint64]*pending{}, setsOpen: map[uint64]string{}, writes: map[string]uint64{}, failures: map[string]uint64{}, ofGroup: map[string]*copies{},
	}
}

// leaves is told of every management packet that leaves its origin. It loses none.
func (t *traffic) leaves(_ time.Duration, m *[mad.Size]byte) bool {
	class := mad.Class(m[mad.OffsetClass])
	if class != mad.ClassSubnLID && class != mad.ClassSubnDirected || t.fabric == nil {
		return false
	}
	tid := binary.BigEndian.Uint64(m[mad.OffsetTransactionID:])
	switch mad.Method(m[mad.OffsetMethod]) {
	case mad.MethodSet:
		what := "unknown attribute"
		if d, ok := smp.Describe(mad.AttributeID(binary.BigEndian.Uint16(m[mad.OffsetAttributeID:]))); ok {
			what = d.Name
		}
		t.setsOpen[tid] = what
		t.sets++
		t.writes[t.stage+": "+what]++
	case mad.MethodGetResp:
		what, ok := t.setsOpen[tid]
		if !ok {
			break
		}
		delete(t.setsOpen, tid)
		t.lastSet = what
		if t.running && !t.due {
			t.due = true
			t.fabric.At(t.fabric.Now(), t.round)
		}
	}
	return false
}

// Turn sends when nothing was sent for a while.
func (t *traffic) Turn() bool {
	for _, m := range t.members {
		m.turn(t)
	}
	if t.running && time.Since(t.lastAt) >= t.pause() {
		t.round()
		return true
	}
	return false
}

// Wait says when it wants to send again.
func (t *traffic) Wait() (time.Duration, bool) {
	if !t.running {
		return 0, false
	}
	return max(0, t.pause()-time.Since(t.lastAt)), true
}

// fail counts a failure, and tells the first ones in full.
func (t *traffic) fail(f *flow, stage, what string) {
	t.failures[fmt.Sprintf("%s: %v: %s", stage, f.kind, what)]++
	if len(t.wrong) < maxTold {
		t.wrong = append(t.wrong, fmt.Sprintf("%v in %q: %v: %s (after Set %s)", t.fabric.Now(), stage, f, what, t.lastSet))
	}
}

// round sends a datagram by each flow.
func (t *traffic) round() {
	t.due, t.lastAt = false, time.Now()
	if !t.running {
		return
	}
	defer func() { t.took = time.Since(t.lastAt) }()
	t.rounds++
	for _, s := range t.stations {
		s.poll(t)
	}
	t.settle()
	for range min(perRound, len(t.flows)) {
		f := t.flows[t.turn%len(t.flows)]
		t.turn++
		t.last++
		if err := t.send(f, t.last); errors.Is(err, endpoint.ErrFull) {
			t.held++ // what it has sent is still on its way
			continue
		} else if err != nil {
			t.fail(f, t.stage, err.Error())
			continue
		}
		t.counted.sent[f.kind]++
		t.open[t.last] = &pending{flow: f, at: t.fabric.Now(), stage: t.stage}
	}
	for _, c := range t.links {
		c.round(t)
	}
}

// pause is the time from the beginning of one round to that of the next: half of it is for the
// managers, whose packets the same fabric carries and who give each other up after some
// seconds without answers.
func (t *traffic) pause() time.Duration { return max(pace, 2*t.took) }

// payload is the datagram of a number.
func payload(number uint64) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, words), mark)
	return binary.BigEndian.AppendUint64(b, number)
}

func (t *traffic) send(f *flow, number uint64) error {
	if f.kind == forged {
		b, v, err := packet.Append(nil, packet.OpCodeUDSendOnly, false, payload(number))
		if err != nil {
			return err
		}
		v.LRH.SetSLID(f.from.lid)
		v.LRH.SetDLID(f.to.lid)
		v.BTH.SetPKey(f.key)
		v.BTH.SetDestQP(f.dest.Number())
		v.DETH.SetQKey(qkey)
		v.DETH.SetSrcQP(forgerQP)
		if err := packet.Seal(b); err != nil {
			return err
		}
		return t.fabric.Inject(f.from.node.GUID, 1, b)
	}
	r := endpoint.SendRequest{Data: payload(number), RemoteQKey: qkey}
	if f.kind == group {
		r.To, r.RemoteQP = endpoint.Address{DLID: f.mlid, Global: true, DGID: f.mgid}, ib.QPMulticast
	} else {
		r.To, r.RemoteQP = endpoint.Address{DLID: f.to.lid}, f.dest.Number()
	}
	return f.pair.PostSend(r)
}

// seen is told of every data packet.
func (t *traffic) seen(s fabric.DataSighting) {
	o := s.Bytes
	if len(o) < words+trailer {
		return
	}
	o = o[len(o)-words-trailer:]
	if binary.BigEndian.Uint64(o) != mark || s.Outcome == fabric.OutcomeLeft {
		return
	}
	number := binary.BigEndian.Uint64(o[8:])
	p := t.open[number]
	if p == nil {
		return
	}
	f := p.flow
	taken := s.Outcome == fabric.OutcomeTaken
	if f.kind == group {
		// A switch that has lost a copy is found by who has none.
		i := slices.IndexFunc(t.stations, func(x *station) bool { return x.node.GUID == s.Node })
		switch {
		case taken && slices.Contains(f.members, t.stations[i]) && !slices.Contains(p.got, t.stations[i]):
			p.got = append(p.got, t.stations[i])
		case taken:
			t.counted.crossed[group]++
			t.fail(f, p.stage, fmt.Sprintf("arrives at %s", t.stations[i].node.ID))
		}
		return
	}
	delete(t.open, number)
	good := f.kind == allowed || f.kind == limited
	switch {
	case taken && good && s.Node == f.to.node.GUID:
		t.counted.arrived[f.kind]++
	case taken && f.kind != changing:
		t.counted.crossed[f.kind]++
		t.fail(f, p.stage, fmt.Sprintf("arrives at %v", s.Node))
	case taken:
	case f.kind == allowed || f.kind == limited && t.wardened && p.stage == t.stage:
		t.counted.lost[f.kind]++
		t.fail(f, p.stage, fmt.Sprintf("lost at %s port %d: %v %v", t.name(s.Node), s.Port, s.Outcome, s.Reason))
	}
}

func (t *traffic) name(g ib.NodeGUID) string {
	for _, n := range t.topology.Nodes {
		if n.GUID == g {
			return n.ID
		}
	}
	return g.String()
}

// settle judges the datagrams of groups that are old enough.
func (t *traffic) settle() {
	for number, p := range t.open {
		if p.flow.kind != group || t.fabric.Now()-p.at < settled {
			continue
		}
		delete(t.open, number)
		g := t.ofGroup[p.stage]
		if g == nil {
			g = &copies{}
			t.ofGroup[p.stage] = g
		}
		for _, m := range p.flow.members {
			if m == p.flow.from {
				continue
			}
			if g.due++; !slices.Contains(p.got, m) {
				t.counted.lost[group]++
				if g.lost++; g.lost == 1 || p.at < g.from {
					g.from = p.at
				}
				g.to = max(g.to, p.at)
			}
		}
		t.counted.arrived[group] += uint64(len(p.got))
	}
}

// poll takes what has completed, and posts receives again.
func (s *station) poll(t *traffic) {
	var done [64]endpoint.Completion
	for _, q := range s.pairs {
		if q == nil {
			continue
		}
		for n := q.Poll(done[:]); n > 0; n = q.Poll(done[:]) {
			for _, c := range done[:n] {
				if c.Op != endpoint.OpReceive {
					continue
				}
				if err := q.PostReceive(endpoint.ReceiveRequest{ID: c.ID, Buffer: s.rooms[c.ID]}); err != nil {
					t.wrong = append(t.wrong, err.Error())
				}
			}
		}
	}
}

// round sends one message by a connection, and looks at what has completed.
func (c *connection) round(t *traffic) {
	var done [64]endpoint.Completion
	for n := c.receive.Poll(done[:]); n > 0; n = c.receive.Poll(done[:]) {
		for _, d := range done[:n] {
			if d.Status == endpoint.Success {
				if got := binary.BigEndian.Uint64(d.Bytes); got != c.expected {
					t.wrong = append(t.wrong, fmt.Sprintf("connection %s to %s: message %d, want %d", c.from.node.ID, c.to.node.ID, got, c.expected))
				}
				c.expected++
				_ = c.receive.PostReceive(endpoint.ReceiveRequest{Buffer: make([]byte, words)}) // it has room for what it had
			}
		}
	}
	for n := c.send.Poll(done[:]); n > 0; n = c.send.Poll(done[:]) {
		for _, d := range done[:n] {
			if d.Status != endpoint.Success && !c.broken {
				c.broken = true
				t.failures[fmt.Sprintf("%s: a connection ends: %v", t.stage, d.Status)]++
				t.wrong = append(t.wrong, fmt.Sprintf("%v in %q: connection %s to %s: %v (after Set %s)", t.fabric.Now(), t.stage, c.from.node.ID, c.to.node.ID, d.Status, t.lastSet))
			}
		}
	}
	if !c.broken && c.next-c.expected < connectionDepth/2 {
		b := binary.BigEndian.AppendUint64(make([]byte, 0, words), c.next)
		c.next++
		if err := c.send.PostSend(endpoint.SendRequest{Data: append(b, make([]byte, 8)...)}); err != nil {
			t.wrong = append(t.wrong, err.Error())
		}
	}
}
