package kernel

import (
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/umad"
	"github.com/ibwarden/ibwarden/internal/protocol/rmpp"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
)

// Config says what port a layer stands for.
type Config struct {
	// Port is its number: the first hop of a directed route from a CA. 0 is
	// port 0 of a switch, from which every first hop is allowed.
	Port ib.PortNum
	// GIDs is the length of the port's GID table; an index beyond it is
	// refused. 0 counts as 1.
	GIDs int
	// NoSubnetManagement is for ports without queue pair 0, as RoCE has them.
	NoSubnetManagement bool
	// Agent is the port's own agent: it gets a request whose directed route ends where it begins, and if it
	// answers, the datagram is the answer. With nil, such requests leave by Next as others do.
	Agent func(*[mad.Size]byte) sma.Verdict
}

// Address is where a datagram goes to, or came from.
type Address struct {
	QPN       uint32 // of the other side
	LID       ib.LID // of the other side; permissive for a directed route
	SL        uint8
	PathBits  uint8  // of this side's LID
	PKeyIndex uint16 // in this side's table
	HasGRH    bool
	// GRH means something when HasGRH: GID is the other side's, GIDIndex this
	// side's.
	GRH umad.GRH
}

// Packet is one datagram.
type Packet struct {
	// QP is this side's queue pair, 0 or 1. What leaves queue pair 1 has the
	// well-known Q_Key 0x80010000 whatever the program wrote.
	QP  uint8
	MAD [mad.Size]byte
	Address
}

// Limits of one layer.
const (
	// MaxMessages is how many datagrams one file holds, asked and unread
	// together.
	MaxMessages = 16384
	// maxUnasked is how many of those one LID may take with what nobody asked
	// it for. Linux has no such bound, and one of 200,000 for all.
	maxUnasked = MaxMessages / 32
	// maxReplies is how many refusals of unmatched requests wait to leave.
	maxReplies = 1024
	// agentIDMax is the highest number of an agent: some adapters want the
	// upper eight bits of a transaction identifier for themselves.
	agentIDMax = 1<<24 - 1
)

// Layer is the management of one port.
type Layer struct {
	config  Config
	gone    bool
	isSM    bool
	files   []*File
	agents  map[uint32]*agent    // by number
	methods map[methodKey]*agent // who gets what nobody asked for
	lastID  uint32
	replies []Packet // refusals that wait to leave
	out     []*send  // datagrams that wait to leave
	stale   int      // of out, those that will not
	timers  timers
	joining []*agent // that ever used RMPP
	ready   []*File
	dropped uint64
	// pathMask is which bits of this side's LID an address may choose.
	pathMask uint8
}

// agent is one registration.
type agent struct {
	id     uint32 // upper half of its transactions
	file   *File
	slot   uint32 // its number in the file
	asked  umad.Registration
	long   *rmpp.Endpoint[Address] // nil until it is used
	active bool
}

// kernelRMPP reports whether the agent leaves RMPP to the layer.
func (a *agent) kernelRMPP() bool {
	return a.asked.RMPPVersion != 0 && a.asked.Flags&umad.FlagUserRMPP == 0
}

// methodKey is what an agent can be registered for.
type methodKey struct {
	class   mad.Class
	version uint8
	oui     uint32
	method  mad.Method
}

// New returns the layer of a port with nothing open.
func New(c Config) *Layer {
	c.GIDs = max(c.GIDs, 1)
	return &Layer{config: c, agents: make(map[uint32]*agent), methods: make(map[methodKey]*agent)}
}

// Open opens the port's umad file. It answers ENXIO once the device is gone.
func (l *Layer) Open() (*File, umad.Errno) {
	if l.gone {
		return nil, umad.ENXIO
	}
	f := &File{layer: l, sends: make(map[sendKey][]*send), waiting: make(map[ib.LID]int)}
	l.files = append(l.files, f)
	return f, umad.OK
}

// SetLMC tells how many low bits of the port's LID are path bits.
func (l *Layer) SetLMC(m ib.LMC) { l.pathMask = uint8(m.Count() - 1) }

// OpenIsSM takes the one place of a subnet manager at this port. It answers
// EAGAIN while it is taken, and ENXIO once the device is gone.
func (l *Layer) OpenIsSM() umad.Errno {
	switch {
	case l.gone:
		return umad.ENXIO
	case l.isSM:
		return umad.EAGAIN
	}
	l.isSM = true
	return umad.OK
}

// CloseIsSM gives the place back.
func (l *Layer) CloseIsSM() { l.isSM = false }

// IsSM reports whether the port is to announce a subnet manager.
func (l *Layer) IsSM() bool { return l.isSM && !l.gone }

// Remove takes the device away for good: what is open answers EIO, polls as
// POLLERR and has no agents. A device that returns is another layer.
func (l *Layer) Remove() {
	l.gone = true
	for _, f := range l.files {
		f.dead = true
		f.dropAgents()
		l.wake(f)
	}
	l.replies = nil
}

// Ready takes the files that since the last call got something to read, or
// died.
func (l *Layer) Ready() []*File {
	out := l.ready
	l.ready = nil
	for _, f := range out {
		f.flagged = false
	}
	return out
}

func (l *Layer) wake(f *File) {
	if !f.flagged && !f.closed {
		f.flagged = true
		l.ready = append(l.ready, f)
	}
}

// Dropped counts datagrams that arrived and were for nobody, or for which there
// was no room.
func (l *Layer) Dropped() uint64 { return l.dropped }

// Next fills p with the next datagram to send.
func (l *Layer) Next(now time.Duration, p *Packet) bool {
	if len(l.replies) > 0 {
		*p = l.replies[0]
		l.replies = l.replies[1:]
		return true
	}
	for len(l.out) > 0 {
		s := l.out[0]
		l.out[0] = nil
		l.out = l.out[1:]
		s.queued = false
		if s.over {
			l.stale--
			continue
		}
		*p = s.packet
		l.left(now, s)
		return true
	}
	for _, a := range l.joining {
		if to, ok := a.long.Next(now, &p.MAD); ok {
			p.QP, p.Address = uint8(a.asked.QPN), to
			a.complete(to, p)
			return true
		}
	}
	return false
}

// Deadline is when Expire has something to do, or sooner; false for never.
func (l *Layer) Deadline() (at time.Duration, ok bool) {
	if len(l.timers) > 0 {
		at, ok = l.timers[0].due, true
	}
	for _, a := range l.joining {
		if due, some := a.long.Deadline(); some && (!ok || due < at) {
			at, ok = due, true
		}
	}
	return at, ok
}
