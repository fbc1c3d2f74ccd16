package routes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// opinion is the second opinion: what every single packet of every pair does.
type opinion struct {
	in                           *Input
	pairs, reached, apart, links uint64
	longest                      int
	waits                        map[[2]Channel]bool
	loops                        map[string]int // LIDs
	drops                        map[string]bool
	unleveled                    map[string]bool
	used                         map[ib.VL]bool
	far                          map[*observed.Node]map[*observed.Node]bool
	levels                       map[*observed.Port]SLs
	byNode                       map[*observed.Node]SLs
}

// brute follows all packets.
func brute(in *Input) *opinion {
	o := &opinion{
		in: in, waits: map[[2]Channel]bool{}, loops: map[string]int{}, drops: map[string]bool{}, unleveled: map[string]bool{},
		used: map[ib.VL]bool{}, far: map[*observed.Node]map[*observed.Node]bool{}, levels: map[*observed.Port]SLs{}, byNode: map[*observed.Node]SLs{},
	}
	ports := map[*observed.Port]bool{}
	for _, e := range in.Ends {
		ports[e.Port] = true
	}
	for _, e := range in.Ends {
		for lid := e.LID; lid <= e.last(); lid++ {
			circles := map[string]bool{}
			for from := range ports {
				if from != e.Port && o.talks(from, e.Port) {
					o.pair(from, e.Port, lid, circles)
				}
			}
			// Packets of others could get there too: a loop counts wherever it is.
			if o.heard(e.Port, ports) {
				for _, n := range in.Fabric.Switches() {
					o.route(n, 0, e.Port, lid, circles)
				}
			}
			for c := range circles {
				o.loops[c]++
			}
		}
	}
	for p := range ports {
		o.atHost(p)
	}
	for i := range in.Groups {
		o.group(&in.Groups[i], ports)
	}
	return o
}

func isSwitch(p *observed.Port) bool { return p.Node.Switch != nil }

func (o *opinion) talks(a, b *observed.Port) bool {
	switch o.in.Talk {
	case Everybody:
		return true
	case Hosts:
		return !isSwitch(a) && !isSwitch(b)
	}
	self := o.in.Fabric.Self
	return !isSwitch(a) || !isSwitch(b) || a == self || b == self
}

// heard reports whether anybody would send to p.
func (o *opinion) heard(p *observed.Port, _ map[*observed.Port]bool) bool {
	return o.in.Talk != Hosts || !isSwitch(p)
}

// firstSwitch is where packets of p enter, and by which port.
func firstSwitch(p *observed.Port) (*observed.Node, ib.PortNum) {
	if isSwitch(p) {
		return p.Node, 0
	}
	if p.Peer == nil || !p.IsUp() || !p.Peer.IsUp() || !isSwitch(p.Peer) || p.Peer.Num == 0 {
		return nil, 0
	}
	return p.Peer.Node, p.Peer.Num
}

func (o *opinion) joined(a, b *observed.Node) bool {
	if o.far[a] == nil {
		seen := map[*observed.Node]bool{a: true}
		for queue := []*observed.Node{a}; len(queue) > 0; queue = queue[1:] {
			for i := 1; i < len(queue[0].Ports); i++ {
				if p := &queue[0].Ports[i]; p.Peer != nil && p.IsUp() && p.Peer.IsUp() && isSwitch(p.Peer) && !seen[p.Peer.Node] {
					seen[p.Peer.Node] = true
					queue = append(queue, p.Peer.Node)
				}
			}
		}
		o.far[a] = seen
	}
	return o.far[a][b]
}

// step is one switch on the way of a packet.
type step struct {
	in, out *observed.Port // in is nil for the switch's own packets
	between bool           // the packet goes on to a switch
}

