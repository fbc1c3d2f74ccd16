package reach

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Counts is how many packets end in which way, by Disposition: from every end
// port to every other, one for each different key that was read of the sender's
// table, and one more, Unknown, when that table was not read whole. Lanes are
// left out.
type Counts [dispositions]uint64

// Count returns the dispositions of every packet that the end ports of a fabric can send
// to each other by their current tables. It returns what Follow returns for each of them,
// but computes it by switches and keys. Ok is false, and nothing is counted, for a fabric
// in which ports between two switches enforce partitions, or hosts are cabled to each
// other: there, every pair has to be followed by itself.
func Count(f *observed.Fabric) (c Counts, ok bool) {
	if !countable(f) {
		return c, false
	}
	t := newTally(f)
	for i := range t.ends {
		t.countTo(&t.ends[i])
	}
	t.recount(f.EndPorts())
	return t.counts, true
}

// countable reports whether nothing in the fabric is odd.
func countable(f *observed.Fabric) bool {
	for _, n := range f.Nodes {
		for i := 1; i < len(n.Ports); i++ {
			if p := &n.Ports[i]; p.Peer != nil && odd(p) {
				return false
			}
		}
	}
	return true
}

// odd reports whether p, which has a cable, is beyond what Count can do.
func odd(p *observed.Port) bool {
	if p.Node.Switch == nil || p.Peer.Num == 0 {
		return p.Peer.Node.Switch == nil || p.Peer.Num == 0
	}
	info := &p.Node.Switch.Info
	return p.Peer.Node.Switch != nil && info.PartitionEnforcementCap > 0 &&
		(info.InboundEnforcementCap && p.Info.PartitionEnforcementInbound ||
			info.OutboundEnforcementCap && p.Info.PartitionEnforcementOutbound)
}

// tally is the work of one Count.
type tally struct {
	ends   []end
	ways   ways
	counts Counts
	// all and at count the keys whose packets reach forwarding, in all and by
	// switch.
	all census
	at  []census
	// place is where each end port stands in ends.
	place map[*observed.Port]int
	// less is scratch: keys that settle leaves out.
	less  census
	bases []ib.PKeyBase
}

// end is an end port.
type end struct {
	port *observed.Port
	// entered are the keys of its table whose packets reach the forwarding of
	// the switch with number at.
	entered []ib.PKey
	at      int
}

// census counts keys, and all of them together.
type census struct {
	keys map[ib.PKey]int
	all  int
}

func newCensus() census { return census{keys: make(map[ib.PKey]int)} }

func (c *census) add(keys []ib.PKey) {
	for _, k := range keys {
		c.keys[k]++
	}
	c.all += len(keys)
}

func newTally(f *observed.Fabric) *tally {
	t := &tally{ways: newWays(f), place: make(map[*observed.Port]int), all: newCensus(), less: newCensus()}
	t.at = make([]census, len(t.ways.switches))
	for i := range t.at {
		t.at[i] = newCensus()
	}
	ports := f.EndPorts()
	others := uint64(max(len(ports)-1, 0))
	for i, p := range ports {
		t.place[p] = i
		e := end{port: p}
		if !wholeTable(p) {
			t.counts[Unknown] += others
		}
		if keys := keysOf(p); p.Node.Switch != nil {
			e.at, e.entered = t.ways.number[p.Node], keys
		} else {
			t.enter(&e, keys, others)
		}
		if len(e.entered) > 0 {
			t.all.add(e.entered)
			t.at[e.at].add(e.entered)
		}
		t.ends = append(t.ends, e)
	}
	return t
}

