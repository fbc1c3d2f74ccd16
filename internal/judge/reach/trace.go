package reach

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Packet is what decides about a packet.
type Packet struct {
	PKey    ib.PKey // of no account in a raw packet
	SL      ib.SL
	Service Service
	// QKey is what the packet carries, of UD and RD; nil when nobody asks.
	QKey *ib.QKey
	// AnyVL leaves virtual lanes out: what they do to the packet is not asked.
	AnyVL bool
}

// Trace is the way of one packet.
type Trace struct {
	From    ib.PortGUID `json:"from"`
	To      ib.PortGUID `json:"to"`
	DLID    ib.LID      `json:"dlid"`
	SL      ib.SL       `json:"sl"`
	Service Service     `json:"service"`
	// PKey is nil in a raw packet.
	PKey        *ib.PKey    `json:"pkey"`
	Disposition Disposition `json:"disposition"`
	// Reason says in words what decided, and where.
	Reason string `json:"reason"`
	Hops   []Hop  `json:"hops"`
}

// Hop is a node on the way.
type Hop struct {
	Node ib.NodeGUID `json:"node"`
	Name string      `json:"name"`
	// In and Out are the ports by which the packet comes and goes; 0 where it
	// starts or ends.
	In  ib.PortNum `json:"in"`
	Out ib.PortNum `json:"out"`
	// VL is the virtual lane on which it leaves; nil when it does not.
	VL     *ib.VL  `json:"vl"`
	Checks []Check `json:"checks"`
}

// Check is a rule that was applied to a packet.
type Check struct {
	// Port is the port whose rule it is.
	Port ib.PortNum `json:"port"`
	Rule string     `json:"check"`
	// Result is pass, stop, off (the port does not make this check) or unknown.
	Result string `json:"result"`
	// Entry is what decided: a value, or an entry of a table.
	Entry string `json:"entry"`
}

// The results of a check.
const (
	pass    = "pass"
	stop    = "stop"
	off     = "off"
	unknown = "unknown"
)

// Follow follows a packet between two end ports that were reached, to the base
// LID of the second.
func Follow(from, to *observed.Port, p Packet) Trace {
	w := walker{packet: p, from: from, to: to}
	w.trace = Trace{From: from.GUID, To: to.GUID, SL: p.SL, Service: p.Service, Hops: []Hop{}}
	if p.Service != Raw {
		w.trace.PKey = &p.PKey
	}
	w.run()
	return w.trace
}

// Outdate makes the trace Unknown because what it rests on was read too long ago.
func (t *Trace) Outdate(age, limit time.Duration) {
	t.Disposition = Unknown
	t.Reason = fmt.Sprintf("read %s ago, want at most %s", age.Round(time.Second), limit)
}

// Ends is the disposition of the trace that Follow gives, found without a word.
func Ends(from, to *observed.Port, p Packet) Disposition {
	var room [8]Hop
	w := walker{packet: p, from: from, to: to, quiet: true}
	w.trace.Hops = room[:0]
	w.run()
	return w.trace.Disposition
}

// walker is a packet under way.
type walker struct {
	packet   Packet
	from, to *observed.Port
	dlid     ib.LID
	vl       ib.VL
	trace    Trace
	// leaves leaves out that a port keeps packets for its own LIDs to itself.
	leaves bool
	// quiet leaves out all words.
	quiet bool
}

func (w *walker) run() {
	if w.to.InfoRead {
		w.dlid = w.to.Info.LID
	}
	w.trace.DLID = w.dlid
	w.enterNode(w.from.Node, 0)
	if !w.send() {
		return
	}
	in := w.from
	if w.from.Node.Switch == nil {
		if !w.leaves && keepsOwn(w.from, w.dlid) {
			w.settle(w.from, "LID", stop, w.say("has LID %s itself: the packet does not leave", w.dlid), WrongDestination)
			return
		}
		w.hop().Out = w.from.Num
		if !w.depart(w.from, 0) {
			return
		}
		if in = w.cross(w.from); in == nil {
			return
		}
	}
	for first := true; ; first = false {
		if w.wasAt(in) {
			w.end(Loop, "LID %s of %s leads back to %s", w.dlid, w.to, in)
			return
		}
		if !first || w.from.Node.Switch == nil {
			w.enterNode(in.Node, in.Num)
			if !w.arrive(in) {
				return
			}
		}
		out, on := w.forward(in)
		if !on {
			return
		}
		if !w.depart(out, in.Num) {
			return
		}
		if in = w.cross(out); in == nil {
			return
		}
	}
}