// route is the way of packets for a LID by the tables alone.
func (o *opinion) route(at *observed.Node, in ib.PortNum, to *observed.Port, lid ib.LID, circles map[string]bool) (steps []step, why Why) {
	for {
		t := &o.in.Tables[at.Index]
		if int(lid)/64 < len(t.Unread) && t.Unread[lid/64] {
			return steps, NotRead
		}
		out := ib.PortNone
		if int(lid) < len(t.Exits) {
			out = t.Exits[lid]
		}
		isDefault := int(lid) < len(t.Default) && t.Default[lid]
		arrived := len(steps) > 0
		if arrived && isDefault && out == in {
			return steps, NoEntry
		}
		if at == to.Node && out == 0 && to.Num == 0 {
			return steps, Delivered
		}
		if out == 0 {
			return steps, WrongPort
		}
		if int(out) >= len(at.Ports) {
			return steps, NoEntry
		}
		p := &at.Ports[out]
		var from *observed.Port
		if in != 0 {
			from = &at.Ports[in]
		}
		switch {
		case p.Peer == to && p.IsUp() && to.IsUp():
			return append(steps, step{from, p, false}), Delivered
		case p.Peer == nil:
			return steps, NoCable
		case !p.IsUp() || !p.Peer.IsUp():
			return steps, LinkDown
		case !isSwitch(p.Peer):
			return append(steps, step{from, p, false}), WrongPort
		}
		for i, s := range steps {
			if s.out.Node == at {
				var names []string
				for _, x := range steps[i:] {
					names = append(names, fmt.Sprintf("%d:%d", x.out.Node.Index, x.out.Num))
				}
				circles[turned(names)] = true
				return nil, Loop
			}
		}
		steps = append(steps, step{from, p, true})
		at, in = p.Peer.Node, p.Peer.Num
	}
}

// turned is a circle beginning with its least.
func turned(names []string) string {
	i := slices.Index(names, slices.Min(names))
	return strings.Join(append(slices.Clone(names[i:]), names[:i]...), " ")
}

func (o *opinion) lanes(p *observed.Port) int { return min(o.in.VLs(p), o.in.VLs(p.Peer)) }

func (o *opinion) vl(out *observed.Port, in ib.PortNum, sl ib.SL) ib.VL {
	m := o.in.Lanes(out)
	if t, ok := m.In[in]; ok {
		return t.VLs[sl]
	}
	if m.Every != nil {
		return m.Every.VLs[sl]
	}
	return 0
}

func (o *opinion) pair(from, to *observed.Port, lid ib.LID, circles map[string]bool) {
	at, in := firstSwitch(from)
	last, _ := firstSwitch(to)
	connected := at != nil && last != nil && o.joined(at, last)
	if connected {
		o.pairs++
	} else {
		o.apart++
	}
	if at == nil {
		return
	}
	steps, why := o.route(at, in, to, lid, circles)
	if connected && why == Delivered {
		o.reached++
		n := 0
		for _, s := range steps {
			if s.between {
				n++
			}
		}
		o.links += uint64(n)
		o.longest = max(o.longest, n)
	}
	if why == Loop {
		return
	}
	var set SLs
	if o.in.Levels.Each != nil {
		set = o.in.Levels.Each(from, lid)
	} else {
		layer := 0
		if rows := o.in.Levels.Layer; rows != nil && last != nil {
			if row := rows[o.in.Levels.Place[at.Index]]; int(o.in.Levels.Place[last.Index]) < len(row) {
				layer = int(row[o.in.Levels.Place[last.Index]])
			}
		}
		if layer < len(o.in.Levels.Of) {
			set = o.in.Levels.Of[layer]
		} else if layer == 0 {
			set = 1
		}
		if set == 0 && connected {
			o.unleveled[at.Name()] = true
		}
	}
	if connected {
		o.levels[from] |= set
		o.byNode[at] |= set
	}
	for sl := range ib.SL(16) {
		if set>>sl&1 == 0 {
			continue
		}
		var before Channel
		for _, s := range steps {
			num := ib.PortNum(0)
			if s.in != nil {
				num = s.in.Num
			}
			vl := o.vl(s.out, num, sl)
			if int(vl) >= o.lanes(s.out) {
				if !connected { // nobody can expect them to arrive
					break
				}
				o.drops[fmt.Sprintf("%d:%d from %d SL %d", s.out.Node.Index, s.out.Num, num, sl)] = true
				break
			}
			if !s.between {
				break
			}
			now := Channel{s.out, vl}
			o.used[vl] = true
			if before.Out != nil {
				o.waits[[2]Channel{before, now}] = true
			}
			before = now
		}
	}
}