// keysOf are the different valid keys that were read of p's table.
func keysOf(p *observed.Port) []ib.PKey {
	var keys []ib.PKey
	for _, k := range p.ReadPKeys() {
		if k.IsValid() {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// enter takes packets of a CA or router port up to the forwarding of its
// switch. Those that end before are counted, for every other end port.
func (t *tally) enter(e *end, keys []ib.PKey, others uint64) {
	p := e.port
	d := stateOf(p, smp.PortActive)
	if d == Delivered && p.Peer == nil {
		d = DeadEnd
	}
	if d == Delivered {
		e.at = t.ways.number[p.Peer.Node]
		if d = stateOf(p.Peer, smp.PortArmed, smp.PortActive); d == Delivered && !p.Peer.Node.Switch.InfoRead {
			d = Unknown
		}
	}
	for _, k := range keys {
		end := d
		if end == Delivered {
			end = passes(p.Peer, k, inbound)
		}
		if end == Delivered {
			e.entered = append(e.entered, k)
		} else {
			t.counts[end] += others
		}
	}
}

// countTo counts all packets to one end port.
func (t *tally) countTo(to *end) {
	if !to.port.InfoRead || !to.port.Info.LID.IsUnicast() {
		d := NoRoute
		if !to.port.InfoRead {
			d = Unknown
		}
		t.counts[d] += uint64(t.all.all - len(to.entered))
		return
	}
	t.ways.find(to.port.Info.LID)
	// The switches that lead where most do are counted together: all senders
	// but those at other switches.
	most := t.ways.most()
	for s, w := range t.ways.of {
		if w != most && t.at[s].all > 0 {
			t.less.clear()
			if to.at == s {
				t.less.add(to.entered)
			}
			t.settle(to, w, func(at int) bool { return at == s }, &t.at[s])
		}
	}
	t.less.clear()
	for s, w := range t.ways.of {
		if w != most {
			t.less.merge(&t.at[s])
		}
	}
	within := func(at int) bool { return t.ways.of[at] == most }
	if len(to.entered) > 0 && within(to.at) {
		t.less.add(to.entered)
	}
	t.settle(to, most, within, &t.all)
}

func (c *census) clear() {
	clear(c.keys)
	c.all = 0
}

func (c *census) merge(other *census) {
	for k, n := range other.keys {
		c.keys[k] += n
	}
	c.all += other.all
}

// settle counts the packets of senders to one end port that all go the same
// way; t.less holds those of them that do not count. Within tells at which
// switches the senders are.
func (t *tally) settle(to *end, w way, within func(at int) bool, senders *census) {
	if w.last == nil {
		t.counts[w.end] += uint64(senders.all - t.less.all)
		return
	}
	behind := w.last
	if w.last.Num != 0 {
		behind = w.last.Peer
	}
	// A sender that is the wrong destination itself gets its own packets sent
	// back: a switch does not do that, and its own do not go to its default port
	// when that is itself.
	if i, known := t.place[behind]; known && behind != to.port {
		e, own := &t.ends[i], behind == w.last
		_, end := back(w.last, to.port.Info.LID)
		if len(e.entered) > 0 && within(e.at) && e.at == t.ways.number[w.last.Node] && (!own || end == NoRoute) {
			t.less.add(e.entered)
			t.counts[end] += uint64(len(e.entered))
		}
	}
	t.bases = t.bases[:0]
	for _, p := range []*observed.Port{w.last, behind} {
		if p != nil {
			for _, k := range p.PKeys {
				if k.IsValid() {
					t.bases = append(t.bases, k.Base())
				}
			}
		}
	}
	slices.Sort(t.bases)
	left := senders.all - t.less.all
	for _, base := range slices.Compact(t.bases) {
		for _, k := range []ib.PKey{base.Limited(), base.Full()} {
			if n := senders.keys[k] - t.less.keys[k]; n > 0 {
				t.counts[w.deliver(to.port, behind, k)] += uint64(n)
				left -= n
			}
		}
	}
	if left > 0 {
		t.counts[w.deliver(to.port, behind, 0)] += uint64(left) // of no partition that is known there
	}
}

// ByName gives the counts by the names of the dispositions.
func (c *Counts) ByName() map[string]uint64 {
	out := make(map[string]uint64, len(c))
	for d, n := range c {
		out[Disposition(d).String()] = n
	}
	return out
}