// wasAt reports whether the packet came in by this port on this virtual lane before: it
// will do so for ever.
func (w *walker) wasAt(in *observed.Port) bool {
	for i := range w.trace.Hops {
		h := &w.trace.Hops[i]
		if h.In == 0 || h.In != in.Num || h.Node != in.Node.GUID() {
			continue
		}
		if before := w.trace.Hops[i-1].VL; w.packet.AnyVL || before == nil || *before == w.vl {
			return true
		}
	}
	return false
}

func (w *walker) enterNode(n *observed.Node, in ib.PortNum) {
	if w.quiet {
		w.trace.Hops = append(w.trace.Hops, Hop{Node: n.GUID(), In: in})
		return
	}
	w.trace.Hops = append(w.trace.Hops, Hop{Node: n.GUID(), Name: n.Name(), In: in, Checks: []Check{}})
}

func (w *walker) hop() *Hop { return &w.trace.Hops[len(w.trace.Hops)-1] }

func (w *walker) check(port ib.PortNum, rule, result, entry string) {
	if w.quiet {
		return
	}
	h := w.hop()
	h.Checks = append(h.Checks, Check{port, rule, result, entry})
}

func (w *walker) end(d Disposition, format string, args ...any) {
	w.trace.Disposition, w.trace.Reason = d, w.say(format, args...)
}

// say is fmt.Sprintf where anybody listens.
func (w *walker) say(format string, args ...any) string {
	if w.quiet {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// settle enters a check and ends the packet unless it passed or was not made.
// It reports whether the packet goes on.
func (w *walker) settle(p *observed.Port, rule, result, entry string, d Disposition) bool {
	w.check(p.Num, rule, result, entry)
	switch result {
	case pass, off:
		return true
	case unknown:
		d = Unknown
	}
	if w.quiet {
		w.trace.Disposition = d
	} else {
		w.end(d, "%s: %s: %s", p, rule, entry)
	}
	return false
}

// send asks whether the sender may use the key.
func (w *walker) send() bool {
	if w.packet.Service == Raw {
		return true
	}
	index, key, known := find(w.from, func(k ib.PKey) bool { return k == w.packet.PKey && k.IsValid() })
	switch {
	case index >= 0:
		return w.settle(w.from, "P_Key of the sender", pass, w.entryOf(index, key), SourceKey)
	case !known:
		return w.settle(w.from, "P_Key of the sender", unknown, "P_KeyTable was not read whole", SourceKey)
	}
	entry := w.say("no entry is %s", w.packet.PKey)
	if w.quiet {
		return w.settle(w.from, "P_Key of the sender", stop, "", SourceKey)
	}
	if i, k, _ := find(w.from, func(k ib.PKey) bool { return k.IsValid() && k.Base() == w.packet.PKey.Base() }); i >= 0 {
		entry += w.say(", %s is of the same partition", w.entryOf(i, k))
	}
	return w.settle(w.from, "P_Key of the sender", stop, entry, SourceKey)
}

// cross is the port at the other end of p's cable, nil when there is none.
func (w *walker) cross(p *observed.Port) *observed.Port {
	if p.Peer == nil {
		w.settle(p, "cable", stop, "nothing was found behind it", DeadEnd)
	}
	return p.Peer
}

// receive asks the port where the packet ends.
func (w *walker) receive(p *observed.Port) {
	owned := p.Info.LID
	switch {
	case !p.InfoRead:
		w.settle(p, "LID", unknown, "PortInfo was not read", Unknown)
		return
	case p != w.to || w.dlid < owned || int(w.dlid) >= int(owned)+1<<p.Info.LMC:
		w.settle(p, "LID", stop, w.say("has LID %s, the packet is for %s of %s", owned, w.dlid, w.to), WrongDestination)
		return
	}
	w.check(p.Num, "LID", pass, w.say("%s", owned))
	if w.packet.Service != Raw && !w.match(p, "P_Key of the receiver", DestinationKey) {
		return
	}
	w.acceptQKey(p)
}

// acceptQKey ends the trace of a packet that the port takes.
func (w *walker) acceptQKey(p *observed.Port) {
	q := w.packet.QKey
	switch {
	case q == nil || (w.packet.Service != UD && w.packet.Service != RD):
		w.end(Delivered, "%s takes it", p)
	case *q == ib.QKeyGSI:
		w.check(p.Num, "Q_Key", pass, q.String()+" is that of QP1")
		w.end(Delivered, "QP1 of %s takes it", p)
	default:
		w.settle(p, "Q_Key", unknown, w.say("%s: those of queue pairs cannot be read over the wire", *q), Unknown)
	}
}