func (o *opinion) atHost(p *observed.Port) {
	if at, _ := firstSwitch(p); at == nil || isSwitch(p) {
		return
	}
	set := o.levels[p]
	if at, _ := firstSwitch(p); o.in.Levels.Each == nil {
		set = o.byNode[at] // packets of one switch to a LID have one layer
	}
	if o.in.Levels.Each == nil && o.in.Levels.Layer == nil {
		set = 1
		if o.in.Levels.Of != nil {
			set = o.in.Levels.Of[0]
		}
	}
	for sl := range ib.SL(16) {
		if set>>sl&1 != 0 && int(o.vl(p, 0, sl)) >= o.lanes(p) {
			o.drops[fmt.Sprintf("%d:%d from 0 SL %d", p.Node.Index, p.Num, sl)] = true
		}
	}
}

// copied is a copy of a multicast packet that came in.
type copied struct {
	at *observed.Node
	in ib.PortNum
	by Channel
	sl ib.SL
}

func (o *opinion) group(g *Group, ports map[*observed.Port]bool) {
	seen := map[copied]bool{}
	var queue []copied
	for p := range ports {
		at, in := firstSwitch(p)
		if at == nil || isSwitch(p) && o.in.Talk == Hosts {
			continue
		}
		for sl := range ib.SL(16) {
			if g.SLs>>sl&1 != 0 {
				queue = append(queue, copied{at: at, in: in, sl: sl})
			}
		}
	}
	waits, after := map[[2]Channel]bool{}, map[*observed.Port]map[*observed.Port]bool{}
	for ; len(queue) > 0; queue = queue[1:] {
		c := queue[0]
		if seen[c] {
			continue
		}
		seen[c] = true
		for _, out := range g.Exits(c.at, c.in) {
			if out == 0 || int(out) >= len(c.at.Ports) {
				continue
			}
			p := &c.at.Ports[out]
			if p.Peer == nil || !p.IsUp() || !p.Peer.IsUp() {
				continue
			}
			vl := o.vl(p, c.in, c.sl)
			if int(vl) >= o.lanes(p) {
				o.drops[fmt.Sprintf("%d:%d from %d SL %d", p.Node.Index, p.Num, c.in, c.sl)] = true
				continue
			}
			if !isSwitch(p.Peer) || p.Peer.Num == 0 {
				continue
			}
			now := Channel{p, vl}
			o.used[vl] = true
			if c.by.Out != nil {
				waits[[2]Channel{c.by, now}] = true
				if after[c.by.Out] == nil {
					after[c.by.Out] = map[*observed.Port]bool{}
				}
				after[c.by.Out][p] = true
			}
			queue = append(queue, copied{p.Peer.Node, p.Peer.Num, now, c.sl})
		}
	}
	for p := range after {
		if reaches(after, p, p) {
			o.loops[fmt.Sprintf("group %d", g.MLID)] = 1
			return
		}
	}
	maps.Copy(o.waits, waits)
}

// reaches reports whether to comes after from, over at least one step.
func reaches[T comparable](after map[T]map[T]bool, from, to T) bool {
	seen := map[T]bool{}
	queue := []T{from}
	for ; len(queue) > 0; queue = queue[1:] {
		for n := range after[queue[0]] {
			if n == to {
				return true
			}
			if !seen[n] {
				seen[n] = true
				queue = append(queue, n)
			}
		}
	}
	return false
}

// deadlocks reports whether any channel waits for itself in the end.
func (o *opinion) deadlocks() bool {
	after := map[Channel]map[Channel]bool{}
	for w := range o.waits {
		if after[w[0]] == nil {
			after[w[0]] = map[Channel]bool{}
		}
		after[w[0]][w[1]] = true
	}
	for c := range after {
		if reaches(after, c, c) {
			return true
		}
	}
	return false
}
