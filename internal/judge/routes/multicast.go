package routes

import (
	"math/bits"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// ReadGroups are the multicast groups that the forwarding tables of switches know, with
// the levels that sls tells of each MLID.
func ReadGroups(f *observed.Fabric, sls func(ib.LID) SLs) []Group {
	return WantedGroups(f, observed.NewDesired(f), sls)
}

// WantedGroups are those of d, and of what was read where d leaves a switch alone.
func WantedGroups(f *observed.Fabric, d *observed.Desired, sls func(ib.LID) SLs) []Group {
	known := map[ib.LID]bool{}
	tables := make([]copies, len(f.Nodes))
	for _, n := range f.Switches() {
		t := &tables[n.Index]
		t.blocks, t.primary, t.notPrimary = n.Switch.MFT, n.Switch.Info.DefaultMulticastPrimaryPort, n.Switch.Info.DefaultMulticastNotPrimaryPort
		t.last = n.MFTBlocks()*smp.MLIDsPerBlock - 1
		if w := d.Nodes[n.Index].Multicast; w != nil {
			t.blocks, t.primary, t.notPrimary = w.Blocks, w.Primary, w.NotPrimary
			t.last = int(w.Top) - int(ib.LIDMulticastMin)
		}
		for modifier, b := range t.blocks {
			block, _, _ := smp.SplitMFTModifier(modifier)
			for i, mask := range b.Masks {
				if at := int(block)*smp.MLIDsPerBlock + i; mask != 0 && at <= t.last {
					known[ib.LIDMulticastMin+ib.LID(at)] = true
				}
			}
		}
	}
	var out []Group
	for mlid := range known {
		out = append(out, Group{MLID: mlid, SLs: sls(mlid), Exits: func(n *observed.Node, in ib.PortNum) []ib.PortNum {
			return tables[n.Index].exits(n, mlid, in)
		}})
	}
	slices.SortFunc(out, func(a, b Group) int { return int(a.MLID) - int(b.MLID) })
	return out
}

// copies is what a switch does with multicast packets.
type copies struct {
	blocks              map[uint32]smp.MulticastForwardingTable
	last                int // the last entry that counts
	primary, notPrimary ib.PortNum
}

func (t *copies) exits(n *observed.Node, mlid ib.LID, in ib.PortNum) (out []ib.PortNum) {
	block, index := smp.MFTPlace(mlid)
	some := false
	for position := 0; position < n.MFTPositions() && int(mlid-ib.LIDMulticastMin) <= t.last; position++ {
		b := t.blocks[smp.MFTModifier(block, uint8(position))]
		for mask := b.Masks[index]; mask != 0; mask &= mask - 1 {
			some = true
			if port := ib.PortNum(position*smp.PortsPerPosition + bits.TrailingZeros16(uint16(mask))); port != in {
				out = append(out, port)
			}
		}
	}
	if some {
		return out
	}
	exit := t.primary
	if in == exit {
		exit = t.notPrimary
	}
	if exit == in || !n.LeadsSomewhere(exit) {
		return nil
	}
	return []ib.PortNum{exit}
}

// spread is the way of the packets of one group.
type spread struct {
	j     *Job
	group *Group
	// into are, by link, the levels that go over it by each lane.
	into map[int32]*[16]SLs
	// waits are the channels that wait for each other because of the group, in pairs.
	waits [][2]int32
	drops map[dropKey]bool
	used  uint16
}

// spread finds the ways of the packets that any end port, of CAs, routers and switches,
// sends to the group.
func (j *Job) spread(g *Group) *spread {
	x := &spread{j: j, group: g, into: map[int32]*[16]SLs{}, drops: map[dropKey]bool{}}
	var queue []state // link and what is new of it
	leave := func(s int32, from state) {
		for _, out := range g.Exits(j.switches[s], from.in) {
			queue = x.leave(s, from, out, queue)
		}
	}
	for s, n := range j.switches {
		if len(g.Exits(n, ib.PortNone)) == 0 {
			continue
		}
		for _, i := range j.at[s] {
			if e := &j.ends[i]; !e.isSwitch() || j.in.Talk != Hosts {
				leave(int32(s), state{link: -1, in: e.exit, set: g.SLs})
			}
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		leave(j.links[queue[0].link].to, queue[0])
	}
	return x
}

// state are packets of the group that came into a switch by a port.
type state struct {
	link int32 // by which they came; -1 where they start
	in   ib.PortNum
	lane uint8 // of link
	set  SLs
}

// leave sends a copy out by a port. What goes over a link for the first time is appended to
// the queue.
func (x *spread) leave(s int32, from state, out ib.PortNum, queue []state) []state {
	j := x.j
	n := j.switches[s]
	if out == 0 || int(out) >= len(n.Ports) || !n.Ports[out].IsTrained() {
		return queue
	}
	slot := int(j.slots[s][out])
	m := j.mapping(s, from.in, out)
	var sets [16]SLs
	for set := from.set; set != 0; set &= set - 1 {
		sl := bits.TrailingZeros16(uint16(set))
		switch lane := m[sl]; {
		case lane == dropped:
			x.drops[dropKey{s, from.in, out, ib.SL(sl)}] = true
		case slot < j.degree:
			sets[lane] |= 1 << sl
		}
	}
	if slot == j.degree {
		return queue
	}
	link := j.firstLink[s] + int32(slot)
	have := x.into[link]
	if have == nil {
		have = new([16]SLs)
		x.into[link] = have
	}
	lanes := int32(len(j.vls))
	for lane, set := range sets {
		if set == 0 {
			continue
		}
		x.used |= 1 << lane
		if from.link >= 0 {
			x.waits = append(x.waits, [2]int32{from.link*lanes + int32(from.lane), link*lanes + int32(lane)})
		}
		if more := set &^ have[lane]; more != 0 {
			have[lane] |= more
			queue = append(queue, state{link: link, in: j.entry[link], lane: uint8(lane), set: more})
		}
	}
	return queue
}

// circle is a circle of links over which copies of a packet of the group go round; nil when
// there is none.
func (x *spread) circle() []*observed.Port {
	lanes := int32(len(x.j.vls))
	after := map[int32][]int32{}
	for _, w := range x.waits {
		after[w[0]/lanes] = append(after[w[0]/lanes], w[1]/lanes)
	}
	state := map[int32]uint8{}
	var path []int32
	var visit func(int32) []int32
	visit = func(l int32) []int32 {
		state[l] = onPath
		path = append(path, l)
		for _, n := range after[l] {
			if state[n] == onPath {
				return path[slices.Index(path, n):]
			}
			if state[n] == unseen {
				if got := visit(n); got != nil {
					return got
				}
			}
		}
		state[l] = seen
		path = path[:len(path)-1]
		return nil
	}
	for l := range int32(len(x.j.links)) {
		if _, taken := x.into[l]; taken && state[l] == unseen {
			if got := visit(l); got != nil {
				var out []*observed.Port
				for _, l := range got {
					out = append(out, x.j.links[l].out)
				}
				return out
			}
		}
	}
	return nil
}

// enterGroups enters groups among what was found.
func (j *Job) enterGroups(groups []Group, d *dependencies, f *found) {
	lanes := int32(len(j.vls))
	for i := range groups {
		g := &groups[i]
		x := j.spread(g)
		for k := range x.drops {
			f.addDrop(k, g.MLID)
		}
		d.used |= x.used
		if circle := x.circle(); circle != nil {
			f.addLoop(circle, g.MLID, nil)
			continue
		}
		for _, w := range x.waits {
			d.add(w[0]/lanes, uint8(w[0]%lanes), w[1]/lanes, uint8(w[1]%lanes))
		}
	}
}
