package reach

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Cut is a packet between two end ports whose tables hold matching keys, and
// that does not arrive.
type Cut struct {
	From        ib.PortGUID `json:"from"`
	To          ib.PortGUID `json:"to"`
	PKey        ib.PKey     `json:"pkey"`
	Disposition Disposition `json:"disposition"`
	Reason      string      `json:"reason"`
	// Node and Port are where it ends.
	Node ib.NodeGUID `json:"node"`
	Port ib.PortNum  `json:"port"`
}

// Cuts lists packets that do not arrive though the keys of sender and receiver
// match: the way is cut, or a switch between them lacks the key. It lists at
// most limit of them, one for each two ports, in the order of receivers;
// virtual lanes are left out. Fabrics that Count does not do have none listed.
func Cuts(f *observed.Fabric, limit int) []Cut {
	out := []Cut{}
	if !countable(f) {
		return out
	}
	t := newTally(f)
	at := make([][]int, len(t.ways.switches)) // senders by switch
	var apart []int                           // senders of which some packets end early
	keeps := make(map[*observed.Port]bool)
	namesakes(f.EndPorts(), func(from, _ *observed.Port) { keeps[from] = true })
	for i := range t.ends {
		e := &t.ends[i]
		if len(e.entered) < len(keysOf(e.port)) || keeps[e.port] {
			apart = append(apart, i)
		} else {
			at[e.at] = append(at[e.at], i)
		}
	}
	for i := range t.ends {
		to := &t.ends[i]
		for _, s := range apart {
			if out = appendCut(out, t.ends[s].port, to.port); len(out) >= limit {
				return out
			}
		}
		straight := arrives(to.port)
		if to.port.InfoRead {
			t.ways.find(to.port.Info.LID)
		}
		for s, w := range t.ways.of {
			if straight && to.port.InfoRead && to.port.Info.LID.IsUnicast() && leadsTo(w, to.port) {
				continue
			}
			for _, sender := range at[s] {
				if out = appendCut(out, t.ends[sender].port, to.port); len(out) >= limit {
					return out
				}
			}
		}
	}
	return out
}

// arrives reports whether any holder of a key of to gets past the port before it,
// whatever the key.
func arrives(to *observed.Port) bool {
	if to.Node.Switch != nil {
		return true
	}
	if to.Peer == nil || stateOf(to.Peer, smp.PortActive) != Delivered || stateOf(to, smp.PortArmed, smp.PortActive) != Delivered {
		return false
	}
	for _, k := range keysOf(to) {
		for _, sent := range []ib.PKey{k.Base().Limited(), k.Base().Full()} {
			if sent.Matches(k) && passes(to.Peer, sent, outbound) != Delivered {
				return false
			}
		}
	}
	return true
}

func leadsTo(w way, to *observed.Port) bool {
	return w.last != nil && (w.last == to || w.last.Num != 0 && w.last.Peer == to)
}

// appendCut follows the first key of one port that another takes.
func appendCut(out []Cut, from, to *observed.Port) []Cut {
	if from == to {
		return out
	}
	for _, k := range keysOf(from) {
		if holds(to, k, DestinationKey) != Delivered {
			continue
		}
		w := walker{packet: Packet{PKey: k, AnyVL: true}, from: from, to: to}
		w.trace.Hops = []Hop{}
		w.run()
		if d := w.trace.Disposition; d != Delivered {
			h := w.hop()
			return append(out, Cut{from.GUID, to.GUID, k, d, w.trace.Reason, h.Node, h.Checks[len(h.Checks)-1].Port})
		}
	}
	return out
}
